"""Calls that make views of arrays in kernels: ``qd.BufferView(...)`` and ``view.subview(...)``."""

from __future__ import annotations

import ast
from typing import Any

from ..ir import codes as C
from ..types import i32
from .arguments import arguments
from .func_builder import FuncBuilder
from .registry import handler
from .values import BufferViewValue, NdarrayRef, describe
from .view_ranges import checked_range, subview, whole

__all__ = ["view_method"]


@handler("BufferView")
def _made(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> BufferViewValue:
    """``qd.BufferView(array, offset, size)``."""
    array, offset, size = arguments(fb, node, "BufferView", ("arr", "offset", "size"))
    if isinstance(array, BufferViewValue):
        text = "Cannot nest BufferView(view, ...)"
        raise fb.type_error(text, node, "use view.subview(offset, size) instead")
    if not isinstance(array, NdarrayRef) or array.ndim != 1:
        got = f"{array.ndim}d ndarray" if isinstance(array, NdarrayRef) else describe(array)
        raise fb.type_error(f"BufferView requires a 1D ndarray, got {got}", node)
    if array.spec_key.needs_grad:
        text = "BufferView does not support ndarrays with gradients (needs_grad=True)"
        raise fb.type_error(text, node)
    first, count = whole(fb, offset, node, "an offset"), whole(fb, size, node, "a size")
    code = C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS
    length = fb.emit(node, code, (), (0, array.param), i32)
    text = (
        f"BufferView construction out of range: kernel[{fb.func.name}], array '{array.name}',"
        " offset=%d, size=%d, ndarray length=%d."
    )
    checked_range(fb, node, first, count, length, text)
    return BufferViewValue(array.name, array, first, count)


def view_method(fb: FuncBuilder, node: ast.Call, view: BufferViewValue) -> BufferViewValue:
    """``view.subview(offset, size)``."""
    offset, size = arguments(fb, node, "subview", ("offset", "size"))
    return subview(fb, node, view, offset, size)
