"""Graphs: the tasks of a kernel put together once, and launched with one call.

`Graph` builds a CUDA graph through the explicit node API from tasks and parts of a kernel's flow::

    [memset]  ->  task 0  ->  while  ->  parallel: task 3 | task 4  ->  (both)  task 5
                                `-- body: task 1 -> task 2 -> condition

What a replay has to change depends on the flavour of the kernel (see `facts`):

* the nodes of a ``graph`` kernel have one argument, the address of the device buffer. `issue`
  refreshes the parameters there, nodes stay as they are.
* those of an ordinary kernel hold their arguments by value, in copies that the driver took out of
  an argument buffer; `Graph.revalue` sets them to those of another one.

Either way grids may change with extents. The blocks of ``cover`` and ``saturate`` grids only affect
speed: a node of the graph itself gets another number with ``cuGraphExecKernelNodeSetParams``; nodes
in the body of a loop cannot be changed, so the graph is built again where the number is too small
by half or eight times too large. An ``exact`` grid has to be right: such a node in a body needs a
new graph for every other number of blocks.

A graph that is in flight may be destroyed or changed: the driver keeps what runs.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...named_tuple import NamedTuple
from ..base import Flow
from ..device_launch.host_control import Item
from ..kernarg.grids import EXACT
from . import conditional
from .driver import binding
from .errors import FOREIGN
from .facts import CudaLoop

if TYPE_CHECKING:
    from ..device_launch.device_memory import DeviceMemory
    from .arguments import CudaArguments
    from .device import CudaDevice
    from .executable import CudaExecutable

__all__ = ["Graph", "Node"]


class Node(NamedTuple):
    """A node as people see it. kind: kernel, while, memset, loop (a whole one as
    one kernel), condition (the last of a loop), arm (before a loop in a loop).

    task: its number, -1 for none. parent: id of the while node whose body contains it, or -1.
    """

    id: int
    kind: str
    name: str
    task: int
    grid: int
    block: int
    parent: int


class _Kernel:
    """A kernel node of a task. handle: None for one that cannot be changed any more.

    values: where its parameters were taken from the last time.
    """

    __slots__ = ("handle", "id", "params", "task", "values")

    def __init__(self, task: int, handle: Any, params: Any, number: int) -> None:
        self.task: Final = task
        self.handle: Final = handle
        self.params: Final = params
        self.id: Final = number
        self.values = 0


class Graph:
    """A graph of some items of a kernel's flow, ready to be launched.

    handle: for `cuGraphLaunch`. nodes, edges: of all levels, for people. rounds: for each
    loop, by the id of its node, the address at which it counts them.
    """

    def __init__(
        self, source: CudaExecutable, items: Sequence[Item], args: CudaArguments,
        grids: Sequence[int], clear: bool, fused: Mapping[int, CudaLoop],
    ) -> None:  # fmt: skip
        """args: a packed buffer. grids: of all tasks of the kernel. clear: begin by clearing
        the parts that must be 0 at a launch. fused: loops that are one kernel, by their `id`.
        CudaError or `conditional.Unavailable`."""
        self.source: Final = source
        self.nodes: Final[list[Node]] = []
        self.edges: Final[list[tuple[int, int]]] = []
        self.rounds: Final[dict[int, int]] = {}
        self._device: Final = source.device
        self._device_buffer: Final[int] = args.device_buffer
        self._grids: Final = list(grids)
        self._fused: Final = fused
        self._kernels: Final[list[_Kernel]] = []
        self._keep: Final[list[Any]] = []
        self._counters: DeviceMemory | None = None
        self._graph: Any = None
        self.handle: Any = None
        self._gone: weakref.finalize[Any, Any] | None = None
        with self._device.context.active():
            self._make(items, args, clear)

    def _make(self, items: Sequence[Item], args: CudaArguments, clear: bool) -> None:
        device = self._device
        loops = self._count(items)
        if loops:
            self._counters = device.allocate(8 * loops)
        # Nodes are changed by their handles in it, so that it lives as long as what is made of it.
        graph = self._graph = device.call("making a graph", "cuGraphCreate", 0)
        try:
            before: _Ends = []
            if clear:
                for at, size in self.source.zeroed:
                    before = [self._memset(graph, at, size, before)]
            self._add(graph, items, args, before, -1)
            doing = f"making a graph of kernel {self.source.meta.name}"
            self.handle = device.call(doing, "cuGraphInstantiate", graph, 0)
        except BaseException:
            device.call("destroying a graph", "cuGraphDestroy", graph)
            raise
        self._gone = weakref.finalize(self, _give_back, device, self.handle, graph)
        self._gone.atexit = False

    # Building

    def _count(self, items: Sequence[Item]) -> int:
        """The number of while nodes that these items need."""
        parts = [item for item in items if isinstance(item, Flow) and id(item) not in self._fused]
        return sum((part.kind == "do_while") + self._count(part.items) for part in parts)

    def _add(
        self, graph: Any, items: Sequence[Item], args: CudaArguments, before: _Ends, parent: int
    ) -> _Ends:
        """Add items one after the other, after the nodes ``before``; return the last nodes."""
        for item in items:
            if not isinstance(item, Flow):
                before = [self._task(graph, item, args, before, parent)]
            elif id(item) in self._fused:
                before = [self._one(graph, item, before, parent)]
            elif item.kind == "do_while":
                before = [self._loop(graph, item, args, before, parent)]
            elif item.kind == "parallel":
                ends: _Ends = []
                for section in item.items:
                    assert isinstance(section, Flow)
                    for end in self._add(graph, section.items, args, before, parent):
                        if end not in ends:
                            ends.append(end)
                before = ends or before
            else:
                before = self._add(graph, item.items, args, before, parent)
        return before

    def _note(
        self, kind: str, name: str, before: _Ends, parent: int, task: int = -1, grid: int = 0,
        block: int = 0,
    ) -> int:  # fmt: skip
        number = len(self.nodes)
        self.nodes.append(Node(number, kind, name, task, grid, block, parent))
        self.edges.extend((end[1], number) for end in before)
        return number

    def _task(self, graph: Any, k: int, args: CudaArguments, before: _Ends, parent: int) -> _End:
        task = self.source.tasks[k]
        params = _params(self.source.functions[k], self._grids[k], task.block_dim, task.shared)
        params.kernelParams = args.params[k]
        handle = self._kernel_node(graph, before, params)
        name = self.source.meta.tasks[k].name
        number = self._note("kernel", name, before, parent, k, self._grids[k], task.block_dim)
        self._kernels.append(_Kernel(k, handle if parent < 0 else None, params, number))
        return handle, number

    def _kernel_node(self, graph: Any, before: _Ends, params: Any) -> Any:
        handles = [end[0] for end in before]
        return self._device.call(
            "adding a task to a graph", "cuGraphAddKernelNode",
            graph, handles or None, len(handles), params,
        )  # fmt: skip

    def _memset(self, graph: Any, at: int, size: int, before: _Ends) -> _End:
        driver = self._device.driver
        params = driver.CUDA_MEMSET_NODE_PARAMS()
        params.dst = driver.CUdeviceptr(self._device_buffer + at)
        params.elementSize, params.value, params.width, params.height = 1, 0, size, 1
        handles = [end[0] for end in before]
        handle = self._device.call(
            "adding a memset to a graph", "cuGraphAddMemsetNode",
            graph, handles or None, len(handles), params, self._device.context.handle,
        )  # fmt: skip
        return handle, self._note("memset", f"{size} bytes of the device buffer", before, -1)

    def _one(self, graph: Any, loop: Flow, before: _Ends, parent: int) -> _End:
        """A whole loop as one kernel."""
        one = self._fused[id(loop)]
        params = _params(self.source.code.function(one.symbol), 1, one.block_dim, 0)
        params.kernelParams = self._values(self._device_buffer)
        handle = self._kernel_node(graph, before, params)
        return handle, self._note("loop", one.symbol, before, parent, -1, 1, one.block_dim)

    def _loop(
        self, graph: Any, loop: Flow, args: CudaArguments, before: _Ends, parent: int
    ) -> _End:
        device, source = self._device, self.source
        condition, arm = conditional.functions(device, source.cache)
        handle = conditional.handle(device, graph)
        name = source.meta.params[loop.param].name
        if parent >= 0:
            # Only a launch of the whole graph makes the value 1, and this loop is reached again.
            params = _params(arm, 1, 1, 0)
            params.kernelParams = self._values(handle)
            node = self._kernel_node(graph, [], params)
            before = [*before, (node, self._note("arm", f"begin {name}", [], parent, -1, 1, 1))]
        node, body = conditional.add_while(device, graph, handle, [end[0] for end in before])
        number = self._note("while", name, before, parent)
        assert self._counters is not None
        counter = self.rounds[number] = self._counters.address + 8 * len(self.rounds)
        ends = self._add(body, loop.items, args, [], number)
        slot = source.layout.params[loop.param]
        params = _params(condition, 1, 1, 0)
        params.kernelParams = self._values(handle, self._device_buffer, slot, counter)
        self._kernel_node(body, ends, params)
        self._note("condition", f"again while {name}", ends, number, -1, 1, 1)
        return node, number

    def _values(self, *values: int) -> int:
        """The address of addresses of these values, for as long as the graph lives."""
        cells = (ctypes.c_uint64 * len(values))(*values)
        base = ctypes.addressof(cells)
        array = (ctypes.c_void_p * len(values))(*[base + 8 * i for i in range(len(values))])
        self._keep.extend((cells, array))
        return ctypes.addressof(array)

    # Changing

    def adapt(self, grids: Sequence[int], args: CudaArguments) -> int:
        """Set the nodes' numbers of blocks; return how many changed, or -1 for a new graph."""
        changed = 0
        for kernel in self._kernels:
            k = kernel.task
            have, want = self._grids[k], grids[k]
            if have == want:
                continue
            if kernel.handle is None:
                exact = self.source.tasks[k].grid == EXACT
                if exact or want > 2 * have or 8 * want < have:
                    return -1
                continue
            self._grids[k] = want
            kernel.params.gridDimX = want
            self.nodes[kernel.id] = self.nodes[kernel.id]._replace(grid=want)
            self._set(kernel, args)
            changed += 1
        return changed

    def revalue(self, args: CudaArguments, tasks: Container[int]) -> int:
        """Set the arguments of these tasks' nodes from a buffer; return how many nodes are set."""
        changed = 0
        for kernel in self._kernels:
            if kernel.task in tasks:
                self._set(kernel, args)
                changed += 1
        return changed

    def _set(self, kernel: _Kernel, args: CudaArguments) -> None:
        values = args.params[kernel.task]
        if kernel.values != values:
            kernel.params.kernelParams = kernel.values = values
        device, what = self._device, (self.handle, kernel.handle, kernel.params)
        code = int(device.driver.cuGraphExecKernelNodeSetParams(*what)[0])
        if code in FOREIGN and not device.context.is_current():
            device.call("changing a graph", "cuGraphExecKernelNodeSetParams", *what)
        elif code:
            raise device.failed(code, "changing a graph", self.source.meta.name)

    def counted(self) -> dict[int, int]:
        """Rounds of each loop so far, by the id of its node. Waits."""
        if self._counters is None:
            return {}
        out = np.empty(8 * len(self.rounds), np.uint8)
        self._device.fetch(self._counters.address, out)
        return dict(zip(self.rounds, map(int, out.view(np.int64)), strict=True))

    def destroy(self) -> None:
        """Destroy the graph; launches under way run to their end."""
        if self._gone is not None:
            self._gone()
        self.handle = None
        if self._counters is not None:
            self._counters.free()


def _give_back(device: CudaDevice, handle: Any, graph: Any) -> None:
    if device.alive:
        device.call("destroying a graph", "cuGraphExecDestroy", handle)
        device.call("destroying a graph", "cuGraphDestroy", graph)


_End = tuple[Any, int]
"""A node: its handle and its number for people."""
_Ends = list[_End]


def _params(function: Any, grid: int, block: int, shared: int) -> Any:
    params = binding().CUDA_KERNEL_NODE_PARAMS()
    params.func = function
    params.gridDimX, params.gridDimY, params.gridDimZ = grid, 1, 1
    params.blockDimX, params.blockDimY, params.blockDimZ = block, 1, 1
    params.sharedMemBytes = shared
    return params
