"""DLPack capsules of memory that the host does not see, both ways, and the array interface of CUDA.

NumPy makes and reads the capsules, also those of a device: it is given an array at the address on
the device, which neither NumPy nor this module reads, and the device in the capsule is then set. So
the capsule keeps the memory alive as NumPy's do: until its consumer releases it, or it is dropped::

    capsule = capsule_of(window, device.dlpack, (1, 0))         to anybody
    window = window_of(tensor, device.dlpack, device.allocate)  from anybody

Work is ordered by the legacy default stream, which both libraries use.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..backends.array_memory import ArrayMemory
from .elements import CPU, DEFAULT_STREAM, Window, keep, let_go

__all__ = ["Borrowed", "capsule_of", "cuda_interface", "window_of"]

Array = np.ndarray[Any, Any]

_DEVICE_AT: Final = {b"dltensor": 8, b"dltensor_versioned": 40}
"""The offset of the device in a capsule of this name: kind and number, 32 bits each."""


def _python(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """A function of Python's C interface, as a function of its own."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_is_valid: Final = _python("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_pointer: Final = _python(
    "PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p
)


def _relabel(capsule: Any, device: tuple[int, int]) -> None:
    """Change the device of a capsule that has no consumer yet to ``device``."""
    for name, at in _DEVICE_AT.items():
        if _is_valid(capsule, name):
            words = (ctypes.c_int32 * 2).from_address(_pointer(capsule, name) + at)
            words[0], words[1] = device
            return
    raise ValueError(f"{capsule!r} is no DLPack capsule that is known here")


class _Exported:
    """Memory that another library uses; NumPy's array of it keeps this object alive."""

    def __init__(self, window: Window) -> None:
        self._memory: Final = window.memory
        self.__array_interface__: Final = {
            "shape": window.shape,
            "typestr": window.dtype.str,
            "data": (window.address, False),
            "strides": window.strides,
            "version": 3,
        }
        keep(self._memory)

    def __del__(self) -> None:
        let_go(self._memory)


def capsule_of(window: Window, device: tuple[int, int], max_version: tuple[int, int] | None) -> Any:
    """A capsule of the memory of ``window`` on ``device``."""
    array: Any = np.asarray(_Exported(window))
    capsule = array.__dlpack__(max_version=max_version)
    _relabel(capsule, device)
    return capsule


class Borrowed:
    """Memory of others, a `backends.array_memory.ArrayMemory` that is only the source of copies.

    through: of the same device; it does the copies. owner: what keeps the memory alive.
    """

    __slots__ = ("_owner", "_through", "address", "host", "nbytes")

    def __init__(
        self, address: int, nbytes: int, through: Callable[[int], ArrayMemory], owner: Any
    ):
        self.address = address
        self.nbytes = nbytes
        self.host: Array | None = None
        self._through: Final = through
        self._owner: Final = owner

    def read(self, offset: int, out: Array) -> None:
        own = self._through(out.nbytes)
        own.copy(0, self, offset, out.nbytes)
        own.read(0, out)
        own.free()

    def write(self, *_: Any, **__: Any) -> None:
        raise ValueError("the memory of another library is not written to")

    fill = copy = write

    def free(self) -> None:
        """It is not ours."""


class _Relabeled:
    """A capsule of a device, as one of the host."""

    def __init__(self, capsule: Any) -> None:
        _relabel(capsule, (CPU, 0))
        self._capsule: Final = capsule

    def __dlpack__(self, **_options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU, 0


def window_of(
    tensor: Any, device: tuple[int, int], allocate: Callable[[int], ArrayMemory]
) -> Window:
    """The elements of a DLPack object on ``device``. ValueError for memory elsewhere.

    allocate: memory of that device.
    """
    where = tuple([int(n) for n in tensor.__dlpack_device__()])
    if where != device:
        raise ValueError(f"the array is on the device {where}, not on {device}")
    try:
        capsule = tensor.__dlpack__(stream=DEFAULT_STREAM, max_version=(1, 0))
    except TypeError:  # from before version 1
        capsule = tensor.__dlpack__(stream=DEFAULT_STREAM)
    array: Array = np.from_dlpack(_Relabeled(capsule))
    ends = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)]
    if any(end < 0 for end in ends):
        raise ValueError("the array runs backwards through memory, or has no elements")
    address: int = array.__array_interface__["data"][0]
    memory = Borrowed(address, sum(ends) + array.itemsize, allocate, array)
    return Window(memory, 0, array.shape, array.strides, array.dtype)


def cuda_interface(window: Window) -> dict[str, Any]:
    """``__cuda_array_interface__`` of the memory, in its third version."""
    return {
        "shape": window.shape,
        "typestr": window.dtype.str,
        "data": (window.address, False),
        "strides": window.strides if window.order() != tuple(range(window.ndim)) else None,
        "version": 3,
        "stream": DEFAULT_STREAM,
    }
