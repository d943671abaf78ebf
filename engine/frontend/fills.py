"""``field.fill(value)`` in a kernel: a loop that sets every element."""

from __future__ import annotations

import ast
from typing import Any

from ..ir import ForAttr
from ..ir import codes as C
from ..types import FieldHandle, StructFieldHandle, i32, void
from .arguments import arguments
from .loops import field_extents
from .matrices import as_matrix
from .places import field_place
from .stmts import store
from .values import StructValue
from .walk import Walk

__all__ = ["fill_field"]


def fill_field(w: Walk, node: ast.Call, field: FieldHandle | StructFieldHandle) -> None:
    """Store the call's argument to all elements; at the top level of a kernel, in parallel."""
    (value,) = arguments(w, node, "fill", ("val",))
    name = field.name or w.frame.called(node.func)[: -len(".fill")]
    if not isinstance(value, StructValue):
        value = as_matrix(w, value, node) or w.op(value, node)
    bounds, axes = field_extents(w, field, node)
    if not bounds:
        store(w, field_place(w, node, field, (), name), value, node, node)
        return
    loop = w.emit(node, C.RANGE_FOR, bounds, ForAttr(axes), void, 1)
    saved = w.enter(loop.regions[0])
    count = len(bounds) // 2
    index = tuple([w.emit(node, C.LOOP_INDEX, (loop,), k, i32) for k in range(count)])
    _store_all(w, field_place(w, node, field, index, name), value, node)
    w.leave(saved, "fill", node)


def _store_all(w: Walk, target: Any, value: Any, node: ast.Call) -> None:
    if isinstance(target, StructValue) and not isinstance(value, StructValue):
        for member in target.members.values():
            _store_all(w, member, value, node)
        return
    store(w, target, value, node, node)
