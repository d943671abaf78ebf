"""Runs kernels with a flow: the host runs its loops and checkpoints, see
`device_launch.host_control`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..device_launch.host_control import HostControl
from .arguments import OpenclArguments

if TYPE_CHECKING:
    from .arguments import OpenclBufferPool
    from .executable import OpenclExecutable

__all__ = ["FlowRunner"]


class FlowRunner(HostControl["OpenclExecutable", OpenclArguments]):
    """See the module docstring."""

    def __init__(self, executable: OpenclExecutable, pool: OpenclBufferPool) -> None:
        queue = executable.device.streams.queue
        super().__init__(executable, pool, executable.control.task, queue)
        self._steps: Final = self.steps(executable.meta.flow)

    def run(self, args: OpenclArguments) -> None:
        """Launch a packed buffer; waits where the host has to know a flag."""
        if self.executable.zeroed:
            self.executable.control.clear(args)
        self.run_steps(args, self._steps)
