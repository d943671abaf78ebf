"""The parts of the constructors of `Vector`, `Matrix` and their types that make no such value.

These are the arrays of a value's elements; and fields, arrays and tensors, which the modules of
those containers make: they are a layer above, and `MAKERS` loads them when they are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ...errors import (
    QuadrantsAssertionError,
    QuadrantsRuntimeError,
    QuadrantsSyntaxError,
    QuadrantsTypeError,
)
from ...types import MAKERS, MatrixType, matrix_type
from ...types.compound import TensorMaker
from ..host import as_type
from .number_types import numpy_type

__all__ = [
    "matrix_field", "matrix_ndarray", "matrix_tensor", "stacked", "typed", "vector_field",
    "vector_ndarray", "vector_tensor",
]  # fmt: skip

Array = np.ndarray[Any, Any]


def stacked(parts: Any, name: str) -> Array:
    """The array with these vectors, or lists, as its rows; ``name``: the constructor."""
    if not isinstance(parts, list | tuple) or not parts:
        raise QuadrantsTypeError(f"qd.Matrix.{name} takes a list of vectors or lists")
    found = [np.asarray(part) for part in cast("Sequence[Any]", parts)]
    if any(part.ndim != 1 or part.shape != found[0].shape for part in found):
        raise QuadrantsTypeError(f"qd.Matrix.{name} takes vectors or lists of equal length")
    return np.stack(found)


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
    return MAKERS[TensorMaker](matrix_type((n, m), dtype), shape, **options)


def vector_tensor(n: int, dtype: Any, shape: Any, **options: Any) -> Any:
    """A tensor of vectors of n elements; see `qd.tensor` for the options."""
    return MAKERS[TensorMaker](matrix_type((n,), dtype), shape, **options)


# Calls of types


def _flat(values: Sequence[Any]) -> list[Any]:
    out: list[Any] = []
    for value in values:
        if np.ndim(value):
            out.extend(np.asarray(value).ravel().tolist())
        else:
            out.append(value)
    return out


def typed(t: MatrixType, args: Sequence[Any]) -> Array:
    """The elements of a value of type ``t`` that is called with ``args``."""
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
    return (array != 0 if dtype is np.bool_ else as_type(array, dtype)).reshape(t.shape)
