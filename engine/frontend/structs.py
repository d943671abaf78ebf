"""Structs in a kernel: making them, and calling their methods.

A struct is a `StructValue`: its members by name. Values of declared types have members of exactly
the declared types; ``qd.Struct(a=1)`` makes a type of its own from its arguments.
"""

from __future__ import annotations

import ast
from typing import Any, cast

from ..types import FieldHandle, StructFieldHandle, StructType
from .arguments import elements
from .calls import plain_decl
from .conversion import free_struct, made_struct
from .fills import fill_field
from .inline import inline
from .matrices import METHODS
from .registry import call_of, handler
from .signature import FuncDecl
from .values import Method, StructValue
from .walk import Walk


@call_of(StructType)
def _typed(w: Walk, node: ast.Call, t: StructType) -> StructValue:
    """``P(1, [2, 3])``, ``P(a=1)``, ``P({...})``: members that are not given are 0."""
    return made_struct(w, t, elements(w, node.args), _keywords(w, node), node)


def _keywords(w: Walk, node: ast.Call) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for keyword in node.keywords:
        value = w.expr(keyword.value)
        if keyword.arg is None:
            given.update(value.members if isinstance(value, StructValue) else value)
        else:
            given[keyword.arg] = value
    return given


@handler("Struct")
def _free(w: Walk, node: ast.Call, name: str, fn: Any) -> StructValue:
    """``qd.Struct(a=1, v=...)``, ``qd.Struct({...})``: the values determine the types."""
    given = _keywords(w, node)
    for value in elements(w, node.args):
        if not isinstance(value, dict):
            raise w.syntax_error(
                "Custom structs need to be initialized using either dictionary or keyword "
                "arguments", node,
            )  # fmt: skip
        given = {**cast("dict[str, Any]", value), **given}
    methods = given.pop("__struct_methods", None)
    return free_struct(w, given, methods, node)


@call_of(Method)
def _method(w: Walk, node: ast.Call, method: Method) -> Any:
    """``v.norm()``, ``p.move(1)``."""
    owner = method.owner
    if isinstance(owner, StructValue):
        fn = owner.type.methods[method.name]
        if isinstance(fn, staticmethod):
            return inline(w, node, _decl(w, fn.__func__, node))
        return inline(w, node, _decl(w, fn, node), owner)
    if isinstance(owner, FieldHandle | StructFieldHandle):
        return fill_field(w, node, owner)
    return METHODS[method.name](w, node, owner)


def _decl(w: Walk, fn: Any, node: ast.AST) -> FuncDecl:
    decl = getattr(fn, "decl", None)
    return decl if isinstance(decl, FuncDecl) else plain_decl(w, fn, node)
