"""``qd.Struct``: values of structs in Python scope; ``qd.dataclass``: struct types from classes.

A value of a struct type keeps its members converted to their types. ``qd.Struct(a=1, v=...)`` makes
one without a declared type; its members may be numbers, vectors, matrices and structs.

The functions of a ``qd.dataclass`` become methods: kernels inline them, and those that Python may
call (plain functions and ``qd.pyfunc``) work on values in Python scope as well.
"""

from __future__ import annotations

import inspect
from collections.abc import ItemsView, Iterator, Mapping
from types import MethodType
from typing import Any, Final, cast

import numpy as np

from ...errors import QuadrantsSyntaxError, QuadrantsTypeError
from ...frontend.registry import INTRINSICS
from ...types import MAKERS, CompoundType, DataType, MatrixType, StructType, u1
from ..host import InvalidDataType, fitted
from .matrix import Matrix
from .number_types import meant

__all__ = [
    "OWN_NAMES", "Shadowing", "Struct", "as_dict", "copied", "dataclass", "entries_of", "made_of",
    "struct_type",
]  # fmt: skip

_METHODS: Final = "__struct_methods"


class Struct:
    """A struct, ``qd.Struct(a=1, v=qd.Vector([1, 2]))`` or ``qd.Struct({...})``.

    Members are attributes, and items: ``s.a`` is ``s["a"]``. Two values are equal if they have
    equal members. QuadrantsSyntaxError for other arguments, QuadrantsTypeError for a value that
    cannot be a member.
    """

    __slots__ = ("_members", "_type")
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    _members: dict[str, Any]
    _type: StructType | None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if len(args) > 1 or (args and kwargs) or (args and not isinstance(args[0], Mapping)):
            raise QuadrantsSyntaxError(
                "Custom structs need to be initialized using either dictionary or keyword arguments"
            )
        given: dict[str, Any] = dict(cast("Mapping[str, Any]", args[0])) if args else kwargs
        methods = given.pop(_METHODS, None)
        self._members = {name: _free(name, value, 0) for name, value in given.items()}
        self._type = StructType({}, methods) if methods else None

    # Members

    def _read(self, name: str) -> Any:
        return self._members[name]

    def _write(self, name: str, value: Any) -> None:
        t = self._type.members.get(name) if self._type is not None else None
        self._members[name] = _free(name, value, 0) if t is None else converted(t, value, name)

    @property
    def keys(self) -> list[str]:
        """The names of the members."""
        return list(self._members)

    @property
    def entries(self) -> dict[str, Any]:
        """The members by name."""
        return self._entries()

    @property
    def items(self) -> ItemsView[str, Any]:
        """Names and members."""
        return self._entries().items()

    @property
    def methods(self) -> dict[str, Any]:
        """The functions of its type, by name."""
        return self._methods()

    @property
    def struct_type(self) -> StructType | None:
        """The type it was made from; None if it was made from members."""
        return self._type if self._type is not None and self._type.members else None

    def to_dict(self, include_methods: bool = False) -> dict[str, Any]:
        """The members as Python numbers, nested lists and dicts.

        include_methods: with the functions of its type, by name, as ``__struct_methods``.
        """
        found = as_dict(self)
        return found | {"__struct_methods": self._methods()} if include_methods else found

    def _entries(self) -> dict[str, Any]:
        return {name: self._read(name) for name in self._members}

    def _methods(self) -> dict[str, Any]:
        return {} if self._type is None else self._type.methods

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in Struct.__slots__:
            raise AttributeError(name)
        if name in self._members:
            return self._read(name)
        method = self._methods().get(name)
        if method is None:
            raise AttributeError(f"{self._name()} has no member {name!r}")
        if isinstance(method, staticmethod):
            return cast("staticmethod[Any, Any]", method).__func__
        return MethodType(method, self)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in Struct.__slots__:
            object.__setattr__(self, name, value)
        elif name in self._members:
            self._write(name, value)
        else:
            raise AttributeError(f"{self._name()} has no member {name!r}")

    def __getitem__(self, name: str) -> Any:
        if name not in self._members:
            raise KeyError(name)
        return self._read(name)

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self._members:
            raise KeyError(name)
        self._write(name, value)

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Any]:
        return iter([self._read(name) for name in self._members])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct):
            return NotImplemented
        return as_dict(self) == as_dict(other)

    def _name(self) -> str:
        return "Struct" if self._type is None else f"Struct {self._type.name!r}"

    def __repr__(self) -> str:
        return str(as_dict(self))

    @staticmethod
    def field(
        members: Mapping[str, Any], methods: Any = None, shape: Any = None, **options: Any
    ) -> Any:
        """A field of structs with these members; see `qd.field` for the options."""
        return struct_type("struct", members, methods).field(shape=shape, **options)


def as_dict(value: Struct) -> dict[str, Any]:
    """The members as Python numbers, nested lists and dicts."""
    return {name: _plain(member) for name, member in entries_of(value).items()}


def entries_of(value: Struct) -> dict[str, Any]:
    """The members by name, whatever their names are."""
    return value._entries()  # pyright: ignore[reportPrivateUsage]


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return as_dict(value)
    if isinstance(value, Matrix):
        return value.to_list()
    return cast(Any, value).item() if isinstance(value, np.generic) else value


_MAX_DEPTH: Final = 64


def _free(name: str, value: Any, depth: int) -> Any:
    """``value`` as a member of a struct without a declared type."""
    if depth > _MAX_DEPTH:
        raise _too_deep("qd.Struct")
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        inner = {key: _free(f"{name}.{key}", v, depth + 1) for key, v in members.items()}
        return made_of(inner, None)
    if isinstance(value, Matrix):
        return type(value)(value)
    if isinstance(value, Struct):
        return copied(value)
    if isinstance(value, list | tuple | np.ndarray):
        return Matrix(value)
    if isinstance(value, int | float | np.generic):
        return cast(Any, value)
    raise QuadrantsTypeError(f"Struct member {name!r} cannot be {value!r}")


class Shadowing(Struct):
    """A struct with a member called ``items`` or the like, which then means the member."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_") and name in self._members:
            return self._read(name)
        return super().__getattribute__(name)


OWN_NAMES: Final = frozenset(name for name in dir(Struct) if not name.startswith("_"))
"""Attributes of `Struct` that a member of the same name hides."""


def made_of(members: dict[str, Any], t: StructType | None) -> Struct:
    """A struct of members that have their types already."""
    kind = Struct if OWN_NAMES.isdisjoint(members) else Shadowing
    value = kind.__new__(kind)
    value._members = members  # pyright: ignore[reportPrivateUsage]
    value._type = t  # pyright: ignore[reportPrivateUsage]
    return value


def copied(value: Struct) -> Struct:
    """A struct with copies of the members."""
    members: dict[str, Any] = {}
    for name, member in entries_of(value).items():
        if isinstance(member, Matrix):
            member = type(member)(member)
        members[name] = copied(member) if isinstance(member, Struct) else member
    return made_of(members, value._type)  # pyright: ignore[reportPrivateUsage]


def converted(t: Any, value: Any, name: str) -> Any:
    """``value`` as a value of type ``t``; ``name`` says whose it is in errors."""
    if isinstance(t, StructType):
        if isinstance(value, Struct):
            value = entries_of(value)
        if not isinstance(value, Mapping):
            raise QuadrantsTypeError(f"{name} must be a struct or a dict, not {value!r}")
        return made(t, **cast("dict[str, Any]", value))
    if isinstance(t, MatrixType):
        if isinstance(value, Struct | Mapping | str):
            raise QuadrantsTypeError(f"{name} must be of type {t!r}, not {value!r}")
        return t(value)
    dtype: DataType = meant(t)
    if not isinstance(value, int | float | np.number | np.bool_):
        raise QuadrantsTypeError(f"{name} must be a number, not {value!r}")
    number = cast(Any, value)
    if dtype is u1:
        return bool(number)
    # Python's own numbers hold floats in double precision, as results of kernels are shown.
    return float(number) if dtype.is_real else fitted(int(number), dtype, name)


def zero_of(t: Any) -> Any:
    """The value of type ``t`` that is 0 throughout."""
    if isinstance(t, StructType):
        return made_of({name: zero_of(m) for name, m in t.members.items()}, t)
    return t(0) if isinstance(t, MatrixType) else converted(t, 0, "")


def made(t: StructType, /, *args: Any, **kwargs: Any) -> Struct:
    """``S(1, [2, 3])``, ``S(a=1)``, ``S({"a": 1})``: members that are not given are 0."""
    names = list(t.members)
    if len(args) == 1 and not kwargs and isinstance(args[0], Struct | Mapping):
        first = t.members[names[0]] if names else None
        if not isinstance(first, StructType) or set(dict(_entries(args[0]))) == set(names):
            kwargs, args = dict(_entries(args[0])), ()
    if len(args) > len(names):
        raise QuadrantsTypeError(f"{t.name} has {len(names)} members, got {len(args)} values")
    given = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name not in t.members:
            raise QuadrantsTypeError(f"{t.name} has no member {name!r}; it has {', '.join(names)}")
        if name in given:
            raise QuadrantsTypeError(f"{t.name}: the member {name!r} is given twice")
        given[name] = value
    members = {
        name: converted(m, given[name], f"{t.name}.{name}") if name in given else zero_of(m)
        for name, m in t.members.items()
    }
    return made_of(members, t)


def _entries(value: Any) -> Mapping[str, Any]:
    return entries_of(value) if isinstance(value, Struct) else value


MAKERS[StructType] = made
INTRINSICS[Struct] = "Struct"


# Types


def _member_type(owner: str, name: str, t: Any, depth: int) -> Any:
    if isinstance(t, CompoundType | DataType) or t in (int, float, bool):
        return t
    if isinstance(t, str):
        same = t.strip("'\"") == owner
        if same:
            text = f"{owner} contains itself, as its member {name!r}: a struct cannot be that deep"
            raise QuadrantsTypeError(text)
        raise _invalid(f"{t}: the type of {owner}.{name} is a text that names no type here")
    if isinstance(t, Mapping):
        if depth > _MAX_DEPTH:
            raise _too_deep(owner)
        return struct_type(name, cast("Mapping[str, Any]", t), None, depth + 1)
    raise _invalid(
        f"{t!r} of {owner}.{name}; use one such as qd.f32, or a vector, matrix or struct type"
    )


def _invalid(text: str) -> InvalidDataType:
    return InvalidDataType(f"Invalid data type {text}")


def struct_type(
    name: str, members: Mapping[str, Any], methods: Mapping[str, Any] | None = None, depth: int = 0
) -> StructType:
    """The struct type with these members; QuadrantsTypeError for an invalid type of a member."""
    if not members and not methods:
        raise QuadrantsTypeError(f"{name} has no members")
    types = {key: _member_type(name, key, t, depth) for key, t in members.items()}
    for key in [*types, *(methods or {})]:
        if not key.isidentifier() or key.startswith("__"):
            raise QuadrantsTypeError(f"{name}: {key!r} cannot be the name of a member or method")
    found = StructType(types, methods, name)
    if _depth(found) > _MAX_DEPTH:
        raise _too_deep(name)
    return found


def _depth(t: Any) -> int:
    return 1 + max(map(_depth, t.members.values()), default=0) if isinstance(t, StructType) else 0


def _too_deep(name: str) -> QuadrantsTypeError:
    return QuadrantsTypeError(
        f"{name}: structs are nested more than {_MAX_DEPTH} deep",
        hint="a struct cannot contain itself",
    )


def dataclass(cls: type) -> StructType:
    """Make a struct type of a class: its annotations are the members, its functions the methods.

    QuadrantsSyntaxError for members with default values, QuadrantsTypeError for an invalid type of
    a member.
    """
    methods: dict[str, Any] = {}
    frame = inspect.currentframe()
    caller = frame.f_back if frame is not None else None
    members = _annotations(cls, caller.f_locals if caller is not None else {})
    for name, value in vars(cls).items():
        if name in members:
            raise QuadrantsSyntaxError(
                f"Default value in @dataclass is not supported. {cls.__name__}.{name} has one.",
                hint="pass the value when you create the struct",
            )
        if name.startswith("__") and name.endswith("__"):
            continue
        if not callable(value) and not isinstance(value, staticmethod):
            raise QuadrantsSyntaxError(
                f"{cls.__name__}.{name} is neither a member with a type nor a function"
            )
        methods[name] = value
    return struct_type(cls.__name__, members, methods)


def _annotations(cls: type, names: Mapping[str, Any]) -> dict[str, Any]:
    """The annotations of a class; those that are text are looked up among ``names`` as well."""
    try:
        return inspect.get_annotations(cls, locals=names, eval_str=True)
    except Exception:  # an undefined name, for example; the member check reports it
        return inspect.get_annotations(cls)
