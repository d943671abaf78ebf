"""Helpers that the modules of features share: short constructors of arrays, launches."""

from __future__ import annotations

import numpy as np

from .... import engine as qd

__all__ = ["F32", "F64", "I32", "I64", "U32", "U64", "error_of", "filled", "of", "zeros"]

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


def filled(kernel, *arguments):
    """Launch a kernel; return its last argument, an array that it writes."""
    kernel(*arguments)
    return arguments[-1]


def error_of(kind, run):
    """Return the class of the error of this kind that ``run`` raises, by name."""
    try:
        run()
    except kind as error:
        return type(error).__name__
    return "nothing"
