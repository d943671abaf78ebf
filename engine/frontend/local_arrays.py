"""Elements of arrays that a kernel makes for itself."""

from __future__ import annotations

import ast
import math
from typing import Any

from ..ir import Op
from ..ir import codes as C
from ..types import i32, i64
from .func_builder import FuncBuilder
from .values import ArrayValue, MatrixValue

__all__ = ["array_element"]


def array_element(
    fb: FuncBuilder, node: ast.Subscript, array: ArrayValue, indices: tuple[Op, ...]
) -> Any:
    """``array[...]``: a pointer, or a vector or matrix of pointers."""
    element = array.element_shape
    if not element:
        return _array_address(fb, node, array, indices)
    parts: list[Any] = []
    for k in range(math.prod(element)):
        last = (k,) if len(element) == 1 else divmod(k, element[1])
        inner = tuple([fb.typed(n, i32, node) for n in last])
        parts.append(_array_address(fb, node, array, (*indices, *inner)))
    return MatrixValue(element, parts)


def _array_address(
    fb: FuncBuilder, node: ast.AST, array: ArrayValue, indices: tuple[Op, ...]
) -> Op:
    offset = indices[0]
    if len(indices) > 1:
        extents = [fb.typed(n, i32, node) for n in (*array.shape, *array.element_shape)[1:]]
        offset = fb.emit(node, C.LINEARIZE, (*indices, *extents), len(indices), i64)
    return fb.emit(node, C.SHIFT_PTR, (array.base, offset), None, array.base.type)
