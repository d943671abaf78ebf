"""The memory of arrays, on the host or on a device.

A backend hands out `ArrayMemory`; `lang` keeps arrays and fields in it and the runtime passes views
of it to kernels. Where the host sees the bytes directly (`ArrayMemory.host`), a view is a NumPy
array. Where it does not, a view is a `DeviceArray`: address, shape and dtype, with copies both
ways::

    memory = program.device.allocate(nbytes)          zeroed
    view = view_of(memory, offset, shape, dtype)      np.ndarray or DeviceArray
    data = host_copy(view)                            of the host: the view itself, or a copy
    memory.write(offset, data)                        a part of it, from a C-contiguous array

Copies wait for what was launched on the default stream before, and raise what it failed with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np

from ..errors import QuadrantsRuntimeError

__all__ = [
    "ALIGN", "ArrayMemory", "DeviceArray", "HostMemory", "aligned_zeros", "freed", "host_copy",
    "view_of",
]  # fmt: skip

Array = np.ndarray[Any, Any]

ALIGN: Final = 64
"""Bytes that the address of every memory is at least a multiple of."""


_SLACK: Final = 4 << 10
"""Unused bytes before and after memory of the host. Kernels that write a little out of range then
do not damage the heap. Zeroing them takes 0.1 us."""


def aligned_zeros(size: int, slack: int = 0) -> Array:
    """``size`` zero bytes, the first of them at a cache line, with unused ones on both sides.

    MemoryError if there is not enough memory.
    """
    return _aligned(size, slack)[0]


def _aligned(size: int, slack: int) -> tuple[Array, int]:
    """`aligned_zeros`, and their address: NumPy makes an object of ctypes for each query of it."""
    raw = np.zeros(size + ALIGN + 2 * slack, np.uint8)
    begin = raw.ctypes.data
    start = slack + -(begin + slack) % ALIGN
    return raw[start : start + size], begin + start


class ArrayMemory(Protocol):
    """A run of bytes.

    address: as passed to kernels; 0 once it was freed. nbytes: how many. host: the bytes as an
    array of ``u8``, where the host sees them; None on a device and once it was freed.
    """

    address: int
    nbytes: int
    host: Array | None

    def read(self, offset: int, out: Array) -> None:
        """Fill ``out``, a C-contiguous array, with the bytes from ``offset`` on."""
        ...

    def write(self, offset: int, data: Array) -> None:
        """Set the bytes from ``offset`` on to those of ``data``, a C-contiguous array."""
        ...

    def fill(self, offset: int, pattern: bytes, count: int) -> None:
        """Repeat ``pattern`` (1, 2, 4 or 8 bytes) ``count`` times from ``offset`` on."""
        ...

    def copy(self, offset: int, source: ArrayMemory, begin: int, nbytes: int) -> None:
        """Copy ``nbytes`` bytes of ``source``, from ``begin`` on, into this memory."""
        ...

    def free(self) -> None:
        """Free the bytes; a second call does nothing. NumPy views of them stay valid."""
        ...


def freed() -> QuadrantsRuntimeError:
    """The error for memory that another thread has freed in the meantime."""
    return QuadrantsRuntimeError(
        "the memory of this array or field was freed: qd.reset() or qd.init() was called, or its "
        "SNode tree was destroyed, after it was made"
    )


class HostMemory:
    """Memory that the host sees. MemoryError if there is not enough."""

    __slots__ = ("address", "host", "nbytes")

    def __init__(self, nbytes: int) -> None:
        data, address = _aligned(nbytes, _SLACK)
        self.nbytes = nbytes
        self.host: Array | None = data
        self.address: int = address

    def _bytes(self) -> Array:
        found = self.host  # another thread may end the program
        if found is None:
            raise freed()
        return found

    def read(self, offset: int, out: Array) -> None:
        out.reshape(-1).view(np.uint8)[...] = self._bytes()[offset : offset + out.nbytes]

    def write(self, offset: int, data: Array) -> None:
        self._bytes()[offset : offset + data.nbytes] = data.reshape(-1).view(np.uint8)

    def fill(self, offset: int, pattern: bytes, count: int) -> None:
        size = len(pattern)
        whole = np.dtype(f"u{size}")  # bytes one by one take three times as long
        part = self._bytes()[offset : offset + size * count].view(whole)
        part[...] = np.frombuffer(pattern, whole)[0]

    def copy(self, offset: int, source: ArrayMemory, begin: int, nbytes: int) -> None:
        part = self._bytes()[offset : offset + nbytes]
        if source.host is not None:
            part[...] = source.host[begin : begin + nbytes]
        else:
            source.read(begin, part)

    def free(self) -> None:
        self.host = None
        self.address = 0


class DeviceArray:
    """An array in memory that the host does not see; kernels accept it in place of a NumPy array.

    address: of its first byte. shape, dtype (NumPy's): C-contiguous, as arrays are passed to
    `Executable.launch`. memory, offset: its location; memory is None where others own it, and
    ``owner`` then keeps it alive. writeable: True if a kernel may write it.
    """

    __slots__ = ("address", "dtype", "memory", "nbytes", "offset", "owner", "shape", "writeable")

    def __init__(
        self, address: int, shape: Sequence[int], dtype: Any, memory: ArrayMemory | None = None,
        offset: int = 0, owner: Any = None, writeable: bool = True,
    ) -> None:  # fmt: skip
        self.address: Final = address
        self.shape: Final = tuple(shape)
        self.dtype: Final = np.dtype(dtype)
        self.memory: Final = memory
        self.offset: Final = offset
        self.owner: Final = owner
        self.writeable: Final = writeable
        self.nbytes: Final[int] = self.dtype.itemsize * math.prod(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.nbytes // self.dtype.itemsize

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)


def view_of(
    memory: ArrayMemory, offset: int, shape: Sequence[int], dtype: Any
) -> Array | DeviceArray:
    """The C-contiguous array of this shape that begins ``offset`` bytes into ``memory``."""
    host = memory.host
    if host is not None:
        return np.ndarray(tuple(shape), dtype, host, offset)
    if isinstance(memory, HostMemory):
        raise freed()
    return DeviceArray(memory.address + offset, shape, dtype, memory, offset)


def host_copy(view: Array | DeviceArray) -> Array:
    """The elements where the host sees them: the array itself, or a fresh copy."""
    if not isinstance(view, DeviceArray):
        return view
    out = np.empty(view.shape, view.dtype)
    if view.memory is None:
        raise ValueError("the memory of this array belongs to others")
    if out.nbytes:
        view.memory.read(view.offset, out)
    return out
