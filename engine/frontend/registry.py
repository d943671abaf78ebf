"""The Python objects that have a meaning in a kernel, and the tables of the walk.

A public function of the language is an ordinary Python function in `lang` that `intrinsic` ties to
a name; modules of this package define the meaning of that name with `handler`. Python's own
``abs``, ``range``, ... are tied to names in the same way. Statements and expressions have their
tables by node class. `visitor` and `handler_of` import the modules that fill the tables when a
kernel first needs them: most kernels use few.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any, Final, TypeVar

__all__ = [
    "CALLS", "EXPR", "HANDLERS", "INTRINSICS", "STMT", "call_of", "expression", "fill_from",
    "handler", "handler_of", "intrinsic", "is_of_language", "returns_program",
    "statement", "visitor",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])

EXPR: Final[dict[type[ast.AST], Callable[[Any, Any], Any]]] = {}
"""Expression node class -> function(builder, node) that returns the value."""
STMT: Final[dict[type[ast.AST], Callable[[Any, Any], Any]]] = {}
"""Statement node class -> function(builder, node) that returns a flow signal or None."""
INTRINSICS: Final[dict[Any, str]] = {
    abs: "abs", all: "all", any: "any", bool: "to_bool", breakpoint: "breakpoint",
    enumerate: "sequence",
    float: "to_float", getattr: "getattr", hasattr: "hasattr", int: "to_int",
    isinstance: "isinstance", len: "len", list: "sequence",
    max: "max", min: "min", pow: "pow",
    print: "print", range: "range", reversed: "sequence", round: "round", sum: "sum",
    super: "super", tuple: "sequence", zip: "sequence",
}  # fmt: skip
"""A Python callable -> the name of its meaning."""
HANDLERS: Final[dict[str, Callable[[Any, ast.Call, str, Any], Any]]] = {}
"""Name -> function(builder, call node, name, callable) that returns the value of the call."""

CALLS: Final[dict[type, Callable[[Any, ast.Call, Any], Any]]] = {}
"""Class of what is called, such as MatrixType -> function(builder, call node, callee)."""


_NODES: Final[dict[type[ast.AST], str]] = {
    ast.Assert: "printing", ast.AugAssign: "augment", ast.BoolOp: "branches", ast.Call: "calls",
    ast.IfExp: "branches", ast.JoinedStr: "printing", ast.Return: "results", ast.With: "graphs",
}  # fmt: skip
"""Nodes that not every kernel has -> the module that is imported for the first of them."""

_MEANINGS: Final = (
    "intrinsics", "mathlib", "matrix_makers", "objects", "printing", "structs", "views", "hints",
    "gradients", "blocks", "graphs",
)  # fmt: skip
"""The modules with meanings of functions, the common ones first; imported up to the wanted one."""


def fill_from(module: str) -> None:
    """Import a module of this package, which puts its functions into tables."""
    import_module(f".{module}", __package__)


def visitor(
    table: dict[type[ast.AST], Callable[[Any, Any], Any]], node: ast.AST
) -> Callable[[Any, Any], Any] | None:
    """The function of `EXPR` or `STMT` for a node, None if kernels have no such nodes."""
    found = table.get(type(node))
    if found is None and type(node) in _NODES:
        fill_from(_NODES[type(node)])
        found = table.get(type(node))
    return found


def handler_of(name: str) -> Callable[[Any, ast.Call, str, Any], Any]:
    """The function of `HANDLERS` for a meaning."""
    if name not in HANDLERS:
        for module in _MEANINGS:
            fill_from(module)
            if name in HANDLERS:
                break
    return HANDLERS[name]


def intrinsic(name: str, *also: Any) -> Callable[[F], F]:
    """Tie the decorated function, and the callables ``also``, to the meaning ``name``."""

    def tie(fn: F) -> F:
        for one in (fn, *also):
            INTRINSICS[one] = name
        return fn

    return tie


def handler(*names: str) -> Callable[[F], F]:
    """The decorated function defines the meaning of ``names`` in a kernel."""

    def tie(fn: F) -> F:
        for name in names:
            HANDLERS[name] = fn
        return fn

    return tie


def call_of(kind: type) -> Callable[[F], F]:
    """The decorated function handles calls of objects of class ``kind`` in a kernel."""

    def tie(fn: F) -> F:
        CALLS[kind] = fn
        return fn

    return tie


def expression(*nodes: type[ast.AST]) -> Callable[[F], F]:
    """The decorated function evaluates these expression nodes."""

    def tie(fn: F) -> F:
        for node in nodes:
            EXPR[node] = fn
        return fn

    return tie


def statement(*nodes: type[ast.AST]) -> Callable[[F], F]:
    """The decorated function executes these statement nodes."""

    def tie(fn: F) -> F:
        for node in nodes:
            STMT[node] = fn
        return fn

    return tie


_ENGINE: Final = __name__.removesuffix("frontend.registry")
_KNOWN_MODULES: Final[dict[str, bool]] = {}
"""Names of modules that `is_of_language` has been asked about."""


def is_of_language(module: ModuleType) -> bool:
    """True if a module is part of the engine."""
    found = _KNOWN_MODULES.get(module.__name__)
    if found is None:
        found = _KNOWN_MODULES[module.__name__] = f"{module.__name__}.".startswith(_ENGINE)
    return found


def returns_program(fn: Any) -> bool:
    """True for the functions of the language that return the running program or its options."""
    if not isinstance(fn, FunctionType) or fn.__name__ not in ("current_cfg", "get_runtime"):
        return False
    return fn.__module__ == f"{_ENGINE}lang.impl" == fn.__globals__.get("__name__")
