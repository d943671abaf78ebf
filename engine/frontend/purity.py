"""Purity: what kernels marked ``fastcache=True`` may read from outside themselves.

Such a kernel is looked up by its source and its arguments before anything of it is compiled. So
that its results depend on nothing else, it takes its data as arguments: reading a
number, a text or a field by a global name, by a name of an enclosing function, or as an attribute
of such, is an error, in the kernel and in the functions it calls. A name in UPPERCASE is taken for
a constant, and a use in ``qd.static`` for a choice of the author's: these cause a warning, once.

Functions, types, members of enumerations, and attributes of `math`, NumPy and the language itself
may be read freely, as may everything else, such as lists: a cache checks these by their contents.
Plain Python functions and the language's own are not held to the rule, nor are objects that were
passed as an argument.

The rules are applied while the frontend walks the kernel, to all kernels; only what follows depends
on the mark. `of` reports for any kernel what keeps it from being marked.
"""

from __future__ import annotations

import ast
import enum
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal

from ..errors import QuadrantsCompilationError
from ..named_tuple import NamedTuple
from ..types import FieldHandle, StructFieldHandle
from .signature import FuncDecl

if TYPE_CHECKING:
    from .build import BuildResult
    from .captures import Capture
    from .func_builder import FuncBuilder

__all__ = ["Impurity", "Severity", "is_constant_name", "of", "of_attribute", "of_name", "report"]

Severity = Literal["", "warning", "error"]

_STABLE_MODULES: Final = frozenset(("math", "numpy"))
_ENGINE: Final = __name__.removesuffix(".frontend.purity")


class Impurity(NamedTuple):
    """A capture that keeps a kernel from being pure.

    severity: what it is in a kernel marked ``fastcache=True``: an ``error``, or a ``warning``.
    """

    capture: Capture
    severity: Severity
    text: str
    hint: str


def is_constant_name(name: str) -> bool:
    """True if ``name`` is in UPPERCASE, and so taken for something that never changes."""
    return name == name.upper()


def _severity(name: str, fb: FuncBuilder) -> Severity:
    decl = fb.context.decl
    plain = isinstance(decl, FuncDecl) and decl.plain
    if plain or str(decl.fn.__module__).startswith(_ENGINE + "."):
        return ""
    return "warning" if fb.static or is_constant_name(name) else "error"


def of_name(fb: FuncBuilder, name: str) -> Severity:
    """The rule for a global name of `DATA`, or one of an enclosing function."""
    return _severity(name, fb)


def of_attribute(fb: FuncBuilder, node: ast.AST, base: Any, value: Any) -> Severity:
    """The rule for ``value``, of `DATA`, which ``node`` reads from ``base``."""
    if isinstance(value, enum.Enum) or not _is_outside(fb, node):
        return ""
    if isinstance(base, ModuleType):
        name = base.__name__
        first = name.partition(".")[0]
        if first in _STABLE_MODULES or name == _ENGINE or name.startswith(_ENGINE + "."):
            return ""
    assert isinstance(node, ast.Attribute)
    return _severity(node.attr, fb)


def _is_outside(fb: FuncBuilder, node: ast.AST) -> bool:
    """True if ``node`` is an attribute reached from an outside name by its own text alone."""
    if type(node) is not ast.Attribute:
        return False
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and not fb.has_local(node.id)


def _text(kernel: str, path: tuple[str, ...], value: Any) -> str:
    name = ".".join(path)
    if len(path) == 1:
        what = f"global variable {name} {type(value)}"
    else:
        what = f"global var {path[-1]} from outside function scope within pure kernel {kernel}"
    why = f"{name} is no argument, so this violates purity"
    return f"[PURE.VIOLATION] WARNING: Accessing {what}: {why}"


def _hint(path: tuple[str, ...], value: Any, severity: Severity) -> str:
    name = path[-1]
    if isinstance(value, FieldHandle | StructFieldHandle):
        return (
            "pass an ndarray as an argument instead of the field, or remove fastcache=True: "
            "kernels that use fields cannot be looked up by their source"
        )
    if name in ("value", "name") and len(path) > 2:
        member = ".".join(path[:-1])
        return f"use the member itself, {member}; of an enum.IntEnum it is a number"
    if severity == "warning":
        return f"pass {name} as an argument if it can differ between runs"
    return (
        f"pass {name} as an argument, or name it {name.upper()} if it is a constant, "
        "or remove fastcache=True"
    )


def report(
    fb: FuncBuilder, path: tuple[str, ...], value: Any, node: ast.AST, severity: Severity
) -> None:
    """Raise or warn, in a kernel that is marked."""
    text = _text(fb.captures.kernel.name, path, value)
    if severity == "error":
        hint = _hint(path, value, severity)
        raise fb.error(QuadrantsCompilationError, text, node, hint)
    fb.warn(text, node, UserWarning, once=True)


def of(build: BuildResult) -> tuple[Impurity, ...]:
    """The reports about the kernel as if it were marked ``fastcache=True``; for a marked kernel,
    those that were issued."""
    name = build.decls[0].name
    return tuple(
        [
            Impurity(c, c.impure, _text(name, c.path, c.value), _hint(c.path, c.value, c.impure))
            for c in build.captures
            if c.impure
        ]
    )
