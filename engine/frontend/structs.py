"""Structs in a kernel: making them, and calling their methods.

A struct is a `StructValue`: its members by name. Values of declared types have members of exactly
the declared types; ``qd.Struct(a=1)`` makes a type of its own from its arguments.
"""

from __future__ import annotations

import ast
from typing import Any, cast

from ..types import FieldHandle, StructFieldHandle, StructType
from .arguments import elements
from .conversion import free_struct, made_struct
from .fills import fill_field
from .func_builder import FuncBuilder
from .inline import inline
from .matrices import METHODS
from .plain_functions import plain_decl
from .registry import call_of, handler
from .signature import FuncDecl
from .values import BufferViewValue, Method, StructValue
from .views import view_method


@call_of(StructType)
def _typed(fb: FuncBuilder, node: ast.Call, t: StructType) -> StructValue:
    """``P(1, [2, 3])``, ``P(a=1)``, ``P({...})``: members that are not given are 0."""
    return made_struct(fb, t, elements(fb, node.args), _keywords(fb, node), node)


def _keywords(fb: FuncBuilder, node: ast.Call) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for keyword in node.keywords:
        value = fb.expr(keyword.value)
        if keyword.arg is None:
            given.update(value.members if isinstance(value, StructValue) else value)
        else:
            given[keyword.arg] = value
    return given


@handler("Struct")
def _free(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> StructValue:
    """``qd.Struct(a=1, v=...)``, ``qd.Struct({...})``: the values determine the types."""
    given = _keywords(fb, node)
    for value in elements(fb, node.args):
        if not isinstance(value, dict):
            raise fb.syntax_error(
                "Custom structs need to be initialized using either dictionary or keyword "
                "arguments", node,
            )  # fmt: skip
        given = {**cast("dict[str, Any]", value), **given}
    methods = given.pop("__struct_methods", None)
    return free_struct(fb, given, methods, node)


@call_of(Method)
def _method(fb: FuncBuilder, node: ast.Call, method: Method) -> Any:
    """``v.norm()``, ``p.move(1)``."""
    owner = method.owner
    if isinstance(owner, StructValue):
        fn = owner.type.methods[method.name]
        if isinstance(fn, staticmethod):
            return inline(fb, node, _decl(fb, fn.__func__, node))
        return inline(fb, node, _decl(fb, fn, node), owner)
    if isinstance(owner, FieldHandle | StructFieldHandle):
        return fill_field(fb, node, owner)
    if isinstance(owner, BufferViewValue):
        return view_method(fb, node, owner)
    return METHODS[method.name](fb, node, owner)


def _decl(fb: FuncBuilder, fn: Any, node: ast.AST) -> FuncDecl:
    decl = getattr(fn, "decl", None)
    return decl if isinstance(decl, FuncDecl) else plain_decl(fb, fn, node)
