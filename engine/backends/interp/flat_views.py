"""Flat views of memory that the generated code indexes: arrays, and the buffer between tasks.

A view returns and stores the Python numbers of `semantics`. Memoryviews do so at a third of the
cost of NumPy indexing; there is none for f16, so that type goes through NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np

from ...errors import QuadrantsRuntimeTypeError
from ...ir import Param
from ...types import DataType, Type, f16, f32, f64, i8, i16, i32, i64, u1, u8, u16, u32, u64

__all__ = ["array_of", "array_view", "extents", "tmp_views"]

_FORMAT: Final[dict[Type, str]] = {
    i8: "b", i16: "h", i32: "i", i64: "q", u1: "B", u8: "B", u16: "H", u32: "I", u64: "Q",
    f32: "f", f64: "d",
}  # fmt: skip


class _Halves:
    """An f16 array as a sequence of Python floats."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __getitem__(self, index: int) -> float:
        return float(self.array[index])

    def __setitem__(self, index: int, value: float) -> None:
        self.array[index] = value


def _view(buffer: Any, t: DataType) -> Any:
    if t is f16:
        return _Halves(np.frombuffer(buffer, np.float16))
    return memoryview(buffer).cast("B").cast(_FORMAT[t])  # type: ignore[call-overload]


def array_of(view: Any, t: DataType) -> np.ndarray[Any, Any]:
    """The memory under a view of elements of type ``t``, as an array."""
    if isinstance(view, _Halves):
        return view.array
    return np.asarray(view, t.np) if isinstance(view, list) else np.asarray(view).view(t.np)


def array_view(array: Any, param: Param) -> Any:
    """The scalars of an argument in the order of memory; writes go through to it.

    Raises QuadrantsRuntimeTypeError when the argument is no C-contiguous array of the parameter's
    scalar type and number of axes, those of an element last; for a field, when it is not its flat
    view (of as many scalars as its layout spans).
    """
    if not isinstance(array, np.ndarray):
        raise QuadrantsRuntimeTypeError(f"{param.name} must be an array, not {array!r}")
    found = cast("np.ndarray[Any, Any]", array)
    axes = 1 if param.layout is not None else param.ndim + len(param.element_shape)
    if found.dtype != param.dtype.np or found.ndim != axes:
        raise QuadrantsRuntimeTypeError(
            f"{param.name} must have {axes} axes of {param.dtype}, "
            f"not {found.ndim} of {found.dtype}"
        )
    if param.layout is not None and found.size < param.layout.span:
        raise QuadrantsRuntimeTypeError(
            f"field {param.name} spans {param.layout.span} scalars, not {found.size}"
        )
    if param.layout is None and found.shape[param.ndim :] != param.element_shape:
        raise QuadrantsRuntimeTypeError(
            f"{param.name} must have elements of shape {param.element_shape}, "
            f"not an array of shape {found.shape}"
        )
    if not found.flags.c_contiguous:
        raise QuadrantsRuntimeTypeError(f"{param.name} must be C-contiguous")
    if not found.size:
        return []
    return _view(found.reshape(-1).view(np.uint8), param.dtype)


def extents(param: Param, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The extents of an ndarray's axes in the order of its indices, from its shape in memory."""
    if param.axes is None:
        return shape[: param.ndim]
    return tuple([shape[param.axes.index(axis)] for axis in range(param.ndim)])


def tmp_views(size: int, types: Sequence[DataType]) -> dict[DataType, Any]:
    """One zeroed buffer of ``size`` bytes, seen as elements of each of the types."""
    buffer = bytearray((size + 7) // 8 * 8)
    return {t: _view(buffer, t) if buffer else [] for t in types}
