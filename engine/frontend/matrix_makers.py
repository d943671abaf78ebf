"""Making vectors and matrices in a kernel.

``qd.Vector([...])`` and ``qd.Matrix([[...], ...])`` take their shape from the lists; the types
(``vec3(...)``) have theirs and accept numbers, vectors and lists, in order, or one number
for every part.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ..types import DataType, MatrixType
from .arguments import arguments, dtype_argument, only_positional
from .conversion import made_of_type
from .matrices import as_matrix, rows, uniform
from .registry import call_of, handler
from .values import MatrixValue, describe
from .walk import Walk

__all__: list[str] = []


@handler("Vector", "Matrix")
def _literal(w: Walk, node: ast.Call, name: str, fn: Any) -> MatrixValue:
    value, dt = arguments(w, node, name, ("arr", "dt"), dt=None)
    dtype = None if dt is None else dtype_argument(w, dt, node)
    at = node.args[0] if node.args else node
    if not isinstance(value, MatrixValue | list | tuple | np.ndarray):
        raise w.type_error(
            "An Matrix/Vector can only be initialized with an array-like object", at,
            f"write qd.{name}([...]); to fill one, call a type such as qd.types.vector(3, qd.f32)",
        )  # fmt: skip
    matrix = as_matrix(w, value, at)
    if matrix is None:
        raise _no_elements(w, value, at)
    _warn_of_size(w, node, matrix.shape)
    return MatrixValue(matrix.shape, uniform(w, w.parts(matrix, node), at, dtype))


def _no_elements(w: Walk, value: Any, node: ast.AST) -> Exception:
    if not value:
        return w.type_error("A vector or matrix needs at least one element", node)
    text = "The elements of a vector or matrix are numbers, in rows of equal length"
    return w.type_error(text, node, "write qd.Vector([1, 2]) or qd.Matrix([[1, 2], [3, 4]])")


_LARGE = 144


def _warn_of_size(w: Walk, node: ast.AST, shape: tuple[int, ...]) -> None:
    size = 1
    for extent in shape:
        size *= extent
    if size > _LARGE:
        w.warn(
            f"A vector or matrix of {size} elements: all that is done with it is written out "
            f"element by element at compile time, which is slow for more than {_LARGE}. Use a "
            "field for large data.", node, UserWarning,
        )  # fmt: skip


@call_of(MatrixType)
def _typed(w: Walk, node: ast.Call, t: MatrixType) -> MatrixValue:
    """``vec3(...)``."""
    _warn_of_size(w, node, t.shape)
    return made_of_type(w, t, only_positional(w, node, repr(t)), node)


# Named constructors


def _extents(w: Walk, values: Sequence[Any], node: ast.AST) -> tuple[int, ...]:
    shape = tuple([v for v in values if v is not None])
    for extent in shape:
        if type(extent) is not int or extent < 1:
            what = repr(extent) if isinstance(extent, int | float) else describe(extent)
            text = f"The shape of a vector or matrix is known at compile time, not {what}"
            raise w.type_error(text, node)
    if not shape or values[0] is None:
        raise w.type_error("A vector or matrix needs a shape", node)
    _warn_of_size(w, node, shape)
    return shape


def _filled(
    w: Walk, node: ast.AST, shape: tuple[int, ...], dtype: DataType, values: Sequence[int]
) -> MatrixValue:
    return MatrixValue(shape, uniform(w, values, node, dtype))


@handler("Matrix.zero", "Matrix.one")
def _zero(w: Walk, node: ast.Call, name: str, fn: Any) -> MatrixValue:
    dt, *extents = arguments(w, node, name, ("dt", "n", "m"), m=None)
    shape = _extents(w, extents, node)
    size = shape[0] * (shape[1] if len(shape) == 2 else 1)
    value = 1 if name == "Matrix.one" else 0
    return _filled(w, node, shape, dtype_argument(w, dt, node), [value] * size)


@handler("Matrix.identity")
def _identity(w: Walk, node: ast.Call, name: str, fn: Any) -> MatrixValue:
    dt, extent = arguments(w, node, name, ("dt", "n"))
    (n,) = _extents(w, [extent], node)
    values = [int(i == j) for i in range(n) for j in range(n)]
    return _filled(w, node, (n, n), dtype_argument(w, dt, node), values)


@handler("Matrix.unit")
def _unit(w: Walk, node: ast.Call, name: str, fn: Any) -> MatrixValue:
    extent, i, dt = arguments(w, node, name, ("n", "i", "dt"), dt=int)
    (n,) = _extents(w, [extent], node)
    if type(i) is not int or not 0 <= i < n:
        what = i if type(i) is int else describe(i)
        raise w.type_error(f"A unit vector of {n} elements has no element {what}", node)
    dtype = dtype_argument(w, int if dt is None else dt, node)
    return _filled(w, node, (n,), dtype, [int(i == k) for k in range(n)])


@handler("Matrix.diag")
def _diag(w: Walk, node: ast.Call, name: str, fn: Any) -> MatrixValue:
    extent, value = arguments(w, node, name, ("dim", "val"))
    (n,) = _extents(w, [extent], node)
    if not isinstance(value, int | float):
        value = w.op(value, node)
    parts = uniform(w, [value if i == j else 0 for i in range(n) for j in range(n)], node)
    return MatrixValue((n, n), parts)


@handler("Matrix.rows", "Matrix.cols")
def _stacked(w: Walk, node: ast.Call, name: str, fn: Any) -> MatrixValue:
    (value,) = arguments(w, node, name, (name[7:],))
    at = node.args[0] if node.args else node
    given: list[Any] = []
    if isinstance(value, MatrixValue):
        given = rows(w, value, at)
    elif isinstance(value, list | tuple):
        given = list(cast("list[Any]", value))
    lines = [v for v in [as_matrix(w, v, at) for v in given] if v is not None]
    shapes = {v.shape for v in lines}
    if len(lines) != len(given) or len(shapes) != 1 or len(shapes.pop()) != 1:
        text = f"qd.{name} takes a list of vectors or lists of equal length"
        raise w.type_error(text, at)
    flat = [list(w.parts(v, node)) for v in lines]
    n, m = len(flat), len(flat[0])
    if name == "Matrix.rows":
        return MatrixValue((n, m), uniform(w, [p for line in flat for p in line], node))
    parts = [flat[j][i] for i in range(m) for j in range(n)]
    return MatrixValue((m, n), uniform(w, parts, node))
