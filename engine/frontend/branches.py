"""Expressions that run only a part of themselves: ``and``, ``or``, ``a if c else b``.

On vectors and matrices both sides are computed, part by part.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ..ir import Op
from ..ir import codes as C
from ..types import pointer_to, promote, u1, void
from .func_builder import FuncBuilder
from .intrinsics import select
from .matrices import as_matrix, elementwise
from .registry import expression
from .stmts import store
from .values import MatrixValue, StructValue, dtype_in, is_static, promote_all, tensor_name

__all__ = ["conditional"]


@expression(ast.BoolOp)
def _boolop(fb: FuncBuilder, node: ast.BoolOp) -> Any:
    """``and`` and ``or`` return an operand; the right side is evaluated only if it is needed."""
    return _bool_chain(fb, node, node.values, isinstance(node.op, ast.And))


def _bool_chain(fb: FuncBuilder, node: ast.BoolOp, values: list[ast.expr], is_and: bool) -> Any:
    left = fb.expr(values[0])
    rest = values[1:]
    if not rest:
        return left
    if isinstance(left, MatrixValue):
        right = _bool_chain(fb, node, rest, is_and)
        return elementwise(
            fb, node, "&&" if is_and else "||", lambda a, b: _both(fb, node, a, b, is_and), left,
            as_matrix(fb, right, node) or right,
        )  # fmt: skip
    if type(left) is not Op and is_static(left):
        if fb.python(values[0], bool, left) != is_and:
            return left
        return _bool_chain(fb, node, rest, is_and)
    left = _logical(fb, node, fb.op(left, values[0]), values[0], None, is_and)
    if not fb.config.short_circuit_operators:
        right = fb.op(_bool_chain(fb, node, rest, is_and), rest[0])
        right = _logical(fb, node, right, rest[0], left, is_and)
        pair = (left, right, left) if is_and else (left, left, right)
        return fb.emit(node, C.SELECT, pair)
    var = fb.variable(left, "", node)
    branch = fb.emit(node, C.IF, (left,), None, void, 2)
    saved = fb.enter(branch.regions[0 if is_and else 1])
    right = fb.op(_bool_chain(fb, node, rest, is_and), rest[0])
    right = _logical(fb, node, right, rest[0], left, is_and)
    fb.emit(node, C.LOCAL_STORE, (var, right), None, void)
    fb.leave(saved, "condition", node)
    var.type = pointer_to(promote(left.type, right.type))
    return fb.load(var, node)


def _both(fb: FuncBuilder, node: ast.BoolOp, a: Any, b: Any, is_and: bool) -> Op:
    """``and`` or ``or`` of two parts that are both computed: a truth value."""
    left = _logical(fb, node, fb.op(a, node), node, None, is_and)
    right = _logical(fb, node, fb.op(b, node), node, left, is_and)
    code = C.BIT_AND if is_and else C.BIT_OR
    return fb.emit(node, code, (fb.truth(left, node), fb.truth(right, node)), None, u1)


def _logical(
    fb: FuncBuilder, node: ast.BoolOp, value: Op, at: ast.expr, left: Op | None, is_and: bool
) -> Op:
    if value.type.is_real:
        names = f"'{value.type}'" if left is None else f"'{left.type}' and '{value.type}'"
        symbol = "&&" if is_and else "||"
        raise fb.type_error(
            f"unsupported operand type(s) for '{symbol}': {names}", at,
            "`and` and `or` need integers; write `x != 0`",
        )  # fmt: skip
    return value


def conditional(
    fb: FuncBuilder, node: ast.AST, cond: Op, yes: tuple[ast.expr, Callable[[], Any]],
    no: tuple[ast.expr, Callable[[], Any]],
) -> Any:  # fmt: skip
    """The value of one of two branches; only that one runs."""
    at = len(fb.ops)
    branch = fb.emit(node, C.IF, (cond,), None, void, 2)
    values: list[Any] = []
    for region, (_, make) in zip(branch.regions, (yes, no), strict=True):
        saved = fb.enter(region)
        value = make()
        whole = value if isinstance(value, StructValue) else as_matrix(fb, value, node)
        values.append(fb.op(value, node) if whole is None else whole)
        fb.leave(saved, "conditional expression", node)
    before = fb.ops[at:]
    del fb.ops[at:]
    var = _either(fb, node, values)
    fb.ops.extend(before)
    for region, value, (where, _) in zip(branch.regions, values, (yes, no), strict=True):
        saved = fb.enter(region)
        store(fb, var, value, where, where)
        fb.leave(saved, "conditional expression", node)
    return fb.loaded(var, node)


def _either(fb: FuncBuilder, node: ast.AST, values: list[Any]) -> Any:
    """A variable that can hold each of two values."""
    structs = [v for v in values if isinstance(v, StructValue)]
    if structs:
        names = [[*v.members] if isinstance(v, StructValue) else None for v in values]
        if names[0] != names[1]:
            raise fb.type_error("Both branches need the same type of struct", node)
        members = {
            name: _either(fb, node, [v.members[name] for v in structs])
            for name in structs[0].members
        }
        return StructValue(structs[0].type, members)
    t = promote_all([dtype_in(fb, v) for v in values])
    shapes = {v.shape for v in values if isinstance(v, MatrixValue)}
    if len(shapes) > 1:
        names = " and ".join(f"'{tensor_name(fb, v)}'" for v in values)
        raise fb.type_error(f"Both branches need the same shape: {names}", node)
    for shape in shapes:
        size = shape[0] * (shape[1] if len(shape) == 2 else 1)
        parts = [fb.emit(node, C.ALLOCA, (), "", pointer_to(t)) for _ in range(size)]
        return MatrixValue(shape, parts)
    return fb.emit(node, C.ALLOCA, (), "", pointer_to(t))


@expression(ast.IfExp)
def _ifexp(fb: FuncBuilder, node: ast.IfExp) -> Any:
    test = fb.expr(node.test)
    if type(test) is not Op and (fb.static or fb.is_static_call(node.test)):
        return fb.expr(node.body if fb.python(node.test, bool, test) else node.orelse)
    if isinstance(test, MatrixValue):
        return select(fb, node, test, fb.expr(node.body), fb.expr(node.orelse))
    cond = fb.op(test, node.test)
    if cond.type.is_real:
        text = f"'logic_not' takes integral inputs only, however '{cond.type}' is provided"
        raise fb.type_error(text, node.test, "write `x != 0` for a real x")
    yes = (node.body, lambda: fb.expr(node.body))
    return conditional(fb, node, cond, yes, (node.orelse, lambda: fb.expr(node.orelse)))
