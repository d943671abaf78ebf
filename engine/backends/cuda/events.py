"""Events of CUDA: points in streams that other streams wait for.

They record no times (`CU_EVENT_DISABLE_TIMING`), so that recording one and waiting for it is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .device import CudaDevice

__all__ = ["Events"]

_NO_TIMES: Final = 2
"""`CU_EVENT_DISABLE_TIMING`."""


class Events:
    """The events of one program. alive: those that were made and not destroyed, by number."""

    def __init__(self, device: CudaDevice) -> None:
        self._device: Final = device
        self.alive: Final[dict[int, Any]] = {}

    def create(self) -> int:
        """A new one."""
        handle = self._device.call("making an event", "cuEventCreate", _NO_TIMES)
        number = int(handle)
        self.alive[number] = handle
        return number

    def destroy(self, event: int) -> None:
        """Destroy an event; a second call does nothing."""
        handle = self.alive.pop(event, None)
        if handle is not None and self._device.alive:
            self._device.call("destroying an event", "cuEventDestroy", handle)

    def record(self, event: int, stream: int) -> None:
        """Record the event: it marks the end of all work launched on ``stream`` so far."""
        self._device.call("recording an event", "cuEventRecord", self.alive[event], stream)

    def hold(self, stream: int, event: int) -> None:
        """Let what is launched on ``stream`` from now on wait for it."""
        handle = self.alive[event]
        self._device.call("waiting for an event", "cuStreamWaitEvent", stream, handle, 0)

    def wait(self, event: int) -> None:
        """Wait for it on the host."""
        self._device.call("waiting for an event", "cuEventSynchronize", self.alive[event])

    def end(self) -> None:
        """Destroy what is left."""
        for event in list(self.alive):
            self.destroy(event)
