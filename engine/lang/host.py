"""Functions for containers that Python code reads and writes: indices, numbers, NumPy arrays."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np

from ..errors import QuadrantsAssertionError, QuadrantsRuntimeError, QuadrantsTypeError
from ..runtime import program
from ..runtime.binding import short_number
from ..runtime.program import NOT_INITIALIZED
from ..types import CompoundType, DataType, dtype_of, i32, u1

__all__ = [
    "MAX_AXES", "FieldIndexError", "InvalidDataType", "InvalidShape", "as_type", "ended",
    "extents_of", "field_index", "fitted", "is_number", "items_of", "mismatch", "number",
    "numbers", "numbers_of", "numpy_type", "python_number", "value_type",
]  # fmt: skip

Array = np.ndarray[Any, Any]
MAX_AXES: Final = 12
"""Of a field or an array."""
_WHOLE: Final[frozenset[type]] = frozenset([int])
_REAL: Final[frozenset[type]] = frozenset([int, float])


class FieldIndexError(QuadrantsAssertionError, IndexError):
    """A wrong number of indices, or an index out of range, when Python code accesses a field."""


class InvalidDataType(ValueError, TypeError):
    """Raised when a value other than a data type is passed for one."""


def ended(what: str) -> QuadrantsRuntimeError:
    """The error for using something whose program has ended."""
    text = (
        f"This {what} belongs to a program that has ended: qd.reset() or qd.init() came after it"
        " was made."
    )
    if program.peek() is None:
        text = f"{NOT_INITIALIZED} {text}"
    return QuadrantsRuntimeError(text)


def items_of(value: Any) -> Sequence[Any]:
    """The items of a list, a tuple or an array of NumPy with one axis; another value as one item.

    A shape, or the first indices of a field, may be any of these.
    """
    if isinstance(value, list | tuple):
        return cast("list[Any]", value)
    if isinstance(value, np.ndarray) and cast(Array, value).ndim == 1:
        return cast("list[Any]", value.tolist())
    return (cast(Any, value),)


class InvalidShape(QuadrantsRuntimeError, TypeError):
    """Raised for a shape that is not made of integers."""


def extents_of(shape: Any) -> tuple[int, ...]:
    """The extents of a new ndarray of this shape; an error if it cannot have it."""
    items = items_of(shape)
    try:
        extents = tuple([operator.index(n) for n in items])
    except TypeError:
        shown = tuple(items) if isinstance(items, list) else items
        raise InvalidShape(
            f"{shown} is not a valid shape for ndarray: extents are positive integers"
        ) from None
    if len(extents) > MAX_AXES:
        raise RuntimeError(
            f"Too many dimensions. The maximum dimensionality is {MAX_AXES}, got {len(extents)}"
        )
    if any(n <= 0 for n in extents):
        raise QuadrantsRuntimeError(f"{extents} is not a valid shape for ndarray")
    if any(n > i32.max for n in extents):
        raise QuadrantsRuntimeError(f"{extents}: an extent must be below 2**31")
    return extents


def value_type(dtype: Any) -> Any:
    """The data type, or resolved compound type, that a user means by ``dtype``.

    InvalidDataType for any other object.
    """
    config = program.current().config
    if isinstance(dtype, DataType):
        return dtype
    from ..types import resolved

    if dtype in (int, float, bool) or isinstance(dtype, CompoundType):
        return resolved(dtype, dtype_of(config.default_ip), dtype_of(config.default_fp))
    try:
        if not isinstance(dtype, str):
            return dtype_of(dtype)
    except TypeError:
        pass
    raise InvalidDataType(f"Invalid data type {dtype}; use one such as qd.f32 or qd.i32")


def field_index(key: Any, origin: Sequence[int], shape: Sequence[int]) -> list[int]:
    """The indices ``key`` of a field, checked and counted from ``origin``.

    ``None`` and ``()`` stand for the one element of a field without axes.
    """
    items: tuple[Any, ...] = () if key is None else (key,)
    if isinstance(key, tuple | list):
        items = tuple(cast("list[Any]", key))
    found: list[int] = []
    for item in items:
        try:
            found.append(operator.index(item))
        except TypeError:
            raise TypeError(
                f"indices of a field must be integers, not {item!r}: slicing a qd.field is not"
                " supported, use to_numpy()"
            ) from None
    if len(found) != len(shape):
        raise FieldIndexError(
            "Slicing is not supported on qd.field: a field with"
            f" {len(shape)} axes was accessed with {len(found)} indices"
        )
    out: list[int] = []
    for i, first, n in zip(found, origin, shape, strict=True):
        if not first <= i < first + n:
            valid = ", ".join(f"{o}..{o + m - 1}" for o, m in zip(origin, shape, strict=True))
            raise FieldIndexError(
                f"index {tuple(found)} is out of range for a field with the indices ({valid})"
            )
        out.append(i - first)
    return out


def fitted(value: float, dtype: DataType, what: str = "an element") -> int | float:
    """``value`` as ``dtype`` holds it. QuadrantsTypeError for an integer out of its range.

    (A call of the type itself, ``dtype(value)``, is a cast, and wraps.)
    """
    if dtype.is_int and not dtype.min <= value <= dtype.max and dtype is not u1:
        raise _out_of_range(value, dtype, dtype.min, dtype.max, what)
    return dtype(value)


def _out_of_range(
    value: Any, dtype: object, low: int, high: int, what: str = "an element"
) -> QuadrantsTypeError:
    shown = short_number(value) if isinstance(value, int) else value
    return QuadrantsTypeError(
        f"{what} of type {dtype} cannot be set to {shown}: its range is {low} to {high}"
    )


def as_type(found: Array, dtype: Any) -> Array:
    """``found`` in a NumPy type. QuadrantsTypeError if that is of integers and one is out of range.

    Real numbers are truncated. NaN is out of every range.
    """
    target = np.dtype(dtype)
    if target.kind in "iu" and found.size and found.dtype != target and found.dtype.kind != "b":
        limits = np.iinfo(target)
        for one in (found.min().item(), found.max().item()):
            if not limits.min - 1 < one < limits.max + 1:
                raise _out_of_range(one, target, limits.min, limits.max)
    with np.errstate(all="ignore"):
        return found.astype(target)


def number(value: Any, dtype: DataType, whole: bool = False) -> int | float:
    """``value`` as an element of ``dtype`` holds it.

    TypeError for a value that is no number, for an integer out of range and for a float in an
    integer, unless it has no fraction and either ``whole`` or, as in Quadrants, it is a number of
    NumPy of less than 64 bits or an array of one number.
    """
    plain: Any = value
    if type(plain) is int or (type(plain) is float and not dtype.is_int):
        return fitted(plain, dtype)
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and not value.ndim):
        plain = cast(Array, value).item()
    if isinstance(plain, bool | int) or (isinstance(plain, float) and not dtype.is_int):
        return fitted(plain, dtype)
    if isinstance(plain, float):
        if (whole or not isinstance(value, float)) and plain.is_integer():
            return fitted(int(plain), dtype)
        raise TypeError(f"an element of type {dtype} cannot be set to the real number {value!r}")
    raise TypeError(f"an element of type {dtype} cannot be set to {value!r}")


def is_number(value: Any) -> bool:
    """True if ``value`` is a number of Python or NumPy."""
    return isinstance(value, bool | int | float | np.number | np.bool_)


def numbers(value: Any, dtype: DataType, shape: tuple[int, ...], whole: bool = False) -> Array:
    """The vector or matrix ``value`` (a list, an array, a `Vector`, ...) as an array.

    whole: floats without a fraction may become integers; those of less than 64 bits always may.
    TypeError for other shapes, for what holds no numbers, and for integers out of range.
    """
    plain: Any = value
    if hasattr(plain.__class__, "plain"):
        plain = plain.plain()
    if type(plain) is list and len(shape) == 1:  # the common case, without the detour
        items = cast("list[Any]", plain)
        kinds = _WHOLE if dtype.is_int else _REAL
        if len(items) == shape[0] and kinds.issuperset(map(type, items)):
            return np.array([fitted(x, dtype) for x in items], dtype.np)
    try:
        found: Array = np.array(cast(Any, plain))
    except ValueError:
        found = np.array(None)
    if found.dtype.kind not in "biuf" and not _integers(found):
        raise TypeError(f"{value!r} is no vector or matrix of numbers")
    if found.shape != shape:
        raise QuadrantsTypeError(
            f"an element of shape {shape} cannot be set to one of shape {found.shape}: {value!r}"
        )
    items = found.ravel().tolist()
    if found.dtype.kind == "f" and dtype.is_int:
        if not ((whole or found.itemsize < 8) and all(x.is_integer() for x in items)):
            raise TypeError(f"elements of type {dtype} cannot be set to the real numbers {value!r}")
        items = [int(x) for x in items]
    flat = [fitted(x, dtype) for x in items]
    return np.array(flat, dtype.np).reshape(shape)


def _integers(found: Array) -> bool:
    """True if it holds Python integers, including those beyond 64 bits."""
    return found.dtype.kind == "O" and all(isinstance(x, int) for x in found.ravel().tolist())


def numpy_type(dtype: Any) -> np.dtype[Any]:
    """The NumPy type that ``dtype``, a data type or NumPy type, stands for."""
    return np.dtype(dtype.np if isinstance(dtype, DataType) else dtype)


def numbers_of(value: Any) -> Array:
    """An array, or nested lists, as an array of numbers. TypeError for elements of other types."""
    found: Array = np.asarray(value)
    if found.dtype.kind not in "biuf":
        raise TypeError(f"elements must be integers or real numbers, not of type {found.dtype}")
    return found


def python_number(item: Any, dtype: DataType) -> int | float:
    """An element as Python sees it: an int for u1, too."""
    return int(item) if dtype is u1 else item.item()


def mismatch(a: tuple[int, ...], b: tuple[int, ...]) -> QuadrantsTypeError:
    """The error for elements of different shapes."""
    return QuadrantsTypeError(f"cannot assign elements of shape {b} to elements of shape {a}")
