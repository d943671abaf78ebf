"""More kernels of `checked`: values that are not set, memory that a block shares, more races."""

import numpy as np
from qd_studio import engine as qd

from tests.inspect.checked import F32, F32_2, I32, expect

# ---- values that are not set


@expect(uninitialised="fault", bounds="unknown")
@qd.kernel
def adds_to_nothing(x: F32, y: F32):
    for i in x:
        y[i] += x[i]


@adds_to_nothing.workload()
def result_not_set():
    return np.ones(6, np.float32), np.empty(6, np.float32)


@expect(bounds="unknown")
@qd.kernel
def sets_first(x: F32, y: F32):
    for i in x:
        y[i] = 0.0
        y[i] += x[i]


@sets_first.workload()
def result_set_by_kernel():
    return np.ones(6, np.float32), np.empty(6, np.float32)


# ---- blocks


@expect(race="unknown", bounds="unknown", uninitialised="unknown")
@qd.kernel
def with_barrier(x: F32, y: F32):
    qd.loop_config(block_dim=8)
    for i in range(32):
        pad = qd.simt.block.SharedArray((8,), qd.f32)
        pad[i % 8] = x[i]
        qd.simt.block.sync()
        y[i] = pad[7 - i % 8]


@with_barrier.workload()
def four_blocks():
    return np.ones(32, np.float32), np.zeros(32, np.float32)


@expect(race="fault", bounds="unknown", uninitialised="fault")
@qd.kernel
def without_barrier(x: F32, y: F32):
    qd.loop_config(block_dim=8)
    for i in range(32):
        pad = qd.simt.block.SharedArray((8,), qd.f32)
        pad[i % 8] = x[i]
        y[i] = pad[7 - i % 8]


@without_barrier.workload()
def four_blocks_again():
    return np.arange(32, dtype=np.float32), np.zeros(32, np.float32)


# ---- more of OpenMP's patterns: linear algebra, stencils, appending


@expect(race="fault")
@qd.kernel
def true_dependence_doubled(x: F32):
    for i in range(x.shape[0] // 2):
        x[2 * i + 1] = x[i] + 1.0


@expect(race="fault")
@qd.kernel
def product_summed_plainly(a: F32_2, x: F32, y: F32):
    assert a.shape[0] <= y.shape[0] and a.shape[1] <= x.shape[0]
    for i, j in a:
        y[i] = y[i] + a[i, j] * x[j]


@expect()
@qd.kernel
def product_summed_atomically(a: F32_2, x: F32, y: F32):
    assert a.shape[0] <= y.shape[0] and a.shape[1] <= x.shape[0]
    for i, j in a:
        y[i] += a[i, j] * x[j]


@expect(race="fault")
@qd.kernel
def jacobi_in_place(x: F32_2):
    for i, j in qd.ndrange((1, x.shape[0] - 1), (1, x.shape[1] - 1)):
        x[i, j] = 0.25 * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])


@expect()
@qd.kernel
def jacobi_of_two(x: F32_2, y: F32_2):
    assert y.shape[0] == x.shape[0] and y.shape[1] == x.shape[1]
    for i, j in qd.ndrange((1, x.shape[0] - 1), (1, x.shape[1] - 1)):
        y[i, j] = 0.25 * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])


@expect()
@qd.kernel
def appended(x: F32, count: I32):
    assert count.shape[0] > 0
    for i in range(x.shape[0]):
        place = qd.atomic_add(count[0], 1)
        if place >= 0 and place < x.shape[0]:
            x[place] = 1.0 * i


@expect(race="unknown")  # with values that no one declares
@qd.kernel
def counted_by_hand(x: F32, count: I32):
    assert count.shape[0] > 0
    for i in range(x.shape[0]):
        if x[i] > -1.0:
            count[0] = count[0] + 1
