"""The arguments of a call in a kernel: their values, and what intrinsics make of them."""

from __future__ import annotations

import ast
from typing import Any

from ..types import DataType, u1
from .func_builder import FuncBuilder
from .lvalues import elements
from .matrices import elementwise
from .values import MatrixValue, describe

__all__ = ["arguments", "cast_to", "dtype_argument", "elements", "only_positional"]


def keywords_of(fb: FuncBuilder, node: ast.Call) -> dict[str, Any]:
    """The values of a call's keyword arguments, with ``**values`` spread."""
    found: dict[str, Any] = {}
    for keyword in node.keywords:
        value = fb.expr(keyword.value)
        if keyword.arg is None:
            found.update(fb.python(keyword.value, dict, value))
        else:
            found[keyword.arg] = value
    return found


def arguments(
    fb: FuncBuilder, node: ast.Call, name: str, names: tuple[str, ...], **defaults: Any
) -> list[Any]:
    """The values of a call's arguments in the order of ``names``."""
    values = elements(fb, node.args)
    if len(values) > len(names):
        text = f"{name}() takes {len(names)} argument{'s'[: len(names) != 1]}, got {len(values)}"
        raise fb.type_error(text, node)
    found = dict(zip(names, values, strict=False))
    for keyword in node.keywords:
        key = keyword.arg
        if key is None or key not in names or key in found:
            text = f"{name}() got an unexpected keyword argument '{key or '**'}'"
            raise fb.type_error(text, keyword.value)
        found[key] = fb.expr(keyword.value)
    for key in names:
        if key not in found:
            if key not in defaults:
                raise fb.type_error(f"{name}() is missing the argument '{key}'", node)
            found[key] = defaults[key]
    return [found[key] for key in names]


def only_positional(fb: FuncBuilder, node: ast.Call, name: str) -> list[Any]:
    """The values of a call that accepts no keywords."""
    if node.keywords:
        text = f"{name}() got an unexpected keyword argument '{node.keywords[0].arg or '**'}'"
        raise fb.type_error(text, node.keywords[0].value)
    return elements(fb, node.args)


def dtype_argument(fb: FuncBuilder, value: Any, node: ast.AST) -> DataType:
    """A data type given as an argument; int, float and bool are the configured types."""
    if isinstance(value, DataType):
        return value
    if value is int or value is float or value is bool:
        return u1 if value is bool else fb.default_fp if value is float else fb.default_ip
    raise fb.type_error(f"A data type is needed here, not {describe(value)}", node)


def cast_to(fb: FuncBuilder, value: Any, t: DataType, node: ast.AST) -> Any:
    """``value`` converted to ``t``; index vectors element by element."""
    if isinstance(value, MatrixValue):
        return elementwise(fb, node, "cast", lambda v: cast_to(fb, v, t, node), value)
    if isinstance(value, int) and t.is_int and t is not u1:
        # An integer may be too big for the default type; its conversion wraps.
        return fb.typed(int(value), t, node)
    return fb.cast(fb.op(value, node), t, node)
