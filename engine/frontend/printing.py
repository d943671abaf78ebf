"""``print`` and ``assert``, and texts with values of run time in them.

Such a text is made by an f-string, ``%``, ``str.format``, ``str`` or ``format``. Its numbers are
formatted when it is printed, with format specs of Python; those that only C has (``%i``, a
precision of integers) have a meaning, too.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, cast

from ..ir import AssertAttr, Op
from ..ir import codes as C
from ..types import FieldHandle, StructFieldHandle, u1, void
from .func_builder import FuncBuilder
from .lvalues import spread
from .matrices import rows
from .registry import expression, handler, statement
from .values import MatrixValue, ShapeRef, StructValue, Text, describe, is_static

__all__ = ["Piece", "joined", "pieces_of"]

Piece = str | tuple[str, Op]
"""A text, or a format spec and the value it formats."""


def pieces_of(fb: FuncBuilder, value: Any, node: ast.expr, spec: str = "") -> list[Piece]:
    """The pieces that print ``value``: containers as Python shows them, numbers at run time."""
    if isinstance(value, str):
        return [fb.python(node, format, value, spec)]
    if isinstance(value, Text):
        if spec:
            raise fb.type_error("A text with run-time values cannot be padded", node)
        return list(value.pieces)
    if isinstance(value, ShapeRef):
        value = tuple(spread(fb, value, node))
    if isinstance(value, MatrixValue):
        return _list_pieces(fb, rows(fb, value, node), node, spec, "[]")
    if isinstance(value, StructValue):
        out: list[Piece] = ["{"]
        for k, (name, member) in enumerate(value.members.items()):
            out += [", " if k else "", f"{name}: ", *pieces_of(fb, member, node, spec)]
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
) -> list[Piece]:
    out: list[Piece] = [brackets[0]]
    for k, item in enumerate(items):
        out += [", "] if k else []
        out += pieces_of(fb, item, node, spec)
    return [*out, brackets[1:]]


def _check_spec(fb: FuncBuilder, op: Op, spec: str, node: ast.expr) -> None:
    if not spec:
        return
    from ..backends.messages import number_text

    try:
        number_text(1.0 if op.type.is_real else 1, op.type, spec)
    except ValueError as error:
        text = f"Format specifier '{spec}' does not fit a value of type {op.type}: {error}"
        raise fb.type_error(text, node) from None


def _fstring(fb: FuncBuilder, node: ast.JoinedStr) -> list[Piece]:
    out: list[Piece] = []
    for piece in node.values:
        if isinstance(piece, ast.Constant):
            out.append(str(piece.value))
        elif isinstance(piece, ast.FormattedValue):
            spec = fb.expr(piece.format_spec) if piece.format_spec is not None else ""
            value = fb.expr(piece.value)
            if piece.conversion == 114 and isinstance(value, str):
                value = repr(value)
            out += pieces_of(fb, value, piece.value, spec)
    return out


def _text(fb: FuncBuilder, node: ast.expr) -> list[Piece]:
    return (
        _fstring(fb, node)
        if isinstance(node, ast.JoinedStr)
        else pieces_of(fb, fb.expr(node), node)
    )


# Texts


def joined(fb: FuncBuilder, parts: Sequence[Any], node: ast.expr) -> Text:
    """Texts and values, one after the other."""
    return Text([piece for part in parts for piece in pieces_of(fb, part, node)])


@expression(ast.JoinedStr)
def _joined_str(fb: FuncBuilder, node: ast.JoinedStr) -> Any:
    """An f-string outside print and assert: a Python string if all its values are static."""
    parts: list[Any] = []
    for piece in node.values:
        if isinstance(piece, ast.FormattedValue):
            value = fb.expr(piece.value)
            spec = fb.expr(piece.format_spec) if piece.format_spec is not None else ""
            if not is_static(value):
                parts.append(Text(pieces_of(fb, value, piece.value, spec)))
                continue
            convert = {97: ascii, 114: repr, 115: str}.get(piece.conversion)
            shown = fb.python(piece, convert, value) if convert else value
            parts.append(fb.python(piece, format, shown, spec))
        else:
            parts.append(str(cast(ast.Constant, piece).value))
    return "".join(parts) if all(type(p) is str for p in parts) else joined(fb, parts, node)


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
    pieces: list[Piece] = []
    for k, arg in enumerate(node.args):
        if k:
            pieces.append(options["sep"])
        if isinstance(arg, ast.Starred):
            for j, value in enumerate(spread(fb, fb.expr(arg.value), arg.value)):
                pieces += [options["sep"]] if j else []
                pieces += pieces_of(fb, value, arg.value)
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


@handler("breakpoint")
def _breakpoint(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> None:
    if node.args or node.keywords:
        raise fb.type_error(
            "breakpoint() in a kernel takes no arguments", node,
            "write `if condition: breakpoint()` to stop only sometimes",
        )  # fmt: skip
    always = fb.number(1, u1, node)
    fb.emit(node, C.ASSERT, (always,), AssertAttr("breakpoint"), void)


@statement(ast.Assert)
def _assert(fb: FuncBuilder, node: ast.Assert) -> None:
    cond = fb.integral(fb.expr(node.test), "assert", node.test)
    pieces: list[Piece] = [ast.unparse(node.test)]
    if node.msg is not None:
        message = fb.expr(node.msg) if not isinstance(node.msg, ast.JoinedStr) else ""
        if not isinstance(message, str | Text):
            raise fb.syntax_error(
                f"assert info must be constant or formatted string, not {describe(message)}",
                node.msg,
                "put the value into an f-string",
            )
        if isinstance(node.msg, ast.JoinedStr):
            pieces = _fstring(fb, node.msg)
        else:
            pieces = list(message.pieces) if isinstance(message, Text) else [message]
    text = ""
    values: list[Op] = []
    for piece in pieces:
        if isinstance(piece, str):
            text += piece.replace("%", "%%")
        else:
            kind = "%f" if piece[1].type.is_real else "%d"
            text += f"%[{piece[0]}]" if piece[0] else kind
            values.append(piece[1])
    fb.emit(node, C.ASSERT, (cond, *values), AssertAttr("user", text), void)
