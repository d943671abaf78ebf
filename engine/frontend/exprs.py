"""Expressions other than calls, attributes and subscripts."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, cast

from ..errors import (
    QuadrantsCompilationError,
)
from ..ir import Op
from .arguments import elements
from .captured import known
from .matrix_methods import matmul
from .operators import BINARY, binary, compare, unary
from .places import spread
from .registry import expression
from .stmts import assign, bind_static
from .values import (
    is_static,
)  # fmt: skip
from .walk import Walk

expression(ast.Compare)(compare)


@expression(ast.Constant)
def _constant(w: Walk, node: ast.Constant) -> Any:
    value = node.value
    if isinstance(value, bytes | complex) or value is ...:
        raise w.not_scalar(value, node)
    return value


@expression(ast.Name)
def _name(w: Walk, node: ast.Name) -> Any:
    value = w.lookup(node)
    kind = value.__class__
    if kind is Op:
        return w.load(value, node) if value.type.is_ptr else value
    if kind is float and w.config.raise_on_templated_floats and not w.has_local(node.id):
        raise w.error(
            QuadrantsCompilationError,
            f'The float "{node.id}" is captured by value and would compile the kernel again when '
            "it changes",
            node,
            "pass it as an argument, or set raise_on_templated_floats=False",
        )
    return w.loaded(known(w, value, node), node)


@expression(ast.BinOp)
def _binop(w: Walk, node: ast.BinOp) -> Any:
    # A sum of many terms is deep on the left: go down and up without recursion.
    chain = [node]
    while isinstance(chain[-1].left, ast.BinOp):
        chain.append(chain[-1].left)
    value = w.expr(chain[-1].left)
    for n in reversed(chain):
        right = w.expr(n.right)
        row = BINARY.get(type(n.op))
        if row is None:  # a @ b
            value = matmul(w, n, value, right)
        else:
            value = binary(w, n, row, value, right, n.left, n.right)
    return value


@expression(ast.UnaryOp)
def _unaryop(w: Walk, node: ast.UnaryOp) -> Any:
    return unary(w, node, type(node.op), w.expr(node.operand), node.operand)


@expression(ast.NamedExpr)
def _walrus(w: Walk, node: ast.NamedExpr) -> Any:
    value = w.expr(node.value)
    assign(w, node.target, value, node)
    return w.expr(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))


# Containers


@expression(ast.Tuple)
def _tuple(w: Walk, node: ast.Tuple) -> Any:
    return tuple(elements(w, node.elts))


@expression(ast.List)
def _list(w: Walk, node: ast.List) -> Any:
    return elements(w, node.elts)


@expression(ast.Dict)
def _dict(w: Walk, node: ast.Dict) -> Any:
    out: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            out.update(w.python(value, dict, w.expr(value)))
            continue
        name = w.expr(key)
        if not is_static(name):
            raise w.type_error("Keys of a dict must be compile-time values", key)
        item = w.expr(value)
        w.python(key, out.__setitem__, name, item)
    return out


@expression(ast.ListComp, ast.GeneratorExp)
def _listcomp(w: Walk, node: ast.ListComp | ast.GeneratorExp) -> Any:
    out: list[Any] = []
    _generate(w, node, node.generators, lambda: out.append(w.expr(node.elt)))
    return out


@expression(ast.DictComp)
def _dictcomp(w: Walk, node: ast.DictComp) -> Any:
    out: dict[Any, Any] = {}

    def add() -> None:
        key = w.expr(node.key)
        if not is_static(key):
            raise w.type_error("Keys of a dict must be compile-time values", node.key)
        out[key] = w.expr(node.value)

    _generate(w, node, node.generators, add)
    return out


def _generate(
    w: Walk, node: ast.expr, generators: list[ast.comprehension], add: Callable[[], None]
) -> None:
    """Run ``add`` for each turn of the ``for ... if ...`` clauses, at compile time."""
    if not generators:
        add()
        return
    first = generators[0]
    turns = spread(w, w.expr(first.iter), first.iter)
    for value in turns:
        w.frame.scopes.append({})
        bind_static(w, first.target, value)
        keep = True
        for test in first.ifs:
            condition = w.expr(test)
            if not is_static(condition):
                text = "The condition of a comprehension must be known at compile time"
                raise w.type_error(text, test, "use a loop with an `if`")
            keep = w.python(test, bool, condition) and keep
        if keep:
            _generate(w, node, generators[1:], add)
        w.end_scope("comprehension", node)


@expression(ast.JoinedStr)
def _fstring(w: Walk, node: ast.JoinedStr) -> str:
    """An f-string outside print and assert: a Python string of compile-time values."""
    parts: list[str] = []
    for piece in node.values:
        if isinstance(piece, ast.FormattedValue):
            value = w.expr(piece.value)
            if not is_static(value):
                text = "An f-string with run-time values can only be printed or be a message"
                raise w.type_error(text, piece.value)
            spec = (
                _fstring(w, piece.format_spec)
                if isinstance(piece.format_spec, ast.JoinedStr)
                else ""
            )
            convert = {97: ascii, 114: repr, 115: str}.get(piece.conversion)
            shown = w.python(piece, convert, value) if convert else value
            parts.append(w.python(piece, format, shown, spec))
        else:
            parts.append(str(cast(ast.Constant, piece).value))
    return "".join(parts)
