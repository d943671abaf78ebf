"""``print`` and ``assert``: texts with values of run time in them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, cast

from ..ir import AssertAttr, Op
from ..ir import codes as C
from ..types import FieldHandle, StructFieldHandle, void
from .func_builder import FuncBuilder
from .lvalues import spread
from .matrices import rows
from .registry import handler, statement
from .values import MatrixValue, ShapeRef, StructValue, describe, is_static

__all__: list[str] = []

_Piece = str | tuple[str, Op]
"""A text, or a format spec and the value it formats."""


def _pieces(fb: FuncBuilder, value: Any, node: ast.expr, spec: str = "") -> list[_Piece]:
    """The pieces that print ``value``: containers as Python shows them, numbers at run time."""
    if isinstance(value, str):
        return [fb.python(node, format, value, spec)]
    if isinstance(value, ShapeRef):
        value = tuple(spread(fb, value, node))
    if isinstance(value, MatrixValue):
        return _list_pieces(fb, rows(fb, value, node), node, spec, "[]")
    if isinstance(value, StructValue):
        out: list[_Piece] = ["{"]
        for k, (name, member) in enumerate(value.members.items()):
            out += [", " if k else "", f"{name}: ", *_pieces(fb, member, node, spec)]
        return [*out, "}"]
    if isinstance(value, tuple | list):
        kind = cast("type[Any]", type(cast(Any, value)))
        items = cast("list[Any]", value)
        brackets = "[]" if kind is not tuple else "(,)" if len(items) == 1 else "()"
        return _list_pieces(fb, items, node, spec, brackets)
    if not isinstance(value, Op | int | float):
        if is_static(value) and not isinstance(value, FieldHandle | StructFieldHandle):
            return [fb.python(node, format, value, spec)]
        raise fb.not_scalar(value, node)
    op = fb.op(value, node)
    _check_spec(fb, op, spec, node)
    return [(spec, op)]


def _list_pieces(
    fb: FuncBuilder, items: Sequence[Any], node: ast.expr, spec: str, brackets: str
) -> list[_Piece]:
    out: list[_Piece] = [brackets[0]]
    for k, item in enumerate(items):
        out += [", "] if k else []
        out += _pieces(fb, item, node, spec)
    return [*out, brackets[1:]]


def _check_spec(fb: FuncBuilder, op: Op, spec: str, node: ast.expr) -> None:
    if not spec:
        return
    try:
        format(1.0 if op.type.is_real else 1, spec)
    except ValueError as error:
        text = f"Format specifier '{spec}' does not fit a value of type {op.type}: {error}"
        raise fb.type_error(text, node) from None


def _fstring(fb: FuncBuilder, node: ast.JoinedStr) -> list[_Piece]:
    out: list[_Piece] = []
    for piece in node.values:
        if isinstance(piece, ast.Constant):
            out.append(str(piece.value))
        elif isinstance(piece, ast.FormattedValue):
            spec = fb.expr(piece.format_spec) if piece.format_spec is not None else ""
            value = fb.expr(piece.value)
            if piece.conversion == 114 and isinstance(value, str):
                value = repr(value)
            out += _pieces(fb, value, piece.value, spec)
    return out


def _text(fb: FuncBuilder, node: ast.expr) -> list[_Piece]:
    return (
        _fstring(fb, node) if isinstance(node, ast.JoinedStr) else _pieces(fb, fb.expr(node), node)
    )


@handler("print")
def _print(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> None:
    options = {"sep": " ", "end": "\n"}
    for keyword in node.keywords:
        if keyword.arg == "flush":
            continue
        value = fb.expr(keyword.value)
        if keyword.arg not in options or not isinstance(value, str | None):
            text = f"print() in a kernel does not take {keyword.arg or '**'}={value!r}"
            raise fb.type_error(text, keyword.value, "print accepts sep and end, which are strings")
        options[keyword.arg] = options[keyword.arg] if value is None else value
    pieces: list[_Piece] = []
    for k, arg in enumerate(node.args):
        if k:
            pieces.append(options["sep"])
        if isinstance(arg, ast.Starred):
            for j, value in enumerate(spread(fb, fb.expr(arg.value), arg.value)):
                pieces += [options["sep"]] if j else []
                pieces += _pieces(fb, value, arg.value)
        else:
            pieces += _text(fb, arg)
    pieces.append(options["end"])
    attr: list[str | tuple[str]] = []
    for piece in pieces:
        if isinstance(piece, str):
            if attr and isinstance(attr[-1], str):
                attr[-1] += piece
            elif piece:
                attr.append(piece)
        else:
            attr.append((piece[0],))
    values = tuple([p[1] for p in pieces if not isinstance(p, str)])
    fb.emit(node, C.PRINT, values, tuple(attr), void)


@statement(ast.Assert)
def _assert(fb: FuncBuilder, node: ast.Assert) -> None:
    cond = fb.integral(fb.expr(node.test), "assert", node.test)
    pieces: list[_Piece] = [ast.unparse(node.test)]
    if node.msg is not None:
        message = fb.expr(node.msg) if not isinstance(node.msg, ast.JoinedStr) else ""
        if not isinstance(message, str):
            raise fb.syntax_error(
                f"assert info must be constant or formatted string, not {describe(message)}",
                node.msg,
                "put the value into an f-string",
            )
        pieces = _fstring(fb, node.msg) if isinstance(node.msg, ast.JoinedStr) else [message]
    text = ""
    values: list[Op] = []
    for piece in pieces:
        if isinstance(piece, str):
            text += piece.replace("%", "%%")
        else:
            if piece[0]:
                where = node.msg or node
                raise fb.type_error("Format specs cannot be used in an assert's message", where)
            text += "%f" if piece[1].type.is_real else "%d"
            values.append(piece[1])
    fb.emit(node, C.ASSERT, (cond, *values), AssertAttr("user", text), void)
