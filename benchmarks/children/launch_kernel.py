"""Kernels that no sample has: the smallest useful one, and loops that memory or atomics bound."""

from qd_studio import engine as qd


@qd.kernel
def bump(x: qd.types.NDArray[qd.f32, 1]):
    for i in range(x.shape[0]):
        x[i] = x[i] + 1.0


@qd.kernel
def copy(x: qd.types.ndarray(qd.f32, 2), y: qd.types.ndarray(qd.f32, 2)):
    for i, j in x:
        y[i, j] = x[i, j]


@qd.kernel
def transpose(x: qd.types.ndarray(qd.f32, 2), y: qd.types.ndarray(qd.f32, 2)):
    for i, j in x:
        y[j, i] = x[i, j]


@qd.kernel
def product(
    a: qd.types.ndarray(qd.f32, 2), b: qd.types.ndarray(qd.f32, 2), c: qd.types.ndarray(qd.f32, 2)
):
    for i, j in c:
        total = 0.0
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


@qd.kernel
def histogram(bins: qd.types.ndarray(qd.i32, 1), keys: qd.types.ndarray(qd.i32, 1)):
    for i in keys:
        bins[keys[i]] += 1


@qd.kernel
def scatter(
    sums: qd.types.ndarray(qd.f32, 1),
    keys: qd.types.ndarray(qd.i32, 1),
    values: qd.types.ndarray(qd.f32, 1),
):
    for i in keys:
        sums[keys[i]] += values[i]
