"""A kernel on a CUDA device."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from ...errors import AdStackOverflowError, CudaError
from ..base import Artifact, KernelMeta, StackPlan
from ..frame import abi, grids
from ..frame.copies import Copies
from ..frame.packing import begin_at, yielded
from . import code, facts
from .control import Control
from .driver import check
from .frame import FramePool

if TYPE_CHECKING:
    from .device import CudaDevice
    from .replay import Runner

__all__ = ["CudaExecutable"]


class CudaExecutable:
    """See `base.Executable`.

    frame: the frames for the default stream; `pool` gives those for another one. enter: launches a
    filled frame of `frame`; 0 if all went well. Prepared launchers use both.

    functions, headers: of each task, as the driver has them. zeroed: (offset, size) of the parts of
    the device frame that a launch sets to 0 first. block_dims: threads of a block of each task.
    diagnose: makes the error of a full adstack better.
    """

    def __init__(self, device: CudaDevice, artifact: Artifact) -> None:
        self.meta: KernelMeta = artifact.meta
        self.device: Final = device
        self.layout: Final[abi.Layout] = artifact.facts["layout"]
        self.tasks: Final[tuple[facts.CudaTask, ...]] = artifact.facts["tasks"]
        self.loops: Final[tuple[facts.CudaLoop, ...]] = artifact.facts.get("loops", ())
        self.clears: Final[bool] = artifact.facts.get("clears", False)
        self.told: Callable[[Sequence[int]], None] | None = None
        self.diagnose: Callable[[AdStackOverflowError], Exception] | None = None
        self.sources: Final[list[dict[str, Any]]] = []
        if artifact.facts.get("recursive"):
            device.deepen()
        loaded = code.load(device, artifact.code, self.meta.name)
        self.code: Final = loaded
        self.module: Final = loaded.module
        self.functions: Final = tuple([loaded.function(task.symbol) for task in self.tasks])
        self.headers: Final = tuple(
            [loaded.function(task.header) if task.header else None for task in self.tasks]
        )
        self.block_dims: Final = tuple([task.block_dim for task in self.tasks])
        size = 0 if self.clears else self.meta.global_tmp_size
        claims: Sequence[int] = artifact.facts.get("claims", ())
        self.zeroed: Final = [(at, 8) for at in claims] + [(self.layout.tmp, size)] * (size > 0)
        self.alone: Final = not self.meta.flow
        for k in range(len(self.tasks)):
            self._fit(k)
        self.events: Final[list[Any]] = self._events() if self.meta.timed else []
        self._times: Final = threading.Lock()
        self.control: Final = Control(self)
        self._pools: Final[dict[int, FramePool]] = {}
        self.frame: Final = self.pool(0)
        self.enter: Final = self.frame.enter
        device.context.users.add(self)

    # --- what a launch needs --------------------------------------------------------------------

    def _fit(self, k: int) -> None:
        """See that a block of the task fits the device."""
        device, task, what = self.device, self.tasks[k], self.meta.tasks[k]
        function = self.functions[k]
        most = code.attribute(device, function, "MAX_THREADS_PER_BLOCK")
        if most < task.block_dim:
            where = f"the loop {what.loop_name}" if what.loop_name else "a loop"
            error = CudaError(
                f"{where} has blocks of {task.block_dim} threads, and {device.name} can run at most"
                f" {most} of them with the registers and shared memory that each block needs",
                kernel=self.meta.name, hint=f"use qd.loop_config(block_dim={most // 32 * 32}) or"
                " less, or qd.init(gpu_max_reg=...)",
            )  # fmt: skip
            raise error.locate(what.loc)
        if task.shared:
            which = device.driver.CUfunction_attribute
            name = "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"
            with device.context.active():
                result = device.driver.cuFuncSetAttribute(
                    function, getattr(which, name), task.shared
                )
            check(result, f"asking for {task.shared} bytes of shared memory", self.meta.name)

    def _events(self) -> list[Any]:
        """What takes the times of a timed kernel: before its first task and after each."""
        driver, device = self.device.driver, self.device
        with device.context.active():
            events = [check(driver.cuEventCreate(0), "timing") for _ in range(1 + len(self.tasks))]
        for event in events:
            weakref.finalize(self, device.spent.append, event)
        return events

    def most_blocks(self, k: int) -> int:
        """Most blocks that make sense: what fits the device, or what there is work for."""
        task, device = self.tasks[k], self.device
        limit = task.limit or 0x7FFFFFFF
        if task.grid == grids.SATURATE or (task.grid == grids.COVER and not task.blocks):
            limit = min(limit, device.config.saturating_grid_dim or self._resident(k))
        return limit

    def _resident(self, k: int) -> int:
        """Blocks of a task that the device can hold at once."""
        task, device = self.tasks[k], self.device
        with device.context.active():
            result = device.driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                self.functions[k], task.block_dim, task.shared
            )
        each = int(check(result, "asking for the occupancy", self.meta.name))
        return max(1, each * device.hardware.processors)

    def grids(self, buffer: memoryview) -> list[int]:
        """The blocks of each task for this host frame; -1 where only the device knows."""
        return self.control.grids(self.frame.pointers[id(buffer)])

    def pool(self, stream: int) -> FramePool:
        """The frames for a stream."""
        found = self._pools.get(stream)
        if found is None:
            with self.device.lock:
                found = self._pools.get(stream)
                if found is None:
                    found = FramePool(self, stream)
                    found.runner = self.runner(found)
                    found.enter = self.control.entry(found)
                    if stream:  # its device frame was filled on the default one
                        self.device.streams.after_memory(stream)
                    self._pools[stream] = found
        return found

    def runner(self, pool: FramePool) -> Runner | None:
        """What launches filled frames of ``pool`` where that is more than its tasks in order."""
        if self.alone and not self.meta.graph and len(self.tasks) < 2:
            return None
        from .replay import runner

        return runner(self, pool)

    def graph_facts(self) -> dict[str, Any] | None:
        """What became a graph on the default stream, for people; waits for that stream.

        None if launches are plain. ``how``: ``graph``, ``auto`` for one made of an ordinary kernel,
        ``host``; ``why``: what stands against one graph of all. ``nodes``, each with id, kind
        (see `graphs.Node`), name, task or -1, grid, block, and the id of the while
        node it lies in or -1, as ``parent``; ``edges``; how many ``replays``, ``updates`` of nodes
        and ``rebuilds`` there were; ``iterations`` of each while node in all.
        """
        return None if self.frame.runner is None else self.frame.runner.facts()

    def diagnosed(self, error: AdStackOverflowError) -> Exception:
        """The error of a full adstack as the user shall see it."""
        return error if self.diagnose is None else self.diagnose(error)

    def forked(self) -> None:
        """This is a child of the process that loaded it: the driver must not be reached."""
        lost = self.device.context.lost

        def refuse(*_: Any) -> Any:
            assert lost is not None
            raise lost.with_traceback(None)

        for env in self.sources:
            env["launch"], env["runner"] = refuse, SimpleNamespace(run=refuse)

    # --- launching ------------------------------------------------------------------------------

    def launch(
        self, values: Sequence[Any], seed: int = 0, stacks: StackPlan | None = None,
        stream: int = 0, resume: int = 0,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Run once. Waits for the end only if there are results or host arrays."""
        pool = self.pool(stream)
        copies = Copies(self.device, values, CudaError)
        given, fields = pool.values(copies.values, seed)
        frame = pool.take(fields)
        if stacks is not None or pool.stacked:
            pool.write_stacks(frame, stacks)
        if given:
            pool.pack(frame[0], pool.start, *given)
        if self.meta.labels:
            begin_at(frame[0], resume)
        if stream and copies.regions:
            self.device.streams.after_memory(stream)
        try:
            told = self.told if self.meta.timed else None
            code = self._timed(pool, frame, told) if told else pool.enter(frame[1])
        finally:
            if copies.regions:
                if stream:
                    self.device.wait_for(stream)
                copies.back([values[i] for i in self.meta.written])
        if code:
            pool.check(frame)
        results: tuple[Any, ...] = pool.unpack(frame[0], pool.results_at)
        if self.meta.labels:
            results = (*results, yielded(frame[0]))
        pool.give(frame)
        return results

    def _timed(self, pool: FramePool, frame: Any, told: Callable[[Sequence[int]], None]) -> int:
        """Launch, wait, and tell when each task ended, by the clock of the device."""
        driver = self.device.driver
        with self._times, self.device.context.active():
            began = perf_counter_ns()
            code = pool.enter(frame[1])
            if code:
                return code
            self.device.sync(pool.stream)
            times = [
                check(driver.cuEventElapsedTime(self.events[0], event), "timing a launch")
                for event in self.events
            ]
        told([began + round(float(ms) * 1e6) for ms in times])
        return 0
