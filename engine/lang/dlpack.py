"""DLPack capsules of memory that the host does not see, both ways, and the array interface of CUDA.

NumPy makes and reads the capsules of host memory. Those of a device are built here, structure by
structure as the standard has them, since no library that does so has to be installed::

    capsule = capsule_of(window, device.dlpack, versioned)      to anybody
    window = window_of(tensor, kind)                            from anybody

A capsule keeps the memory alive until whoever took it calls its deleter, or until it is dropped
unused. Work is ordered by the legacy default stream, on which both sides do theirs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np

from ..backends.memory import Memory
from .memory import Window, keep, let_go

__all__ = ["CPU", "CUDA", "DEFAULT_STREAM", "Borrowed", "capsule_of", "cuda_interface", "window_of"]

Array = np.ndarray[Any, Any]
CPU: Final = 1
CUDA: Final = 2
"""The numbers of kinds of devices."""
DEFAULT_STREAM: Final = 1
"""How DLPack and the array interface call the legacy default stream."""

_CODES: Final = {"i": 0, "u": 1, "f": 2, "b": 6}
_KINDS: Final = {code: kind for kind, code in _CODES.items()}


class _Tensor(ctypes.Structure):
    """``DLTensor``."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_kind", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64),
    )  # fmt: skip


class _Managed(ctypes.Structure):
    """``DLManagedTensor``."""

    _fields_ = (
        ("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
    )  # fmt: skip


class _Versioned(ctypes.Structure):
    """``DLManagedTensorVersioned``."""

    _fields_ = (
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _Tensor),
    )  # fmt: skip


_NAMES: Final = {_Managed: b"dltensor", _Versioned: b"dltensor_versioned"}
_READ_ONLY: Final = 1

_DELETER: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
# A destructor gets a capsule that nobody refers to any more: an address, never an object.
_DESTRUCTOR: Final = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)


def _python(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """A function of Python's C interface, as a function of its own."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_new: Final = _python(
    "PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)
_is_valid: Final = _python("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_pointer: Final = _python(
    "PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p
)
_rename: Final = _python("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_dying_is_valid: Final = _python(
    "PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p
)
_dying_pointer: Final = _python(
    "PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p
)

_given: Final[dict[int, tuple[Any, ...]]] = {}
"""What capsules that we gave away stand on, by the address of their structure."""


@_DELETER
def _delete(address: int) -> None:
    held = _given.pop(address, None)
    if held is not None:
        let_go(held[-1])


@_DESTRUCTOR
def _destroy(capsule: int) -> None:
    for name in _NAMES.values():
        if _dying_is_valid(capsule, name):  # nobody took what is in it
            _delete(_dying_pointer(capsule, name))


def capsule_of(window: Window, device: tuple[int, int], versioned: bool) -> Any:
    """A capsule of the memory of ``window`` on ``device``."""
    ndim, size = window.ndim, window.dtype.itemsize
    numbers = ctypes.c_int64 * max(ndim, 1)
    shape = numbers(*window.shape)
    strides = numbers(*[stride // size for stride in window.strides])
    made = (_Versioned if versioned else _Managed)()
    made.deleter = ctypes.cast(_delete, ctypes.c_void_p)
    if isinstance(made, _Versioned):
        made.major = 1
    tensor = made.tensor
    tensor.data = window.address
    tensor.device_kind, tensor.device_id = device
    tensor.ndim = ndim
    tensor.code, tensor.bits, tensor.lanes = _CODES[window.dtype.kind], 8 * size, 1
    tensor.shape, tensor.strides = shape, strides
    address = ctypes.addressof(made)
    _given[address] = made, shape, strides, window.memory
    keep(window.memory)
    return _new(address, _NAMES[type(made)], ctypes.cast(_destroy, ctypes.c_void_p))


class Borrowed:
    """Memory of others, a `backends.memory.Memory` that is only the source of copies.

    through: of the same device; it does the copies. owner: what keeps the memory alive.
    """

    __slots__ = ("_owner", "_through", "address", "host", "nbytes")

    def __init__(self, address: int, nbytes: int, through: Callable[[int], Memory], owner: Any):
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

    def write(self, offset: int, data: Array) -> None:
        raise ValueError("the memory of another library is not written to")

    def fill(self, offset: int, pattern: bytes, count: int) -> None:
        raise ValueError("the memory of another library is not written to")

    def copy(self, offset: int, source: Memory, begin: int, nbytes: int) -> None:
        raise ValueError("the memory of another library is not written to")

    def free(self) -> None:
        """It is not ours."""


class _Taken:
    """What a capsule held; deleted with this object."""

    __slots__ = ("_address", "_deleter")

    def __init__(self, address: int, deleter: int | None) -> None:
        self._address: Final = address
        self._deleter: Final = deleter

    def __del__(self) -> None:
        if self._deleter:
            _DELETER(self._deleter)(self._address)


def window_of(tensor: Any, device: tuple[int, int], allocate: Callable[[int], Memory]) -> Window:
    """The elements of what speaks DLPack, on ``device``. ValueError for memory elsewhere.

    allocate: memory of that device.
    """
    where = tuple(int(n) for n in tensor.__dlpack_device__())
    if where != device:
        raise ValueError(f"the array lies on the device {where}, not on {device}")
    try:
        capsule = tensor.__dlpack__(stream=DEFAULT_STREAM, max_version=(1, 0))
    except TypeError:  # from before version 1
        capsule = tensor.__dlpack__(stream=DEFAULT_STREAM)
    for kind, name in _NAMES.items():
        if _is_valid(capsule, name):
            address = _pointer(capsule, name)
            used = _USED[kind]
            _rename(capsule, used)
            found = kind.from_address(address)
            return _window(found.tensor, _Taken(address, found.deleter), allocate)
    raise ValueError(f"{type(tensor)} gives no DLPack capsule that is known here")


_USED: Final = {kind: b"used_" + name for kind, name in _NAMES.items()}
"""Names of capsules that were taken; the interpreter keeps no copy of a name."""


def _window(tensor: Any, owner: Any, allocate: Callable[[int], Memory]) -> Window:
    kind = _KINDS.get(tensor.code)
    if kind is None or tensor.lanes != 1:
        raise ValueError("the elements of the array are no integers, reals or bools")
    dtype = np.dtype(f"{kind}{tensor.bits // 8}")
    shape = [int(tensor.shape[k]) for k in range(tensor.ndim)]
    strides: list[int] = []
    step = dtype.itemsize
    for extent in reversed(shape):
        strides.insert(0, step)
        step *= extent
    if tensor.strides:
        strides = [int(tensor.strides[k]) * dtype.itemsize for k in range(tensor.ndim)]
    ends = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    if any(end < 0 for end in ends):
        raise ValueError("the array runs backwards through memory, or has no elements")
    address = int(tensor.data or 0) + int(tensor.offset)
    memory = Borrowed(address, sum(ends) + dtype.itemsize, allocate, owner)
    return Window(cast(Memory, memory), 0, shape, strides, dtype)


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
