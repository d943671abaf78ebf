"""Memory of the device that others own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..device_launch.device_memory import DeviceMemory

if TYPE_CHECKING:
    from .device import CudaDevice

__all__ = ["BorrowedMemory"]


class BorrowedMemory(DeviceMemory):
    """Memory of the device that others own. owner: keeps it alive."""

    __slots__ = ("owner",)

    def __init__(self, device: CudaDevice, address: int, nbytes: int, owner: Any) -> None:
        super().__init__(device, address, nbytes)
        self.owner: Any = owner

    def free(self) -> None:
        self.address = 0
        self.owner = None
