"""The kernels of docs/tour.md: one is slower than it could be, and one computes something wrong.

Without a test for NaN that holds, `repair` is of no use; `fast_math` removes the one that it has.
"""

import numpy as np
from qd_studio import engine as qd

Floats = qd.types.NDArray[qd.f32, 1]


@qd.kernel
def drift(x: Floats, reach: Floats, v: Floats):
    """Pull every particle to those near it."""
    for i in range(x.shape[0]):
        pull = 0.0
        for j in range(x.shape[0]):
            d = x[j] - x[i]
            if d * d < 0.25:
                pull += d / (d * d + reach[0])
        v[i] += pull


@qd.kernel
def repair(x: Floats) -> qd.i32:
    """Replace lost measurements by zero, and count them."""
    lost = 0
    for i in range(x.shape[0]):
        if x[i] != x[i]:
            x[i] = 0.0
            lost += 1
    return lost


@drift.workload(n=[2048])
def particles(n):
    x = np.random.default_rng(1).random(n, np.float32)
    return x, np.full(1, 0.01, np.float32), np.zeros(n, np.float32)


@repair.workload(n=[2048])
def measurements(n):
    x = np.random.default_rng(2).random(n, np.float32)
    x[::64] = np.nan
    return (x,)


@repair.check
def no_nan_is_left(before, after, result):
    assert not np.isnan(after[0]).any(), "NaN is left"
