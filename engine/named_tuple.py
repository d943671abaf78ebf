"""`NamedTuple` of `typing`, as the engine's own modules use it: the same class, made faster.

The first kernel of a process defines a hundred of them. `typing.NamedTuple` needs a quarter of a
millisecond for each: it compiles every annotation, and the text of a constructor. Here annotations
stay the strings that they are, and all classes with as many fields share one compiled constructor,
in which only the names of the arguments differ. Type checkers see `typing.NamedTuple`.
"""

from __future__ import annotations

import collections
from functools import cache
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final

__all__ = ["NamedTuple"]

_GETTER: Final[Any] = vars(collections)["_tuplegetter"]
_NEW: Final[Any] = getattr(tuple, "__new__")  # noqa: B009 - its type is unknown otherwise
_GLOBALS: Final[dict[str, Any]] = {"__builtins__": {}, "__name__": __name__, "make": _NEW}


@cache
def _constructor(count: int) -> CodeType:
    """The code of `__new__` for so many fields."""
    names = "".join(f"field{i}, " for i in range(count))
    text = f"lambda _cls, {names}: make(_cls, ({names}))"
    # Compiled first: Python forgets that Ctrl-C ends the program when its end runs code from text.
    return eval(compile(text, "<named tuple>", "eval")).__code__


@cache
def _getter(i: int) -> Any:
    return _GETTER(i, f"Alias for field number {i}")


def _make(cls: Any, iterable: Any) -> Any:
    """Make a new object from a sequence or iterable."""
    made = _NEW(cls, iterable)
    if len(made) != len(cls._fields):
        raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
    return made


def _replace(self: Any, /, **changes: Any) -> Any:
    """Return a new object with some fields replaced."""
    made = self._make(map(changes.pop, self._fields, self))
    if changes:
        raise ValueError(f"Got unexpected field names: {list(changes)!r}")
    return made


def _asdict(self: Any) -> dict[str, Any]:
    """Return a new dict which maps field names to their values."""
    return dict(zip(self._fields, self, strict=True))


def _repr(self: Any) -> str:
    fields = ", ".join([f"{n}={v!r}" for n, v in zip(self._fields, self, strict=True)])
    return f"{type(self).__name__}({fields})"


def _newargs(self: Any) -> tuple[Any, ...]:
    return tuple(self)


_METHODS: Final[dict[str, Any]] = {
    "__slots__": (),
    "_make": classmethod(_make),
    "_replace": _replace,
    "__replace__": _replace,
    "_asdict": _asdict,
    "__repr__": _repr,
    "__getnewargs__": _newargs,
}


class _Maker(type):
    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        if not bases:
            return super().__new__(mcs, name, bases, body)
        fields = tuple(body["__annotations__"])
        defaults = {field: body[field] for field in fields if field in body}
        if tuple(defaults) != fields[len(fields) - len(defaults) :]:
            raise TypeError(f"{name}: a field without a default follows one that has a default")
        code = _constructor(len(fields)).replace(co_name="__new__", co_varnames=("_cls", *fields))
        made = {"__doc__": f"{name}({', '.join(fields)})"} | _METHODS | body
        made["__new__"] = FunctionType(code, _GLOBALS, "__new__", tuple(defaults.values()))
        made["_fields"] = made["__match_args__"] = fields
        made["_field_defaults"] = defaults
        made.update((field, _getter(i)) for i, field in enumerate(fields))
        return type(name, (tuple,), made)


if TYPE_CHECKING:
    from typing import NamedTuple
else:

    class NamedTuple(metaclass=_Maker):
        """A tuple whose items have names: see `typing.NamedTuple`."""
