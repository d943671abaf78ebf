"""`Frozen`: classes like ``@dataclass(frozen=True, slots=True)``, made faster.

The first kernel of a process defines some of them, and `dataclasses` needs half a millisecond or
more for each: it compiles the text of every method, and makes a class with slots twice. Here all
classes share their methods, and those with as many fields one compiled constructor, in which only
the names differ. Type checkers see to it that no field is set later; at run time nothing does.
"""

from __future__ import annotations

from functools import cache
from types import CodeType, FunctionType
from typing import Any, ClassVar, Final, Self, dataclass_transform

__all__ = ["Frozen", "is_dataclass"]

_GLOBALS: Final[dict[str, Any]] = {"__builtins__": {}, "__name__": __name__}


@cache
def _constructor(count: int) -> CodeType:
    """The code of `__init__` for so many fields."""
    names = [f"field{i}" for i in range(count)]
    body = "; ".join([f"self.{name} = {name}" for name in names])
    made: dict[str, Any] = {}
    text = f"def __init__(self, {', '.join(names)}): {body}"
    exec(compile(text, "<frozen>", "exec"), made)  # see `named_tuple`
    return made["__init__"].__code__


@dataclass_transform(frozen_default=True)
class _Maker(type):
    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        if fields := tuple(body.get("__annotations__", ())) if bases else ():
            defaults = {field: body.pop(field) for field in fields if field in body}
            if tuple(defaults) != fields[len(fields) - len(defaults) :]:
                raise TypeError(f"{name}: a field without a default follows one that has a default")
            code = _constructor(len(fields)).replace(co_varnames=("self", *fields), co_names=fields)
            given = tuple(defaults.values())
            body["__init__"] = FunctionType(code, _GLOBALS, "__init__", given)
            body["__slots__"] = body["__match_args__"] = fields
        return super().__new__(mcs, name, bases, body)


class Frozen(metaclass=_Maker):
    """Base of a class whose fields are its annotations, in order, with their defaults.

    Objects are equal if they are of one class and their fields are. A class that is derived from
    one with fields adds none.
    """

    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]] = ()

    def replaced(self, **changes: Any) -> Self:
        """A copy with other values in some fields. TypeError for a field that is not there."""
        return type(self)(**{name: getattr(self, name) for name in self.__match_args__} | changes)

    def _values(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self.__match_args__])

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        values = zip(self.__match_args__, self._values(), strict=True)
        return f"{type(self).__name__}({', '.join([f'{n}={v!r}' for n, v in values])})"


def is_dataclass(value: Any) -> bool:
    """True for a class that `dataclasses.dataclass` made, and for an object of one.

    Programs without any do not load `dataclasses`, which is why its function is not used.
    """
    return hasattr(value if isinstance(value, type) else type(value), "__dataclass_fields__")
