"""Smaller arguments for a reproducer: fewer elements, plainer values, and their text."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

import numpy as np

__all__ = [
    "Composite", "NamedField", "argument_of", "is_plain", "plain_arguments", "smaller_arguments",
    "text_of",
]  # fmt: skip

_SHOWN: Final = 64
Array = np.ndarray[Any, Any]


def is_plain(value: Any) -> bool:
    """True for a value that a script can state: a number, or an array of numbers."""
    return isinstance(value, bool | int | float | np.generic) or (
        isinstance(value, np.ndarray) and cast("Array", value).dtype.kind in "fiub"
    )


class Composite:
    """An argument that is an object of a dataclass of the script. members: by name: numbers,
    arrays, texts, fields, or objects of dataclasses."""

    def __init__(self, name: str, members: Mapping[str, Any]) -> None:
        self.name: Final = name
        self.members: Final = dict(members)

    def made(self, space: Mapping[str, Any]) -> Any:
        """The object. space: the names of the script."""
        members = {name: argument_of(value, space) for name, value in self.members.items()}
        return space[self.name](**members)


def argument_of(value: Any, space: Mapping[str, Any]) -> Any:
    """The value of an argument. space: the names of the script."""
    if isinstance(value, Composite):
        return value.made(space)
    return space[value.name] if isinstance(value, NamedField) else value


def plain_arguments(args: Sequence[Any]) -> list[Any] | None:
    """The arguments as numbers and arrays of NumPy; None if some are something else."""
    out = [_plain(value) for value in args]
    return None if any(value is _NONE for value in out) else out


_NONE: Final = object()


def _plain(value: Any, inside: bool = False) -> Any:
    """``value`` as a script can state it, or `_NONE`. inside: of a dataclass."""
    if isinstance(value, NamedField):
        return value
    if isinstance(value, Composite):
        members = {name: _plain(member, True) for name, member in value.members.items()}
        known = all(member is not _NONE for member in members.values())
        return Composite(value.name, members) if known else _NONE
    if not is_plain(value) and hasattr(value, "to_numpy"):
        value = value.to_numpy()
    if inside and isinstance(value, str | None):
        return value
    if not is_plain(value):
        return _NONE
    return cast("Array", value).copy() if isinstance(value, np.ndarray) else value


def smaller_arguments(args: Sequence[Any]) -> Iterator[list[Any]]:
    """Arguments that are a step smaller or plainer, big steps first."""
    flat = list(_leaves(args))
    for leaves in _smaller(flat):
        rest = iter(leaves)
        yield [_with_leaves(value, rest) for value in args]


def _leaves(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, Composite):
            yield from _leaves(value.members.values())
        else:
            yield value


def _with_leaves(value: Any, leaves: Iterator[Any]) -> Any:
    if not isinstance(value, Composite):
        return next(leaves)
    members = {name: _with_leaves(member, leaves) for name, member in value.members.items()}
    return Composite(value.name, members)


def _smaller(args: Sequence[Any]) -> Iterator[list[Any]]:
    yield from _fewer(args)
    for i, value in enumerate(args):
        for plain in _plainer(value):
            if _same(plain, value):
                break  # what follows is less plain
            yield [*args[:i], plain, *args[i + 1 :]]


class NamedField:
    """An argument that is a field of the script."""

    def __init__(self, name: str) -> None:
        self.name: Final = name


def _same(a: Any, b: Any) -> bool:
    x, y = np.asarray(a), np.asarray(b)
    return x.shape == y.shape and bool(np.array_equal(x, y, equal_nan=x.dtype.kind == "f"))


def _fewer(args: Sequence[Any]) -> Iterator[list[Any]]:
    """Every axis of a certain extent is cut, and so is every integer of this value."""
    arrays = [cast("Array", a) for a in args if isinstance(a, np.ndarray)]
    extents = sorted({n for a in arrays for n in a.shape if n > 1}, reverse=True)
    for extent in extents:
        for less in dict.fromkeys((1, 2, 3, 4, 8, extent // 4, extent // 2)):
            if 0 < less < extent:
                yield [_cut(value, extent, less) for value in args]


def _cut(value: Any, extent: int, less: int) -> Any:
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        cut = tuple([slice(0, less if n == extent else n) for n in array.shape])
        return np.ascontiguousarray(array[cut])
    if isinstance(value, int) and not isinstance(value, bool) and value == extent:
        return less
    return value


def _plainer(value: Any) -> Iterator[Any]:
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        if array.size:
            yield np.zeros_like(array)
            yield np.ones_like(array)
            yield _counted(array)
            if array.dtype.kind == "f":
                with np.errstate(all="ignore"):
                    yield np.round(array).astype(array.dtype)
                    yield np.round(array, 2).astype(array.dtype)
    elif isinstance(value, float):
        yield from (0.0, 1.0, 2.0, 0.5)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield from (x for x in (0, 1, 2) if x < abs(value))


def _counted(array: Array) -> Array:
    """0 to 6, over and over."""
    numbers: list[int] = [i % 7 for i in range(array.size)]
    return np.array(numbers).reshape(array.shape).astype(array.dtype)


def text_of(value: Any) -> str:
    """A Python expression of the value."""
    if isinstance(value, NamedField):
        return value.name
    if isinstance(value, Composite):
        members = ", ".join(f"{name}={text_of(member)}" for name, member in value.members.items())
        return f"{value.name}({members})"
    if not isinstance(value, np.ndarray):
        return _number(value.item() if isinstance(value, np.generic) else value)
    array = cast("Array", value)
    kind = f"np.{array.dtype.name}" if array.dtype.kind != "b" else "np.bool_"
    shape = str(array.shape[0]) if array.ndim == 1 else str(array.shape)
    flat = array.reshape(-1)
    if array.size and _same(flat, np.full_like(flat, flat[0])):
        first = flat[0]
        if first in (0, 1):
            return f"np.{'ones' if first else 'zeros'}({shape}, {kind})"
        return f"np.full({shape}, {_number(first.item())}, {kind})"
    if array.size > 2 and _same(flat, (np.arange(array.size) % 7).astype(array.dtype)):
        text = f"(np.arange({array.size}) % 7).astype({kind})"
        return text if array.ndim == 1 else f"{text}.reshape({array.shape})"
    if not array.size:
        return f"np.zeros({shape}, {kind})"
    if array.size <= _SHOWN:
        return f"np.array({_nested(array.tolist())}, {kind})"
    data = base64.b85encode(zlib.compress(array.tobytes(), 9)).decode()
    text = f"np.frombuffer(zlib.decompress(base64.b85decode({data!r})), {kind})"
    return f"{text}.reshape({array.shape}).copy()"


def _nested(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_nested, cast('list[Any]', value)))}]"
    return _number(value)


def _number(value: Any) -> str:
    if isinstance(value, float) and not np.isfinite(value):
        return f"float('{value}')"
    return repr(value)
