"""The static constructors of `Vector` and `Matrix`, and the values that their types make.

Fields, arrays and tensors are made by the modules of those containers, which are imported when
they are used.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ...errors import (
    QuadrantsAssertionError,
    QuadrantsRuntimeError,
    QuadrantsSyntaxError,
    QuadrantsTypeError,
    QuadrantsUnsupportedError,
)
from ...types import MAKERS, MatrixType, matrix_type
from ...types.compound import ArrayMaker, FieldMaker
from ..host import as_type
from .number_types import numpy_type

__all__ = [
    "cols", "diag", "identity", "matrix_field", "matrix_ndarray", "matrix_tensor", "one", "rows",
    "unit", "vector_field", "vector_ndarray", "vector_tensor", "zero",
]  # fmt: skip

Array = np.ndarray[Any, Any]


def _value(array: Array) -> Any:
    from .matrix import wrapped  # this module is imported by that one

    return wrapped(array)


def _shape(n: int, m: int | None) -> tuple[int, ...]:
    return (n,) if m is None else (n, m)


def zero(dt: Any, n: int, m: int | None = None) -> Any:
    """A vector of n zeros, or a matrix of n x m, of data type ``dt``."""
    return _value(np.zeros(_shape(n, m), numpy_type(dt)))


def one(dt: Any, n: int, m: int | None = None) -> Any:
    """A vector of n ones, or a matrix of n x m, of data type ``dt``."""
    return _value(np.ones(_shape(n, m), numpy_type(dt)))


def identity(dt: Any, n: int) -> Any:
    """The identity matrix of n rows."""
    return _value(np.eye(n, dtype=numpy_type(dt)))


def unit(n: int, i: int, dt: Any = None) -> Any:
    """The vector of n elements where the one at ``i`` is 1 and the others are 0."""
    if not 0 <= i < n:
        raise ValueError(f"A unit vector of {n} elements has no element {i}")
    array = np.zeros(n, numpy_type(int if dt is None else dt))
    array[i] = 1
    return _value(array)


def diag(dim: int, val: Any) -> Any:
    """The matrix of ``dim`` rows with ``val`` on its diagonal and zeros elsewhere."""
    return _value(np.eye(dim, dtype=np.asarray(val).dtype) * val)


def _stacked(parts: Any, name: str) -> Array:
    if not isinstance(parts, list | tuple) or not parts:
        raise QuadrantsTypeError(f"qd.Matrix.{name} takes a list of vectors or lists")
    found = [np.asarray(part) for part in cast("Sequence[Any]", parts)]
    if any(part.ndim != 1 or part.shape != found[0].shape for part in found):
        raise QuadrantsTypeError(f"qd.Matrix.{name} takes vectors or lists of equal length")
    return np.stack(found)


def rows(rows: Any) -> Any:
    """The matrix with these vectors, or lists, as its rows."""
    return _value(_stacked(rows, "rows"))


def cols(cols: Any) -> Any:
    """The matrix with these vectors, or lists, as its columns."""
    return _value(_stacked(cols, "cols").T.copy())


# Containers


def _common(dtype: Any, size: int) -> Any:
    """The data type of the components, which a list may give one by one."""
    if not isinstance(dtype, list | tuple):
        return dtype
    found: list[Any] = []
    for row in cast("list[Any]", dtype):
        found += row if isinstance(row, list | tuple) else [row]
    if len(found) != size:
        raise QuadrantsAssertionError(f"{size} components need as many data types, got {dtype}")
    if any(t is not found[0] for t in found):
        raise QuadrantsRuntimeError(
            "Member fields of a matrix field must have the same compute type",
            hint="use a struct for members of different types",
        )
    return found[0]


def matrix_field(n: int, m: int, dtype: Any, shape: Any = None, **options: Any) -> Any:
    """A field of matrices of n x m; see `qd.field` for the options."""
    return matrix_type((n, m), _common(dtype, n * m)).field(shape=shape, **options)


def vector_field(n: int, dtype: Any, shape: Any = None, **options: Any) -> Any:
    """A field of vectors of n elements; see `qd.field` for the options."""
    return matrix_type((n,), _common(dtype, n)).field(shape=shape, **options)


def matrix_ndarray(
    n: int, m: int, dtype: Any, shape: Any, needs_grad: bool = False, needs_dual: bool = False
) -> Any:
    """An array of matrices of n x m; see `qd.ndarray`."""
    return matrix_type((n, m), dtype).ndarray(shape, needs_grad, needs_dual)


def vector_ndarray(
    n: int, dtype: Any, shape: Any, needs_grad: bool = False, needs_dual: bool = False
) -> Any:
    """An array of vectors of n elements; see `qd.ndarray`."""
    return matrix_type((n,), dtype).ndarray(shape, needs_grad, needs_dual)


def matrix_tensor(n: int, m: int, dtype: Any, shape: Any, **options: Any) -> Any:
    """A tensor of matrices of n x m; see `qd.tensor` for the options."""
    from ..tensor import tensor

    return tensor(matrix_type((n, m), dtype), shape, **options)


def vector_tensor(n: int, dtype: Any, shape: Any, **options: Any) -> Any:
    """A tensor of vectors of n elements; see `qd.tensor` for the options."""
    from ..tensor import tensor

    return tensor(matrix_type((n,), dtype), shape, **options)


# Calls of types


def _flat(values: Sequence[Any]) -> list[Any]:
    out: list[Any] = []
    for value in values:
        if np.ndim(value):
            out.extend(np.asarray(value).ravel().tolist())
        else:
            out.append(value)
    return out


def made(t: MatrixType, *args: Any) -> Any:
    """``vec3(1, 2, 3)``, ``vec3(v.xy, 0)``, ``mat2([[1, 2], [3, 4]])``; one number fills."""
    if not args:
        raise QuadrantsSyntaxError(
            "Custom type instances need to be created with an initial value."
        )
    values = _flat(args)
    if len(values) == 1:
        values *= t.size
    if len(values) != t.size:
        raise QuadrantsTypeError(f"{t!r} takes {t.size} elements, got {len(values)}")
    dtype = numpy_type(t.dtype)
    array = np.array(values)
    if array.dtype.kind not in "biuf":
        raise QuadrantsTypeError(f"{args!r} are no elements of {t!r}")
    return _value((array != 0 if dtype is np.bool_ else as_type(array, dtype)).reshape(t.shape))


def _made_field(t: Any, **options: Any) -> Any:
    """The first field of a compound type: the module that makes them takes over."""
    _load("..fields.field", FieldMaker, _made_field)
    return MAKERS[FieldMaker](t, **options)


def _made_ndarray(t: Any, *args: Any) -> Any:
    """The first array of a compound type: likewise."""
    _load("..ndarray", ArrayMaker, _made_ndarray)
    return MAKERS[ArrayMaker](t, *args)


def _load(module: str, key: type, here: Any) -> None:
    importlib.import_module(module, __package__)
    if MAKERS[key] is here:
        raise QuadrantsUnsupportedError(feature=f"{module}s of vectors, matrices or structs")


MAKERS[MatrixType] = made
MAKERS.setdefault(FieldMaker, _made_field)
MAKERS.setdefault(ArrayMaker, _made_ndarray)
