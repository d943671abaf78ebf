"""The order in which a kernel's tasks run, as a record: what the compiler says, what a device did.

`flow_record` draws `KernelMeta.flow` and is there as soon as a kernel is compiled. `facts_of_graph`
adds what an executable reports after a launch (``graph_facts``): nodes of a device's graph with
their sizes, and how often it was replayed, updated and made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from ..backends.base import Flow
from .record import FlowNode, FlowRecord

if TYPE_CHECKING:
    from ..backends.base import KernelMeta
    from .recorder import Recorder
    from .targets import Target

__all__ = ["facts_of_graph", "flow_record", "graph_facts"]

_HOST: Final = ("cpu", "interp")
_GRAPHS: Final = ("cuda",)
"""Backends whose devices record tasks and replay them; elsewhere the host orders them."""


def flow_record(
    meta: KernelMeta, recorder: Recorder, target: Target, graphs: bool
) -> FlowRecord | None:
    """The order of the tasks; None where they simply come one after the other.

    graphs: the option, without which nothing is recorded as a graph.
    """
    if not (meta.flow or meta.graph):
        return None
    how, why = _way(meta, target, graphs)
    nodes: list[FlowNode] = []
    edges: list[tuple[int, int]] = []
    items = meta.flow or tuple(range(len(meta.tasks)))
    locs = [task.loc for task in recorder.tasks]
    _add(items, -1, meta, locs, nodes, edges, chained=True)
    return FlowRecord(how=how, why=why, nodes=tuple(nodes), edges=tuple(edges))


def _way(meta: KernelMeta, target: Target, graphs: bool) -> tuple[str, str]:
    """The way in which a target runs the tasks, and the reason why not as a graph."""
    on_host = "host" if meta.flow else "launches"
    if not target.launches:
        later = "; on a device it is a graph" if _graph(meta, target, graphs) else ""
        return "none", f"{target.reason}{later}"
    if target.backend in _HOST:
        return "host", f"the {target.backend} backend has no graphs"
    if target.backend not in _GRAPHS:
        return on_host, f"the {target.backend} backend has no graphs"
    if not graphs:
        return on_host, "graph=False"
    if not meta.graph:
        return "launches", "the kernel is not marked graph=True"
    return "graph", ""


def _graph(meta: KernelMeta, target: Target, graphs: bool) -> bool:
    return target.backend in _GRAPHS and graphs and meta.graph


def _add(
    items: Sequence[int | Flow], parent: int, meta: KernelMeta, locs: Sequence[int],
    nodes: list[FlowNode], edges: list[tuple[int, int]], *, chained: bool,
) -> None:  # fmt: skip
    """Add the nodes of ``items``; chained: each waits for the one before."""
    before = -1
    for item in items:
        number = len(nodes)
        if isinstance(item, Flow):
            nodes.append(_part(number, item, parent, meta))
            parallel = item.kind == "parallel"
            _add(item.items, number, meta, locs, nodes, edges, chained=not parallel)
        else:
            nodes.append(_task(number, item, parent, meta, locs))
        if chained and before >= 0:
            edges.append((before, number))
        before = number


def _part(number: int, flow: Flow, parent: int, meta: KernelMeta) -> FlowNode:
    param = meta.params[flow.param].name if flow.param >= 0 else ""
    label = str(meta.labels[flow.label]) if 0 <= flow.label < len(meta.labels) else ""
    return FlowNode(id=number, kind=flow.kind, parent=parent, param=param, label=label)


def _task(number: int, task: int, parent: int, meta: KernelMeta, locs: Sequence[int]) -> FlowNode:
    known = meta.tasks[task]
    loop = known.loop_name if known.loop_name != known.name else ""
    return FlowNode(
        id=number,
        kind="task",
        name=f"{known.kind} {loop}".strip(),
        task=task,
        parent=parent,
        loc=locs[task] if task < len(locs) else -1,
    )


# ---- what a device reports


def graph_facts(executable: object) -> Mapping[str, Any] | None:
    """Return a loaded kernel's facts about its graph; None without a graph or before a launch."""
    ask: Callable[[], Mapping[str, Any] | None] | None = getattr(executable, "graph_facts", None)
    return None if ask is None else ask()


def facts_of_graph(
    flow: FlowRecord | None, facts: Mapping[str, Any], meta: KernelMeta, locs: Sequence[int]
) -> FlowRecord:
    """Return ``flow`` with the facts of a launch; locs: of the tasks, by number."""
    counts = {
        name: int(facts.get(name, 0))
        for name in ("replays", "updates", "rebuilds", "streams", "events")
    }
    flow = msgspec.structs.replace(
        flow or FlowRecord(),
        how=str(facts.get("how", "graph")),
        why=str(facts.get("why", "")),
        **counts,
    )
    known = cast("Sequence[Mapping[str, Any]]", facts.get("nodes", ()))
    if not known:
        return flow
    rounds = {str(k): int(v) for k, v in dict(facts.get("iterations", {})).items()}
    if not flow.nodes:
        return _drawn(flow, known, facts, meta, locs, rounds)
    return msgspec.structs.replace(flow, nodes=tuple(_sized(flow.nodes, known, rounds)))


_KINDS: Final = {"kernel": "task", "while": "do_while", "loop": "do_while"}


def _drawn(
    flow: FlowRecord, known: Sequence[Mapping[str, Any]], facts: Mapping[str, Any],
    meta: KernelMeta, locs: Sequence[int], rounds: Mapping[str, int],
) -> FlowRecord:  # fmt: skip
    """The nodes as the graph has them, for a kernel whose tasks simply follow each other."""
    position = {node["id"]: i for i, node in enumerate(known)}
    nodes: list[FlowNode] = []
    for i, node in enumerate(known):
        task = int(node.get("task", -1))
        kind = str(node.get("kind", "kernel"))
        name = _task(i, task, -1, meta, locs).name if 0 <= task < len(meta.tasks) else ""
        nodes.append(
            FlowNode(
                id=i,
                kind=_KINDS.get(kind, kind),
                name=name or str(node.get("name", "")),
                task=task,
                parent=position.get(node.get("parent", -1), -1),
                grid=max(0, int(node.get("grid", 0))),
                block=int(node.get("block", 0)),
                stream=int(node.get("stream", 0)),
                runs=rounds.get(str(node["id"]), -1),
                loc=locs[task] if 0 <= task < len(locs) else -1,
            )
        )
    edges = [
        (position[a], position[b])
        for a, b in facts.get("edges", ())
        if a in position and b in position
    ]
    return msgspec.structs.replace(flow, nodes=tuple(nodes), edges=tuple(edges))


def _sized(
    nodes: Sequence[FlowNode], known: Sequence[Mapping[str, Any]], rounds: Mapping[str, int]
) -> list[FlowNode]:
    """The compiler's nodes with what the graph says of the same tasks and loops."""
    tasks = {int(n["task"]): n for n in known if int(n.get("task", -1)) >= 0}
    loops = [n for n in known if n.get("kind") in ("while", "loop")]
    inside: set[int] = set()
    out: list[FlowNode] = []
    for node in nodes:
        found = tasks.get(node.task) if node.task >= 0 else None
        if node.parent in inside:
            inside.add(node.id)  # one kernel runs all of the loop
        elif node.kind == "do_while" and loops:
            found = loops.pop(0)
            if found.get("kind") == "loop":
                inside.add(node.id)
            node = msgspec.structs.replace(node, runs=rounds.get(str(found["id"]), -1))
        if found is not None:
            node = msgspec.structs.replace(
                node,
                grid=max(0, int(found.get("grid", 0))),
                block=int(found.get("block", 0)),
                stream=int(found.get("stream", 0)),
            )
        out.append(node)
    return out
