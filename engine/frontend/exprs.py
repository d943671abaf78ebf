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
from .func_builder import FuncBuilder
from .lvalues import spread
from .matrix_methods import matmul
from .operators import BINARY, binary, compare, unary
from .registry import expression
from .stmts import assign, bind_static
from .values import (
    is_static,
)  # fmt: skip

expression(ast.Compare)(compare)


@expression(ast.Constant)
def _constant(fb: FuncBuilder, node: ast.Constant) -> Any:
    value = node.value
    if isinstance(value, bytes | complex) or value is ...:
        raise fb.not_scalar(value, node)
    return value


@expression(ast.Name)
def _name(fb: FuncBuilder, node: ast.Name) -> Any:
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
    chain = [node]
    while isinstance(chain[-1].left, ast.BinOp):
        chain.append(chain[-1].left)
    value = fb.expr(chain[-1].left)
    for n in reversed(chain):
        right = fb.expr(n.right)
        row = BINARY.get(type(n.op))
        if row is None:  # a @ b
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
            continue
        name = fb.expr(key)
        if not is_static(name):
            raise fb.type_error("Keys of a dict must be compile-time values", key)
        item = fb.expr(value)
        fb.python(key, out.__setitem__, name, item)
    return out


@expression(ast.ListComp, ast.GeneratorExp)
def _listcomp(fb: FuncBuilder, node: ast.ListComp | ast.GeneratorExp) -> Any:
    out: list[Any] = []
    _generate(fb, node, node.generators, lambda: out.append(fb.expr(node.elt)))
    return out


@expression(ast.DictComp)
def _dictcomp(fb: FuncBuilder, node: ast.DictComp) -> Any:
    out: dict[Any, Any] = {}

    def add() -> None:
        key = fb.expr(node.key)
        if not is_static(key):
            raise fb.type_error("Keys of a dict must be compile-time values", node.key)
        out[key] = fb.expr(node.value)

    _generate(fb, node, node.generators, add)
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


@expression(ast.JoinedStr)
def _fstring(fb: FuncBuilder, node: ast.JoinedStr) -> str:
    """An f-string outside print and assert: a Python string of compile-time values."""
    parts: list[str] = []
    for piece in node.values:
        if isinstance(piece, ast.FormattedValue):
            value = fb.expr(piece.value)
            if not is_static(value):
                text = "An f-string with run-time values can only be printed or be a message"
                raise fb.type_error(text, piece.value)
            spec = (
                _fstring(fb, piece.format_spec)
                if isinstance(piece.format_spec, ast.JoinedStr)
                else ""
            )
            convert = {97: ascii, 114: repr, 115: str}.get(piece.conversion)
            shown = fb.python(piece, convert, value) if convert else value
            parts.append(fb.python(piece, format, shown, spec))
        else:
            parts.append(str(cast(ast.Constant, piece).value))
    return "".join(parts)
