"""Plain Python functions as kernels inline them, or as `pure_calls` follows them."""

from __future__ import annotations

import ast
from types import FunctionType
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from .signature import FuncDecl, parse_func

if TYPE_CHECKING:
    from .func_builder import FuncBuilder

__all__ = ["plain_decl"]

_known: Final[WeakKeyDictionary[FunctionType, FuncDecl]] = WeakKeyDictionary()


def plain_decl(fb: FuncBuilder, fn: FunctionType, node: ast.AST) -> FuncDecl:
    """The declaration of a plain Python function: one for each function."""
    decl = _known.get(fn)
    if decl is None:
        decl = _known[fn] = fb.python(node, parse_func, fn, plain=True)
    return decl
