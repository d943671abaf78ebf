"""Flat views of memory that the generated code indexes: arrays, and the buffer between tasks.

A view gives and takes the Python numbers of `semantics`. Memoryviews do so at a third of the cost
of NumPy indexing; there is none for f16, so that type goes through NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np

from ...errors import QuadrantsRuntimeTypeError
from ...ir import Param
from ...types import DataType, Type, f16, f32, f64, i8, i16, i32, i64, u1, u8, u16, u32, u64

__all__ = ["array_view", "tmp_views"]

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


def array_view(array: Any, param: Param) -> Any:
    """The elements of an argument in row-major order; writes go through to it.

    Raises QuadrantsRuntimeTypeError when the argument is no C-contiguous array of the parameter's
    element type and number of axes.
    """
    if not isinstance(array, np.ndarray):
        raise QuadrantsRuntimeTypeError(f"{param.name} must be an array, not {array!r}")
    found = cast("np.ndarray[Any, Any]", array)
    if found.dtype != param.dtype.np or found.ndim != param.ndim:
        raise QuadrantsRuntimeTypeError(
            f"{param.name} must have {param.ndim} axes of {param.dtype}, "
            f"not {found.ndim} of {found.dtype}"
        )
    if not found.flags.c_contiguous:
        raise QuadrantsRuntimeTypeError(f"{param.name} must be C-contiguous")
    if not found.size:
        return []
    return _view(found.reshape(-1).view(np.uint8), param.dtype)


def tmp_views(size: int, types: Sequence[DataType]) -> dict[DataType, Any]:
    """One zeroed buffer of ``size`` bytes, seen as elements of each of the types."""
    buffer = bytearray((size + 7) // 8 * 8)
    return {t: _view(buffer, t) if buffer else [] for t in types}
