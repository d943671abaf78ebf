"""More kernels of `checked`: values that are not set, memory that a block shares, more races."""

import numpy as np
from qd_studio import engine as qd

from tests.inspect.checked import F32, F32_2, I32, kernel

# ---- values that are not set


@kernel(
    uninitialised="fault",
    bounds="unknown",
    given=lambda: (np.ones(6, np.float32), np.empty(6, np.float32)),
)
def adds_to_nothing(x: F32, y: F32):
    for i in x:
        y[i] += x[i]


@kernel(bounds="unknown", given=lambda: (np.ones(6, np.float32), np.empty(6, np.float32)))
def sets_first(x: F32, y: F32):
    for i in x:
        y[i] = 0.0
        y[i] += x[i]


# ---- blocks


@kernel(
    race="unknown",
    bounds="unknown",
    uninitialised="unknown",
    given=lambda: (np.ones(32, np.float32), np.zeros(32, np.float32)),
)
def with_barrier(x: F32, y: F32):
    qd.loop_config(block_dim=8)
    for i in range(32):
        pad = qd.simt.block.SharedArray((8,), qd.f32)
        pad[i % 8] = x[i]
        qd.simt.block.sync()
        y[i] = pad[7 - i % 8]


@kernel(
    race="fault",
    bounds="unknown",
    uninitialised="fault",
    given=lambda: (np.arange(32, dtype=np.float32), np.zeros(32, np.float32)),
)
def without_barrier(x: F32, y: F32):
    qd.loop_config(block_dim=8)
    for i in range(32):
        pad = qd.simt.block.SharedArray((8,), qd.f32)
        pad[i % 8] = x[i]
        y[i] = pad[7 - i % 8]


# ---- more of OpenMP's patterns: linear algebra, stencils, appending


@kernel(race="fault")
def true_dependence_doubled(x: F32):
    for i in range(x.shape[0] // 2):
        x[2 * i + 1] = x[i] + 1.0


@kernel(race="fault")
def product_summed_plainly(a: F32_2, x: F32, y: F32):
    assert a.shape[0] <= y.shape[0] and a.shape[1] <= x.shape[0]
    for i, j in a:
        y[i] = y[i] + a[i, j] * x[j]


@kernel()
def product_summed_atomically(a: F32_2, x: F32, y: F32):
    assert a.shape[0] <= y.shape[0] and a.shape[1] <= x.shape[0]
    for i, j in a:
        y[i] += a[i, j] * x[j]


@kernel(race="fault")
def jacobi_in_place(x: F32_2):
    for i, j in qd.ndrange((1, x.shape[0] - 1), (1, x.shape[1] - 1)):
        x[i, j] = 0.25 * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])


@kernel()
def jacobi_of_two(x: F32_2, y: F32_2):
    assert y.shape[0] == x.shape[0] and y.shape[1] == x.shape[1]
    for i, j in qd.ndrange((1, x.shape[0] - 1), (1, x.shape[1] - 1)):
        y[i, j] = 0.25 * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])


@kernel()
def appended(x: F32, count: I32):
    assert count.shape[0] > 0
    for i in range(x.shape[0]):
        place = qd.atomic_add(count[0], 1)
        if place >= 0 and place < x.shape[0]:
            x[place] = 1.0 * i


@kernel(race="unknown")  # with values that no one declares
def counted_by_hand(x: F32, count: I32):
    assert count.shape[0] > 0
    for i in range(x.shape[0]):
        if x[i] > -1.0:
            count[0] = count[0] + 1


# ---- integers that wrap, bits, and what loops keep


@kernel(bounds="fault", given=lambda: np.ones(100, np.float32))
def byte_that_wraps(x: F32):
    assert x.shape[0] >= 100
    for i in x:
        k = qd.u8(250)
        k += qd.u8(10)
        x[i] = x[qd.cast(k, qd.i32) - 200]


@kernel(bounds="fault")
def hash_that_is_negative(x: F32):
    assert x.shape[0] >= 8
    for i in range(8):
        k = qd.cast(qd.cast(i, qd.u32) * qd.u32(2654435761), qd.i32)
        if k < 8:
            x[k] = 1.0 * i


@kernel(bounds="unknown")  # it is right for every n that is not negative
def rest_of_four(x: F32, n: qd.i32):
    m = qd.min(n, x.shape[0])
    for i in range(m // 4 * 4, m):
        x[i] = 0.0


@kernel()
def pairs_by_bits(x: F32):
    assert x.shape[0] % 2 == 0
    for i in x:
        j = i ^ 1
        if j > i:
            t = x[i]
            x[i] = x[j]
            x[j] = t


@kernel(race="fault")
def lowest_bit_dropped(x: F32):
    for i in x:
        x[i & ~1] = 1.0 * i


@kernel()
def strided_by_threads(x: F32):
    for t in range(4):
        k = t
        while k < x.shape[0]:
            x[k] = x[k] + 1.0
            k += 4


@kernel()
def binary_search(x: F32, keys: F32, out: I32):
    assert out.shape[0] == keys.shape[0]
    for i in keys:
        lo, hi = 0, x.shape[0]
        while lo < hi:
            mid = (lo + hi) // 2
            if x[mid] < keys[i]:
                lo = mid + 1
            else:
                hi = mid
        out[i] = lo


@kernel()
def appended_by_twos(x: F32, count: I32):
    for i in range(x.shape[0]):
        place = qd.atomic_add(count[0], 2) if count.shape[0] > 0 else -1
        if place >= 0 and place + 1 < x.shape[0]:
            x[place] = 1.0 * i
            x[place + 1] = 2.0 * i


@kernel(race="fault", given=lambda: (np.ones(8, np.float32), np.zeros(1, np.int32)))
def appended_too_close(x: F32, count: I32):
    assert count.shape[0] > 0
    for i in range(x.shape[0]):
        place = qd.atomic_add(count[0], 1)
        if place >= 0 and place + 1 < x.shape[0]:
            x[place] = 1.0 * i
            x[place + 1] = 2.0 * i


# ---- types decide how an operation rounds, wraps and saturates


@kernel(bounds="fault", given=lambda: (np.ones(4, np.float32), 1.0, 1.0 + 1e-12))
def rounded_and_not(x: F32, a: qd.f64, b: qd.f64):
    for i in x:
        if a < b and not qd.cast(a, qd.f32) < qd.cast(b, qd.f32):
            x[i + x.shape[0]] = 1.0


@kernel(bounds="fault", given=lambda: (np.ones(4, np.float32), 1e12))
def saturated_and_not(x: F32, a: qd.f32):
    for i in x:
        if qd.cast(a, qd.i64) != qd.cast(qd.cast(a, qd.i32), qd.i64):
            x[i + x.shape[0]] = 1.0


@kernel(bounds="fault", given=lambda: (np.ones(4, np.float32), 33))
def shifted_in_two_widths(x: F32, k: qd.i32):
    for i in x:
        if (qd.cast(1, qd.i64) << k) != qd.cast(1 << k, qd.i64):
            x[i + x.shape[0]] = 1.0


@kernel(bounds="fault", given=lambda: (np.ones(4, np.float32), 5))
def flipped_in_two_widths(x: F32, k: qd.u8):
    for i in x:
        if qd.cast(~k, qd.i32) != ~qd.cast(k, qd.i32):
            x[i + x.shape[0]] = 1.0


@kernel(bounds="fault", given=lambda: (np.ones(4, np.float32), -128))
def quotient_that_wraps(x: F32, k: qd.i8):
    for i in x:
        if (k < 0 and k // qd.cast(-1, qd.i8) < 0) or abs(k) < 0:
            x[i + x.shape[0]] = 1.0


@kernel(bounds="fault", given=lambda: np.ones(4, np.float32))
def mask_of_the_sign(x: F32):
    for i in x:
        bit = 1
        if (bit << 31) < 0:
            x[i + x.shape[0]] = 1.0


@kernel(race="fault", given=lambda: (np.ones(4, np.float64), 0.1))
def rounded_differently(x: qd.types.ndarray(qd.f64, 1), a: qd.f64):
    for i in x:
        if i % 2 == 0:
            x[0] = a
        else:
            x[0] = qd.cast(qd.cast(a, qd.f32), qd.f64)


# ---- loops that end in the middle, variables that iterations share, arrays that are clamped


@kernel(bounds="fault", given=lambda: np.ones(5, np.float32))
def counted_in_the_condition(x: F32):
    k = 0
    while qd.atomic_add(k, 1) < 3:
        k += 1
    if k % 2 == 1:
        x[x.shape[0]] = 1.0


@kernel(race="unknown")  # iterations that take turns
def places_of_two_counts(x: F32):
    k = 0
    for i in range(8):
        first = qd.atomic_add(k, 1)
        second = qd.atomic_add(k, 1)
        if first >= 0 and second > first and second < x.shape[0]:
            x[first + 1] = 1.0 * i
            x[second] = 1.0 * i


@kernel(bounds="fault", given=lambda: (np.zeros(0, np.float32), np.ones(3, np.float32)))
def clamped_to_nothing(x: qd.types.ndarray(qd.f32, 1, boundary="clamp"), y: F32):
    for i in y:
        y[i] = x[i]


@kernel(race="fault", bounds="unknown", given=lambda: np.ones(5, np.float32))
def clamped_by_a_wide_index(x: qd.types.ndarray(qd.f32, 1, boundary="clamp")):
    for i in range(4):
        x[qd.cast(i, qd.i64) * (qd.cast(1, qd.i64) << 32) + i] = 1.0 * i


@kernel(race="fault", given=lambda: (np.ones(4, np.float32), np.array(1, np.int32)), graph=True)
def array_around_the_graph(x: F32, left: qd.types.ndarray(qd.i32, 0)):
    v = qd.Vector([0.0] * 40)
    while qd.graph.do_while(left):
        for i in x:
            v[i % 40] = 1.0 * i
            x[i] = v[(i + 1) % 40]
        for _ in range(1):
            left[()] -= 1


@kernel()
def array_of_the_iteration(x: F32):
    for i in x:
        v = qd.Vector([0.0] * 40)
        v[i % 40] = 1.0 * i
        x[i] = v[(i + 1) % 40]


@kernel()
def gathered_once(x: F32, p: I32):
    for i in p:
        if p[i] >= 0 and p[i] < x.shape[0]:
            x[p[i]] += 1.0


@kernel(race="fault", uninitialised="fault", given=lambda: np.ones(16, np.float32))
def places_of_each_block(x: F32):
    qd.loop_config(block_dim=8)
    for i in range(32):
        taken = qd.simt.block.SharedArray((1,), qd.i32)
        place = qd.atomic_add(taken[0], 1)
        if place >= 0 and place < x.shape[0]:
            x[place] = 1.0 * i


# ---- data that iterations pass to each other by fences and updates


def _counted():
    return np.ones(5, np.float32), np.zeros(1, np.int32), np.zeros(1, np.float32)


@kernel(race="unknown", given=_counted)
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


@kernel(race="fault", given=_counted)
def summed_without_a_fence(x: F32, count: I32, total: F32):
    assert count.shape[0] > 0 and total.shape[0] > 0
    for i in x:
        x[i] = x[i] * 2.0
        if qd.atomic_add(count[0], 1) == x.shape[0] - 1:
            s = 0.0
            for k in range(x.shape[0]):
                s += x[k]
            total[0] = s


@kernel(race="fault", given=_counted)
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


@kernel(race="unknown", uninitialised="unknown")
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


@summed_by_the_last_block.workload()
def blocks_of_eight():
    one, two = np.zeros(1, np.float32), np.zeros(4, np.float32)
    return np.ones(32, np.float32), np.zeros(1, np.int32), two, one
