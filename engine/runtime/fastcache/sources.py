"""The functions that a kernel reaches: the digest of their source, and how they are found again.

`follow` reads the path of a capture again, in the live process, in the same way as the frontend.

A function is found through the first path of names that leads to it from another one (an entry
keeps these paths, see `entry`), or, where none does (a method of a struct, a function in a list),
by its module and qualified name. In both cases its source and its declaration must be unchanged,
and all paths to it must lead to one function: `Reached` numbers functions by identity.
"""

from __future__ import annotations

import builtins
import importlib
from collections.abc import Mapping, Sequence
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from ...cache.parts import digest
from ...frontend.specialization import InstanceKey, RecordKey, ValueKey, unwrapped
from ...types import StructType
from .captures import ABSENT, LIVE, Modules, declared, function_of, is_engine, numbered

if TYPE_CHECKING:
    from ...frontend.signature import FuncDecl, KernelDecl

__all__ = ["Decl", "Reached", "by_name", "decl_of", "digest_of", "follow", "name_of"]

if TYPE_CHECKING:
    Decl = KernelDecl | FuncDecl
else:
    Decl = Any


_PROGRAM: Final = f"{__name__.removesuffix('runtime.fastcache.sources')}lang.impl"
"""The module whose functions return the running program."""


def decl_of(value: Any) -> Decl:
    """The declaration of a function that kernels inline; for a plain function, a new one.

    QuadrantsSyntaxError for a plain function that cannot be inlined.
    """
    wrapper = value.__func__ if isinstance(value, MethodType | staticmethod) else value
    found = getattr(wrapper, "decl", None)
    if found is not None:
        return found
    from ...frontend.signature import parse_func

    return parse_func(wrapper, plain=True)


def digest_of(decl: Decl, modules: Modules) -> str:
    """The digest of all that the frontend reads of a function except its captures.

    For functions of the engine, whose text the part ``engine`` of the key has, it is the name: a
    global may be another one of them next time. Raises Unknown for a declaration without a text.
    """
    if is_engine(decl.fn.__module__):
        return f"engine {decl.fn.__module__} {decl.qualname}"
    plain = getattr(decl, "plain", False)
    # Many kernels reach the same functions. The code of a plain one can be replaced.
    keeps = modules is LIVE and not plain
    if keeps and decl.digest:
        return decl.digest
    kind = type(decl).__name__, getattr(decl, "real", False)
    top = getattr(decl, "requires_top_level", False)
    mode = getattr(decl, "autodiff", "none")
    if plain:  # its code may run while the kernel is compiled
        mode = f"plain {_code_text(decl.fn.__code__)}"
    found = digest(
        f"{kind} {top} {decl.name} {mode} {declared(decl, modules)}\n{decl.src.identity}"
    )
    if keeps:
        decl.digest = found
    return found


def _code_text(code: CodeType) -> str:
    """A text that distinguishes code that Python runs, without its location."""
    consts = [_code_text(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    flags = code.co_flags, code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {flags} {consts}"


def name_of(decl: Decl, modules: Modules) -> tuple[str, str] | None:
    """(module, qualified name) of a function, if they lead to it; else None."""
    fn = decl.fn
    place = modules.name(str(fn.__module__)), fn.__qualname__
    return place if function_of(modules.located(*place)) is fn else None


def by_name(module: str, qualname: str, modules: Modules) -> Decl | None:
    """The function that its name leads to now, or None."""
    found = modules.located(module, qualname)
    return None if function_of(found) is None else decl_of(found)


class Reached:
    """Numbers of functions and struct types: equal but not identical ones get different numbers.

    modules: of the program that the numbers are for. The kernel is function 0.
    """

    def __init__(self, decls: Sequence[Decl], modules: Modules) -> None:
        self.modules = modules
        self.decls: Final[dict[int, Decl]] = {}
        self._numbers: Final[dict[Any, int]] = {}
        self._types: Final[list[StructType]] = []
        for number, decl in enumerate(decls):
            self.add(number, decl)
        for param in decls[0].params if decls else ():
            numbered(param.type, self)

    def add(self, number: int, decl: Decl) -> None:
        """Add ``decl`` as the function of that number."""
        self.decls[number] = decl
        self._numbers[decl] = number
        # A plain function has no declaration of its own: it is a key itself.
        self._numbers.setdefault(decl.fn, number)

    def number(self, decl: Decl) -> int:
        """The number of a declaration. KeyError if it has none."""
        return self._numbers[decl]

    def of_function(self, value: Any) -> int | None:
        """The number of a function among those that the kernel reaches; None for others."""
        wrapper = value.__func__ if isinstance(value, MethodType) else value
        if isinstance(wrapper, FunctionType):
            return self._numbers.get(wrapper)
        if isinstance(wrapper, ModuleType):  # asking one for a name may run its code
            return None
        decl = getattr(wrapper, "decl", None)
        try:
            return None if decl is None else self._numbers.get(decl)
        except TypeError:  # a ``decl`` of the user's own that has no hash
            return None

    def of_type(self, t: StructType) -> int:
        """The number of a struct type, in the order of the first calls."""
        for number, known in enumerate(self._types):
            if known is t:
                return number
        self._types.append(t)
        return len(self._types) - 1


# ---- reading again


def _outer(fn: FunctionType, name: str) -> Any:
    """The value of a name outside of a function: a closure cell, a global or a builtin."""
    names = fn.__code__.co_freevars
    if name in names and fn.__closure__:
        try:
            return fn.__closure__[names.index(name)].cell_contents
        except ValueError:
            return ABSENT
    found = fn.__globals__.get(name, ABSENT)
    return getattr(builtins, name, ABSENT) if found is ABSENT else found


def follow(
    decl: KernelDecl | FuncDecl, origin: str, path: Sequence[str], arguments: Mapping[str, Any]
) -> tuple[Any, Any]:
    """The present value at a path, and the object that it was read from (None for a name).

    decl: the function in which the path begins. arguments: specialization keys of the kernel's
    arguments, by name. `ABSENT` for a missing attribute; errors of the user's code are not caught.
    """
    if origin == "program":
        value = getattr(importlib.import_module(_PROGRAM), path[0].removesuffix("()"))()
        return _attribute(value, path[1:])
    if origin == "argument":
        return _in_argument(arguments[path[0]], path[1:])
    if origin == "annotation":
        if path[0] == "return":
            return decl.returns, None
        return next((p for p in decl.params if p.name == path[0]), ABSENT), None
    if origin == "default":
        value: Any = next(p.default for p in decl.params if p.name == path[0])
        rest = path[2:]
    else:
        value, rest = _outer(decl.fn, path[0]), path[1:]
    return _attribute(value, rest)


def _attribute(value: Any, path: Sequence[str]) -> tuple[Any, Any]:
    """The attribute that a path leads to, and the object that has it."""
    parent: Any = None
    for name in path:
        parent, value = value, ABSENT if value is ABSENT else getattr(value, name, ABSENT)
    return value, parent


def _in_argument(spec_key: Any, path: Sequence[str]) -> tuple[Any, Any]:
    """As `follow`, from the specialization key of an argument."""
    value: Any = spec_key
    looked_into = isinstance(spec_key, InstanceKey)
    if isinstance(spec_key, InstanceKey):
        value = spec_key.instance
    elif isinstance(spec_key, ValueKey):
        value = spec_key.value
    parent: Any = None
    for name in path:
        parent = value
        if name.endswith("?"):
            owner = value.cls if isinstance(value, RecordKey) else value
            return getattr(owner, name[:-1], ABSENT) is not ABSENT, parent
        if isinstance(value, RecordKey):
            if name in value.members:
                value = value.members[name]
            else:
                value = value.cls if name == "__class__" else getattr(value.cls, name, ABSENT)
        elif value is not ABSENT:
            value = getattr(value, name, ABSENT)
            value = unwrapped(value) if looked_into else value
    return value, parent
