"""The Python objects that have a meaning in a kernel, and the tables of the walk.

A public function of the language is an ordinary Python function in `lang` that `intrinsic` ties to
a name; modules of this package define the meaning of that name with `handler`. Python's own
``abs``, ``range``, ... are tied to names in the same way. Statements and expressions have their
tables by node class.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final, TypeVar

__all__ = [
    "CALLS", "EXPR", "HANDLERS", "INTRINSICS", "STMT", "call_of", "expression", "handler",
    "intrinsic", "statement",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])

EXPR: Final[dict[type[ast.AST], Callable[[Any, Any], Any]]] = {}
"""Expression node class -> function(builder, node) that returns the value."""
STMT: Final[dict[type[ast.AST], Callable[[Any, Any], Any]]] = {}
"""Statement node class -> function(builder, node) that returns a flow signal or None."""
INTRINSICS: Final[dict[Any, str]] = {}
"""A Python callable -> the name of its meaning."""
HANDLERS: Final[dict[str, Callable[[Any, ast.Call, str, Any], Any]]] = {}
"""Name -> function(builder, call node, name, callable) that returns the value of the call."""

CALLS: Final[dict[type, Callable[[Any, ast.Call, Any], Any]]] = {}
"""Class of what is called, such as MatrixType -> function(builder, call node, callee)."""


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
