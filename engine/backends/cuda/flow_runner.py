"""Launches kernels with a flow, and ``graph`` kernels, on the device.

`FlowRunner` cuts the flow into *steps*, which the host runs: segments of tasks, loops on the host,
checkpoints. A segment of a ``graph`` kernel with more than one task is a `graphs.Graph`, and it is
as long as possible: loops that the device can run by itself are within it. Mostly the kernel is one
segment, and a launch is then

1. a check whether the bytes of the parameters are those of the last launch,
2. if not, one small copy to the device buffer, and other grids where they change,
3. one ``cuGraphLaunch``.

A graph is not built again for other arrays or numbers, except where a grid within a loop must
change (see `graphs`) or the size of a loop crosses the limit of a fused loop (`facts.CudaLoop`).

Without what loops on the device need (see `conditional`), with ``QD_GRAPH=0``, and where the driver
refuses a graph, the host does the same: plain launches, and after each round of a loop a read of
its flag. One line of the log says why. Checkpoints are always left to the host, which has to know
whether they yield.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ... import logs as log
from ...errors import CudaError
from ..base import Flow
from ..device_launch.host_control import HostControl, HostLaunch, Item, Step, tasks_of
from . import conditional
from .facts import CudaLoop, loop_fits
from .replay import Counts, Parameters, Replayed, facts_of

if TYPE_CHECKING:
    from .arguments import CudaArguments, CudaBufferPool
    from .executable import CudaExecutable

__all__ = ["FlowRunner"]


def _do_whiles(items: Sequence[Item]) -> Iterator[Flow]:
    """All loops, at any depth, those around others first."""
    for item in items:
        if isinstance(item, Flow):
            if item.kind == "do_while":
                yield item
            yield from _do_whiles(item.items)


class FlowRunner(HostControl["CudaExecutable", "CudaArguments"]):
    """See the module docstring.

    graphs: parts of it may be graphs. why: the reason why the whole is not one graph, for people;
    empty if it is. fused: the loops that are one kernel, with that kernel, by `id`.
    """

    def __init__(self, executable: CudaExecutable, pool: CudaBufferPool) -> None:
        meta, device = executable.meta, executable.device

        def handle(stream: int) -> Any:
            return device.driver.CUstream(stream) if stream else None

        super().__init__(executable, pool, executable.control.task, handle)
        self.counts: Final = Counts()
        self.graphs = meta.graph and not pool.stream and not meta.timed
        self.why = ""
        self._parameters: Final = Parameters(executable, pool)
        self._data: bytes | None = None
        self._arranged = False
        self._begins: Final = bool(executable.zeroed) or meta.timed
        self._lock: Final = threading.RLock()
        self._replayed: Final[list[Replayed]] = []
        self._whole: Replayed | None = None
        self._steps: list[Step] = []
        self._items: Final[tuple[Item, ...]] = meta.flow or tuple(range(len(meta.tasks)))
        numbered = list(_do_whiles(self._items))
        self._loops: Final = {id(numbered[one.number]): one for one in executable.loops}
        self.fused: dict[int, CudaLoop] = {}
        self._launch: Final = device.driver.cuGraphLaunch
        self._copy: Final = device.driver.cuMemcpyHtoDAsync
        self._cell: Final = ctypes.c_uint64(pool.device_buffer)
        self._array: Final = ctypes.c_void_p(ctypes.addressof(self._cell))
        device.own(self)

    def device_ended(self) -> None:
        """The program ends: destroy the graphs."""
        for replayed in self._replayed:
            replayed.destroy()

    def facts(self) -> dict[str, Any] | None:
        """Describe the graphs, for people. Waits for the default stream. See `CudaExecutable`."""
        if not self._arranged:
            return None
        found = facts_of(
            "graph" if self._replayed else "host", self.why, self._replayed, self.counts
        )
        if self.rounds:
            found["iterations"]["host"] = self.rounds
        return found

    # --- cutting the flow -----------------------------------------------------------------------

    def _begin(self) -> None:
        """Cut the flow into steps."""
        for replayed in self._replayed:
            replayed.destroy()
        self._replayed.clear()
        self._whole, self._steps = None, []
        if self.graphs:
            self.why = ""
        elif not self.why:
            timed = self.executable.meta.timed
            self.why = (
                "its tasks are timed one by one" if timed else "it is not a graph=True kernel"
            )
        several = len(list(tasks_of(self._items))) > 1 or any(
            isinstance(item, Flow) and id(item) not in self.fused for item in self._items
        )
        if self.graphs and several and self._fits(self._items):
            self._whole = self.replayed(self._items, bool(self.executable.zeroed))
        else:
            self._steps = self.steps(self._items)

    def replayed(self, items: Sequence[Item], clear: bool) -> Replayed:
        """A graph of these items, kept for `facts`."""
        made = Replayed(self.executable, items, clear, self.counts, self.fused)
        self._replayed.append(made)
        return made

    def _fits(self, items: Sequence[Item]) -> bool:
        """True if a graph can hold all of these items; if not, sets `why`."""
        for item in items:
            if not isinstance(item, Flow):
                task = self.executable.tasks[item]
                if task.header and not task.blocks:
                    self.why = "the device has to say how many blocks a task has"
                    return False
            elif item.kind == "checkpoint":
                self.why = "it has checkpoints"
                return False
            elif id(item) not in self.fused and (
                not self._fits(item.items) or (item.kind == "do_while" and not self._can_loop())
            ):
                return False
        return True

    def _can_loop(self) -> bool:
        """True if the device can run loops; if not, one line of the log says why."""
        try:
            conditional.functions(self.executable.device, self.executable.cache)
        except conditional.Unavailable as error:
            self.why = f"loops run on the host: {error}"
            log.warn(f"qd.graph.do_while runs its loops on the host: {error}", once=True)
            return False
        return True

    def steps(self, items: Sequence[Item]) -> list[Step]:
        """The steps of the host, one after the other, with segments as long as possible."""
        out: list[Step] = []
        segment: list[Item] = []

        def close() -> None:
            if len(segment) > 1 or any(isinstance(item, Flow) for item in segment):
                items = tuple(segment)
                out.append(partial(self._segment, items, self.replayed(items, False)))
            else:
                out.extend(map(self.step, segment))
            segment.clear()

        for item in items:
            if self.graphs and self._fits((item,)):
                segment.append(item)
            else:
                close()
                out.append(self.step(item))
        close()
        return out

    def step(self, item: Item) -> Step:
        one = self.fused.get(id(item)) if isinstance(item, Flow) else None
        return super().step(item) if one is None else partial(self._fused, one)

    def _segment(self, items: Sequence[Item], replayed: Replayed, launch: HostLaunch) -> bool:
        """Launch items that the device runs without the host, as one graph."""
        if launch.seeking < 0:
            replayed.launch(launch.args)
            return False
        for item in items:  # loops and branches before the checkpoint are passed over
            if not isinstance(item, Flow):
                self.task(item)(launch.args)
        return False

    def _fused(self, loop: CudaLoop, launch: HostLaunch) -> bool:
        """Launch a loop that is one kernel, unless the launch still seeks a checkpoint."""
        if launch.seeking < 0:
            self._launch_loop(loop, launch.args)
        return False

    # --- launching ------------------------------------------------------------------------------

    def run(self, args: CudaArguments) -> None:
        """Launch a packed buffer; waits only where the host has to know a flag."""
        where = self._parameters
        data = args.view[where.start : where.end].tobytes()
        with self._lock:
            if data != self._data:
                begun, self._data = self._data is None, None  # in case this fails half way
                self._prepare(args, begun)
                self._data = data
            self.counts.replays += 1
            whole = self._whole
            if whole is None:
                if self._begins:
                    self._before(args)
                self.run_steps(args, self._steps)
                return
            assert whole.graph is not None
            code = self._launch(whole.graph.handle, args.stream)[0]
            if code:
                whole.again(int(code), args)

    def _prepare(self, args: CudaArguments, begun: bool) -> None:
        """Adapt steps and graphs to the parameters in a buffer, and copy these to the device.

        begun: nothing has been adapted yet, or the last call failed half way.
        """
        where, meta = self._parameters, self.executable.meta
        if where.changes(args) or begun:
            self._arrange(args)
            grids = self.executable.control.grids(args)
            try:
                for replayed in self._replayed:
                    replayed.ready(args, grids)
            except (CudaError, conditional.Unavailable) as error:
                self._without_graphs(error)
        if meta.graph and where.start < where.end:
            at, size = where.start, where.end - where.start
            what = args.device_buffer + at, args.host + at, size, args.stream
            if self._copy(*what)[0]:  # in a thread where another context is current, perhaps
                self.executable.device.call("copying arguments", "cuMemcpyHtoDAsync", *what)

    def _arrange(self, args: CudaArguments) -> None:
        """Cut the flow, at first and when loops have become small or large."""
        ints = args.ints
        fused = {
            key: one
            for key, one in self._loops.items()
            if loop_fits(one, *[ints[at // 4] for at in one.reads])
        }
        if self._arranged and fused.keys() == self.fused.keys():
            return
        self.counts.rebuilds += self._arranged
        self._arranged = True
        self.fused = fused
        self._begin()

    def _without_graphs(self, error: Exception) -> None:
        """A graph cannot be built: go on with plain launches, and say so once."""
        if isinstance(error, CudaError) and error.fatal:
            raise error
        name = self.executable.meta.name
        log.warn(f"kernel {name} is launched task by task: {error}", once=True)
        self.graphs, self.why = False, str(error)
        self._begin()

    def _before(self, args: CudaArguments) -> None:
        """Launch the work before the first task, where no graph holds all."""
        control = self.executable.control
        if self.executable.zeroed:
            control.clear(args)
        if self.executable.meta.timed:
            control.mark(0, args.stream)

    def _launch_loop(self, one: CudaLoop, args: CudaArguments) -> None:
        """Launch a loop that is one kernel."""
        self.executable.device.call(
            "launching a loop", "cuLaunchKernel", self.executable.code.function(one.symbol),
            1, 1, 1, one.block_dim, 1, 1, 0, args.stream, ctypes.addressof(self._array), 0,
        )  # fmt: skip
