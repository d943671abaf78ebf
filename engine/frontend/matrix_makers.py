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
from .func_builder import FuncBuilder
from .matrices import as_matrix, rows, uniform
from .registry import call_of, handler
from .values import MatrixValue, describe

__all__: list[str] = []


@handler("Vector", "Matrix")
def _literal(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> MatrixValue:
    value, dt = arguments(fb, node, name, ("arr", "dt"), dt=None)
    dtype = None if dt is None else dtype_argument(fb, dt, node)
    at = node.args[0] if node.args else node
    if not isinstance(value, MatrixValue | list | tuple | np.ndarray):
        raise fb.type_error(
            "An Matrix/Vector can only be initialized with an array-like object", at,
            f"write qd.{name}([...]); to fill one, call a type such as qd.types.vector(3, qd.f32)",
        )  # fmt: skip
    matrix = as_matrix(fb, value, at)
    if matrix is None:
        raise _no_elements(fb, value, at)
    _warn_of_size(fb, node, matrix.shape)
    return MatrixValue(matrix.shape, uniform(fb, fb.parts(matrix, node), at, dtype))


def _no_elements(fb: FuncBuilder, value: Any, node: ast.AST) -> Exception:
    if not value:
        return fb.type_error("A vector or matrix needs at least one element", node)
    text = "The elements of a vector or matrix are numbers, in rows of equal length"
    return fb.type_error(text, node, "write qd.Vector([1, 2]) or qd.Matrix([[1, 2], [3, 4]])")


_LARGE = 144


def _warn_of_size(fb: FuncBuilder, node: ast.AST, shape: tuple[int, ...]) -> None:
    size = 1
    for extent in shape:
        size *= extent
    if size > _LARGE:
        fb.warn(
            f"A vector or matrix of {size} elements: all that is done with it is written out "
            f"element by element at compile time, which is slow for more than {_LARGE}. Use a "
            "field for large data.", node, UserWarning,
        )  # fmt: skip


@call_of(MatrixType)
def _typed(fb: FuncBuilder, node: ast.Call, t: MatrixType) -> MatrixValue:
    """``vec3(...)``."""
    _warn_of_size(fb, node, t.shape)
    return made_of_type(fb, t, only_positional(fb, node, repr(t)), node)


# Named constructors


def _extents(fb: FuncBuilder, values: Sequence[Any], node: ast.AST) -> tuple[int, ...]:
    shape = tuple([v for v in values if v is not None])
    for extent in shape:
        if type(extent) is not int or extent < 1:
            what = repr(extent) if isinstance(extent, int | float) else describe(extent)
            text = f"The shape of a vector or matrix is known at compile time, not {what}"
            raise fb.type_error(text, node)
    if not shape or values[0] is None:
        raise fb.type_error("A vector or matrix needs a shape", node)
    _warn_of_size(fb, node, shape)
    return shape


def _filled(
    fb: FuncBuilder, node: ast.AST, shape: tuple[int, ...], dtype: DataType, values: Sequence[int]
) -> MatrixValue:
    return MatrixValue(shape, uniform(fb, values, node, dtype))


@handler("Matrix.zero", "Matrix.one")
def _zero(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> MatrixValue:
    dt, *extents = arguments(fb, node, name, ("dt", "n", "m"), m=None)
    shape = _extents(fb, extents, node)
    size = shape[0] * (shape[1] if len(shape) == 2 else 1)
    value = 1 if name == "Matrix.one" else 0
    return _filled(fb, node, shape, dtype_argument(fb, dt, node), [value] * size)


@handler("Matrix.identity")
def _identity(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> MatrixValue:
    dt, extent = arguments(fb, node, name, ("dt", "n"))
    (n,) = _extents(fb, [extent], node)
    values = [int(i == j) for i in range(n) for j in range(n)]
    return _filled(fb, node, (n, n), dtype_argument(fb, dt, node), values)


@handler("Matrix.unit")
def _unit(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> MatrixValue:
    extent, i, dt = arguments(fb, node, name, ("n", "i", "dt"), dt=int)
    (n,) = _extents(fb, [extent], node)
    if type(i) is not int or not 0 <= i < n:
        what = i if type(i) is int else describe(i)
        raise fb.type_error(f"A unit vector of {n} elements has no element {what}", node)
    dtype = dtype_argument(fb, int if dt is None else dt, node)
    return _filled(fb, node, (n,), dtype, [int(i == k) for k in range(n)])


@handler("Matrix.diag")
def _diag(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> MatrixValue:
    extent, value = arguments(fb, node, name, ("dim", "val"))
    (n,) = _extents(fb, [extent], node)
    if not isinstance(value, int | float):
        value = fb.op(value, node)
    parts = uniform(fb, [value if i == j else 0 for i in range(n) for j in range(n)], node)
    return MatrixValue((n, n), parts)


@handler("Matrix.rows", "Matrix.cols")
def _stacked(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> MatrixValue:
    (value,) = arguments(fb, node, name, (name[7:],))
    at = node.args[0] if node.args else node
    given: list[Any] = []
    if isinstance(value, MatrixValue):
        given = rows(fb, value, at)
    elif isinstance(value, list | tuple):
        given = list(cast("list[Any]", value))
    lines = [v for v in [as_matrix(fb, v, at) for v in given] if v is not None]
    shapes = {v.shape for v in lines}
    if len(lines) != len(given) or len(shapes) != 1 or len(shapes.pop()) != 1:
        text = f"qd.{name} takes a list of vectors or lists of equal length"
        raise fb.type_error(text, at)
    flat = [list(fb.parts(v, node)) for v in lines]
    n, m = len(flat), len(flat[0])
    if name == "Matrix.rows":
        return MatrixValue((n, m), uniform(fb, [p for line in flat for p in line], node))
    parts = [flat[j][i] for i in range(m) for j in range(n)]
    return MatrixValue((m, n), uniform(fb, parts, node))
