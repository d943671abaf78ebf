"""The functions of the simulated driver for graphs.

Nodes that do not depend on each other run in an order that changes from launch to launch. A
conditional node looks at a number in memory, whose address is its handle; kernels set it.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Sequence
from typing import Any

from cuda.bindings import driver as real

from .api import HANDLE, INVALID, UNSUPPORTED, Refused, api, number
from .api_code import check_shape, kernel_of, values_of
from .api_memory import alive, fill, on_device, stream_of
from .state import Context, Result, state

__all__ = ["Graph", "Node"]

_random = random.Random(11)
_KINDS = real.CUgraphNodeType


class _Launch(tuple[Any, ...]):
    """What a kernel node runs: kernel, blocks, threads, values."""


class Node:
    """A node. kind: of `CUgraphNodeType`. what: its parameters. before: nodes it depends on.

    bodies: graphs of a conditional node or the child graph.
    """

    def __init__(self, graph: Graph, kind: Any, what: Any, before: Sequence[Node]) -> None:
        self.graph = graph
        self.kind = kind
        self.what = what
        self.before = list(before)
        self.bodies: list[Graph] = []
        self.handle = state.number()


class Graph:
    """Nodes in the order they were added. inner: the body of a conditional node."""

    def __init__(self, inner: bool = False) -> None:
        self.nodes: list[Node] = []
        self.inner = inner
        self.handle = state.number()
        self.conditions: list[_Condition] = []


class _Condition:
    """The number that a conditional node looks at. first: what a launch sets it to, or None."""

    def __init__(self, first: int | None) -> None:
        self.value = ctypes.c_uint32(0)
        self.first = first
        self.used = False

    @property
    def handle(self) -> int:
        return ctypes.addressof(self.value)


def _graph(here: Context, handle: Any) -> Graph:
    found = here.graphs.get(number(handle))
    if found is None:
        raise Refused(INVALID)
    return found


def _node(here: Context, handle: Any) -> Node:
    found = here.nodes.get(number(handle))
    if found is None:
        raise Refused(INVALID)
    return found


@api(values=1)
def cuGraphCreate(here: Context, flags: int) -> Any:
    graph = Graph()
    here.graphs[graph.handle] = graph
    return real.CUgraph(graph.handle)


def _forget(here: Context, graph: Graph) -> None:
    here.graphs.pop(graph.handle, None)
    for node in graph.nodes:
        here.nodes.pop(node.handle, None)
        for body in node.bodies:
            _forget(here, body)


@api()
def cuGraphDestroy(here: Context, graph: Any) -> None:
    found = _graph(here, graph)
    if found.inner:
        raise Refused(INVALID)
    _forget(here, found)


def _add(here: Context, graph: Any, kind: Any, what: Any, before: Any, count: int) -> Node:
    found = _graph(here, graph)
    needed = [_node(here, n) for n in list(before or ())[:count]]
    if len(needed) != count or any(n.graph is not found for n in needed):
        raise Refused(INVALID)
    if len({n.handle for n in needed}) != count:
        raise Refused(INVALID)
    node = Node(found, kind, what, needed)
    found.nodes.append(node)
    here.nodes[node.handle] = node
    return node


def _kernel_params(here: Context, params: Any) -> Any:
    kernel = kernel_of(here, params.func)
    grid = params.gridDimX, params.gridDimY, params.gridDimZ
    block = params.blockDimX, params.blockDimY, params.blockDimZ
    check_shape(kernel, grid, block, params.sharedMemBytes)
    return _Launch((kernel, grid[0], block[0], values_of(kernel, params.kernelParams)))


@api(values=1)
def cuGraphAddKernelNode(here: Context, graph: Any, before: Any, count: int, params: Any) -> Any:
    what = _kernel_params(here, params)
    return real.CUgraphNode(
        _add(here, graph, _KINDS.CU_GRAPH_NODE_TYPE_KERNEL, what, before, count).handle
    )


@api(values=1)
def cuGraphAddEmptyNode(here: Context, graph: Any, before: Any, count: int) -> Any:
    kind = _KINDS.CU_GRAPH_NODE_TYPE_EMPTY
    return real.CUgraphNode(_add(here, graph, kind, None, before, count).handle)


def _copy_params(here: Context, params: Any) -> tuple[int, int, int, int, bool]:
    """(to, from, bytes, bitset of which is the device's, from the host)"""
    kinds = real.CUmemorytype
    if params.Height > 1 or params.Depth > 1:
        raise NotImplementedError("the simulator copies one row")
    size = params.WidthInBytes
    there = []
    ends = []
    for side in ("dst", "src"):
        kind = getattr(params, f"{side}MemoryType")
        if kind == kinds.CU_MEMORYTYPE_HOST:
            ends.append(number(getattr(params, f"{side}Host")))
            there.append(False)
        else:
            ends.append(on_device(here, getattr(params, f"{side}Device"), size))
            there.append(True)
        ends[-1] += getattr(params, f"{side}XInBytes")
    return ends[0], ends[1], size, there[0] + 2 * there[1], not there[1]


@api(values=1)
def cuGraphAddMemcpyNode(
    here: Context, graph: Any, before: Any, count: int, params: Any, context: Any
) -> Any:
    what = _copy_params(here, params)
    if _graph(here, graph).inner and what[3] != 3:
        raise Refused(UNSUPPORTED)
    kind = _KINDS.CU_GRAPH_NODE_TYPE_MEMCPY
    return real.CUgraphNode(_add(here, graph, kind, what, before, count).handle)


def _set_params(here: Context, params: Any) -> tuple[int, bytes, int]:
    if params.height > 1:
        raise NotImplementedError("the simulator sets one row")
    size = params.elementSize
    if size not in (1, 2, 4):
        raise Refused(INVALID)
    to = on_device(here, params.dst, size * params.width)
    pattern = (params.value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    return to, pattern, params.width


@api(values=1)
def cuGraphAddMemsetNode(
    here: Context, graph: Any, before: Any, count: int, params: Any, context: Any
) -> Any:
    kind = _KINDS.CU_GRAPH_NODE_TYPE_MEMSET
    what = _set_params(here, params)
    return real.CUgraphNode(_add(here, graph, kind, what, before, count).handle)


def _copy_of(here: Context, graph: Graph) -> tuple[Graph, dict[int, Node]]:
    """A graph like another, and its nodes by the handles of the other's."""
    copied = Graph(graph.inner)
    copied.conditions = graph.conditions
    known: dict[int, Node] = {}
    for node in graph.nodes:
        copy = Node(copied, node.kind, node.what, [known[n.handle] for n in node.before])
        for body in node.bodies:
            copy.bodies.append(_copy_of(here, body)[0])
        copied.nodes.append(copy)
        known[node.handle] = copy
    return copied, known


@api(values=1)
def cuGraphAddChildGraphNode(here: Context, graph: Any, before: Any, count: int, child: Any) -> Any:
    kind = _KINDS.CU_GRAPH_NODE_TYPE_GRAPH
    node = _add(here, graph, kind, None, before, count)
    node.bodies.append(_copy_of(here, _graph(here, child))[0])
    return real.CUgraphNode(node.handle)


@api()
def cuGraphAddDependencies(
    here: Context, graph: Any, sources: Any, targets: Any, data: Any, count: int
) -> None:
    found = _graph(here, graph)
    for a, b in zip(list(sources)[:count], list(targets)[:count], strict=True):
        source, target = _node(here, a), _node(here, b)
        if source.graph is not found or target.graph is not found or source in target.before:
            raise Refused(INVALID)
        target.before.append(source)


@api(values=1)
def cuGraphConditionalHandleCreate(
    here: Context, graph: Any, context: Any, first: int, flags: int
) -> Any:
    if state.configuration.capability < (9, 0) or state.configuration.driver < 12040:
        raise Refused(UNSUPPORTED)
    condition = _Condition(first if flags & 1 else None)
    _graph(here, graph).conditions.append(condition)
    return real.CUgraphConditionalHandle(condition.handle)


# Where in a `CUgraphNodeParams` the address of a conditional node's graphs is written.
_GRAPHS_AT = 32


@api(values=1)
def cuGraphAddNode(here: Context, graph: Any, before: Any, *rest: Any) -> Any:
    # A newer binding has the dependencies' data before their count.
    count, params = rest[-2], rest[-1]
    name = _KINDS(params.type).name.removeprefix("CU_GRAPH_NODE_TYPE_")
    if name == "KERNEL":
        what: Any = _kernel_params(here, params.kernel)
    elif name == "EMPTY":
        what = None
    elif name == "MEMSET":
        what = _set_params(here, params.memset)
    elif name == "MEMCPY":
        what = _copy_params(here, params.memcpy.copyParams)
    elif name == "CONDITIONAL":
        return _conditional(here, graph, before, count, params)
    else:
        raise NotImplementedError(f"the simulator has no graph node {name}")
    return real.CUgraphNode(_add(here, graph, _KINDS(params.type), what, before, count).handle)


def _conditional(here: Context, graph: Any, before: Any, count: int, params: Any) -> Any:
    c = params.conditional
    found = [x for g in here.graphs.values() for x in g.conditions if x.handle == number(c.handle)]
    if not found or found[0].used or c.size != 1:
        raise Refused(INVALID)
    kind = real.CUgraphConditionalNodeType(c.type)
    if kind == real.CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_SWITCH:
        raise NotImplementedError("the simulator has no SWITCH nodes")
    found[0].used = True
    node = _add(here, graph, _KINDS.CU_GRAPH_NODE_TYPE_CONDITIONAL, (kind, found[0]), before, count)
    body = Graph(inner=True)
    node.bodies.append(body)
    here.graphs[body.handle] = body
    node.given = (ctypes.c_void_p * 1)(body.handle)
    ctypes.c_void_p.from_address(params.getPtr() + _GRAPHS_AT).value = ctypes.addressof(node.given)
    return real.CUgraphNode(node.handle)


class _Exec:
    """An instantiated graph.

    source: its nodes, but those in bodies, by the handles of the graph it was made of.
    """

    def __init__(self, here: Context, graph: Graph) -> None:
        self.graph, self.source = _copy_of(here, graph)
        self.original = graph


@api(values=1)
def cuGraphInstantiate(here: Context, graph: Any, flags: int) -> Any:
    handle = state.number()
    here.execs[handle] = _Exec(here, _checked(_graph(here, graph)))
    return real.CUgraphExec(handle)


@api(values=1)
def cuGraphInstantiateWithParams(here: Context, graph: Any, params: Any) -> Any:
    handle = state.number()
    here.execs[handle] = _Exec(here, _checked(_graph(here, graph)))
    return real.CUgraphExec(handle)


def _checked(graph: Graph) -> Graph:
    """Whether its nodes can be put in an order."""
    if graph.inner:
        raise Refused(INVALID)
    _order(graph)
    return graph


def _exec(here: Context, handle: Any) -> _Exec:
    found = here.execs.get(number(handle))
    if found is None:
        raise Refused(HANDLE)
    return found


@api()
def cuGraphExecDestroy(here: Context, handle: Any) -> None:
    _exec(here, handle)
    del here.execs[number(handle)]


@api()
def cuGraphExecKernelNodeSetParams(here: Context, handle: Any, node: Any, params: Any) -> None:
    found = _exec(here, handle).source.get(number(node))
    if found is None or found.kind != _KINDS.CU_GRAPH_NODE_TYPE_KERNEL:
        raise Refused(INVALID)
    found.what = _kernel_params(here, params)


@api()
def cuGraphExecMemcpyNodeSetParams(
    here: Context, handle: Any, node: Any, params: Any, context: Any
) -> None:
    found = _exec(here, handle).source.get(number(node))
    if found is None or found.kind != _KINDS.CU_GRAPH_NODE_TYPE_MEMCPY:
        raise Refused(INVALID)
    found.what = _copy_params(here, params)


@api()
def cuGraphExecMemsetNodeSetParams(
    here: Context, handle: Any, node: Any, params: Any, context: Any
) -> None:
    found = _exec(here, handle).source.get(number(node))
    if found is None or found.kind != _KINDS.CU_GRAPH_NODE_TYPE_MEMSET:
        raise Refused(INVALID)
    found.what = _set_params(here, params)


def _alike(a: Graph, b: Graph) -> bool:
    """Whether they differ in nothing but what their nodes do."""
    if len(a.nodes) != len(b.nodes):
        return False
    place_a = {n: k for k, n in enumerate(a.nodes)}
    place_b = {n: k for k, n in enumerate(b.nodes)}
    for x, y in zip(a.nodes, b.nodes, strict=True):
        if x.kind != y.kind or len(x.bodies) != len(y.bodies):
            return False
        if {place_a[n] for n in x.before} != {place_b[n] for n in y.before}:
            return False
        if not all(_alike(p, q) for p, q in zip(x.bodies, y.bodies, strict=True)):
            return False
    return True


def _update(to: Graph, source: Graph) -> None:
    for x, y in zip(to.nodes, source.nodes, strict=True):
        if x.kind != _KINDS.CU_GRAPH_NODE_TYPE_CONDITIONAL:
            x.what = y.what
        for p, q in zip(x.bodies, y.bodies, strict=True):
            _update(p, q)


@api(values=1)
def cuGraphExecUpdate(here: Context, handle: Any, graph: Any) -> Any:
    found, source = _exec(here, handle), _graph(here, graph)
    if not _alike(found.graph, source):
        raise Refused(Result.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)
    _update(found.graph, source)
    return real.CUgraphExecUpdateResultInfo()


@api(values=2)
def cuGraphGetNodes(here: Context, graph: Any, count: int = 0) -> tuple[list[Any], int]:
    nodes = _graph(here, graph).nodes
    return [real.CUgraphNode(n.handle) for n in nodes[:count]], len(nodes)


def _order(graph: Graph) -> list[Node]:
    """The nodes in an order that their dependencies allow, another one each time."""
    left, done, found = list(graph.nodes), set[Node](), list[Node]()
    while left:
        free = [n for n in left if all(b in done for b in n.before)]
        if not free:
            raise Refused(INVALID)
        node = _random.choice(free)
        left.remove(node)
        done.add(node)
        found.append(node)
    return found


def _plan(here: Context, graph: Graph) -> Callable[[], None]:
    """What runs a graph as it is now."""
    steps: list[Callable[[], None]] = []
    for node in _order(graph):
        name = node.kind.name.removeprefix("CU_GRAPH_NODE_TYPE_")
        if name == "KERNEL":
            steps.append(state.prepare(here, *node.what))
        elif name == "MEMCPY":
            steps.append(_copying(here, *node.what))
        elif name == "MEMSET":
            steps.append(_filling(here, *node.what))
        elif name == "GRAPH":
            steps.append(_plan(here, node.bodies[0]))
        elif name == "CONDITIONAL":
            steps.append(_looping(here, node))

    def run() -> None:
        for step in steps:
            step()

    return run


def _copying(
    here: Context, to: int, source: int, size: int, there: int, _host: bool
) -> Callable[[], None]:
    def run() -> None:
        if here.dead is None:
            ends = [(a, size) for k, a in enumerate((to, source)) if there >> k & 1]
            alive(here, *ends)
            ctypes.memmove(to, source, size)

    return run


def _filling(here: Context, to: int, pattern: bytes, count: int) -> Callable[[], None]:
    def run() -> None:
        if here.dead is None:
            fill(here, to, pattern, count)

    return run


_MOST_ROUNDS = 10_000_000


def _looping(here: Context, node: Node) -> Callable[[], None]:
    kind, condition = node.what
    body = node.bodies[0]
    again = kind == real.CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_WHILE

    def run() -> None:
        rounds = 0
        step = _plan(here, body)
        while condition.value.value and here.dead is None and rounds < _MOST_ROUNDS:
            step()
            rounds += 1
            if not again:
                break
            if rounds % 16 == 0:
                step = _plan(here, body)

    return run


def _conditions(graph: Graph) -> list[_Condition]:
    found = list(graph.conditions)
    for node in graph.nodes:
        for body in node.bodies:
            found += _conditions(body)
    return found


@api()
def cuGraphLaunch(here: Context, handle: Any, stream: Any) -> None:
    graph = _exec(here, handle).graph
    plan = _plan(here, graph)
    conditions = _conditions(graph)

    def run() -> None:
        for condition in conditions:
            if condition.first is not None:
                condition.value.value = condition.first
        plan()

    here.queue.put(stream_of(here, stream), run)
