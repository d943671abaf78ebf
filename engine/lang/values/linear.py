"""Determinant and inverse of small matrices in Python scope.

By cofactors, as kernels compute them, so that integers stay exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import QuadrantsTypeError

__all__ = ["MAX_ROWS", "cofactor_inverse", "determinant"]

MAX_ROWS = 4

Array = np.ndarray[Any, Any]


def determinant(a: Array) -> Any:
    """The determinant of a square matrix of up to `MAX_ROWS` rows, in its element type."""
    n = a.shape[0]
    if n > MAX_ROWS:
        raise QuadrantsTypeError(
            f"Determinants of matrices with sizes >= {MAX_ROWS + 1} are not supported"
        )
    if n == 1:
        return a[0, 0]
    total = a.dtype.type(0)
    with np.errstate(all="ignore"):
        for j in range(n):
            rest = determinant(np.delete(a[1:], j, axis=1))
            total = total + a[0, j] * rest if j % 2 == 0 else total - a[0, j] * rest
    return total


def cofactor_inverse(a: Array) -> Array:
    """The inverse of a square matrix of up to `MAX_ROWS` rows; infinities or NaN if it has none."""
    n = a.shape[0]
    if n > MAX_ROWS:
        raise QuadrantsTypeError(
            f"Inversions of matrices with sizes >= {MAX_ROWS + 1} are not supported"
        )
    a = a if a.dtype.kind == "f" else a.astype(np.float64)
    out = np.empty_like(a)
    with np.errstate(all="ignore"):
        scale = a.dtype.type(1) / determinant(a)
        for i in range(n):
            for j in range(n):
                minor = np.delete(np.delete(a, j, axis=0), i, axis=1)
                part = determinant(minor) if n > 1 else a.dtype.type(1)
                out[i, j] = scale * (part if (i + j) % 2 == 0 else -part)
    return out
