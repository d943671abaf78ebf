"""How kernels with a flow run: the host walks through it, see `frame.walking`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..frame.walking import Walker

if TYPE_CHECKING:
    from .executable import OpenclExecutable
    from .frame import FramePool

__all__ = ["FlowRunner"]


class FlowRunner(Walker["OpenclExecutable", "FramePool"]):
    """See the module docstring."""

    def __init__(self, executable: OpenclExecutable, pool: FramePool) -> None:
        queue = executable.device.streams.queue
        super().__init__(executable, pool, executable.control.task, queue)
        self._steps: Final = self.steps(executable.meta.flow)

    def run(self, pointer: Any) -> None:
        """Launch a filled frame; waits where the host has to know a flag."""
        self.walk(pointer, self._steps)
