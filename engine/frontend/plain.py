"""Plain values: a text states everything that an operation may learn of them.

A cache compares values by a text. It is exact for the kinds named here: their operations are
Python's or NumPy's own, and depend on nothing but the content. An object with code of its own, an
array of a subclass or with metadata, a class whose metaclass defines equality: the behaviour of
these is not in a text. Both the texts and the record of what ran while a kernel was compiled use
this module.
"""

from __future__ import annotations

import enum
import operator
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any, Final

import numpy as np

__all__ = [
    "FORMATTING", "ON_NUMBERS", "array_doubt", "class_doubt", "coded", "dtype_doubt", "is_builtin",
    "is_settled",
]  # fmt: skip

ON_NUMBERS: Final[frozenset[Any]] = frozenset((bool, float, int, *operator.attrgetter(
    "add", "and_", "eq", "floordiv", "ge", "gt", "invert", "le", "lshift", "lt", "mod", "mul", "ne",
    "neg", "not_", "or_", "pos", "pow", "rshift", "sub", "truediv", "xor",
)(operator)))  # fmt: skip
"""Operations about which there is no doubt if all operands are numbers of Python."""
FORMATTING: Final = frozenset(("__format__", "__repr__", "__str__"))
"""Methods that only a conversion to text calls."""

_ARRAY_KINDS: Final = frozenset("biufcSU?")
"""Kinds of dtypes without references, parts, or units whose texts may mean the current time."""
_HEAP_TYPE: Final = 1 << 9
"""The flag of a class that Python code has made, as CPython has it."""
_UNUSED: Final = frozenset((
    "__annotations__", "__class_getitem__", "__dict__", "__doc__", "__init__",
    "__init_subclass__", "__module__", "__new__", "__qualname__", "__set_name__", "__slots__",
    "__weakref__",
))  # fmt: skip
"""Special names that no operation on a member of an Enum looks up."""


def is_builtin(cls: type) -> bool:
    """True if ``cls`` is written in C: its operations cannot be replaced."""
    return not cls.__flags__ & _HEAP_TYPE


def class_doubt(cls: type) -> str:
    """The reason why a class can define its own equality, content or instances; else ""."""
    kind = type(cls)
    if kind is type or kind is enum.EnumMeta:
        return ""
    return f"has the metaclass {kind.__module__}.{kind.__qualname__}, whose code is not compared"


def dtype_doubt(dtype: np.dtype[Any]) -> str:
    """The reason why a short text does not identify a dtype; "" if it does."""
    if dtype.kind not in _ARRAY_KINDS:
        return f"has the dtype {dtype}"
    return "has a dtype with metadata" if dtype.metadata else ""


def array_doubt(value: np.ndarray[Any, Any] | np.generic) -> str:
    """The reason why dtype, layout and content do not identify an array or number; else ""."""
    kind = type(value)
    if kind is not np.ndarray and kind is not value.dtype.type:
        return f"is an array of {kind.__module__}.{kind.__qualname__}"
    return dtype_doubt(value.dtype)


def coded(cls: type[enum.Enum]) -> list[str]:
    """Special methods of an Enum that are code of the program's own, by name."""
    out: set[str] = set()
    for base in cls.__mro__:
        if is_builtin(base) or vars(enum).get(base.__name__) is base:
            continue
        for name, value in vars(base).items():
            special = name.startswith("__") and name.endswith("__") and name not in _UNUSED
            if special and not _is_stock(cls, name, value):
                out.add(name)
    return sorted(out)


def _is_stock(cls: type, name: str, value: Any) -> bool:
    """True if a special method is one of the standard library's, under its own name."""
    if isinstance(value, FunctionType):
        return value.__globals__ is enum.__dict__
    if isinstance(value, str | int | tuple) and not isinstance(value, enum.Enum):
        return True  # such as the lines that newer versions of Python note
    if isinstance(value, BuiltinFunctionType):
        return False
    bases = [base for base in cls.__mro__ if is_builtin(base)]
    return any(vars(base).get(name) is value for base in bases)


def is_settled(base: Any, name: str) -> bool:
    """True if reading an attribute again finds what was found before: it runs no code."""
    kind: Any = base.__class__
    if kind in _SETTLED:
        return True
    if f"{kind.__module__}.".startswith(_ENGINE) or isinstance(base, enum.Enum):
        _SETTLED.add(kind)
        return True
    if kind is ModuleType:
        return name in base.__dict__
    if isinstance(base, type):
        return kind is type or kind is enum.EnumMeta
    if kind.__getattribute__ is not object.__getattribute__:
        return False
    of_class = getattr(kind, name, None)
    if of_class is None:
        return name in getattr(base, "__dict__", ())
    return of_class.__class__ in _STEADY or not hasattr(of_class, "__get__")


_SETTLED: Final = set[type]()
"""Classes whose objects run no code of the program's own."""
_STEADY: Final = frozenset((FunctionType, MemberDescriptorType, BuiltinFunctionType))
_ENGINE: Final = __name__.removesuffix("frontend.plain")
