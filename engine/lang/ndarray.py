"""`qd.ndarray`: an array that kernels take as an argument.

The data is row-major, zero at first, aligned to 64 bytes, and belongs to the program that was
current when the array was made: after a reset every use is an error. Indexing from Python reads
and writes one element and is always checked, also for negative indices, which kernels lack.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, Final, NoReturn, cast

import numpy as np

from ..errors import QuadrantsIndexError, QuadrantsRuntimeError
from ..frontend.features import NdarrayFeature, ndarray_feature
from ..runtime import program
from ..types import ArrayHandle, DataType, dtype_of, i32, u1

__all__ = ["Ndarray", "ndarray"]

_ALIGN: Final = 64
_MAX_DIMS: Final = 12


def _aligned(dtype: DataType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Zeros whose first byte lies on a cache line."""
    item = np.dtype(dtype.np)
    size = item.itemsize
    for n in shape:
        size *= n
    raw = np.zeros(size + _ALIGN, np.uint8)
    start = -raw.ctypes.data % _ALIGN
    return raw[start : start + size].view(item).reshape(shape)


def _extents(shape: Any) -> tuple[int, ...]:
    items: Iterable[Any] = cast("list[Any]", shape) if isinstance(shape, tuple | list) else (shape,)
    extents = tuple([operator.index(n) for n in items])
    if len(extents) > _MAX_DIMS:
        raise RuntimeError(
            f"Too many dimensions. The maximum dimensionality is {_MAX_DIMS}, got {len(extents)}"
        )
    if any(n <= 0 for n in extents):
        raise QuadrantsRuntimeError(f"{extents} is not a valid shape for ndarray")
    if any(n > i32.max for n in extents):
        raise QuadrantsRuntimeError(f"{extents}: an extent must be below 2**31")
    return extents


class Ndarray(ArrayHandle):
    """See the module docstring; made by `ndarray`.

    dtype / shape / ndim: what they were made with. grad: the array of gradients, or None.
    """

    __slots__ = (
        "__weakref__", "_address", "_data", "_extents", "_key", "_program", "dtype", "grad",
    )  # fmt: skip

    def __init__(self, dtype: DataType, shape: tuple[int, ...], needs_grad: bool = False) -> None:
        owner = program.current()
        self.dtype: Final = dtype
        self._extents = shape
        self._program: Final = owner
        self._data: np.ndarray[Any, Any] | None = _aligned(dtype, shape)
        self._address: int = self._data.ctypes.data
        self._key: NdarrayFeature | None = ndarray_feature(dtype, len(shape), needs_grad)
        self.grad: Final = Ndarray(dtype, shape) if needs_grad else None
        owner.own(self)

    def program_ended(self) -> None:
        """Free the memory; the array is of no use from here on."""
        self._data = None
        self._key = None
        self._address = 0

    def _live(self) -> np.ndarray[Any, Any]:
        if self._data is None:
            raise QuadrantsRuntimeError(
                "This ndarray belongs to a program that has ended: qd.reset() or qd.init() came"
                " after it was made."
            )
        return self._data

    @property
    def shape(self) -> tuple[int, ...]:
        return self._extents

    @property
    def ndim(self) -> int:
        return len(self._extents)

    def has_grad(self) -> bool:
        """Whether it was made with ``needs_grad``."""
        return self.grad is not None

    def __repr__(self) -> str:
        state = "" if self._data is not None else ", no longer valid"
        return f"<qd.ndarray {self.dtype} {self._extents}{state}>"

    def _index(self, key: Any) -> tuple[int, ...]:
        """``key`` as checked indices. ``None`` and ``()`` mean the one element of a 0-D array."""
        items: tuple[Any, ...] = () if key is None else (key,)
        if isinstance(key, tuple | list):
            items = tuple(cast("list[Any]", key))
        extents = self._extents
        if len(items) != len(extents):
            raise QuadrantsIndexError(
                f"ndarray with dim {len(extents)} accessed with indices of dim {len(items)}"
            )
        indices: list[int] = []
        for item in items:
            if isinstance(item, slice):
                raise QuadrantsIndexError("Slicing is not supported on qd.ndarray")
            try:
                indices.append(operator.index(item))
            except TypeError:
                raise TypeError(f"ndarray indices must be integers, not {item!r}") from None
        for i, n in zip(indices, extents, strict=True):
            if not 0 <= i < n:
                raise QuadrantsIndexError(
                    f"index {tuple(indices)} is out of range for an ndarray of shape {extents}"
                )
        return tuple(indices)

    def __getitem__(self, key: Any) -> float | int:
        value = self._live()[self._index(key)].item()
        return int(value) if self.dtype is u1 else value

    def __iter__(self) -> NoReturn:
        """Without this Python would try indices 0, 1, ... and take the end for an end."""
        raise TypeError("an ndarray cannot be iterated over here; loop in a kernel, or to_numpy()")

    def __setitem__(self, key: Any, value: Any) -> None:
        data = self._live()
        if self.dtype.is_int and isinstance(value, float | np.floating):
            raise TypeError(
                f"an element of type {self.dtype} cannot be set to the real number {value!r}"
            )
        data[self._index(key)] = self.dtype(value)

    def fill(self, value: Any) -> None:
        """Set every element."""
        self._live().fill(self.dtype(value))

    def copy_from(self, other: Ndarray) -> None:
        """Take the values of an array of equal shape, converted to this one's dtype."""
        if not isinstance(other, Ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"Cannot copy from a non-ndarray object: {other!r}")
        data, source = self._live(), other._live()
        assert other._extents == self._extents, (
            f"Mismatch shape: {self._extents} expected, but {other._extents} provided"
        )
        with np.errstate(all="ignore"):
            np.copyto(data, source, casting="unsafe")

    def to_numpy(self, dtype: Any = None) -> np.ndarray[Any, Any]:
        """A copy of the values, converted to ``dtype`` (a data type or NumPy type) if given."""
        data = self._live()
        if dtype is None:
            return data.copy()
        with np.errstate(all="ignore"):
            return data.astype(dtype.np if isinstance(dtype, DataType) else dtype)

    def from_numpy(self, array: Any) -> None:
        """Take the values of a NumPy array of equal shape, converted to this one's dtype."""
        data = self._live()
        source = np.asarray(array)
        if source.shape != self._extents:
            raise ValueError(
                f"Mismatch shape: {self._extents} expected, but {source.shape} provided"
            )
        with np.errstate(all="ignore"):
            np.copyto(data, source, casting="unsafe")


def ndarray(dtype: Any, shape: Any, needs_grad: bool = False) -> Ndarray:
    """A new array of zeros.

    dtype: ``qd.f32`` and the like; ``int`` and ``float`` are the configured defaults, ``bool`` is
    ``qd.u1``. shape: a positive integer or a tuple of up to 12; ``()`` is a single element.
    """
    config = program.current().config
    if dtype is int or dtype is float:
        dtype = dtype_of(config.default_ip if dtype is int else config.default_fp)
    elif dtype is bool:
        dtype = u1
    if not isinstance(dtype, DataType):
        if isinstance(dtype, str):
            raise ValueError(f"Invalid data type {dtype}")
        dtype = dtype_of(dtype)
    if needs_grad and not dtype.is_real:
        raise QuadrantsRuntimeError(
            f"{dtype} is not supported for ndarray with `needs_grad=True` or `needs_dual=True`."
        )
    return Ndarray(dtype, _extents(shape), needs_grad)
