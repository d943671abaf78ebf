"""Expressions other than calls, attributes and subscripts."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

from ..errors import (
    QuadrantsCompilationError,
)
from ..ir import Op
from .captured import known
from .func_builder import FuncBuilder
from .lvalues import elements, spread
from .operators import BINARY, binary, compare, unary
from .registry import expression
from .stmts import assign, bind_static
from .values import describe, is_static

expression(ast.Compare)(compare)


_UNKNOWN: Final = frozenset((bytes, complex, type(...)))
"""Classes of constants that kernels do not have."""


@expression(ast.Constant)
def _constant(fb: FuncBuilder, node: ast.Constant) -> Any:
    value = node.value
    if value.__class__ in _UNKNOWN:
        raise fb.not_scalar(value, node)
    return value


@expression(ast.Name)
def _name(fb: FuncBuilder, node: ast.Name) -> Any:
    name = node.id
    for scope in reversed(fb.context.scopes):
        if name in scope:
            value = scope[name]
            break
    else:
        value = fb.lookup(node)
    kind = value.__class__
    if kind is Op:
        return fb.load(value, node) if value.type.is_ptr else value
    if kind is float and fb.config.raise_on_templated_floats and not fb.has_local(node.id):
        raise fb.error(
            QuadrantsCompilationError,
            f'The float "{node.id}" is captured by value and would compile the kernel again when '
            "it changes",
            node,
            "pass it as an argument, or set raise_on_templated_floats=False",
        )
    return fb.loaded(known(fb, value, node), node)


@expression(ast.BinOp)
def _binop(fb: FuncBuilder, node: ast.BinOp) -> Any:
    # A sum of many terms is deep on the left: go down and up without recursion.
    chain, left = [node], node.left
    while isinstance(left, ast.BinOp):
        chain.append(left)
        left = left.left
    value = fb.expr(left)
    for n in reversed(chain):
        right = fb.expr(n.right)
        row = BINARY.get(type(n.op))
        if row is None:  # a @ b
            from .matrix_methods import matmul

            value = matmul(fb, n, value, right)
        else:
            value = binary(fb, n, row, value, right, n.left, n.right)
    return value


@expression(ast.UnaryOp)
def _unaryop(fb: FuncBuilder, node: ast.UnaryOp) -> Any:
    return unary(fb, node, type(node.op), fb.expr(node.operand), node.operand)


@expression(ast.NamedExpr)
def _walrus(fb: FuncBuilder, node: ast.NamedExpr) -> Any:
    value = fb.expr(node.value)
    assign(fb, node.target, value, node)
    return fb.expr(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))


# Containers


@expression(ast.Tuple)
def _tuple(fb: FuncBuilder, node: ast.Tuple) -> Any:
    return tuple(elements(fb, node.elts))


@expression(ast.List)
def _list(fb: FuncBuilder, node: ast.List) -> Any:
    return elements(fb, node.elts)


@expression(ast.Dict)
def _dict(fb: FuncBuilder, node: ast.Dict) -> Any:
    out: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            out.update(fb.python(value, dict, fb.expr(value)))
        else:
            _put(fb, out, key, value)
    return out


def _put(fb: FuncBuilder, out: dict[Any, Any], key: ast.expr, value: ast.expr) -> None:
    """An entry of a dict. A key of run time is an entry of its own."""
    name = fb.expr(key)
    if not (isinstance(name, Op) or is_static(name)):
        raise fb.type_error(
            f"A key of a dict must be a number or static, not {describe(name)}", key
        )
    item = fb.expr(value)
    fb.python(key, out.__setitem__, name, item)


@expression(ast.Set)
def _set(fb: FuncBuilder, node: ast.Set) -> Any:
    return _as_set(fb, node, elements(fb, node.elts))


@expression(ast.SetComp)
def _setcomp(fb: FuncBuilder, node: ast.SetComp) -> Any:
    out: list[Any] = []
    _generate(fb, node, node.generators, lambda: out.append(fb.expr(node.elt)))
    return _as_set(fb, node, out)


def _as_set(fb: FuncBuilder, node: ast.expr, values: list[Any]) -> Any:
    if not is_static(values):
        text = "The elements of a set must be compile-time values"
        raise fb.type_error(text, node, "use a list: which values are equal is not known yet")
    return fb.python(node, set, values)


@expression(ast.ListComp, ast.GeneratorExp)
def _listcomp(fb: FuncBuilder, node: ast.ListComp | ast.GeneratorExp) -> Any:
    out: list[Any] = []
    _generate(fb, node, node.generators, lambda: out.append(fb.expr(node.elt)))
    return out


@expression(ast.DictComp)
def _dictcomp(fb: FuncBuilder, node: ast.DictComp) -> Any:
    out: dict[Any, Any] = {}

    _generate(fb, node, node.generators, lambda: _put(fb, out, node.key, node.value))
    return out


def _generate(
    fb: FuncBuilder, node: ast.expr, generators: list[ast.comprehension], add: Callable[[], None]
) -> None:
    """Run ``add`` for each turn of the ``for ... if ...`` clauses, at compile time."""
    if not generators:
        add()
        return
    first = generators[0]
    turns = spread(fb, fb.expr(first.iter), first.iter)
    for value in turns:
        fb.context.scopes.append({})
        bind_static(fb, first.target, value)
        keep = True
        for test in first.ifs:
            condition = fb.expr(test)
            if not is_static(condition):
                text = "The condition of a comprehension must be known at compile time"
                raise fb.type_error(text, test, "use a loop with an `if`")
            keep = fb.python(test, bool, condition) and keep
        if keep:
            _generate(fb, node, generators[1:], add)
        fb.end_scope("comprehension", node)


@expression(ast.Lambda)
def _lambda(fb: FuncBuilder, node: ast.Lambda) -> None:
    fb.unsupported(node, "define a @qd.func, or a lambda outside of the kernel, and call it")
