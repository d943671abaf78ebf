"""A kernel on a CUDA device."""

from __future__ import annotations

import weakref
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

from ... import logs as log
from ...errors import CudaError
from ..base import Artifact, waiting
from ..device_launch.executable import DeviceExecutable
from ..injected import NO_CACHE, InjectedCache
from . import code, facts
from .arguments import CudaBufferPool
from .control import CudaControl
from .driver import check

if TYPE_CHECKING:
    from .device import CudaDevice
    from .flow_runner import FlowRunner
    from .replay import AutoRunner

__all__ = ["CudaExecutable"]


class CudaExecutable(DeviceExecutable["CudaDevice", facts.CudaTask, CudaBufferPool]):
    """See `DeviceExecutable`. functions, headers: of each task, as the driver has them.

    cache: what has the runtime library; see `conditional`. first: the PTX of the first tier, which
    it launches until `complete`; None for full code. is_full: that has happened.
    """

    def __init__(
        self, device: CudaDevice, artifact: Artifact, cache: InjectedCache = NO_CACHE,
        first: bytes | None = None,
    ) -> None:  # fmt: skip
        super().__init__(device, artifact)
        self.cache: Final = cache
        self.loops: Final[tuple[facts.CudaLoop, ...]] = artifact.facts.get("loops", ())
        if artifact.facts.get("recursive"):
            device.deepen()
        self.is_full = first is None
        self._pending: Final = None if artifact.first is None else artifact.first.pending
        self._codes: Final[list[code.Code]] = []
        self._take(artifact.code if first is None else first, first is not None)
        self.events: Final[list[Any]] = self._events() if self.meta.timed else []
        self.control: Final = CudaControl(self)
        self._ready()

    # --- what a launch needs --------------------------------------------------------------------

    def _take(self, ptx: bytes, first: bool = False) -> None:
        """Load code, and launch it from now on. first: it is of the first tier. CudaError if it
        does not fit the device."""
        loaded = code.load(self.device, ptx, self.meta.name, self.cache, first)
        functions = tuple([loaded.function(task.symbol) for task in self.tasks])
        headers = [loaded.function(task.header) if task.header else None for task in self.tasks]
        for k, function in enumerate(functions):
            self._fit(k, function)
        # First-tier code stays: a launch that another thread has begun may refer to it.
        self._codes.append(loaded)
        self.code, self.module = loaded, loaded.module
        self.functions, self.headers = functions, tuple(headers)

    def complete(self, ptx: bytes) -> None:
        """Launch full code from now on; called by another thread, while launches go on."""
        self._take(ptx)
        self.is_full = True
        self.control.renew()

    def finish(self, needed: bool = False) -> None:
        """Wait for full code: a launch with many iterations is slow without it.

        needed: the launch is not possible without it. CudaError, or what making it raised, then.
        """
        pending = self._pending
        if self.is_full or pending is None:
            return
        try:
            with waiting(self.meta.name), self.device.awaited():
                self.complete(pending.finish())
        except Exception as error:
            if needed:
                raise
            log.debug(f"kernel {self.meta.name} stays in the first tier: {error!r}")

    def _fit(self, k: int, function: Any) -> None:
        """See that a block of the task fits the device."""
        device, task, what = self.device, self.tasks[k], self.meta.tasks[k]
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
        """The events that time a timed kernel: before its first task and after each."""
        driver, device = self.device.driver, self.device
        with device.context.active():
            events = [check(driver.cuEventCreate(0), "timing") for _ in range(1 + len(self.tasks))]
        for event in events:
            weakref.finalize(self, device.spent.append, event)
        return events

    def _resident(self, k: int) -> int:
        task, device = self.tasks[k], self.device
        with device.context.active():
            result = device.driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                self.functions[k], task.block_dim, task.shared
            )
            each = int(check(result, "asking for the occupancy", self.meta.name))
        return max(1, each * device.hardware.processors)

    def _new_pool(self, stream: int) -> CudaBufferPool:
        found = CudaBufferPool(self, stream)
        found.runner = self._runner(found)
        found.enter = self.control.entry(found, found.runner)
        return found

    def _runner(self, pool: CudaBufferPool) -> AutoRunner | FlowRunner | None:
        """The runner for the buffers of ``pool``; None if plain launches are right."""
        meta = self.meta
        if meta.flow or meta.graph:
            from .flow_runner import FlowRunner

            return FlowRunner(self, pool)
        plain = meta.timed or meta.prints or meta.has_stacks or len(meta.tasks) < 2
        if plain or pool.stream or not self.device.config.graph:
            return None
        if any(not task.blocks and task.header for task in self.tasks):
            return None
        from .replay import AutoRunner

        return AutoRunner(self, pool)

    def graph_facts(self) -> dict[str, Any] | None:
        """Describe the graphs of the default stream, for people; waits for that stream.

        None if launches are plain. ``how``: ``graph``, ``auto`` for one made of an ordinary kernel,
        ``host``; ``why``: the reason why the whole is not one graph. ``nodes``, each with id, kind
        (see `graphs.Node`), name, task or -1, grid, block, and as ``parent`` the id of the while
        node that contains it, or -1; ``edges``; how many ``replays``, ``updates`` of nodes
        and ``rebuilds`` there were; ``iterations`` of each while node in all.
        """
        runner = self.arguments().runner
        return None if runner is None else runner.facts()

    # --- launching ------------------------------------------------------------------------------

    def _timed(self, pool: CudaBufferPool, args: Any, times: list[int]) -> int:
        driver = self.device.driver
        with self._times, self.device.context.active():
            began = perf_counter_ns()
            code = pool.enter(args)
            if code:
                return code
            self.device.sync(pool.stream)
            elapsed = [
                check(driver.cuEventElapsedTime(self.events[0], event), "timing a launch")
                for event in self.events
            ]
        times += [began + round(float(ms) * 1e6) for ms in elapsed]
        return 0
