"""Texts for the values that a kernel captured.

`text_of` returns a text for a value: two values with equal texts are equal for a kernel, in any
process. The text of numbers, strings and containers of these is their content; that of classes, of
modules of the engine and of Python functions is their qualified name (after a check that the name
leads to them); that of types consists of their parts. `Unknown` is raised for everything else:
nothing is guessed.

The text of a function that kernels inline and that a path of names leads to is its number among
those that the kernel reaches (`Reached`), which compares identities: its source is compared once,
and its own captures belong to that number.
"""

from __future__ import annotations

import dataclasses
import enum
import struct
import sys
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from ...cache.parts import digest
from ...frontend.declared import ParamDecl, members_of
from ...frontend.plain import (
    FORMATTING,
    array_doubt,
    class_doubt,
    coded,
    dtype_doubt,
    is_builtin,
)  # fmt: skip
from ...frontend.registry import INTRINSICS
from ...types import CompoundType, DataType, MatrixType, NDArray, StructType, Template, TensorHandle
from .records import has_structs, keep_text, kept_text

if TYPE_CHECKING:
    from ...frontend.signature import FuncDecl, KernelDecl
    from .sources import Reached

__all__ = [
    "ABSENT", "LIVE", "Modules", "Unknown", "declared", "exact", "function_of",
    "is_engine", "numbered", "param_text", "text_of", "type_text",
]  # fmt: skip

ABSENT: Final = object()
"""The value that `sources.follow` returns for a missing attribute."""

_ENGINE: Final = __name__.removesuffix("runtime.fastcache.captures")
_LONGEST: Final = 200
"""Characters of a text; a longer one is replaced by its beginning and a digest."""
_PLAIN: Final = frozenset((bool, int, float, complex, str, bytes, type(None), type(...)))
_SEQUENCES: Final[dict[type, str]] = {
    tuple: "tuple", list: "list", set: "set", frozenset: "frozenset",
}  # fmt: skip
_OF_FILES: Final = frozenset((
    "DataSource", "fromfile", "genfromtxt", "get_include", "load", "loadtxt", "memmap",
    "open_memmap",
))  # fmt: skip
"""NumPy functions whose result does not depend on their arguments alone."""
_DEEPEST: Final = 32


class Modules:
    """The modules of the program that a kernel is looked up for: those of this process.

    A look-up for another program, where a module has another name, passes a subclass.
    """

    def name(self, name: str) -> str:
        """The name that the module called ``name`` in this process has in the program."""
        return name

    def find(self, name: str) -> Any:
        """The module that has this name in the program; None if there is none."""
        return sys.modules.get(name)

    def located(self, module: str, qualname: str) -> Any:
        """The value that a qualified name leads to in a loaded module; `ABSENT` if none."""
        found: Any = self.find(module)
        for name in qualname.split("."):
            if isinstance(found, StructType):
                found = found.methods.get(name, ABSENT)
            elif isinstance(found, type):  # as it is written, without binding anything
                found = found.__dict__.get(name, ABSENT)
            else:
                found = getattr(found, name, ABSENT)
            if found is ABSENT:
                return ABSENT
        return cast(Any, found).__func__ if isinstance(found, staticmethod | classmethod) else found


LIVE: Final = Modules()
"""For look-ups of this process itself."""


class Unknown(Exception):
    """Raised for a value without a text. The message follows its name: ``is an object of ...``"""


def is_engine(module: Any) -> bool:
    """True if a module of this name belongs to the engine, which is a part of keys as a whole."""
    return f"{module or ''}.".startswith(_ENGINE)


# ---- values by qualified name


def _place(value: Any, modules: Modules, what: str) -> str:
    """``module.qualname`` of a value. Unknown if that name does not lead to it."""
    module = getattr(value, "__module__", None)
    qualname = getattr(value, "__qualname__", None)
    if isinstance(module, str) and isinstance(qualname, str):
        module = modules.name(module)
        if modules.located(module, qualname) is value:
            return f"{module}.{qualname}"
        raise Unknown(f"is {what} {module}.{qualname}, which cannot be found by that name")
    raise Unknown(f"is {what} without a name")


def function_of(value: Any) -> FunctionType | None:
    """The Python function of a function for kernels, of a method, or of a plain function."""
    if isinstance(value, MethodType):
        value = value.__func__
    if isinstance(value, FunctionType):
        return value
    fn = getattr(getattr(value, "decl", None), "fn", None)
    return fn if isinstance(fn, FunctionType) else None


# ---- texts


def text_of(value: Any, numbers: Reached, parent: Any = None) -> str:
    """A text that stands for ``value``. parent: the object it was read from.

    Raises Unknown.
    """
    if isinstance(value, MethodType):
        text = _bound(value, numbers, parent)
    elif isinstance(value, ParamDecl):
        text = param_text(value, numbers.modules) + numbered(value.type, numbers)
    else:
        number = numbers.of_function(value)
        text = f"function {number}"
        if number is None:
            text = _text(value, numbers.modules, 0) + numbered(value, numbers)
    if len(text) > _LONGEST:
        return f"{text[:_LONGEST]}... {digest(text)}"
    return text


def numbered(value: Any, numbers: Reached) -> str:
    """The numbers of the struct types in a type, a dataclass or a container.

    They are needed because ``isinstance`` distinguishes equal struct types.
    """
    if isinstance(value, StructType):
        inner = [numbered(member, numbers) for member in value.members.values()]
        return f" #{numbers.of_type(value)}{''.join(inner)}"
    parts: Iterable[Any] = ()
    if value.__class__ in _SEQUENCES:
        parts = value
    elif value.__class__ is dict:
        parts = value.values()
    elif isinstance(value, type) and dataclasses.is_dataclass(value) and has_structs(value):
        parts = [param.type for param in members_of(value).values()]
    return "".join([numbered(part, numbers) for part in parts])


def _bound(value: MethodType, numbers: Reached, parent: Any) -> str:
    """The text of a method, with the object that it is bound to."""
    number = numbers.of_function(value)
    if number is None:
        raise Unknown(f"is the method {value.__qualname__}")
    owner = value.__self__
    if owner is parent:
        return f"bound function {number}"
    if isinstance(owner, type):
        return f"function {number} of {_class(owner, numbers.modules, 0)}"
    raise Unknown(f"is the method {value.__qualname__} of another object")


def _text(value: Any, modules: Modules, depth: int) -> str:
    kind: Any = value.__class__
    if kind in _PLAIN:
        return f"{kind.__name__}={exact(value)}"
    if depth > _DEEPEST:
        raise Unknown("is a container that is nested too deeply")
    if kind in _SEQUENCES:
        inside = ", ".join([_text(one, modules, depth + 1) for one in value])
        return f"{_SEQUENCES[kind]}({inside})"
    if kind is dict:
        pairs = [
            f"{_text(key, modules, depth + 1)}: {_text(one, modules, depth + 1)}"
            for key, one in cast("dict[Any, Any]", value).items()
        ]
        return f"dict({', '.join(pairs)})"
    if kind is range:
        return repr(value)
    if kind is slice:
        parts = [_text(one, modules, depth + 1) for one in (value.start, value.stop, value.step)]
        return f"slice({', '.join(parts)})"
    if value is ABSENT:
        return "absent"
    if isinstance(value, DataType | CompoundType):
        return type_text(value, modules)
    if isinstance(value, enum.Enum):
        return _member(value, modules, depth)
    if isinstance(value, type):
        return _class(value, modules, depth)
    if isinstance(value, np.generic | np.ndarray | np.dtype | np.ufunc):
        return _numpy(value)
    if isinstance(value, BuiltinFunctionType | FunctionType):
        return _function(value, modules, depth)
    if isinstance(value, ModuleType):
        return _module(value)
    return _object(value, modules)


def exact(value: Any) -> str:
    """The ``repr`` of a number or another plain value.

    A NaN has its bits added, because it has a sign; a very long integer is hexadecimal.
    """
    if value != value:
        return f"{value!r} {struct.pack('<2d', value.real, value.imag).hex()}"
    try:
        return repr(value)
    except ValueError:
        return hex(value)


def _module(value: ModuleType) -> str:
    """The text of a module of the engine; values from other modules are captures themselves."""
    if is_engine(value.__name__):
        return f"module {value.__name__}"
    raise Unknown(f"is the module {value.__name__}, used as a value")


def _numpy(value: Any) -> str:
    """The text of a NumPy object: its content or name."""
    if isinstance(value, np.dtype):
        why = dtype_doubt(cast(Any, value))
        if why:
            raise Unknown(why)
        return f"dtype {value.str} {value.num}"
    if isinstance(value, np.ufunc):
        if getattr(np, value.__name__, None) is value:
            return f"numpy.{value.__name__} {np.__version__}"
        raise Unknown(f"is the ufunc {value.__name__}, which is none of NumPy's")
    why = array_doubt(value)
    if why:
        raise Unknown(why)
    kind = f"{value.dtype.str} {value.dtype.num}"
    if not isinstance(value, np.ndarray):
        return f"{type(value).__name__}={value.tobytes().hex()} {kind}"
    array = cast("np.ndarray[Any, Any]", value)
    layout = f"{array.shape} {array.strides} {array.flags.num}"
    return f"array {kind} {layout} {digest(array.tobytes())}"


def _function(value: Any, modules: Modules, depth: int) -> str:
    """The text of a Python function: its qualified name; the frontend records those that ran."""
    owner = getattr(value, "__self__", None)
    if owner is not None and not isinstance(owner, ModuleType):  # a method of a list, a text, ...
        return f"{value.__name__} of {_text(owner, modules, depth + 1)}"
    module = str(value.__module__ or "")
    if value.__name__ in _OF_FILES and module.partition(".")[0] == "numpy":
        raise Unknown(f"is {module}.{value.__name__}, whose result its arguments do not decide")
    if is_engine(module):
        name = INTRINSICS.get(value)
        if name is not None:
            return f"{name} ({module}.{value.__qualname__})"
    place = _place(value, modules, "the function")
    if isinstance(value, BuiltinFunctionType) or is_engine(module):
        return f"function {place}"
    if module.partition(".")[0] == "numpy":
        return f"function {place} {np.__version__}"
    raise Unknown(f"is the Python function {place}")


def _object(value: Any, modules: Modules) -> str:
    if isinstance(value, TensorHandle):
        raise Unknown("is a field or an array")
    if function_of(value) is not None:
        return _inlined(value, modules)
    if isinstance(value, Template | NDArray) or value is Template:
        return f"annotation {value!r}"
    from ...frontend.contents import content_of

    content: Any = content_of(value)
    if content is not None:
        name = INTRINSICS.get(value.__class__)
        if name == "Struct":
            kind, members = content
            methods = "" if kind is None else f" {type_text(kind, modules)}"
            return f"Struct{methods} {[(key, _content(m, modules)) for key, m in members]}"
        return f"{name} {content[0]} {content[1]} {content[2].hex()}"
    try:
        name = INTRINSICS.get(value)
    except TypeError:
        name = None
    if name is not None and is_engine(getattr(value, "__module__", "")):
        return f"{name} ({value.__module__})"
    module = modules.name(type(value).__module__)
    raise Unknown(f"is an object of {module}.{type(value).__qualname__}")


def _content(member: Any, modules: Modules) -> str:
    """The text of a member of a struct: the result of `content_of`, or a number."""
    if isinstance(member, tuple) and len(cast("tuple[Any, ...]", member)) == 3:
        dtype, shape, data = cast("tuple[Any, Any, Any]", member)
        return f"{dtype} {shape} {data.hex()}"
    return _text(member, modules, 1)


def _inlined(value: Any, modules: Modules) -> str:
    """The text of a function for kernels without a path of names: in a container, or a method."""
    fn = function_of(value)
    assert fn is not None
    if fn.__closure__:
        raise Unknown(f"holds the function {fn.__qualname__}, which has captures of its own")
    module = modules.name(fn.__module__)
    place = f"{module}.{fn.__qualname__}"
    if function_of(modules.located(module, fn.__qualname__)) is not fn:
        raise Unknown(f"holds the function {place}, which cannot be found by that name")
    return f"{type(value).__name__} {place}"


def _class(cls: type, modules: Modules, depth: int) -> str:
    """The text of a class, with all that a kernel may read: bases, members, attributes."""
    place = _place(cls, modules, "the class")
    if is_engine(cls.__module__) or (is_builtin(cls) and cls.__module__ in ("builtins", "numpy")):
        return f"class {place}"
    why = class_doubt(cls)
    if why:
        raise Unknown(why)
    if isinstance(cls, enum.EnumMeta):
        return f"class {place}{_bases(cls, modules)} {_members_of_enum(cls, modules, depth)}"
    names = sorted({name for base in cls.__mro__[:-1] for name in vars(base)})
    return f"class {place} {digest(f'{_bases(cls, modules)} {names}')}"


def _bases(cls: type, modules: Modules) -> str:
    """The classes that a class inherits from; the qualified name of each must lead to it."""
    places = [_place(base, modules, "derived from") for base in cls.__mro__[1:-1]]
    return f"({', '.join(places)})"


def _member(value: enum.Enum, modules: Modules, depth: int) -> str:
    """The text of a member of an Enum: its name, class, value and attributes."""
    cls = type(value)
    codes = coded(cls)
    code = next((name for name in codes if name not in FORMATTING), "")
    if code:
        raise Unknown(f"is a member of the Enum {cls.__qualname__}, which has code: {code}")
    place = f"{_place(cls, modules, 'of the class')}{_bases(cls, modules)}{' '.join(['', *codes])}"
    inner = _text(value.value, modules, depth + 1)
    return f"member {value.name} of {place} ({inner}){_extra(value, modules, depth)}"


def _extra(member: enum.Enum, modules: Modules, depth: int) -> str:
    """The attributes that a member of an Enum has besides its name and value."""
    more = {
        key: _text(one, modules, depth + 1)
        for key, one in getattr(member, "__dict__", {}).items()
        if not key.startswith("_")
    }
    return f" {more}" if more else ""


def _members_of_enum(cls: enum.EnumMeta, modules: Modules, depth: int) -> str:
    """The names, values and attributes of the members."""
    for base in cls.__mro__:
        if base.__module__ != "enum" and not base.__module__.startswith("builtins"):
            for name, value in vars(base).items():
                code = getattr(value, "fget", None) or getattr(value, "__func__", value)
                if isinstance(code, FunctionType) and code.__globals__ is not enum.__dict__:
                    raise Unknown(f"is the Enum {cls.__qualname__}, which has code: {name}")
    codes = coded(cast(Any, cls))
    if codes:
        raise Unknown(f"is the Enum {cls.__qualname__}, which has code: {codes[0]}")
    out = [f"boundary {getattr(cls, '_boundary_', None)}"]
    for name, member in cls.__members__.items():
        inner: Any = member
        text = _text(inner.value, modules, depth + 1)
        out.append(f"{name}={text}{_extra(inner, modules, depth)}")
    return "; ".join(out)


# ---- types and declarations


def type_text(t: Any, modules: Modules) -> str:
    """The text of a value type, or of int, float or bool; structs with their methods."""
    if isinstance(t, MatrixType):
        inner = type_text(t.dtype, modules)
        return f"vector({t.n}, {inner})" if t.ndim == 1 else f"matrix({t.n}, {t.m}, {inner})"
    if isinstance(t, StructType):
        members = ", ".join([f"{key}={type_text(m, modules)}" for key, m in t.members.items()])
        methods = [f"{key}: {_method(m, modules)}" for key, m in t.methods.items()]
        return f"{t.name}({members}{'; ' if methods else ''}{', '.join(methods)})"
    return getattr(t, "__name__", None) or repr(t)


def _method(value: Any, modules: Modules) -> str:
    if isinstance(value, staticmethod):
        return f"static {_inlined(cast(Any, value).__func__, modules)}"
    if function_of(value) is None:
        raise Unknown(f"has a method that is an object of {type(value).__qualname__}")
    return _inlined(value, modules)


def param_text(param: ParamDecl, modules: Modules) -> str:
    """The declaration of a parameter, or of a member of a dataclass; without its default."""
    kind = param.kind
    if kind == "scalar":
        text = type_text(param.number, modules)
    elif kind == "ref":
        text = f"ref {type_text(param.number, modules)}"
    elif kind == "ndarray":
        text = f"ndarray({', '.join(_array_facts(param, modules))})"
    elif kind == "matrix" or kind == "struct":
        text = type_text(param.type, modules)
    elif kind == "record":
        text = _record_text(param, modules)
    elif kind == "unusable":
        text = f"unusable {param.annotation_text}"
    else:
        text = kind
    return f"{param.name}: {text}{' | None' if param.optional else ''}"


def _record_text(param: ParamDecl, modules: Modules) -> str:
    cls: Any = param.type
    text = kept_text(cls) if modules is LIVE else None
    if text is None:
        members = [param_text(member, modules) for member in param.members().values()]
        text = f"{modules.name(cls.__module__)}.{cls.__qualname__}[{', '.join(members)}]"
        if modules is LIVE:
            keep_text(cls, text)
    return text


def _array_facts(param: ParamDecl, modules: Modules) -> Iterator[str]:
    """The arguments of an array's annotation; defaults are omitted."""
    number, shape = param.number, param.element_shape
    if number is not None:
        sizes = ", ".join(map(str, shape or ()))
        kind = {1: "vector", 2: "matrix"}.get(len(shape or ()), "")
        dtype = type_text(number, modules)
        yield f"dtype={kind}({sizes}, {dtype})" if kind else f"dtype={dtype}"
    if param.element_dim != (None if number is None or shape is None else len(shape)):
        yield f"element_dim={param.element_dim}"
    if (shape is None) == (number is not None):
        yield f"element_shape={shape}"
    if param.ndim is not None:
        yield f"ndim={param.ndim}"
    if param.needs_grad is not None:
        yield f"needs_grad={param.needs_grad}"
    if param.boundary != "unsafe":
        yield f"boundary={param.boundary}"


def declared(decl: KernelDecl | FuncDecl, modules: Modules) -> str:
    """The declared parameters and results, independent of the names of annotations."""
    text = f"({', '.join([param_text(p, modules) for p in decl.params])})"
    if decl.returns:
        text += f" -> ({', '.join([type_text(t, modules) for t in decl.returns])})"
        text += " as a tuple" if decl.returns_tuple else ""
    return text
