"""Values that are compared by what they hold: of templates, members of objects, and keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np

from ..frozen import is_dataclass
from ..signals import of_signal_handler
from ..types import CompoundType, DataType, u1
from .registry import INTRINSICS
from .specialization import NdarrayKey, RecordKey, Used, ValueKey, number_class

__all__ = ["content_of", "contents_of", "member_key", "same", "still_has"]


def content_of(value: Any) -> Any:
    """The content of a vector, matrix or struct of Python scope, to compare; else None."""
    name = INTRINSICS.get(value.__class__)
    if name == "Vector" or name == "Matrix":
        array = value.to_numpy()
        return array.dtype.str, array.shape, array.tobytes()
    if name == "Struct":
        members = value._entries().items()
        return value._type, tuple([(key, content_of(m) or m) for key, m in members])
    return None


def contents_of(value: Any) -> Any:
    """Like `content_of`, also for containers, and for numbers and arrays of NumPy."""
    return _contents(value, ()) if isinstance(value, _CONTAINERS) else content_of(value)


_CONTAINERS: Final = (tuple, list, dict, set, frozenset, np.generic, np.ndarray)


class _Identity:
    """An object that is equal to itself only; keeps it alive, so that its id is not used again."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value: Final = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)


def _contents(value: Any, above: tuple[int, ...]) -> Any:
    """``value`` as tuples of what compares exactly: 1, 1.0 and True differ, and so do 0.0 and -0.0.

    above: the containers that lead here, by id; one of them again is known by its distance.
    """
    kind: Any = value.__class__
    if kind in (int, bool, str, bytes):
        return kind, value
    if kind is float:
        return kind, value.hex()
    if isinstance(value, np.ndarray | np.generic):
        array = cast("np.ndarray[Any, Any]", value)
        if array.dtype.hasobject:
            return kind, array.shape, _contents(array.tolist(), above)
        return kind, array.dtype.str, array.shape, array.tobytes()
    if not isinstance(value, tuple | list | dict | set | frozenset):
        found = content_of(value)
        return _Identity(value) if found is None else found
    if id(cast(Any, value)) in above:
        return kind, len(above) - above.index(id(cast(Any, value)))
    above = (*above, id(cast(Any, value)))
    items: Any = cast(Any, value)
    if isinstance(value, dict):
        items = [part for item in items.items() for part in item]
    parts = [_contents(item, above) for item in items]
    return kind, frozenset(parts) if isinstance(value, set | frozenset) else tuple(parts)


def member_key(value: Any) -> Any:
    """The key of a member that the code depends on as it is: of a container, its content."""
    content = None if number_class(value) else contents_of(value)
    if content is None:
        return value
    import copy

    try:
        kept = copy.deepcopy(value)
    except Exception:  # of an object in it, which is known by its identity
        kept = copy.copy(value)
    return ValueKey(kept, content)


def still_has(used: Used, spec_keys: Sequence[Any]) -> bool:
    """True if arguments with these keys have an equal member where ``used`` has its own."""
    found = spec_keys[used.arg]
    if isinstance(found, NdarrayKey):
        return True  # of a gradient; the array itself has the same key
    found, spec_key = found.find(used.path), used.spec_key
    if spec_key is u1 and not isinstance(found, DataType):  # no other number fits a bool
        return number_class(found) is bool
    if isinstance(spec_key, DataType | CompoundType):
        return found is not None
    if isinstance(spec_key, ValueKey) and not isinstance(found, ValueKey):
        return spec_key.content == contents_of(found)
    if isinstance(spec_key, RecordKey):
        return isinstance(found, RecordKey) and found.cls is spec_key.cls
    return same(found, spec_key)


def same(a: Any, b: Any) -> bool:
    """True if two keys are equal; values that cannot be compared must be identical.

    1, 1.0 and True are not the same to a kernel, though they are equal; nor are values that hold
    them, such as tuples, named tuples and objects of dataclasses.
    """
    if a is b:
        return True
    kind = a.__class__
    try:
        if kind is not b.__class__ or not bool(a == b):
            return False
        return kind in _EXACT or _alike(a, b)
    except Exception as error:
        if of_signal_handler(error):
            raise
        return False


def _alike(a: Any, b: Any) -> bool:
    """True if two equal values of one class also hold the same."""
    if isinstance(a, float | set | frozenset | np.generic):
        return _contents(a, ()) == _contents(b, ())
    if isinstance(a, tuple | list):
        items = cast("list[Any]", a)
        if len(items) != len(b) or not all(map(same, items, b)):
            return False
    elif isinstance(a, dict):
        return same(list(cast("dict[Any, Any]", a).items()), list(b.items()))
    one, other = cast(Any, a), b
    cls: Any = one.__class__
    if isinstance(a, type) or f"{cls.__module__}.".startswith(_ENGINE):
        return True
    if is_dataclass(cls):
        import dataclasses  # which this class has loaded

        names = [field.name for field in dataclasses.fields(cls)]
    else:  # what only one of them has was computed when it was first asked for
        names = getattr(one, "__dict__", {}).keys() & getattr(other, "__dict__", {}).keys()
    return all(same(getattr(one, name), getattr(other, name)) for name in names)


_EXACT: Final = frozenset((int, bool, str, bytes, type(None)))
"""Classes whose ``==`` is all that a kernel can learn of a value."""
_ENGINE: Final = __name__.removesuffix("frontend.contents")
