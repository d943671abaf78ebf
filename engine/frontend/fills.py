"""``field.fill(value)`` in a kernel: a loop that sets every element."""

from __future__ import annotations

import ast
from typing import Any

from ..ir import ForAttr
from ..ir import codes as C
from ..types import FieldHandle, StructFieldHandle, i32, void
from .arguments import arguments
from .func_builder import FuncBuilder
from .loops import field_extents
from .lvalues import field_element
from .matrices import as_matrix
from .stmts import store
from .values import StructValue

__all__ = ["fill_field"]


def fill_field(fb: FuncBuilder, node: ast.Call, field: FieldHandle | StructFieldHandle) -> None:
    """Store the call's argument to all elements; at the top level of a kernel, in parallel."""
    (value,) = arguments(fb, node, "fill", ("val",))
    name = field.name or fb.context.called(node.func)[: -len(".fill")]
    if not isinstance(value, StructValue):
        value = as_matrix(fb, value, node) or fb.op(value, node)
    bounds, axes = field_extents(fb, field, node)
    if not bounds:
        store(fb, field_element(fb, node, field, (), name), value, node, node)
        return
    loop = fb.emit(node, C.RANGE_FOR, bounds, ForAttr(axes), void, 1)
    saved = fb.enter(loop.regions[0])
    count = len(bounds) // 2
    index = tuple([fb.emit(node, C.LOOP_INDEX, (loop,), k, i32) for k in range(count)])
    _store_all(fb, field_element(fb, node, field, index, name), value, node)
    fb.leave(saved, "fill", node)


def _store_all(fb: FuncBuilder, target: Any, value: Any, node: ast.Call) -> None:
    if isinstance(target, StructValue) and not isinstance(value, StructValue):
        for member in target.members.values():
            _store_all(fb, member, value, node)
        return
    store(fb, target, value, node, node)
