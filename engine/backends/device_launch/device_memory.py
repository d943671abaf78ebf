"""Memory that the host does not see, as `backends.array_memory` describes it.

It is freed when nothing refers to it any more. The device decides how, because kernels that still
run may use it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..array_memory import Array, ArrayMemory

if TYPE_CHECKING:
    from .device import AnyDevice

__all__ = ["BorrowedMemory", "DeviceMemory"]

_BLOCK: Final = 64 << 10
"""Bytes of a pattern that the host writes; the device doubles them."""


class DeviceMemory:
    """See `array_memory.ArrayMemory`. Made by `DeviceBase.room`; freed when nothing refers to
    it."""

    __slots__ = ("__weakref__", "address", "device", "host", "nbytes")

    def __init__(self, device: AnyDevice, address: int, nbytes: int) -> None:
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
        with self.device.uses:
            self.device.read(self._at(offset, out.nbytes), out.reshape(-1).view(np.uint8))

    def write(self, offset: int, data: Array) -> None:
        with self.device.uses:
            self.device.write(self._at(offset, data.nbytes), data.reshape(-1).view(np.uint8))

    def fill(self, offset: int, pattern: bytes, count: int) -> None:
        with self.device.uses:
            self._fill(offset, pattern, count)

    def _fill(self, offset: int, pattern: bytes, count: int) -> None:
        size = len(pattern)
        address, total = self._at(offset, size * count), size * count
        if not count or self.device.repeat(address, pattern, total):
            return
        block = np.frombuffer(pattern * min(count, max(1, _BLOCK // size)), np.uint8)
        self.device.write(address, block)
        done = block.nbytes
        while done < total:
            part = min(done, total - done)
            self.device.copy(address + done, address, part)
            done += part

    def copy(self, offset: int, source: ArrayMemory, begin: int, nbytes: int) -> None:
        with self.device.uses:
            self._copy(offset, source, begin, nbytes)

    def _copy(self, offset: int, source: ArrayMemory, begin: int, nbytes: int) -> None:
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

    def __init__(self, device: AnyDevice, address: int, nbytes: int, owner: Any) -> None:
        super().__init__(device, address, nbytes)
        self.owner: Any = owner

    def free(self) -> None:
        self.address = 0
        self.owner = None
