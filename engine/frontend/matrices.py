"""Vectors and matrices in a kernel: their parts, and what is computed with them part by part.

The IR knows only scalars. A vector is a `MatrixValue`: its parts are values, or pointers where it
is bound to a variable or lies in an array. Arithmetic is elementwise with broadcasting of scalars.

A part picked by an index of run time is a `DynamicElement`: reading it selects among the parts,
writing it stores to each part either the new or the old value. In an array or field it is simply
another address.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, Final

from ..errors import QuadrantsCompilationError, QuadrantsIndexError
from ..ir import Op
from ..ir import codes as C
from .values import MatrixValue, Place, describe, is_static
from .walk import Walk

__all__ = [
    "DynamicElement", "element", "elementwise", "matmul", "matrix_attribute", "rows", "tensor_name",
]  # fmt: skip

SWIZZLES: Final = ("xyzw", "rgba", "stpq")


class DynamicElement:
    """A part of a vector or matrix of variables, by an index of run time."""

    __slots__ = ("index", "matrix")

    def __init__(self, matrix: MatrixValue, index: Op) -> None:
        self.matrix: Final = matrix
        self.index: Final = index


def tensor_name(w: Walk, value: Any) -> str:
    """How messages call the type of an operand: ``[Tensor (2) f32]`` or ``f32``."""
    if isinstance(value, MatrixValue):
        shape = ", ".join(map(str, value.shape))
        return f"[Tensor ({shape})]"
    return value.type.name if isinstance(value, Op) else type(value).__name__


def elementwise(
    w: Walk, node: ast.AST, symbol: str, fn: Callable[..., Any], *values: Any
) -> MatrixValue:
    """``fn`` of the parts of ``values``, of which at least one is a matrix; scalars broadcast.

    QuadrantsTypeError if the shapes differ.
    """
    shape: tuple[int, ...] | None = None
    for value in values:
        if isinstance(value, MatrixValue):
            if shape is not None and value.shape != shape:
                names = " and ".join(f"'{tensor_name(w, v)}'" for v in values)
                raise w.type_error(
                    f"unsupported operand type(s) for '{symbol}': {names}", node,
                    "both sides need the same shape",
                )  # fmt: skip
            shape = value.shape
    assert shape is not None
    size = 1
    for extent in shape:
        size *= extent
    columns: list[Sequence[Any]] = [
        w.parts(v, node) if isinstance(v, MatrixValue) else [v] * size for v in values
    ]
    return MatrixValue(shape, [fn(*parts) for parts in zip(*columns, strict=True)])


def rows(w: Walk, value: MatrixValue, node: ast.AST) -> list[Any]:
    """The elements of a vector, or the rows of a matrix."""
    parts = list(w.parts(value, node))
    if len(value.shape) == 1:
        return parts
    n, m = value.shape
    return [MatrixValue((m,), parts[i * m : (i + 1) * m]) for i in range(n)]


def element(w: Walk, node: ast.Subscript, matrix: MatrixValue) -> Any:
    """``matrix[...]``: a part (a pointer if it is bound), or a `DynamicElement`."""
    index = w.expr(node.slice)
    items = list(index) if isinstance(index, tuple) else [index]
    if isinstance(index, MatrixValue):
        items = list(w.parts(index, node))
    if len(items) != len(matrix.shape):
        raise w.error(
            QuadrantsIndexError,
            f"A {describe(matrix)} accessed with {len(items)} indices", node,
        )  # fmt: skip
    if all(type(i) is int for i in items):
        k = 0
        for i, extent in zip(items, matrix.shape, strict=True):
            if not 0 <= i < extent:
                text = f"Index {i} is out of range for {describe(matrix)}"
                raise w.error(QuadrantsIndexError, text, node.slice)
            k = k * extent + i
        return w.part(matrix, k, node)
    ops = [w.op(i, node.slice) for i in items]
    at: Place | None = matrix.place
    if at is not None:
        return w.address_of(at.base, (*at.indices, *ops), at.boundary, node)
    flat = ops[0]
    if len(ops) == 2:
        columns = w.op(matrix.shape[1], node)
        flat = w.emit(node, C.ADD, (w.emit(node, C.MUL, (flat, columns)), ops[1]))
    return DynamicElement(matrix, flat)


def matmul(w: Walk, node: ast.AST, a: Any, b: Any) -> Any:
    """``a @ b``."""
    text = f"unsupported operand type(s) for '@': '{tensor_name(w, a)}' and '{tensor_name(w, b)}'"
    raise w.type_error(text, node)


def matrix_attribute(w: Walk, node: ast.Attribute, matrix: MatrixValue) -> Any:
    """``v.x``, ``v.xy``, ``m.n`` and so on."""
    name = node.attr
    if name == "n":
        return matrix.shape[0]
    if name == "m":
        return matrix.shape[1] if len(matrix.shape) == 2 else 1
    for letters in SWIZZLES:
        if all(letter in letters[: matrix.shape[0]] for letter in name):
            picked = [w.part(matrix, letters.index(letter), node) for letter in name]
            return picked[0] if len(picked) == 1 else MatrixValue((len(picked),), picked)
    raise w.type_error(f'{describe(matrix)} has no attribute "{name}"', node)


def selected(w: Walk, node: ast.AST, at: DynamicElement) -> Op:
    """The value of a part picked at run time."""
    raise w.error(QuadrantsCompilationError, f"not readable: {is_static(at)}", node)
