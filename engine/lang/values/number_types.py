"""The meaning of data types in Python scope; the current program decides about int and float."""

from __future__ import annotations

from typing import Any, Final

from ...runtime import program
from ...types import DataType, dtype_of, f32, i32, resolved

__all__ = ["defaults", "epsilon", "meant", "numpy_type", "real_type"]


def defaults() -> tuple[DataType, DataType]:
    """The types of int and float: default_ip and default_fp of the program; else i32 and f32."""
    owner = program.peek()
    if owner is None:
        return i32, f32
    return dtype_of(owner.config.default_ip), dtype_of(owner.config.default_fp)


def meant(t: Any) -> Any:
    """``t`` with int, float and bool replaced by the data types they mean now."""
    return t if isinstance(t, DataType) else resolved(t, *defaults())


def numpy_type(dt: Any) -> type[Any]:
    """The NumPy scalar type of ``dt``: a data type, int, float, bool, or what names a data type."""
    if isinstance(dt, DataType):
        return dt.np
    return (meant(dt) if dt in (int, float, bool) else dtype_of(dt)).np


def real_type(dt: Any = None) -> DataType:
    """``dt`` as a float type: default_fp if it is None. TypeError for an integer type."""
    t: DataType = defaults()[1] if dt is None else meant(dt)
    if not t.is_real:
        raise TypeError(f"{t} is no type of real numbers")
    return t


_FRACTION_BITS: Final = {16: 10, 32: 23, 64: 52}


def epsilon(t: DataType) -> float:
    """The distance from 1 to the next number of a float type."""
    return 2.0 ** -_FRACTION_BITS[t.bits]
