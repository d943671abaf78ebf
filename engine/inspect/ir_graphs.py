"""Control-flow graphs of the IR that a record lists: it is read back, and its graphs are built.

A compile records none of them. Those of `cfg_optimization` have the live memory that the pass goes
by.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from ..analysis.cfg import Cfg, build_cfg
from ..analysis.dataflow import LaterLoads, show_live
from ..errors import IRParseError
from ..ir import all_ops, parse, walk
from ..named_tuple import NamedTuple
from .record import CfgNode, CfgRecord, CompileRecord, PassRun, Snapshot

__all__ = ["WHOLE", "Graph", "GraphError", "graphs_of", "live_graphs", "live_graphs_of"]

_HEAD: Final = re.compile(r"((kernel|function) ([^\s(]+)\(.*?)((?: may_alias)?(?: graph)?"
                          r"(?: autodiff=\w+)?(?: global_tmp=\d+)?) \{$")  # fmt: skip
_OWN: Final = "cfg_optimization"
"""The pass whose graphs have live memory."""
WHOLE: Final = -1
"""`CfgRecord.task` of a graph that is not of one task."""


class GraphError(ValueError):
    """The IR of a record cannot be read; the text says why."""


class Graph(NamedTuple):
    """A graph. name: ``task 0``, ``kernel`` or ``function f``. key: the op of the task, or the
    name; the same before and after a pass."""

    name: str
    key: int | str
    record: CfgRecord


def graphs_of(snapshot: Snapshot) -> tuple[Graph, ...]:
    """The graphs of a listing: one a task that repeats none, or one of the kernel before it has
    tasks, without loops that repeat others; then those of the real functions that it calls. Raises
    GraphError."""
    # These graphs need no parameters.
    return _graphs(snapshot, lambda head: f"{head[2]} {head[3]}() stage=typed {{", live=False)


def live_graphs_of(snapshot: Snapshot) -> tuple[Graph, ...]:
    """The graphs of the tasks of a listing, with live memory. Raises GraphError."""
    found = _graphs(snapshot, lambda head: f"{head[1]} stage=typed{head[4]} {{", live=True)
    return tuple([graph for graph in found if isinstance(graph.key, int)])


def _graphs(
    snapshot: Snapshot, header: Callable[[re.Match[str]], str], live: bool
) -> tuple[Graph, ...]:
    """`graphs_of`. header: makes the first line of a function, with a stage, which a listing does
    not say."""
    texts = {op: line.strip() for op, line in zip(snapshot.ids, snapshot.lines, strict=True)}
    heads = (_HEAD.match(line) if op < 0 else None
             for op, line in zip(snapshot.ids, snapshot.lines, strict=True))  # fmt: skip
    lines = [header(head) if head else line
             for head, line in zip(heads, snapshot.lines, strict=True)]  # fmt: skip
    try:
        func = parse("\n".join(lines))
    except IRParseError as error:
        raise GraphError(f"the IR cannot be read: {error.message}") from None
    tasks = func.tasks()
    if not tasks:  # nor has a loop: it is left out
        func.body.ops = [op for op in func.body.ops if op.id in texts
                         and (not op.regions or texts[op.id].endswith("{"))]  # fmt: skip
    # A task that repeats another one has no lines: its graph is that of the other.
    listed = {i: task for i, task in enumerate(tasks) if texts.get(task.id, "{").endswith("{")}
    copies = {op.id for i, task in enumerate(tasks) if i not in listed
              for region in task.regions for op in walk(region)}  # fmt: skip
    if any(op.id not in texts and op.id not in copies for op in all_ops(func)):
        raise GraphError("the IR does not have the ops that it should")
    later = LaterLoads(func) if live else None
    out: list[Graph] = []
    for i, task in listed.items():
        graph = build_cfg(func, task, i)
        if later is not None:
            show_live(func, graph, later.of(task))
        out.append(Graph(f"task {i}", task.id, _record(graph, i, texts)))
    if not tasks:
        out.append(Graph("kernel", "kernel", _record(build_cfg(func), WHOLE, texts)))
    for callee in func.callees.values():
        name = f"function {callee.name}"
        out.append(Graph(name, name, _record(build_cfg(callee), WHOLE, texts)))
    return tuple(out)


def _record(graph: Cfg, task: int, texts: Mapping[int, str]) -> CfgRecord:
    nodes = tuple(
        CfgNode(
            id=node.id,
            ops=tuple([op.id for op in node.ops]),
            lines=tuple([texts[op.id] for op in node.ops]),
            prev=tuple([n.id for n in node.prev]),
            next=tuple([n.id for n in node.next]),
            live_out=tuple([op.id for op in node.live_out]),
            live_more=node.live_more,
            label=node.label,
            parallel=node.parallel,
            depth=node.depth,
        )
        for node in graph.nodes
    )
    return CfgRecord(stage="", task=task, when="", nodes=nodes)


def live_graphs(
    compiled: CompileRecord,
    run: PassRun,
    live: Callable[[Snapshot], tuple[Graph, ...]] = live_graphs_of,
) -> list[tuple[CfgRecord, CfgRecord]]:
    """The graphs of tasks, before and after a run of `cfg_optimization`; none of other passes.

    live: as of `pass_graphs`. Raises GraphError."""
    found = [g for g in compiled.cfgs if g.run == run.index]
    if not found and run.name == _OWN and run.state in ("changed", "noop") and compiled.snapshots:
        old = live(compiled.snapshots[run.before])
        new = live(compiled.snapshots[run.after]) if run.after != run.before else old
        sides = [
            {graph.key: replace(graph.record, stage=run.stage, when=when, run=run.index)
             for graph in side}
            for when, side in (("before", old), ("after", new))
        ]  # fmt: skip
        found = [side[key] for key in sides[1] if key in sides[0] for side in sides
                 if run.task in (None, side[key].task)]  # fmt: skip
    return [(a, b) for a, b in zip(found[::2], found[1::2], strict=False)
            if (a.when, b.when) == ("before", "after")]  # fmt: skip
