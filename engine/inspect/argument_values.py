"""Arguments of a call from the inside: the arrays in them, copies of them, short texts.

An argument may be a number, an array (NumPy, `Ndarray`, a tensor around one, of another library), a
field, a vector or struct, a dataclass with any of these, or the object that a method belongs to.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, cast

import numpy as np

from ..lang.ndarray import Ndarray
from ..runtime.foreign import foreign_array, is_foreign
from ..types import ArrayHandle, FieldHandle, StructFieldHandle, TensorHandle, is_data_oriented

__all__ = ["NO_NAMES", "bytes_of", "copied", "describe", "form_of", "is_record", "shape_of"]

NO_NAMES: Final[Mapping[str, Any]] = MappingProxyType({})
_WIDEST: Final = 40
_PLAIN: Final[tuple[type[Any], ...]] = (int, float, str, np.generic, type(None))


def is_record(value: Any) -> bool:
    """True if ``value`` is an object of a ``dataclasses.dataclass`` that holds arguments."""
    plain = dataclasses.is_dataclass(value) and not isinstance(value, type)
    return plain and not is_data_oriented(value)


def _members(record: Any) -> list[tuple[str, Any]]:
    return [(f.name, getattr(record, f.name, None)) for f in dataclasses.fields(record)]


def _inner(value: Any) -> Any:
    """Return the content of a tensor, the memory of another library's array, or else ``value``."""
    if isinstance(value, TensorHandle):
        return value._unwrap()  # pyright: ignore[reportPrivateUsage]
    if isinstance(value, ArrayHandle | FieldHandle) or not is_foreign(value):
        return value
    try:
        found = foreign_array(value)
    except (TypeError, ValueError):  # the launch will say what is wrong with it
        return value
    return value if found is None else found.view


def shape_of(value: Any) -> tuple[int, ...] | None:
    """The shape of an array argument; None for others."""
    value = _inner(value)
    return tuple(value.shape) if isinstance(value, np.ndarray | Ndarray) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


def bytes_of(args: Sequence[Any]) -> int:
    """Bytes in the arrays among the arguments, dataclasses looked into."""
    total = 0
    for arg in args:
        value = _inner(arg)
        if is_record(value):
            total += bytes_of([member for _, member in _members(value)])
        elif isinstance(value, np.ndarray):
            total += cast("np.ndarray[Any, Any]", value).nbytes
        elif isinstance(value, Ndarray):
            total += math.prod((*value.shape, *value.element_shape)) * value.dtype.size
    return total


def copied(args: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments with copies of the arrays among them, dataclasses looked into.

    An array that is passed twice stays one array. Fields, and objects that methods belong to, stay
    what they are.
    """
    known: dict[int, Any] = {}
    return tuple([_copy(arg, known) for arg in args])


def _copy(value: Any, known: dict[int, Any]) -> Any:
    found = known.get(id(value))
    if found is None:
        found = known[id(value)] = _copy_of(value, known)
    return found


def _copy_of(value: Any, known: dict[int, Any]) -> Any:
    inner = _inner(value)
    if isinstance(inner, np.ndarray):
        return cast("np.ndarray[Any, Any]", inner).copy(order="K")
    if isinstance(inner, Ndarray):
        return _counterpart(inner)
    if is_record(value):
        mine = copy.copy(value)
        for name, member in _members(value):
            object.__setattr__(mine, name, _copy(member, known))
        return mine
    if isinstance(value, list):
        return [_copy(element, known) for element in cast("list[Any]", value)]
    return value


def _counterpart(array: Ndarray) -> Any:
    """A copy: of a plain array as NumPy has it, which outlives the program."""
    if not array.element_shape and array.layout is None and array.grad is None:
        return array.to_numpy()
    counterpart = Ndarray(
        array.dtype, array.shape, array.grad is not None, array.element_shape, array.layout
    )
    counterpart.copy_from(array)
    if array.grad is not None and counterpart.grad is not None:
        counterpart.grad.copy_from(array.grad)
    return counterpart


def form_of(value: Any) -> tuple[str, Any]:
    """Return the form of an argument, which is equal in two calls that differ only in the contents
    of arrays, or in numbers inside of dataclasses."""
    shape = shape_of(value)
    if shape is not None:
        return "array", shape
    if isinstance(value, _PLAIN):
        return cast("tuple[str, Any]", (type(value).__name__, value))  # pyright: ignore[reportUnknownArgumentType]
    if is_record(value):
        forms = [form_of(member) for _, member in _members(value)]
        numbers = int | float | np.generic
        return type(value).__name__, tuple(
            [f[0] if isinstance(f[1], numbers) else f for f in forms]
        )
    return type(value).__name__, id(_inner(value))


def describe(value: Any, names: Mapping[str, Any] = NO_NAMES) -> str:
    """A short text: ``f32[64, 64]``, ``2.0``, ``field u: vector(2, f32)[128]``, ``Tank(u, v)``.

    names: where a field that was given no name may have one.
    """
    value = _inner(value)
    if isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, Any]", value)
        name = {"float": "f", "int": "i", "uint": "u", "bool": "u"}.get(
            re.sub(r"\d+$", "", array.dtype.name), ""
        )
        bits = 1 if array.dtype == np.bool_ else array.dtype.itemsize * 8
        dtype = f"{name}{bits}" if name else array.dtype.name
        return f"{dtype}{_extents(array.shape)}"
    if isinstance(value, Ndarray):
        return f"{_element(value.dtype, value.element_shape)}{_extents(value.shape)}"
    if isinstance(value, FieldHandle):
        name = value.name or _name_in(names, value)
        name = f"{name}: " if name else ""
        return f"field {name}{_element(value.dtype, value.element_shape)}{_extents(value.shape)}"
    if isinstance(value, StructFieldHandle):
        name = value.name or _name_in(names, value)
        name = f"{name}: " if name else ""
        return f"field {name}{value.struct_type.name}{_extents(value.shape)}"
    if is_data_oriented(value):
        return type(value).__name__
    if is_record(value):
        inside = ", ".join(f"{name}={describe(member, names)}" for name, member in _members(value))
        return _cut(f"{type(value).__name__}({inside})", 2 * _WIDEST)
    return _cut(" ".join(repr(value).split()), _WIDEST)


def _name_in(names: Mapping[str, Any], value: Any) -> str:
    return next((name for name, other in names.items() if other is value), "")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def _extents(shape: Sequence[int]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _element(dtype: Any, shape: tuple[int, ...]) -> str:
    if not shape:
        return str(dtype)
    kind = "vector" if len(shape) == 1 else "matrix"
    return f"{kind}({', '.join(map(str, shape))}, {dtype})"
