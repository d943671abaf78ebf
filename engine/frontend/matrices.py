"""Vectors and matrices in a kernel: their parts, and computation part by part.

The IR knows only scalars. A vector is a `MatrixValue`: its parts are values of one type, or
pointers where it is bound to a variable or is in an array. Arithmetic is elementwise with
broadcasting of scalars.

An index known at compile time picks a part. An index of run time makes a new address in an array
or field; in a local variable it makes a `DynamicElement`. Slices and swizzles are vectors of the
same parts, so that they can be assigned to.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import numpy as np

from ..errors import QuadrantsCompilationError, QuadrantsIndexError, QuadrantsSyntaxError
from ..ir import AssertAttr, Op
from ..ir import codes as C
from ..types import DataType, i32, u1, void
from .func_builder import FuncBuilder
from .registry import fill_from
from .values import (
    NUMBERS,
    DynamicElement,
    MatrixValue,
    Method,
    describe,
    dtype_in,
    promote_all,
    tensor_name,
)

__all__ = [
    "METHODS", "as_matrix", "element", "elementwise", "matrix_attribute", "rows",
    "uniform",
]  # fmt: skip

_SEQUENCE: Final = (tuple, list)
_SCALARS: Final = (Op, DynamicElement, *NUMBERS)
SWIZZLES: Final = ("xyzw", "rgba", "stpq")


# Parts


def uniform(
    fb: FuncBuilder, parts: Sequence[Any], node: ast.AST, dtype: DataType | None = None
) -> list[Any]:
    """The parts with one type: ``dtype``, or their promoted type.

    Numbers of compile time become constants, one for each value; under ``qd.static`` they stay.
    """
    if fb.static and all(isinstance(p, NUMBERS) for p in parts):
        return list(parts)
    values = [p if isinstance(p, NUMBERS) else fb.op(p, node) for p in parts]
    t = dtype or promote_all([dtype_in(fb, v) for v in values])
    known: dict[Any, Op] = {}
    out: list[Any] = []
    for value in values:
        if isinstance(value, Op):
            out.append(fb.cast(value, t, node))
            continue
        key = (value.__class__, repr(value))
        found = known.get(key)
        if found is None:
            found = known[key] = fb.number(value, t, node)
        out.append(found)
    return out


def as_matrix(fb: FuncBuilder, value: Any, node: ast.AST) -> MatrixValue | None:
    """A list or tuple of numbers, or of such lists, as a vector or matrix; else None."""
    if isinstance(value, MatrixValue):
        return value
    if isinstance(value, np.ndarray):
        value = cast(Any, value).tolist()
    if not isinstance(value, _SEQUENCE) or not value:
        return None
    items = cast("list[Any]", value)
    nested = [as_matrix(fb, item, node) for item in items]
    if any(item is not None for item in nested):
        lines = [item for item in nested if item is not None and len(item.shape) == 1]
        if len(lines) != len(items) or any(line.shape != lines[0].shape for line in lines):
            return None
        parts = [part for line in lines for part in fb.parts(line, node)]
        return MatrixValue((len(lines), lines[0].shape[0]), parts)
    if not all(isinstance(item, _SCALARS) for item in items):
        return None
    return MatrixValue((len(items),), items)


# Part by part


OnParts = Callable[[Any], Any] | Callable[[Any, Any], Any] | Callable[[Any, Any, Any], Any]


def elementwise(
    fb: FuncBuilder, node: ast.AST, symbol: str, fn: OnParts, *values: Any
) -> MatrixValue:
    """``fn`` of the parts of ``values``; at least one is a matrix; scalars broadcast.

    QuadrantsTypeError if the shapes differ.
    """
    shape: tuple[int, ...] | None = None
    for value in values:
        if isinstance(value, MatrixValue):
            if shape is not None and value.shape != shape:
                names = " and ".join(f"'{tensor_name(fb, v)}'" for v in values)
                raise fb.type_error(
                    f"unsupported operand type(s) for '{symbol}': {names}", node,
                    "both sides need the same shape",
                )  # fmt: skip
            shape = value.shape
        elif not isinstance(value, _SCALARS):
            raise fb.not_scalar(value, node)
    assert shape is not None
    size = 1
    for extent in shape:
        size *= extent
    columns: list[Sequence[Any]] = [
        fb.parts(v, node) if isinstance(v, MatrixValue) else [v] * size for v in values
    ]
    each: Callable[..., Any] = fn
    return MatrixValue(shape, [each(*parts) for parts in zip(*columns, strict=True)])


def rows(fb: FuncBuilder, value: MatrixValue, node: ast.AST) -> list[Any]:
    """The elements of a vector, or the rows of a matrix."""
    parts = list(fb.parts(value, node))
    if len(value.shape) == 1:
        return parts
    n, m = value.shape
    return [MatrixValue((m,), parts[i * m : (i + 1) * m]) for i in range(n)]


# Elements


def _index_items(
    fb: FuncBuilder, node: ast.Subscript, index: Any, matrix: MatrixValue
) -> list[Any]:
    """The indices of ``matrix[index]``, one for each axis; constants as Python numbers."""
    if isinstance(index, MatrixValue):
        items = list(fb.parts(index, node))
    else:
        items = list(cast("list[Any]", index)) if isinstance(index, _SEQUENCE) else [index]
    if len(items) != len(matrix.shape):
        text = f"Expected {len(matrix.shape)} indices, got {len(items)}."
        kind = "vector" if len(matrix.shape) == 1 else "matrix"
        hint = f"it is a {kind} of shape {matrix.shape}"
        if len(items) == 1:
            hint += "; m[i, :] is a row"
        raise fb.error(QuadrantsIndexError, text, node.slice, hint)
    nodes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice] * len(items)
    return [
        _checked_index(fb, item, axis, matrix.shape, at)
        for axis, (item, at) in enumerate(zip(items, nodes, strict=True))
    ]


def _checked_index(
    fb: FuncBuilder, item: Any, axis: int, shape: tuple[int, ...], node: ast.AST
) -> Any:
    extent = shape[axis]
    if isinstance(item, slice):
        ends: tuple[Any, Any] = (cast(Any, item).start, cast(Any, item).stop)
        for end in ends:
            if isinstance(end, int) and end < 0:
                raise _negative(fb, node)
        return fb.python(node, range(extent).__getitem__, item)
    if isinstance(item, Op) and item.code == C.CONST:
        item = item.attr
    if isinstance(item, float) or (isinstance(item, Op) and item.type.is_real):
        raise fb.type_error(
            f"indices must be integers, however '{dtype_in(fb, item)}' is provided as index {axis}",
            node, "convert it: qd.cast(x, qd.i32)",
        )  # fmt: skip
    if isinstance(item, int):
        if item < 0:
            raise _negative(fb, node)
        if item >= extent:
            what = "a vector" if len(shape) == 1 else "a matrix"
            text = f"Index {item} is out of range for {what} of shape {shape}"
            raise fb.error(QuadrantsIndexError, text, node)
        return int(item)
    index = fb.op(item, node)
    return index if index.type.bits >= 32 else fb.cast(index, i32, node)


def _negative(fb: FuncBuilder, node: ast.AST) -> QuadrantsSyntaxError:
    text = "Negative indices are not supported in Quadrants kernels."
    return fb.error(QuadrantsSyntaxError, text, node, "count from the start; v.n is the length")


def element(fb: FuncBuilder, node: ast.Subscript, matrix: MatrixValue) -> Any:
    """``matrix[...]``: a part (a pointer if it is bound), a `DynamicElement`, or for slices a
    vector or matrix of such parts."""
    index = fb.expr(node.slice)
    if index.__class__ is int and len(matrix.shape) == 1 and 0 <= index < matrix.shape[0]:
        return fb.part(matrix, index, node)  # most indices are
    items = _index_items(fb, node, index, matrix)
    shape = tuple([len(i) for i in items if isinstance(i, range)])
    picked: list[tuple[Any, ...]] = [()]
    for item in items:
        choices: Sequence[Any] = item if isinstance(item, range) else (item,)
        picked = [(*done, one) for done in picked for one in choices]
    if not picked:
        raise fb.error(QuadrantsIndexError, "A slice without elements", node.slice)
    found = _picked(fb, node, matrix, picked)
    return MatrixValue(shape, found) if shape else found[0]


def _picked(
    fb: FuncBuilder, node: ast.Subscript, matrix: MatrixValue, indices: list[tuple[Any, ...]]
) -> list[Any]:
    shape, at = matrix.shape, matrix.location
    columns = shape[1] if len(shape) == 2 else 1
    known = [type(i) is int for i in indices[0]]
    if all(known):
        return [
            fb.part(matrix, i[0] * columns + (i[1] if len(i) == 2 else 0), node) for i in indices
        ]
    if at is not None:
        out: list[Any] = []
        for index in indices:
            ops = [fb.op(i, node) for i in index]
            out.append(fb.part_at(matrix, ops, node))
        return out
    pairs = [(i, n) for i, n in zip(indices[0], shape, strict=True) if type(i) is Op]
    _check_bounds(fb, node, "vector" if len(shape) == 1 else "matrix", pairs)
    parts = fb.parts(matrix, node)
    if len(shape) == 1:
        return [DynamicElement(parts, indices[0][0])]
    if known[0]:
        return [DynamicElement(parts[i * columns : (i + 1) * columns], j) for i, j in indices]
    if known[1]:
        return [DynamicElement(parts[j::columns], i) for i, j in indices]
    i, j = indices[0]
    row = fb.emit(node, C.MUL, (i, fb.typed(columns, i.type, node)))
    return [DynamicElement(parts, fb.emit(node, C.ADD, (row, j)))]


def _check_bounds(
    fb: FuncBuilder, node: ast.Subscript, kind: str, pairs: list[tuple[Op, int]]
) -> None:
    """Assert, if bounds are checked, that the indices of a local vector or matrix are valid."""
    if not (fb.config.debug or fb.config.check_out_of_bound):
        return
    inside: Op | None = None
    for index, extent in pairs:
        t = cast(DataType, index.type)
        low = fb.emit(node, C.CMP_GE, (index, fb.typed(0, t, node)), None, u1)
        high = fb.emit(node, C.CMP_LT, (index, fb.typed(extent, t, node)), None, u1)
        both = fb.emit(node, C.BIT_AND, (low, high), None, u1)
        inside = both if inside is None else fb.emit(node, C.BIT_AND, (inside, both), None, u1)
    assert inside is not None
    name = ast.unparse(node.value).replace("%", "%%")
    formats = ", ".join(["%d"] * len(pairs))
    text = (
        f"[kernel={fb.func.name}] Out of bound access to {kind} '{name}' with indices [{formats}] "
        f"(shape {[extent for _, extent in pairs]})"
    )
    fb.emit(node, C.ASSERT, (inside, *[i for i, _ in pairs]), AssertAttr("bound", text), void)


# Attributes


def matrix_attribute(fb: FuncBuilder, node: ast.Attribute, matrix: MatrixValue) -> Any:
    """``v.x``, ``v.xy``, ``m.n``, or a method."""
    name = node.attr
    if name == "n":
        return matrix.shape[0]
    if name == "m":
        return matrix.shape[1] if len(matrix.shape) == 2 else 1
    if name == "shape":
        return matrix.shape
    if name == "ndim":
        return len(matrix.shape)
    if name == "dtype":
        return dtype_in(fb, matrix)
    fill_from("matrix_methods")
    if name in METHODS:
        return Method(matrix, name)
    if len(matrix.shape) == 1:
        for letters in SWIZZLES:
            if all(letter in letters for letter in name):
                return _swizzle(fb, node, matrix, letters)
    raise fb.error(
        QuadrantsCompilationError, f"AttributeError: {describe(matrix)} has no attribute '{name}'",
        node, "elements are v[0] or v.x; methods are " + ", ".join(sorted(METHODS)),
    )  # fmt: skip


def _swizzle(fb: FuncBuilder, node: ast.Attribute, matrix: MatrixValue, letters: str) -> Any:
    count = matrix.shape[0]
    if any(letter not in letters[:count] for letter in node.attr):
        raise fb.syntax_error(
            f"vec{count} only has attributes={tuple(letters[:count])}, got={tuple(node.attr)}", node
        )
    picked = [fb.part(matrix, letters.index(letter), node) for letter in node.attr]
    return picked[0] if len(picked) == 1 else MatrixValue((len(picked),), picked)


METHODS: Final[dict[str, Callable[..., Any]]] = {}
"""Name of a method -> function(builder, call node, matrix); filled by `matrix_methods`."""
