"""Operations that ran while a kernel was compiled: those whose result their operands decide.

What a kernel reads from outside is compared before its code is used again, and what it computes
from that need not be, as long as each operation has the same result for the same operands. That
holds for the operations listed here, on values that `plain` knows. All others (a call of a Python
function, an operator of the program's own classes, a callback, what the locale, the seed of hashes
or NumPy's settings decide) have a *doubt*: a text that says why the result cannot be compared.
"""

from __future__ import annotations

import builtins
import cmath
import enum
import math
import operator
import re
import sys
import types
from collections.abc import Mapping, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final, cast

import numpy as np

from ..types import CompoundType, DataType
from .plain import FORMATTING, array_doubt, class_doubt, coded, dtype_doubt, is_builtin
from .values import InstanceValue

__all__ = [
    "TO_TEXT", "array_attribute_doubt", "call_doubt", "doubt_of", "is_known", "makes_text",
    "methods_of_values", "numeric", "operation_doubt", "result_doubt", "writes_to",
]  # fmt: skip

_ENGINE: Final = __name__.removesuffix("frontend.computed")
_OF_LANGUAGE: Final = (f"{_ENGINE}types.", *[
    f"{_ENGINE}lang.{name}."
    for name in ("functions", "loops", "math", "simt", "public_types", "values")
])  # fmt: skip
"""Modules whose functions read nothing of a program but its options, which keys hold."""
_RANDOM: Final = frozenset(("randn", "random"))
"""Functions of these modules that a Python function calls for another number each time."""

_ATOMS: Final = frozenset((bool, int, float, complex, str, bytes, type(None), type(...)))
_SEQUENCES: Final[frozenset[Any]] = frozenset((tuple, list, set, frozenset))
_EMPTY: Final[dict[Any, Any]] = {}
_VIEWS: Final[frozenset[Any]] = frozenset(
    (type(_EMPTY.keys()), type(_EMPTY.values()), type(_EMPTY.items()))
)
_CONTAINERS: Final = _SEQUENCES | _VIEWS | {dict, range, slice}
_PAIRED: Final[frozenset[Any]] = frozenset((enumerate, reversed, zip))
"""Iterators that the language makes of containers, to make a list of them at once."""
_INERT: Final = (
    FunctionType, BuiltinFunctionType, MethodType, ModuleType, types.GenericAlias, types.UnionType,
)  # fmt: skip
"""Kinds that are compared by identity or structure, and have no other operation."""
_DIGITS: Final = 2100
"""Bits of an integer up to which no limit on the digits of its text can apply."""

_SHALLOW: Final = frozenset((
    bool, dict, enumerate, iter, len, list, operator.getitem, operator.not_, operator.truth,
    reversed, tuple, zip,
))  # fmt: skip
"""Functions that read a container, but not its elements."""
_JOINING: Final = frozenset((operator.add, operator.mul))
_RECORDED: Final = frozenset((getattr, isinstance, issubclass, next, print))
"""Functions whose operands are recorded in another way, or whose result is not used."""


def _functions_of(module: ModuleType, names: str = "") -> frozenset[Any]:
    """The functions in C of a module: all, or those named."""
    chosen = names.split() or [n for n in vars(module) if not n.startswith("_")]
    found = [getattr(module, name) for name in chosen]
    return frozenset(fn for fn in found if isinstance(fn, BuiltinFunctionType | type))


_CALLS: Final = (
    _functions_of(
        builtins,
        "abs all any ascii bin bool bytes chr complex dict divmod enumerate float format frozenset "
        "hex int isinstance issubclass len list max min oct ord pow range repr reversed round set "
        "slice sorted str sum tuple zip",
    )
    | _functions_of(math)
    | _functions_of(cmath)
    | _functions_of(
        operator,
        "abs add and_ concat contains countOf eq floordiv ge getitem gt index indexOf inv invert "
        "le lshift lt matmul mod mul ne neg not_ or_ pos pow rshift sub truediv truth xor",
    )
)
TO_TEXT: Final = frozenset((ascii, format, repr, str))
"""Functions whose result is the text of their argument."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OF_STRINGS: Final = _names(
    "capitalize casefold center count endswith expandtabs find format format_map index isalnum "
    "isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle "
    "isupper join ljust lower lstrip partition removeprefix removesuffix replace rfind rindex "
    "rjust rpartition rsplit rstrip split splitlines startswith strip swapcase title translate "
    "upper zfill"
)
_OF_NUMBERS: Final = _names(
    "as_integer_ratio bit_count bit_length conjugate hex is_integer to_bytes"
)
_OF_SETS: Final = _names("isdisjoint issubset issuperset")
_METHODS: Final[dict[type, frozenset[str]]] = {
    str: _OF_STRINGS,
    bytes: _OF_STRINGS | {"hex"},
    bool: _OF_NUMBERS, int: _OF_NUMBERS, float: _OF_NUMBERS, complex: _OF_NUMBERS,
    list: frozenset(("copy", "count", "index")),
    tuple: frozenset(("count", "index")),
    range: frozenset(("count", "index")),
    dict: frozenset(("copy", "get", "items", "keys", "values")),
    set: _OF_SETS, frozenset: _OF_SETS,
    slice: frozenset(("indices",)),
}  # fmt: skip
"""Methods that change nothing, by the class of their owner."""
_OF_ARRAYS: Final = _names(
    "all any argmax argmin argsort astype clip copy cumprod cumsum diagonal dot flatten item max "
    "mean min nonzero prod ravel repeat reshape round searchsorted squeeze std sum swapaxes take "
    "tobytes tolist trace transpose var conjugate is_integer"
)
_BEFORE_OUT: Final = {
    "all": 1, "any": 1, "argmax": 1, "argmin": 1, "clip": 2, "conjugate": 0, "cumprod": 2,
    "cumsum": 2, "dot": 1, "max": 1, "mean": 2, "min": 1, "prod": 2, "round": 1, "std": 2, "sum": 2,
    "take": 2, "trace": 4, "var": 2,
}  # fmt: skip
"""Methods of an array that take one to write to, and how many arguments come before that."""
_FACTS: Final = _names(
    "T dtype imag itemsize nbytes ndim real shape size strides"
)  # fmt: skip
"""Attributes of an array that its dtype, layout and content decide."""
_OF_NUMPY: Final = ("arange", "array", "asarray", "dot", "inner", "zeros")
"""Functions of NumPy that are written in C and read no state."""


def methods_of_values() -> frozenset[str]:
    """Names of methods of plain values that change nothing and run no code."""
    found = frozenset[str]().union(*_METHODS.values(), _OF_ARRAYS)
    return found - {"format", "format_map"}


def makes_text(fn: Any) -> bool:
    """True if a function that `is_known`, or a method of this name, makes a text of numbers."""
    if isinstance(fn, str):
        return fn in ("hex", "to_bytes", "tobytes")
    return any(fn is one for one in (bin, bytes, chr, hex, oct))


# ---- operands


def _kind(value: Any) -> Any:
    """The class of a value, whatever its ``__class__`` says."""
    return cast(Any, type)(value)


def doubt_of(value: Any) -> str:
    """The reason why operations on ``value`` may read more than a cache compares; else ""."""
    return _doubt(value)


def _doubt(value: Any, inner: bool = False) -> str:
    """The reason why operations on ``value`` may read more than a cache compares; else "".

    inner: it is in a container, which compares by identity first.
    """
    kind = _kind(value)
    if kind in _ATOMS:
        return "a container with a NaN compares by identity" if inner and value != value else ""
    if kind in _CONTAINERS:
        return _doubt_inside(value, kind)
    if kind in _PAIRED:
        return ""
    if isinstance(value, np.ndarray | np.generic):
        if inner and isinstance(value, np.ndarray):
            return "a container with an array compares by identity"
        why = array_doubt(cast(Any, value))
        return f"a value {why}" if why else ""
    return _doubt_of_object(value, kind)


def _doubt_of_object(value: Any, kind: Any) -> str:
    if isinstance(value, np.dtype):
        why = dtype_doubt(cast(Any, value))
        return f"a value {why}" if why else ""
    if isinstance(value, enum.Enum):
        codes = [name for name in coded(kind) if name not in FORMATTING]
        return f"the Enum {kind.__qualname__} has code: {codes[0]}" if codes else ""
    if isinstance(value, type):
        why = class_doubt(value)
        return f"the class {value.__qualname__} {why}" if why else ""
    if kind in _INERT or kind is np.ufunc:
        return ""
    if kind is InstanceValue:
        return _of_class(_kind(value.instance))
    if f"{kind.__module__}.".startswith(_ENGINE) or (is_builtin(kind) and "iterator" in str(kind)):
        return ""
    return _of_class(kind)


def _of_class(kind: type) -> str:
    name = f"{kind.__module__}.{kind.__qualname__}"
    return f"an operand is an object of {name}, whose operations are code"


def _doubt_inside(value: Any, kind: Any) -> str:
    if kind is range:
        return ""
    if kind is slice:
        parts: Any = (value.start, value.stop, value.step)
    elif kind is dict:
        parts = (*value, *value.values())
    else:
        parts = value
    for part in parts:
        one = _kind(part)
        if one is int or one is str or one is bool:
            continue
        why = _doubt_inside(part, one) if one in _SEQUENCES else _doubt(part, True)
        if why:
            return why
    return ""


def _shallow_doubt(value: Any) -> str:
    return "" if type(value) in _CONTAINERS else _doubt(value)


def _text_doubt(value: Any) -> str:
    """The reason why the text of ``value`` may show more than a cache compares; else ""."""
    kind = _kind(value)
    if kind is int:
        return "" if value.bit_length() <= _DIGITS else "the digits of an integer may be limited"
    if kind in _ATOMS or kind is range:
        return ""
    if kind in _SEQUENCES or kind in _VIEWS:
        return next((why for part in value if (why := _text_doubt(part))), "")
    if kind is dict:
        return _text_doubt([*value, *value.values()])
    if isinstance(value, np.ndarray | np.generic):
        return "the text of an array depends on NumPy's print options"
    if isinstance(value, enum.Enum):
        codes = coded(kind)
        return f"the Enum {kind.__qualname__} has code: {codes[0]}" if codes else ""
    if isinstance(value, type):
        return _doubt(value)
    if isinstance(value, DataType | CompoundType | np.dtype):
        return ""
    return f"the text of an object of {kind.__module__}.{kind.__qualname__} is not compared"


# ---- operations


def operation_doubt(fn: Any, args: Sequence[Any]) -> str:
    """The reason why an operation of the language may differ for equal operands; else ""."""
    try:
        if fn in _RECORDED:
            return ""
        shallow = fn in _SHALLOW or (
            fn in _JOINING and all(type(a) is tuple or type(a) is list for a in args)
        )
    except TypeError:  # not hashable
        shallow = False
    if fn is operator.is_ or fn is operator.is_not:
        return _identity_doubt(*args)
    owner = getattr(fn, "__self__", None)
    if (type(owner) is list or type(owner) is tuple) and fn.__name__ in ("count", "index"):
        args = [*args, owner]  # compared with each element
    for value in args:
        if type(value) is InstanceValue and (fn is bool or fn is operator.truth):
            continue  # it stands for the object, and is true
        why = _shallow_doubt(value) if shallow else _doubt(value)
        if why:
            return why
    return _special_doubt(fn, args)


def _special_doubt(fn: Any, args: Sequence[Any]) -> str:
    """The doubt about operations that depend on more than their operands; else ""."""
    if fn in TO_TEXT and args:
        return _text_doubt(args[0]) or _spec_doubt(args[1] if len(args) > 1 else "")
    if fn is operator.mod and args and isinstance(args[0], str | bytes):
        return _text_doubt(args[1])
    if fn is operator.getitem and type(args[0]) is type and not is_builtin(args[0]):
        return _of_class(args[0])
    if (fn is int or fn is float) and any(type(a) in (str, bytes) and len(a) > 600 for a in args):
        return "the digits of an integer may be limited"
    return ""


def _spec_doubt(spec: Any) -> str:
    return "the format n depends on the locale" if str(spec).endswith("n") else ""


def _identity_doubt(a: Any, b: Any) -> str:
    """The reason why ``a is b`` may differ for equal texts: a text does not identify an object."""
    if type(a) is not type(b) or a is None or b is None:
        return ""
    if isinstance(a, bool | enum.Enum | type | DataType | FunctionType) or a is ...:
        return ""
    if isinstance(a, ModuleType) or hasattr(a, "decl"):
        return ""
    return f"`is` compares objects of {type(a).__qualname__}, whose identity is not compared"


def result_doubt(fn: Any, value: Any) -> str:
    """The reason why a result may differ for equal operands: a set's order is not its content."""
    if type(value) not in (set, frozenset) or len(value) < 2 or fn is operator.getitem:
        return ""
    return "the order of a set depends on hashes and on how it was made"


_ARRAYS: Final = (np.ndarray, np.generic)


def numeric(fn: Any, args: Sequence[Any]) -> bool:
    """True if NumPy computes the result: its error state may decide about that."""
    if isinstance(fn, np.ufunc) or isinstance(getattr(fn, "__self__", None), np.ndarray):
        return True
    if str(getattr(fn, "__module__", "")).partition(".")[0] == "numpy":
        return True
    return any(isinstance(a, _ARRAYS) for a in args)


# ---- calls


def call_doubt(fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The reason why a call of ``fn`` by a kernel may differ for equal arguments; else ""."""
    if not is_known(fn, args, kwargs):
        name = getattr(fn, "__qualname__", None) or type(fn).__qualname__
        return f"the Python function {name} ran while the kernel was compiled"
    if fn is isinstance or fn is issubclass:
        return next((why for a in args[1:] if (why := _doubt(a))), "")
    values = [*args, *kwargs.values()]
    owner = getattr(fn, "__self__", None)
    if owner is not None and not isinstance(owner, ModuleType | type):
        if isinstance(owner, str) and fn.__name__.startswith("format"):
            return _template_doubt(owner, values)
        values.append(owner)
    for value in values:
        if type(value) is FunctionType or type(value) is MethodType or hasattr(value, "decl"):
            return "a Python function was called back while the kernel was compiled"
        if why := _doubt(value):
            return why
    return _special_doubt(fn, args)


def _template_doubt(template: str, values: Sequence[Any]) -> str:
    """Of ``str.format``, which reads attributes, and formats values."""
    if re.search(r"\{[^{}]*[.\[]", template) or re.search(r":[^{}]*(\{|n\})", template):
        return "a format may read attributes, or the locale"
    return next((why for v in values if (why := _text_doubt(v))), "")


def is_known(fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """True if ``fn`` is one of the functions that read nothing but their arguments."""
    kind = _kind(fn)
    if kind is BuiltinFunctionType or kind is type:
        owner = getattr(fn, "__self__", None)
        if kind is type or owner is None or isinstance(owner, ModuleType):
            return fn in _CALLS or _is_known_of_numpy(fn, kwargs) or _is_of_language(fn)
        return _is_known_method(fn, owner, args, kwargs)
    if kind is enum.EnumMeta:
        return True
    if kind is np.ufunc:
        return getattr(np, fn.__name__, None) is fn and len(args) == fn.nin and not kwargs
    return kind is FunctionType and _is_of_language(fn)


def _is_known_method(fn: Any, owner: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    if isinstance(owner, np.ndarray | np.generic):
        named = {"out", "where"} & kwargs.keys()
        return fn.__name__ in _OF_ARRAYS and not named and not writes_to(fn.__name__, len(args))
    return fn.__name__ in _METHODS.get(_kind(owner), ())


def writes_to(method: str, count: int) -> bool:
    """True if a method of an array writes to one of so many arguments."""
    return count > _BEFORE_OUT.get(method, count)


def _is_known_of_numpy(fn: Any, kwargs: Mapping[str, Any]) -> bool:
    if _is_number_class(fn):
        return True
    found = any(getattr(np, name, None) is fn for name in _OF_NUMPY)
    return found and not {"out", "like"} & kwargs.keys()


def _is_number_class(fn: Any) -> bool:
    """True for a class of NumPy's numbers, such as ``numpy.float32``."""
    return (
        isinstance(fn, type)
        and is_builtin(fn)
        and issubclass(fn, np.number | np.bool_)
        and not issubclass(fn, np.timedelta64)
    )


def _is_of_language(fn: Any) -> bool:
    """True for a function or class that the language defines and that reads no program."""
    module = f"{getattr(fn, '__module__', '')}."
    if not module.startswith(_OF_LANGUAGE):
        return False
    if isinstance(fn, FunctionType):
        return fn.__name__ not in _RANDOM and fn.__globals__ is vars(sys.modules[module[:-1]])
    return getattr(sys.modules.get(module[:-1]), fn.__name__, None) is fn


def array_attribute_doubt(name: str) -> str:
    """The reason why an array attribute may differ for equal dtype, layout, content; else ""."""
    known = name in _FACTS or name in _OF_ARRAYS
    return "" if known else f"the attribute {name} of an array is not compared"
