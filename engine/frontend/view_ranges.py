"""Ranges of arrays in kernels: elements of a `BufferViewValue`, and views of views.

Under ``debug`` and ``check_out_of_bound`` an assert checks every index and range against the view.
"""

from __future__ import annotations

import ast
from typing import Any

from ..errors import QuadrantsSyntaxError
from ..ir import AssertAttr, Op
from ..ir import codes as C
from ..types import i32, u1, void
from .func_builder import FuncBuilder
from .values import BufferViewValue, describe

__all__ = [
    "array_index", "assign_view", "checked_range", "local_view", "subview", "view_attribute",
    "view_slice", "whole",
]  # fmt: skip


def whole(fb: FuncBuilder, value: Any, node: ast.AST, what: str) -> Op:
    """An offset, a size or an index as an i32. Errors for negative constants and for floats."""
    found = fb.op(value, node)
    known = found.attr if found.code == C.CONST else 0
    if found.type.is_real:
        raise fb.type_error(
            f"{what} must be an integer, however '{found.type}' is provided", node,
            "convert it: qd.cast(x, qd.i32)",
        )  # fmt: skip
    if known < 0:
        text = "Negative indices are not supported in Quadrants kernels."
        raise fb.error(QuadrantsSyntaxError, text, node, "count from the end with view.size - n")
    return fb.cast(found, i32, node)


def _inside(fb: FuncBuilder, node: ast.AST, pairs: list[tuple[Op, int, Op]]) -> Op:
    """An op that is 1 if of all pairs (a, code, b) the comparison ``a code b`` holds."""
    tests = [fb.emit(node, code, (a, b), None, u1) for a, code, b in pairs]
    found = tests[0]
    for test in tests[1:]:
        found = fb.emit(node, C.BIT_AND, (found, test), None, u1)
    return found


def _is_checked(fb: FuncBuilder) -> bool:
    return fb.config.debug or fb.config.check_out_of_bound


def array_index(fb: FuncBuilder, node: ast.AST, view: BufferViewValue, index: Op) -> Op:
    """The index into the array of element ``index`` of a view."""
    index = fb.cast(index, i32, node)
    offset = fb.loaded(view.offset, node)
    if _is_checked(fb):
        zero = fb.typed(0, i32, node)
        size = fb.loaded(view.size, node)
        fine = _inside(fb, node, [(index, C.CMP_GE, zero), (index, C.CMP_LT, size)])
        text = (
            f"BufferView Out Of Range: kernel[{fb.func.name}], view '{view.name}', got index %d"
            " (offset=%d, size=%d)."
        )
        attr = AssertAttr("bound", text)
        fb.emit(node, C.ASSERT, (fine, index, offset, size), attr, void)
    return fb.emit(node, C.ADD, (offset, index))


def checked_range(
    fb: FuncBuilder, node: ast.AST, offset: Op, size: Op, length: Op, what: str
) -> None:
    """Assert, if bounds are checked, that a range is in what has ``length`` elements."""
    if not _is_checked(fb):
        return
    zero = fb.typed(0, i32, node)
    rest = fb.emit(node, C.SUB, (length, offset))  # the sum of the two could overflow
    fine = _inside(
        fb, node,
        [(offset, C.CMP_GE, zero), (size, C.CMP_GE, zero), (size, C.CMP_LE, rest)],
    )  # fmt: skip
    fb.emit(node, C.ASSERT, (fine, offset, size, length), AssertAttr("bound", what), void)


def subview(
    fb: FuncBuilder, node: ast.AST, view: BufferViewValue, offset: Any, size: Any
) -> BufferViewValue:
    """The view of ``size`` elements from element ``offset`` of ``view``."""
    first, count = whole(fb, offset, node, "an offset"), whole(fb, size, node, "a size")
    text = (
        f"BufferView subview Out Of Range: kernel[{fb.func.name}], view '{view.name}',"
        " subview offset=%d, subview size=%d, parent size=%d."
    )
    checked_range(fb, node, first, count, fb.loaded(view.size, node), text)
    start = fb.emit(node, C.ADD, (fb.loaded(view.offset, node), first))
    return BufferViewValue(view.name, view.array, start, count)


def view_slice(fb: FuncBuilder, node: ast.Slice, view: BufferViewValue) -> BufferViewValue:
    """``view[a:b]``; the bounds may be values of run time."""
    if node.step is not None:
        text = "BufferView slice does not support an explicit step in kernels"
        raise fb.syntax_error(text, node, "index single elements: view[first + i * step]")
    lower: Any = 0 if node.lower is None else fb.expr(node.lower)
    first = whole(fb, lower, node.lower or node, "the begin of a slice")
    stop = fb.loaded(view.size, node)
    if node.upper is not None:
        stop = whole(fb, fb.expr(node.upper), node.upper, "the end of a slice")
    return subview(fb, node, view, first, fb.emit(node, C.SUB, (stop, first)))


def local_view(fb: FuncBuilder, node: ast.AST, view: BufferViewValue, name: str) -> BufferViewValue:
    """A view under a local name, to which a view of another range can be assigned."""
    parts = [
        fb.variable(fb.loaded(part, node), f"{name}.{key}", node)
        for part, key in ((view.offset, "offset"), (view.size, "size"))
    ]
    return BufferViewValue(name, view.array, *parts)


def assign_view(fb: FuncBuilder, node: ast.AST, old: BufferViewValue, view: Any) -> None:
    """Assign to the local name of a view."""
    if not isinstance(view, BufferViewValue) or view.array is not old.array:
        text = f"`{old.name}` is a BufferView of {describe(old.array)}, and stays one"
        raise fb.type_error(text, node, "use a new name")
    offset, size = fb.loaded(view.offset, node), fb.loaded(view.size, node)
    fb.store(old.offset, offset, node)
    fb.store(old.size, size, node)


def view_attribute(fb: FuncBuilder, node: ast.Attribute, view: BufferViewValue) -> Any:
    """``view.size`` and the like."""
    name = node.attr
    found = {
        "size": view.size, "offset": view.offset, "arr": view.array, "dtype": view.array.dtype,
        "ndim": 1,
    }  # fmt: skip
    if name in found:
        return fb.loaded(found[name], node)
    if name == "shape":
        return (fb.loaded(view.size, node),)
    raise fb.type_error(
        f'{describe(view)} has no attribute "{name}" in a kernel', node,
        "a kernel can use its elements, slices, .size, .shape, .offset and .subview(offset, size)",
    )  # fmt: skip
