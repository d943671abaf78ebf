"""Helpers that the modules of features share: short constructors of arrays."""

from __future__ import annotations

import numpy as np

from .... import engine as qd

__all__ = ["F32", "F64", "I32", "I64", "U32", "U64", "full", "of", "zeros"]

I32 = qd.types.NDArray[qd.i32, 1]
U32 = qd.types.NDArray[qd.u32, 1]
I64 = qd.types.NDArray[qd.i64, 1]
U64 = qd.types.NDArray[qd.u64, 1]
F32 = qd.types.NDArray[qd.f32, 1]
F64 = qd.types.NDArray[qd.f64, 1]


def of(dtype, *values):
    """A NumPy array of these values."""
    return np.array(values, dtype=dtype.np)


def zeros(dtype, *shape):
    """A NumPy array of zeros."""
    return np.zeros(shape, dtype=dtype.np)


def full(dtype, shape, value):
    """A NumPy array with one value everywhere."""
    return np.full(shape, value, dtype=dtype.np)
