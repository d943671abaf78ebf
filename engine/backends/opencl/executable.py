"""A kernel on an OpenCL device."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

from ...errors import AdStackOverflowError, OpenclError
from ..base import Artifact, KernelMeta, StackPlan
from ..frame import abi, grids
from ..frame.copies import Copies
from ..frame.packing import begin_at, yielded
from . import build, facts
from .frame import FramePool
from .launching import Control

if TYPE_CHECKING:
    from .device import OpenclDevice

__all__ = ["OpenclExecutable"]


class OpenclExecutable:
    """See `base.Executable`.

    frame: the frames for the default stream; `pool` gives those for another one. enter: launches a
    filled frame of `frame`; 0 if all went well. Prepared launchers use both.

    zeroed: (offset, size) of the parts of the device frame that a launch sets to 0 first.
    block_dims: work-items of a group of each task. diagnose: makes the error of a full adstack
    better.
    """

    def __init__(self, device: OpenclDevice, artifact: Artifact) -> None:
        self.meta: KernelMeta = artifact.meta
        self.device: Final = device
        self.layout: Final[abi.Layout] = artifact.facts["layout"]
        self.tasks: Final[tuple[facts.OpenclTask, ...]] = artifact.facts["tasks"]
        self.told: Callable[[Sequence[int]], None] | None = None
        self.diagnose: Callable[[AdStackOverflowError], Exception] | None = None
        self.sources: Final[list[dict[str, Any]]] = []
        self.program: Final = _program(device, artifact)
        self.block_dims: Final = tuple([task.block_dim for task in self.tasks])
        size = 0 if artifact.facts.get("clears") else -(-self.meta.global_tmp_size // 8) * 8
        claims: Sequence[int] = artifact.facts.get("claims", ())
        self.zeroed: Final = [(at, 8) for at in claims] + [(self.layout.tmp, size)] * (size > 0)
        for k in range(len(self.tasks)):
            if self.tasks[k].block_dim > 1:
                self._fit(k)
        self.events: Final[list[tuple[int, Any]]] = []
        self._times: Final = threading.Lock()
        self.control: Final = Control(self)
        self._pools: Final[dict[int, FramePool]] = {}
        self._headers: Final[dict[tuple[int, int], Any]] = {}
        self.frame: Final = self.pool(0)
        self.enter: Final = self.frame.enter
        device.context.users.add(self)

    # --- what a launch needs --------------------------------------------------------------------

    def kernel(self, symbol: str) -> Any:
        """A kernel object of its own, with arguments of its own."""
        device = self.device
        return device.call(
            f"loading kernel {self.meta.name}", device.cl.Kernel, self.program, symbol
        )

    def _fit(self, k: int) -> None:
        """See that a group of the task fits the device."""
        device, task, what = self.device, self.tasks[k], self.meta.tasks[k]
        which = device.cl.kernel_work_group_info.WORK_GROUP_SIZE
        kernel = self.kernel(task.symbol)
        handle = device.hardware.handle
        most = int(device.call("asking for sizes", kernel.get_work_group_info, which, handle))
        if most < task.block_dim:
            where = f"the loop {what.loop_name}" if what.loop_name else "a loop"
            raise OpenclError(
                f"{where} has groups of {task.block_dim} work-items, and {device.name} can run at"
                f" most {most} of them with what each needs",
                kernel=self.meta.name, hint=f"use qd.loop_config(block_dim={max(most, 1)}) or less",
            ).locate(what.loc)  # fmt: skip

    def most_groups(self, k: int) -> int:
        """Most groups that make sense: what fits the device, or what there is work for."""
        task, device = self.tasks[k], self.device
        limit = task.limit or 0x7FFFFFFF
        if task.grid == grids.SATURATE or (task.grid == grids.COVER and not task.blocks):
            filled = device.config.saturating_grid_dim or device.groups(task.block_dim)
            limit = min(limit, filled)
        return limit

    def pool(self, stream: int) -> FramePool:
        """The frames for a stream."""
        found = self._pools.get(stream)
        if found is None:
            with self.device.lock:
                found = self._pools.get(stream)
                if found is None:
                    found = FramePool(self, stream)
                    runner = None
                    if self.meta.flow:
                        from .walk import FlowRunner

                        runner = FlowRunner(self, found).run
                    found.enter = self.control.entry(found, runner)
                    if stream:  # its device frame was filled on the default one
                        self.device.streams.after_memory(stream)
                    self._pools[stream] = found
        return found

    def pool_of(self, queue: Any) -> FramePool:
        """The frames whose launches go to this queue."""
        return next(pool for pool in self._pools.values() if pool.queue is queue)

    def header(self, k: int, pool: FramePool) -> Any:
        """What launches the header of a task."""
        found = self._headers.get((k, pool.stream))
        if found is None:
            found = self._headers[k, pool.stream] = self.control.header_of(k, pool)
        return found

    def diagnosed(self, error: AdStackOverflowError) -> Exception:
        """The error of a full adstack as the user shall see it."""
        return error if self.diagnose is None else self.diagnose(error)

    def forked(self) -> None:
        """This is a child of the process that loaded it: the driver must not be reached."""
        lost = self.device.context.lost

        def refuse(*_: Any, **__: Any) -> Any:
            assert lost is not None
            raise lost.with_traceback(None)

        for env in self.sources:
            env["launch"] = env["clear"] = env["runner"] = refuse

    # --- launching ------------------------------------------------------------------------------

    def launch(
        self, values: Sequence[Any], seed: int = 0, stacks: StackPlan | None = None,
        stream: int = 0, resume: int = 0,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Run once. Waits for the end only if there are results or host arrays."""
        pool = self.pool(stream)
        copies = Copies(self.device, values, OpenclError)
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
        with self._times:
            self.events.clear()
            began = perf_counter_ns()
            code = pool.enter(frame[1])
            if code:
                return code
            self.device.sync(pool.stream)
            events = [event for _, event in self.events]
            self.events.clear()
        if events:
            start = int(events[0].profile.start)
            told([began, *(began + int(event.profile.end) - start for event in events)])
        return 0


def _program(device: OpenclDevice, artifact: Artifact) -> Any:
    """The program of an artifact: as it was built in this process, or of its binary."""
    key: str = artifact.facts["key"]
    found = device.context.kept(key)
    if found is None:
        options: str = artifact.facts.get("options", "")
        name = artifact.meta.name
        if artifact.code:
            found = build.from_binary(device.context, artifact.code, name, options)
            device.context.keep(key, found)
        elif "opencl_c" in artifact.texts:
            source = build.Source(name, artifact.texts["opencl_c"], options)
            found = build.build(device.context, source, device.config)
        else:
            raise ValueError("it has no program binary")
    return found
