"""What a data type means in Python scope; the program in force decides about int and float."""

from __future__ import annotations

from typing import Any

from ..runtime import program
from ..types import DataType, dtype_of, f32, i32, resolved

__all__ = ["defaults", "meant", "numpy_type"]


def defaults() -> tuple[DataType, DataType]:
    """What int and float mean: the program's default_ip and default_fp, i32 and f32 without one."""
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
