"""Small kernels whose races and wrong indices are known by construction; see `test_checking`.

The patterns of races are the well-known ones of OpenMP's benchmarks of race detectors
(https://github.com/LLNL/dataracebench), written for parallel loops of kernels. `kernel` states the
outcome of each check; what it leaves out is safe. An index is `unknown` where only the caller
knows that arrays are as long as each other.
"""

import numpy as np
from qd_studio import engine as qd

F32 = qd.types.ndarray(qd.f32, 1)
F32_2 = qd.types.ndarray(qd.f32, 2)
I32 = qd.types.ndarray(qd.i32, 1)

EXPECTED = {}
KERNELS = {}


def kernel(race="safe", bounds="safe", uninitialised="safe", given=None, **options):
    """Make a kernel, with what the checks say of it. given: returns the arguments of its
    workload. options: of `qd.kernel`."""

    def make(function):
        made = qd.kernel(function, **options)
        if given is not None:
            made.workload()(given)
        EXPECTED[made.name] = {"race": race, "bounds": bounds, "uninitialised": uninitialised}
        KERNELS[made.name] = made
        return made

    return make


# ---- races: dependences between iterations


@kernel(race="fault")
def anti_dependence(x: F32):
    for i in range(x.shape[0] - 1):
        x[i] = x[i + 1] + 1.0


@kernel(race="fault")
def true_dependence(x: F32):
    for i in range(1, x.shape[0]):
        x[i] = x[i - 1] + 1.0


@kernel(race="fault")
def true_dependence_in_rows(x: F32_2):
    for i, j in qd.ndrange(x.shape[0], (1, x.shape[1])):
        x[i, j] = x[i, j - 1]


@kernel()
def rows_in_order(x: F32_2):
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            x[i, j] = x[i, j - 1]


@kernel(race="fault")
def columns_in_order(x: F32_2):
    for i in range(1, x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = x[i - 1, j]


@kernel()
def two_halves(x: F32):
    half = x.shape[0] // 2
    for i in range(half):
        x[i] = x[i + half]


@kernel(race="unknown")  # of an odd length only
def halves_that_overlap(x: F32):
    half = x.shape[0] // 2
    for i in range(half + 1):
        if i + half < x.shape[0]:
            x[i] = x[i + half] + 1.0


@kernel()
def even_from_odd(x: F32):
    for i in range(x.shape[0] // 2):
        x[2 * i] = x[2 * i + 1]


@kernel(race="fault")
def even_from_next_even(x: F32):
    for i in range(x.shape[0] // 2 - 1):
        x[2 * i] = x[2 * i + 2]


@kernel(race="fault")
def pairs_share_a_cell(x: F32):
    for i in range(x.shape[0]):
        x[i // 2] = qd.cast(i, qd.f32)


@kernel()
def in_order_on_request(x: F32):
    qd.loop_config(serialize=True)
    for i in range(1, x.shape[0]):
        x[i] = x[i - 1] + 1.0


@kernel()
def two_loops(x: F32):
    for i in range(x.shape[0]):
        x[i] = 1.0
    for i in range(x.shape[0] - 1):
        qd.atomic_add(x[i + 1], 1.0)


@kernel(race="fault")
def reversed_in_place(x: F32):
    for i in range(x.shape[0]):
        x[i] = x[x.shape[0] - 1 - i]


@kernel()
def swapped_ends(x: F32):
    for i in range(x.shape[0] // 2):
        t = x[i]
        x[i] = x[x.shape[0] - 1 - i]
        x[x.shape[0] - 1 - i] = t


@kernel(race="fault")
def transposed_in_place(x: F32_2):
    assert x.shape[0] == x.shape[1]
    for i, j in x:
        x[i, j] = x[j, i]


@kernel()
def transposed_above(x: F32_2):
    assert x.shape[0] == x.shape[1]
    for i, j in x:
        if i < j:
            t = x[i, j]
            x[i, j] = x[j, i]
            x[j, i] = t


@kernel(race="unknown")
def distance_by_argument(x: F32, k: qd.i32):
    assert k >= 0
    for i in range(x.shape[0] - k):
        x[i] = x[i + k]


@kernel()
def flattened(x: F32, n: qd.i32, m: qd.i32):
    assert n * m <= x.shape[0]
    for i in range(n * m):
        x[(i // 8) * 8 + i % 8] = 1.0


# ---- races: sums, counts and flags


@kernel(race="fault")
def plain_sum(x: F32) -> qd.f32:
    s = 0.0
    for i in range(x.shape[0]):
        s = s + x[i]
    return s


@kernel()
def atomic_sum(x: F32) -> qd.f32:
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
    return s


@kernel(race="fault")
def sum_that_is_read(x: F32, y: F32):
    assert y.shape[0] >= x.shape[0]
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
        y[i] = s


@kernel(
    race="fault",
    bounds="unknown",
    given=lambda: (np.zeros(4, np.int32), np.array([0, 1, 1, 3], np.int32)),
)
def plain_count(bins: I32, of: I32):
    for i in of:
        bins[of[i]] = bins[of[i]] + 1


@kernel(bounds="unknown")
def atomic_count(bins: I32, of: I32):
    for i in of:
        bins[of[i]] += 1


@kernel(
    race="unknown",
    bounds="unknown",
    given=lambda: (np.zeros(4, np.float32), np.array([2, 0, 3, 1], np.int32)),
)
def scattered(x: F32, at: I32):
    for i in at:
        x[at[i]] = qd.cast(i, qd.f32)


@kernel(race="fault")
def last_index(x: F32, last: I32):
    assert last.shape[0] > 0
    for i in x:
        last[0] = i


@kernel(bounds="unknown")
def flag_of_one_value(x: F32, found: I32):
    for i in x:
        if x[i] > 0.5:
            found[0] = 1


@kernel(race="fault")
def atomic_and_plain(total: I32, n: qd.i32):
    assert total.shape[0] > 0 and n > 3
    for i in range(n):
        qd.atomic_add(total[0], i)
        if i == 0:
            total[0] = 5


@kernel(race="fault")
def maximum_by_hand(x: F32, best: F32):
    assert best.shape[0] > 0
    for i in x:
        best[0] = qd.max(best[0], x[i])


@kernel()
def maximum_by_atomics(x: F32, best: F32):
    assert best.shape[0] > 0
    for i in x:
        qd.atomic_max(best[0], x[i])


@kernel()
def own_variable(x: F32):
    for i in x:
        t = 0.0
        for k in range(8):
            t = t + x[i] * k
        x[i] = t


@kernel(race="fault")
def variable_of_all(x: F32):
    t = 0.0
    for i in x:
        t = x[i] * 2.0
        x[i] = t + 1.0


@kernel(race="fault")
def guard_of_two(x: F32):
    assert x.shape[0] > 3
    for i in x:
        if i < 2:
            x[0] = qd.cast(i, qd.f32)


@kernel()
def guard_of_one(x: F32):
    for i in x:
        if i == 1:
            x[0] = 5.0


@kernel(race="fault")
def inner_loop_from_zero(x: F32_2):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[0, j] = qd.cast(i, qd.f32)


@kernel()
def counted_up(x: F32):
    for i in range(x.shape[0] // 4):
        at = 4 * i
        for _ in range(4):
            x[at] = 1.0
            at += 1


@kernel(race="fault")
def counted_up_too_far(x: F32):
    for i in range(x.shape[0] // 4 - 1):
        at = 4 * i
        for _ in range(5):
            x[at] = qd.cast(i, qd.f32)
            at += 1


# ---- indices


@kernel(bounds="fault")
def past_the_end(x: F32, y: F32):
    assert y.shape[0] == x.shape[0]
    for i in x:
        y[i] = x[i + 1]


@kernel(bounds="fault")
def before_the_start(x: F32, y: F32):
    assert y.shape[0] == x.shape[0]
    for i in x:
        y[i] = x[i - 1]


@kernel()
def guarded_neighbour(x: F32, y: F32):
    assert y.shape[0] == x.shape[0]
    for i in x:
        if i + 1 < x.shape[0]:
            y[i] = x[i + 1]


@kernel()
def clamped_neighbour(x: F32, y: F32):
    assert y.shape[0] == x.shape[0]
    for i in x:
        y[i] = x[qd.max(i - 1, 0)] + x[qd.min(i + 1, x.shape[0] - 1)]


@kernel()
def torus(x: F32_2, y: F32_2):
    assert y.shape[0] == x.shape[0] and y.shape[1] == x.shape[1]
    for i, j in x:
        y[i, j] = x[(i + 1) % x.shape[0], (j - 1) % x.shape[1]]


@kernel(bounds="fault")
def one_too_many(x: F32):
    for i in range(x.shape[0] + 1):
        x[i] = 0.0


@kernel(bounds="unknown")
def length_by_argument(x: F32, n: qd.i32):
    for i in range(n):
        x[i] = 0.0


@kernel(bounds="fault", given=lambda: (np.zeros(4, np.float32), 5))
def wrong_length_passed(x: F32, n: qd.i32):
    for i in range(n):
        x[i] = 0.0


@kernel()
def length_asserted(x: F32, n: qd.i32):
    assert n <= x.shape[0]
    for i in range(n):
        x[i] = 0.0


@kernel(bounds="fault")
def axes_swapped(x: F32_2):
    assert x.shape[0] > x.shape[1] + 1
    for i, j in x:
        x[j, i] = 0.0


@kernel(bounds="unknown")
def index_from_memory(x: F32, at: I32) -> qd.f32:
    s = 0.0
    for i in at:
        s += x[at[i]]
    return s


@kernel(bounds="fault")
def component_too_high(x: qd.types.ndarray(qd.types.vector(3, qd.f32), 1)):
    for i in x:
        for k in range(4):
            x[i][k] = 0.0


@kernel()
def stride_of_loop(x: F32):
    for i in range((x.shape[0] + 1) // 2):
        x[2 * i] = 0.0


@kernel(bounds="fault")
def stride_too_long(x: F32):
    for i in range((x.shape[0] + 1) // 2 + 1):
        x[2 * i] = 0.0


@kernel()
def while_inside(x: F32):
    for i in x:
        k = i
        while k > 0:
            x[i] = x[i] + 1.0
            k = k // 2
