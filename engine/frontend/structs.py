"""Structs in a kernel: making them, and calling their methods.

A struct is a `StructValue`: its members by name. Values of declared types have members of exactly
the declared types; ``qd.Struct(a=1)`` makes a type of its own from what it is given.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ..types import MatrixType, StructType, matrix_type
from .calls import dtype_argument
from .exprs import elements
from .inline import inline
from .matrices import Method, as_matrix, uniform
from .matrix_makers import made_of_type, matrix_type_in
from .registry import call_of, handler
from .signature import FuncDecl
from .values import MatrixValue, StructValue, describe, dtype_in, tensor_name
from .walk import Walk

__all__ = ["converted"]


def converted(w: Walk, t: Any, value: Any, node: ast.AST, name: str = "") -> Any:
    """``value`` as a value of type ``t``; ``name``: what takes it, for messages."""
    if isinstance(t, StructType):
        if isinstance(value, StructValue):
            value = value.members
        if not isinstance(value, Mapping):
            text = f"Only dict or Struct can be assigned to a Struct, not {describe(value)}"
            raise w.type_error(text, node)
        return _made(w, t, (), dict(cast("Mapping[str, Any]", value)), node)
    if isinstance(t, MatrixType):
        matrix = as_matrix(w, value, node)
        if matrix is None:
            return made_of_type(w, t, [value], node)
        shape, dtype = matrix_type_in(w, t)
        if matrix.shape != shape:
            want = tensor_name(w, MatrixValue(shape, [w.typed(0, dtype, node)] * t.size))
            text = f"cannot assign '{tensor_name(w, matrix)}' to '{want}'"
            raise w.type_error(text, node, f"{name} is {t}" if name else None)
        return MatrixValue(shape, uniform(w, w.parts(matrix, node), node, dtype))
    dtype = dtype_argument(w, t, node)
    if isinstance(value, int | float):
        return w.number(value, dtype, node)
    return w.cast(w.op(value, node), dtype, node)


def zero_of(w: Walk, t: Any, node: ast.AST) -> Any:
    """The value of type ``t`` that is 0 throughout."""
    if isinstance(t, StructType):
        return StructValue(t, {name: zero_of(w, m, node) for name, m in t.members.items()})
    return converted(w, t, 0, node)


@call_of(StructType)
def _typed(w: Walk, node: ast.Call, t: StructType) -> StructValue:
    """``P(1, [2, 3])``, ``P(a=1)``, ``P({...})``: members that are not given are 0."""
    return _made(w, t, elements(w, node.args), _keywords(w, node), node)


def _keywords(w: Walk, node: ast.Call) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for keyword in node.keywords:
        value = w.expr(keyword.value)
        if keyword.arg is None:
            given.update(value.members if isinstance(value, StructValue) else value)
        else:
            given[keyword.arg] = value
    return given


def _made(
    w: Walk, t: StructType, args: Sequence[Any], named: Mapping[str, Any], node: ast.AST
) -> StructValue:
    names = list(t.members)
    if len(args) == 1 and not named and isinstance(args[0], StructValue | dict):
        first = args[0].members if isinstance(args[0], StructValue) else cast(Any, args[0])
        if set(first) <= set(names):
            named, args = first, ()
    if len(args) > len(names):
        text = f"{t.name} has {len(names)} members, got {len(args)} values"
        raise w.type_error(text, node, f"its members are {', '.join(names)}")
    given: dict[str, Any] = dict(zip(names, args, strict=False))
    for name, value in named.items():
        if name not in t.members:
            text = f"{t.name} has no member '{name}'"
            raise w.type_error(text, node, f"its members are {', '.join(names)}")
        if name in given:
            raise w.type_error(f"{t.name}: the member '{name}' is given twice", node)
        given[name] = value
    members = {
        name: converted(w, m, given[name], node, f"{t.name}.{name}")
        if name in given
        else zero_of(w, m, node)
        for name, m in t.members.items()
    }
    return StructValue(t, members)


@handler("Struct")
def _free(w: Walk, node: ast.Call, name: str, fn: Any) -> StructValue:
    """``qd.Struct(a=1, v=...)``, ``qd.Struct({...})``: the values give the types."""
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


def free_struct(
    w: Walk, given: Mapping[str, Any], methods: Mapping[str, Any] | None, node: ast.AST
) -> StructValue:
    """A struct of these members; their types are those of the values."""
    members = {name: _member(w, value, node) for name, value in given.items()}
    types = {name: type_of(w, value) for name, value in members.items()}
    return StructValue(StructType(types, methods), members)


def _member(w: Walk, value: Any, node: ast.AST) -> Any:
    if isinstance(value, dict):
        return free_struct(w, cast("dict[str, Any]", value), None, node)
    if isinstance(value, StructValue):
        return value
    matrix = as_matrix(w, value, node)
    if matrix is not None:
        return MatrixValue(matrix.shape, uniform(w, w.parts(matrix, node), node))
    return w.op(value, node)


def type_of(w: Walk, value: Any) -> Any:
    """The type of a number, vector, matrix or struct."""
    if isinstance(value, StructValue):
        return value.type
    if isinstance(value, MatrixValue):
        return matrix_type(value.shape, dtype_in(w, value))
    return dtype_in(w, value)


@call_of(Method)
def _method(w: Walk, node: ast.Call, method: Method) -> Any:
    """``v.norm()``, ``p.move(1)``."""
    owner = method.owner
    if isinstance(owner, StructValue):
        fn = owner.type.methods[method.name]
        if isinstance(fn, staticmethod):
            return inline(w, node, _decl(w, fn.__func__, node))
        return inline(w, node, _decl(w, fn, node), owner)
    from .matrix_methods import METHODS

    return METHODS[method.name](w, node, owner)


def _decl(w: Walk, fn: Any, node: ast.AST) -> FuncDecl:
    from .calls import plain_decl

    decl = getattr(fn, "decl", None)
    return decl if isinstance(decl, FuncDecl) else plain_decl(w, fn, node)
