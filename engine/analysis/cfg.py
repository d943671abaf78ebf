"""The control-flow graph of a task (or of a function that is not offloaded yet).

Nodes are straight runs of ops of one block; the ops that own regions are between nodes. Edges:

* node before an ``if`` -> first node of each branch; an empty branch: -> node after the ``if``;
* node before a loop -> first node of its body; of a ``range_for`` also -> node after the loop;
* last node of a body, and a node that ends in ``continue`` -> first node of the body; of a
  ``range_for`` also -> node after the loop;
* node that ends in ``while_control`` -> what follows it, and the node after its loop;
* node before a graph region -> first node of its body; last node of the body of a ``do_while`` ->
  its first node and the node after it; node before a checkpoint -> also the node after it, for a
  launch may begin further on; last node of a checkpoint with a condition -> also the final node.
  The sections of a parallel region follow each other in order.

Every block ends in one node. Node 0 is an empty start, the last an empty final node; other empty
nodes with a single edge in or out are left out. Nodes are numbered in program order. A node is
``parallel`` if other iterations may run at the same time: in the body of a parallel task, or of a
root loop before offload. The iterations of a parallel task itself follow each other on no edge.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..ir import Block, Callee, Func, Op
from ..ir import codes as C

__all__ = ["Cfg", "CfgNode", "build_cfg"]


class CfgNode:
    """A straight run of ops.

    ops: in order. label: start, final, body, or the region it belongs to with the op that owns
    it (``then $4``, ``range_for $7``). depth: loops around it, the task not counted. live_out:
    address ops whose memory is live at the end, the first of many; live_more: the number of the
    others. Filled in by `dataflow.show_live`.
    """

    __slots__ = ("_name", "_owner", "block", "depth", "id", "live_more", "live_out", "next",
                 "ops", "parallel", "prev")  # fmt: skip

    def __init__(
        self, block: Block | None, name: str, owner: Op | None, depth: int, parallel: bool
    ) -> None:
        self.id = -1
        self.block = block
        self.ops: list[Op] = []
        self.prev: list[CfgNode] = []
        self.next: list[CfgNode] = []
        self._name = name
        self._owner = owner
        self.depth = depth
        self.parallel = parallel
        self.live_out: tuple[Op, ...] = ()
        self.live_more = 0

    @property
    def label(self) -> str:
        """See above."""
        return self._name if self._owner is None else f"{self._name} ${self._owner.id}"

    def __repr__(self) -> str:
        to = ", ".join(str(n.id) for n in self.next)
        return f"<node {self.id} {self.label}: {len(self.ops)} ops -> {to}>"


class Cfg:
    """A graph. task: the task it belongs to, None before offload."""

    __slots__ = ("nodes", "task", "task_index")

    def __init__(self, nodes: list[CfgNode], task: Op | None, task_index: int) -> None:
        self.nodes = nodes
        self.task = task
        self.task_index = task_index

    @property
    def start(self) -> CfgNode:
        return self.nodes[0]

    @property
    def final(self) -> CfgNode:
        return self.nodes[-1]

    def release(self) -> None:
        """Cut the edges: nodes refer to each other, and to the ops. See `Func.release`."""
        for node in self.nodes:
            node.prev, node.next = [], []

    def lines(self, func: Func) -> list[str]:
        """The graph as text, one line a node and one an op, as ``func`` prints it just now."""
        from ..ir import listing

        printed = listing(func)
        texts = dict(zip(printed.ids, printed.lines, strict=True))
        out: list[str] = []
        for node in self.nodes:
            head = f"Node {node.id} : "
            if node.ops:
                head += f"${node.ops[0].id}~${node.ops[-1].id} (size={len(node.ops)})"
            else:
                head += "empty"
            head += f"; prev={_ids(node.prev)}; next={_ids(node.next)}"
            if node.live_out:
                more = f", {node.live_more} more" if node.live_more else ""
                head += f"; live_out={_ids(node.live_out, '$')[:-1]}{more}}}"
            out.append(head)
            out += [f"  {texts[op.id].strip()}" for op in node.ops]
        return out


def _ids(nodes: Iterable[CfgNode | Op], sign: str = "") -> str:
    return "{" + ", ".join(f"{sign}{n.id}" for n in nodes) + "}"


def build_cfg(func: Func, task: Op | None = None, task_index: int = 0) -> Cfg:
    """The graph of ``task``'s body, or of the whole function if it is None."""
    called = isinstance(func, Callee)  # maybe by several iterations at a time
    builder = _Builder(task is None)
    start = builder.node(None, "start", None, 0, False)
    body = func.body if task is None else task.regions[1]
    parallel = called or (task is not None and task.attr.kind == "range_for")
    _, last = builder.block(body, [start], "body", None, 0, parallel)
    final = builder.node(None, "final", None, 0, False)
    _link([*last, *builder.ends], final)
    graph = Cfg(builder.nodes, task, task_index)
    _drop_empty(graph)
    for number, node in enumerate(graph.nodes):
        node.id = number
    return graph


def _link(sources: Iterable[CfgNode], target: CfgNode) -> None:
    for source in sources:
        if target not in source.next:
            source.next.append(target)
            target.prev.append(source)


class _Builder:
    def __init__(self, root_loops_parallel: bool) -> None:
        self.nodes: list[CfgNode] = []
        self.root_loops_parallel = root_loops_parallel
        self.ends: list[CfgNode] = []  # leave the task: continue of the task itself, return
        self.loops: list[tuple[list[CfgNode], list[CfgNode]]] = []  # continues, breaks

    def node(
        self, block: Block | None, name: str, owner: Op | None, depth: int, parallel: bool
    ) -> CfgNode:
        new = CfgNode(block, name, owner, depth, parallel)
        self.nodes.append(new)
        return new

    def block(
        self, block: Block, entry: list[CfgNode], name: str, owner: Op | None, depth: int,
        parallel: bool,
    ) -> tuple[CfgNode, list[CfgNode]]:  # fmt: skip
        """Add the nodes of a block; return its first node and those where control leaves it."""
        first = current = self.node(block, name, owner, depth, parallel)
        _link(entry, current)
        ops = block.ops
        begin = 0  # of the run of plain ops that goes into the current node
        for i, op in enumerate(ops):
            code = op.code
            if not _SPLITS[code]:
                continue
            if code == C.IF:
                current.ops = ops[begin:i]
                after_from = self.branches(op, current, depth, parallel)
            elif code == C.OFFLOADED:
                inside = op.attr.kind == "range_for"
                current.ops = ops[begin:i]
                after_from = self.block(op.regions[1], [current], "body", None, depth, inside)[1]
            elif code in (C.RANGE_FOR, C.WHILE):
                current.ops = ops[begin:i]
                after_from = self.loop(op, current, depth, parallel, block)
            elif code == C.GRAPH_REGION:
                current.ops = ops[begin:i]
                after_from = self.region(op, current, depth)
            else:
                current.ops = ops[begin : i + 1]
                if code == C.CONTINUE and self.loops:
                    self.loops[-1][0].append(current)
                elif code in (C.CONTINUE, C.RETURN):
                    self.ends.append(current)
                else:
                    self.leave(current)
                if code != C.WHILE_CONTROL:
                    return first, []
                after_from = [current]
            begin = i + 1
            current = self.node(block, name, owner, depth, parallel)
            _link(after_from, current)
        current.ops = ops[begin:]
        return first, [current]

    def leave(self, node: CfgNode) -> None:
        """Note that the innermost loop may be left at the end of ``node``."""
        if self.loops:
            self.loops[-1][1].append(node)

    def branches(self, op: Op, before: CfgNode, depth: int, parallel: bool) -> list[CfgNode]:
        ends: list[CfgNode] = []
        for name, region in zip(_BRANCHES, op.regions, strict=True):
            if region.ops:
                ends += self.block(region, [before], name, op, depth, parallel)[1]
            else:
                ends.append(before)
        return ends

    def region(self, op: Op, before: CfgNode, depth: int) -> list[CfgNode]:
        kind, body = op.attr.kind, op.regions[0]
        again = kind == "do_while"
        first, last = self.block(body, [before], kind, op, depth + again, False)
        if again:
            _link(last, first)
        elif kind == "checkpoint":
            if op.attr.param >= 0:
                self.ends += last
            return [before, *last]
        return last

    def loop(
        self, op: Op, before: CfgNode, depth: int, parallel: bool, block: Block
    ) -> list[CfgNode]:
        owner = block.owner
        at_root = self.root_loops_parallel and (owner is None or owner.code == C.GRAPH_REGION)
        if at_root and op.code == C.RANGE_FOR and not op.attr.strictly_serialized:
            parallel = True
        continues: list[CfgNode] = []
        breaks: list[CfgNode] = []
        self.loops.append((continues, breaks))
        first, last = self.block(op.regions[0], [before], op.name, op, depth + 1, parallel)
        self.loops.pop()
        around = [*last, *continues]
        _link(around, first)
        return breaks if op.code == C.WHILE else [before, *around, *breaks]


_BRANCHES = C.REGION_NAMES[C.IF]
_SPLITS = [
    C.CONTROL[c] or c in (C.WHILE_CONTROL, C.CONTINUE, C.BREAK, C.RETURN) for c in range(C.COUNT)
]


def _drop_empty(graph: Cfg) -> None:
    """Take out empty nodes that only pass control on, and the ones that nothing leads to."""
    nodes = graph.nodes
    kept = [nodes[0]]
    for node in nodes[1:-1]:
        if node.ops or (len(node.prev) > 1 and len(node.next) > 1) or node in node.next:
            kept.append(node)
            continue
        for other in node.prev:
            other.next.remove(node)
        for other in node.next:
            other.prev.remove(node)
        for target in node.next:
            _link(node.prev, target)
    kept.append(nodes[-1])
    graph.nodes = kept
