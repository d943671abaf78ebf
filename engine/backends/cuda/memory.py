"""Memory of the device, as `backends.memory` describes it.

Everything happens in the order of the default stream: memory is allocated, set, copied and freed
there, so that it can be freed while kernels that use it still run.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..memory import Array, Memory

if TYPE_CHECKING:
    from .device import CudaDevice

__all__ = ["BorrowedMemory", "DeviceMemory"]

_BLOCK: Final = 64 << 10
"""Bytes of a pattern that the host writes; the device doubles them."""


class DeviceMemory:
    """See `memory.Memory`. Made by `CudaDevice.allocate`; freed when nobody refers to it."""

    __slots__ = ("__weakref__", "address", "device", "host", "nbytes")

    def __init__(self, device: CudaDevice, address: int, nbytes: int) -> None:
        self.device: Final = device
        self.address = address
        self.nbytes = nbytes
        self.host: Array | None = None

    def _at(self, offset: int, nbytes: int) -> int:
        if not self.address:
            raise ValueError("the memory was freed")
        if offset < 0 or offset + nbytes > self.nbytes:
            raise ValueError(f"{nbytes} bytes from {offset} on of a memory of {self.nbytes}")
        return self.address + offset

    def read(self, offset: int, out: Array) -> None:
        self.device.read(self._at(offset, out.nbytes), out.reshape(-1).view(np.uint8))

    def write(self, offset: int, data: Array) -> None:
        self.device.write(self._at(offset, data.nbytes), data.reshape(-1).view(np.uint8))

    def fill(self, offset: int, pattern: bytes, count: int) -> None:
        size = len(pattern)
        address = self._at(offset, size * count)
        if not count:
            return
        narrow = pattern
        while len(narrow) > 1 and narrow[: len(narrow) // 2] * 2 == narrow:
            narrow = narrow[: len(narrow) // 2]
        if len(narrow) in (1, 2, 4) and not address % len(narrow):
            self.device.set(address, int.from_bytes(narrow, "little"), len(narrow), size * count)
            return
        block = np.frombuffer(narrow * min(count, max(1, _BLOCK // size)), np.uint8)
        self.device.write(address, block)
        done, total = block.nbytes, size * count
        while done < total:
            part = min(done, total - done)
            self.device.copy(address + done, address, part)
            done += part

    def copy(self, offset: int, source: Memory, begin: int, nbytes: int) -> None:
        address = self._at(offset, nbytes)
        data = source.host
        if data is not None:
            self.device.write(address, data[begin : begin + nbytes])
        elif source.address:
            self.device.copy(address, source.address + begin, nbytes)
        else:
            raise ValueError("the memory was freed")

    def free(self) -> None:
        address, self.address = self.address, 0
        if address:
            self.device.release(address, self.nbytes)

    def __del__(self) -> None:
        with suppress(Exception):  # the interpreter ends, and parts of it are gone
            self.free()


class BorrowedMemory(DeviceMemory):
    """Memory of the device that others own. owner: keeps it alive."""

    __slots__ = ("owner",)

    def __init__(self, device: CudaDevice, address: int, nbytes: int, owner: Any) -> None:
        super().__init__(device, address, nbytes)
        self.owner: Any = owner

    def free(self) -> None:
        self.address = 0
        self.owner = None
