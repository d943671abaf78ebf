"""``x.fill(value)`` of a field in a kernel: a loop over the field that stores the value."""

from __future__ import annotations

import ast
from functools import cache
from typing import Any, Final

from ..types import FieldHandle, StructFieldHandle
from .registry import INTRINSICS, STMT
from .walk import Walk

__all__ = ["fill"]

_LOOP: Final = "for _index in _grouped(_field):\n    _field[_index] = _value\n"
_ONE: Final = "_field[None] = _value\n"


@cache
def _grouped() -> Any:
    """The public function ``grouped``, which the loop is written with."""
    return next(fn for fn, name in INTRINSICS.items() if name == "grouped")


def fill(w: Walk, node: ast.Call, field: FieldHandle | StructFieldHandle) -> None:
    """Write the loop that ``field.fill(value)`` means."""
    values = [w.expr(arg) for arg in node.args] + [w.expr(k.value) for k in node.keywords]
    if len(values) != 1 or any(k.arg != "val" for k in node.keywords):
        raise w.type_error("fill() takes one value", node)
    (value,) = values
    (stmt,) = ast.parse(_LOOP if field.shape else _ONE).body
    for part in ast.walk(stmt):
        if isinstance(part, ast.expr | ast.stmt):
            ast.copy_location(part, node)
    scope = {"_field": field, "_value": value, "_grouped": _grouped()}
    w.frame.scopes.append(scope)
    STMT[type(stmt)](w, stmt)
    w.frame.scopes.pop()
