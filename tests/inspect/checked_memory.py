"""More kernels of `checked`: values that are not set, and memory that a block shares."""

import numpy as np
from qd_studio import engine as qd

from tests.inspect.checked import F32, expect

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
