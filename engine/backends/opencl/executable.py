"""A kernel on an OpenCL device."""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

from ...errors import OpenclError
from ..base import Artifact
from ..device_launch.executable import DeviceExecutable
from . import build, facts
from .arguments import OpenclBufferPool
from .control import OpenclControl

if TYPE_CHECKING:
    from .device import OpenclDevice

__all__ = ["OpenclExecutable"]


class OpenclExecutable(DeviceExecutable["OpenclDevice", facts.OpenclTask, OpenclBufferPool]):
    """See `DeviceExecutable`."""

    def __init__(self, device: OpenclDevice, artifact: Artifact) -> None:
        super().__init__(device, artifact, grain=8)
        self.program: Any = self._program(artifact)
        for k in range(len(self.tasks)):
            if self.tasks[k].block_dim > 1:
                self._fit(k)
        self.events: Final[list[tuple[int, Any]]] = []
        self.control: Final = OpenclControl(self)
        self._headers: Final[dict[tuple[int, int], Any]] = {}
        self._ready()

    # --- what a launch needs --------------------------------------------------------------------

    def _program(self, artifact: Artifact) -> Any:
        """The program of an artifact: as it was built in this process, or of its binary."""
        device, key = self.device, str(artifact.facts["key"])
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

    def _resident(self, k: int) -> int:
        return self.device.groups(self.tasks[k].block_dim)

    def _new_pool(self, stream: int) -> OpenclBufferPool:
        found = OpenclBufferPool(self, stream)
        runner = None
        if self.meta.flow:
            from .flow_runner import FlowRunner

            runner = FlowRunner(self, found)
        found.enter = self.control.entry(found, runner)
        return found

    def header(self, k: int, device_buffer: int) -> Any:
        """The function that launches the header of a task for this device buffer."""
        found = self._headers.get((k, device_buffer))
        if found is None:
            found = self._headers[k, device_buffer] = self.control.header_of(k, device_buffer)
        return found

    # --- launching ------------------------------------------------------------------------------

    def _timed(self, pool: OpenclBufferPool, args: Any, times: list[int]) -> int:
        with self._times:
            self.events.clear()
            began = perf_counter_ns()
            code = pool.enter(args)
            if code:
                return code
            self.device.sync(pool.stream)
            events = [event for _, event in self.events]
            self.events.clear()
        if events:
            start = int(events[0].profile.start)
            times += [began, *(began + int(event.profile.end) - start for event in events)]
        return 0
