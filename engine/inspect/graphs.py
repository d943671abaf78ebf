"""The control flow of a kernel before and after a pass, in one graph.

    compiled = inspect.capture_kernel(k, ("cpu",), launch=False).backends[0].compile
    for run in compiled.runs:
        for graph in graphs.pass_graphs(compiled, run):
            print(graph.name, graph.summary())

The graphs of a run are built from the IR before and after it, those of `cfg_optimization` with live
memory: a compile records none, and earlier versions did. Blocks are matched by the ops that they
share, then by their label. Each has a state:

* ``same``: the same ops with the same text; ``moved``: the same, elsewhere in the order of blocks;
* ``changed``: its ops differ; ``lines`` says how;
* ``added`` / ``removed``: it is in one of the graphs only.

`loops_of` finds the loops of a graph by its back edges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import msgspec
from msgspec.structs import replace

from ..named_tuple import NamedTuple
from .increasing import increasing
from .ir_graphs import WHOLE, Graph, GraphError, graphs_of, live_graphs, live_graphs_of
from .record import CfgNode, CfgRecord, CompileRecord, PassRun, Snapshot

__all__ = [
    "BlockDiff", "BlockLine", "EdgeDiff", "Graph", "GraphDiff", "GraphError", "Loop",
    "compare_graphs", "graphs_of", "live_graphs", "live_graphs_of", "loops_of", "pass_graphs",
]  # fmt: skip


class BlockLine(msgspec.Struct, frozen=True):
    """An op of a block. kind: same, changed, added, removed, moved (within the block, or from block
    ``other``), left (it is in block ``other`` now).

    text: as it is after the pass, or before it if it is gone. before: the text before, if it
    differs. other: index into `GraphDiff.blocks`; -1 for none.
    """

    kind: str
    op: int
    text: str
    before: str = ""
    other: int = -1


class BlockDiff(msgspec.Struct, frozen=True):
    """A block. before, after: its number in each graph, -1 for none. ops: their number now."""

    state: str
    before: int
    after: int
    label: str
    lines: tuple[BlockLine, ...]
    live_out: tuple[int, ...] = ()
    live_more: int = 0
    parallel: bool = False
    depth: int = 0

    @property
    def live(self) -> str:
        """The ops that are live at the end: ``$3 $4 5 more``."""
        more = [f"{self.live_more} more"] if self.live_more else []
        return " ".join([*(f"${op}" for op in self.live_out), *more])

    @property
    def ops(self) -> int:
        return sum(line.kind not in ("removed", "left") for line in self.lines)

    @property
    def title(self) -> str:
        """``3 then $4``; with the number before the pass if that was another."""
        number = str(self.after if self.after >= 0 else self.before)
        if 0 <= self.before != self.after >= 0:
            number += f" (was {self.before})"
        return " ".join(filter(None, (number, self.label, "parallel" if self.parallel else "")))

    def summary(self) -> str:
        """``+1 -2 ~1``; empty if no op differs."""
        return _summary(line.kind for line in self.lines)


class EdgeDiff(msgspec.Struct, frozen=True):
    """An edge between two blocks, by index. state: same, added or removed."""

    source: int
    target: int
    state: str


class GraphDiff(msgspec.Struct, frozen=True):
    """Both graphs in one: blocks in program order, those that were removed where they were."""

    name: str
    blocks: tuple[BlockDiff, ...]
    edges: tuple[EdgeDiff, ...]

    @property
    def changed(self) -> bool:
        """True if a block or an edge differs."""
        return any(b.state != "same" for b in self.blocks) or any(
            e.state != "same" for e in self.edges
        )

    def summary(self) -> str:
        """``2 of 14 blocks differ: +3 -1 ~2``."""
        differing = sum(b.state != "same" for b in self.blocks)
        n = len(self.blocks)
        if not self.changed:
            return f"{_count(n, 'block')}, none differs"
        ops = _summary(line.kind for block in self.blocks for line in block.lines)
        text = f"{differing} of {_count(n, 'block')} differ" + ("s" if differing == 1 else "")
        return f"{text}: {ops}" if ops else text


class Loop(NamedTuple):
    """A loop: the blocks [first, last], and its depth from 0."""

    first: int
    last: int
    depth: int


def _count(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"


def _summary(kinds: Iterable[str]) -> str:
    count = Counter(kinds)
    signs = (("+", "added"), ("-", "removed"), ("~", "changed"))
    parts = [f"{sign}{count[kind]}" for sign, kind in signs if count[kind]]
    if count["moved"]:
        parts.append(f"moved {count['moved']}")
    return " ".join(parts)


# ---- graphs of a run


def pass_graphs(
    compiled: CompileRecord,
    run: PassRun,
    graphs: Callable[[Snapshot], tuple[Graph, ...]] = graphs_of,
    live: Callable[[Snapshot], tuple[Graph, ...]] = live_graphs_of,
) -> tuple[GraphDiff, ...]:
    """The graphs that ``run`` changed; if it changed none, all that it ran on.

    graphs, live: make the graphs of a listing. Raises GraphError.
    """
    origins = {int(op): origin for op, origin in compiled.origins.items()}
    out = [
        compare_graphs(f"task {before.task}", before, after, origins)
        for before, after in live_graphs(compiled, run, live)
    ]
    if not out and compiled.snapshots:
        old = {g.key: g for g in graphs(compiled.snapshots[run.before])}
        new = {g.key: g for g in graphs(compiled.snapshots[run.after])}
        if run.before != run.after and old.keys() != new.keys():
            return _of_other_tasks(compiled, run, origins)
        out = [
            compare_graphs(g.name, old[key].record, g.record, origins)
            for key, g in new.items()
            if run.state == "changed" or run.task is None or g.name == f"task {run.task}"
        ]
    return tuple([g for g in out if g.changed] or out)


def _of_other_tasks(
    compiled: CompileRecord, run: PassRun, origins: Mapping[int, int]
) -> tuple[GraphDiff, ...]:
    """A pass that makes, joins or removes tasks: the graph of the whole kernel."""
    sides: list[dict[str, CfgRecord]] = []
    for index in (run.before, run.after):
        snapshot = compiled.snapshots[index]
        sides.append({g.name: g.record for g in _whole(snapshot)})
    old, new = sides
    none = CfgRecord(stage="", task=WHOLE, when="", nodes=())
    out = [
        compare_graphs(name, old.get(name, none), new.get(name, none), origins)
        for name in dict.fromkeys((*new, *old))
    ]
    return tuple([g for g in out if g.changed] or out)


def _whole(snapshot: Snapshot) -> list[Graph]:
    """The graphs of the kernel with all of its tasks, and of its functions."""
    several = graphs_of(snapshot)
    tasks = [g for g in several if isinstance(g.key, int)]
    if not tasks:
        return list(several)
    nodes: list[CfgNode] = []
    for graph in tasks:
        base = len(nodes)
        last = graph is tasks[-1]
        for node in graph.record.nodes:
            label = f"{graph.name} {node.label}" if node.label in ("start", "final") else node.label
            follow = tuple(n + base for n in node.next)
            if node.label == "final" and not last:
                follow = (base + len(graph.record.nodes),)
            nodes.append(replace(
                node, id=node.id + base, label=label, next=follow,
                prev=tuple(n + base for n in node.prev),
            ))  # fmt: skip
    whole = CfgRecord(stage="", task=WHOLE, when="", nodes=tuple(nodes))
    return [Graph("kernel", "kernel", whole), *(g for g in several if not isinstance(g.key, int))]


# ---- both in one


def compare_graphs(
    name: str, before: CfgRecord, after: CfgRecord, origins: Mapping[int, int] | None = None
) -> GraphDiff:
    """Both graphs in one. origins: replacement op -> the op that it replaced."""
    return _Comparison(name, before, after, origins or {}).result()


class _Comparison:
    def __init__(
        self, name: str, before: CfgRecord, after: CfgRecord, origins: Mapping[int, int]
    ) -> None:
        self.name = name
        self.old, self.new = before.nodes, after.nodes
        self.old_home = {op: i for i, node in enumerate(self.old) for op in node.ops}
        self.new_home = {op: i for i, node in enumerate(self.new) for op in node.ops}
        self.origins = self._origins(origins)
        self.now_of = {old: new for new, old in self.origins.items()}
        self.pairs = self._matched()
        """Index after -> index before."""
        self.back = {b: a for a, b in self.pairs.items()}
        self.order = self._order()
        """(before, after), -1 for none, in the order of the result."""
        self.at_new = {a: i for i, (_, a) in enumerate(self.order) if a >= 0}
        self.at_old = {b: i for i, (b, _) in enumerate(self.order) if b >= 0}

    def _origins(self, origins: Mapping[int, int]) -> dict[int, int]:
        """New op -> the op of the graph before that it replaced."""
        out: dict[int, int] = {}
        taken: set[int] = set()
        for op in self.new_home:
            if op in self.old_home:
                continue
            source = origins.get(op)
            while source is not None and source not in self.old_home:
                source = origins.get(source)
            if source is not None and source not in self.new_home and source not in taken:
                out[op] = source
                taken.add(source)
        return out

    def _matched(self) -> dict[int, int]:
        votes: Counter[tuple[int, int]] = Counter()
        for a, node in enumerate(self.new):
            for op in node.ops:
                b = self.old_home.get(self.origins.get(op, op))
                if b is not None:
                    votes[a, b] += 1
        pairs: dict[int, int] = {}
        taken: set[int] = set()

        def rank(item: tuple[tuple[int, int], int]) -> tuple[int, bool, int, int]:
            (a, b), n = item
            return -n, self.new[a].label != self.old[b].label, abs(a - b), a

        for (a, b), _ in sorted(votes.items(), key=rank):
            if a not in pairs and b not in taken:
                pairs[a] = b
                taken.add(b)
        self._match_labels(pairs, taken)
        return pairs

    def _match_labels(self, pairs: dict[int, int], taken: set[int]) -> None:
        """Pair the rest, such as empty blocks, with those of the same label between the same
        neighbours."""
        bounds: list[int] = []
        bound = len(self.old)
        for a in range(len(self.new) - 1, -1, -1):
            bound = pairs.get(a, bound)
            bounds.append(bound)
        bounds.reverse()
        low = -1
        for a, node in enumerate(self.new):
            if a not in pairs:
                high = bounds[a + 1] if a + 1 < len(bounds) else len(self.old)
                for b in range(low + 1, high):
                    if b not in taken and self.old[b].label == node.label:
                        pairs[a] = b
                        taken.add(b)
                        break
            low = pairs.get(a, low)

    def _order(self) -> list[tuple[int, int]]:
        order = [(self.pairs.get(a, -1), a) for a in range(len(self.new))]
        for b in range(len(self.old)):
            if b not in self.back:
                at = next((i for i, (old, _) in enumerate(order) if b and old == b - 1), -1)
                order.insert(at + 1, (b, -1))
        return order

    def result(self) -> GraphDiff:
        positions = [b for b, a in self.order if a >= 0 and b >= 0]
        stay = {positions[i] for i in increasing(positions)}
        blocks = tuple(self._block(b, a, b not in stay) for b, a in self.order)
        return GraphDiff(self.name, blocks, self._edges())

    def _edges(self) -> tuple[EdgeDiff, ...]:
        old = [(self.at_old[i], self.at_old[j]) for i, j in _links(self.old)]
        new = [(self.at_new[i], self.at_new[j]) for i, j in _links(self.new)]
        known = set(old), set(new)
        out = [EdgeDiff(*e, "same" if e in known[0] else "added") for e in new]
        out += [EdgeDiff(*e, "removed") for e in old if e not in known[1]]
        return tuple(sorted(out, key=lambda e: (e.source, e.state == "removed")))

    def _block(self, b: int, a: int, moved: bool) -> BlockDiff:
        node = self.new[a] if a >= 0 else self.old[b]
        lines = self._lines(b, a)
        if b < 0 or a < 0:
            state = "added" if b < 0 else "removed"
        elif any(line.kind != "same" for line in lines):
            state = "changed"
        else:
            state = "moved" if moved else "same"
        return BlockDiff(
            state,
            b,
            a,
            node.label,
            tuple(lines),
            node.live_out,
            node.live_more,
            node.parallel,
            node.depth,
        )

    def _lines(self, b: int, a: int) -> list[BlockLine]:
        old, new = self.old[b] if b >= 0 else None, self.new[a] if a >= 0 else None
        texts = dict(zip(old.ops, old.lines, strict=True)) if old is not None else {}
        places = {op: i for i, op in enumerate(texts)}
        gone = [self._gone(op, text) for op, text in texts.items()]
        out: list[BlockLine] = []
        if new is None:
            return [line for line in gone if line is not None]
        ours = [self.origins.get(op, op) for op in new.ops]
        kept = [op for op in ours if op in places]
        stay = {kept[i] for i in increasing([places[op] for op in kept])}
        at = 0
        for op, source, text in zip(new.ops, ours, new.lines, strict=True):
            if source in stay:
                out += [line for line in gone[at : places[source]] if line is not None]
                at = max(at, places[source])
                before = texts[source]
                same = before.strip() == text.strip()
                out.append(BlockLine("same", op, text) if same
                           else BlockLine("changed", op, text, before))  # fmt: skip
            elif source in places:
                out.append(BlockLine("moved", op, text))
            elif source in self.old_home:
                home = self.at_old[self.old_home[source]]
                out.append(BlockLine("moved", op, text, other=home))
            else:
                out.append(BlockLine("added", op, text))
        return [*out, *(line for line in gone[at:] if line is not None)]

    def _gone(self, op: int, text: str) -> BlockLine | None:
        """The line for an op of the block before, if it is not in the block any more."""
        home = self.old_home[op]
        now = self.new_home.get(self.now_of.get(op, op))
        if now is None:
            return BlockLine("removed", op, text)
        if self.pairs.get(now) == home:
            return None
        return BlockLine("left", op, text, other=self.at_new[now])


def _links(nodes: tuple[CfgNode, ...]) -> list[tuple[int, int]]:
    """The edges between nodes, by index."""
    places = {node.id: i for i, node in enumerate(nodes)}
    return [(i, places[j]) for i, node in enumerate(nodes) for j in node.next if j in places]


def loops_of(graph: GraphDiff) -> list[Loop]:
    """The loops, outer ones first: from the target of a back edge to the last block that leads
    back to it."""
    ends: dict[int, int] = {}
    for edge in graph.edges:
        if edge.target <= edge.source:
            ends[edge.target] = max(ends.get(edge.target, 0), edge.source)
    out: list[Loop] = []
    around: list[Loop] = []
    for first in sorted(ends):
        while around and around[-1].last < first:
            around.pop()
        # A block that a pass moved may lead back over the end of another loop.
        last = min(ends[first], around[-1].last) if around else ends[first]
        out.append(Loop(first, last, len(around)))
        around.append(out[-1])
    return out
