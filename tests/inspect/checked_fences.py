"""More kernels of `checked`: data that iterations pass to each other by fences and updates."""

import numpy as np
from qd_studio import engine as qd

from tests.inspect.checked import F32, I32, expect


@expect(race="unknown")
@qd.kernel
def summed_by_the_last(x: F32, count: I32, total: F32):
    """Whoever counts last sees what all others wrote before they counted."""
    assert count.shape[0] > 0 and total.shape[0] > 0
    for i in x:
        x[i] = x[i] * 2.0
        qd.simt.grid.mem_fence()
        if qd.atomic_add(count[0], 1) == x.shape[0] - 1:
            qd.simt.grid.mem_fence()
            s = 0.0
            for k in range(x.shape[0]):
                s += x[k]
            total[0] = s


@expect(race="fault")
@qd.kernel
def summed_without_a_fence(x: F32, count: I32, total: F32):
    assert count.shape[0] > 0 and total.shape[0] > 0
    for i in x:
        x[i] = x[i] * 2.0
        if qd.atomic_add(count[0], 1) == x.shape[0] - 1:
            s = 0.0
            for k in range(x.shape[0]):
                s += x[k]
            total[0] = s


@expect(race="fault")
@qd.kernel
def counted_before_it_is_written(x: F32, count: I32, total: F32):
    assert count.shape[0] > 0 and total.shape[0] > 0
    for i in x:
        qd.simt.grid.mem_fence()
        last = qd.atomic_add(count[0], 1) == x.shape[0] - 1
        x[i] = x[i] * 2.0
        if last:
            s = 0.0
            for k in range(x.shape[0]):
                s += x[k]
            total[0] = s


@expect(race="unknown", uninitialised="unknown")
@qd.kernel
def summed_by_the_last_block(x: F32, count: I32, parts: F32, total: F32):
    assert count.shape[0] > 0 and total.shape[0] > 0 and parts.shape[0] >= 4
    qd.loop_config(block_dim=8)
    for i in range(32):
        seen = qd.simt.block.SharedArray((1,), qd.i32)
        if qd.simt.block.thread_idx() == 0:
            parts[i // 8] = i * 1.0
            qd.simt.grid.mem_fence()
            seen[0] = qd.atomic_add(count[0], 1)
        qd.simt.block.sync()
        if seen[0] == 3 and qd.simt.block.thread_idx() == 1:
            for k in range(4):
                total[0] += parts[k]


for _kernel in (summed_by_the_last, summed_without_a_fence, counted_before_it_is_written):

    @_kernel.workload()
    def five_counted():
        return np.ones(5, np.float32), np.zeros(1, np.int32), np.zeros(1, np.float32)


@summed_by_the_last_block.workload()
def blocks_of_eight():
    one, two = np.zeros(1, np.float32), np.zeros(4, np.float32)
    return np.ones(32, np.float32), np.zeros(1, np.int32), two, one
