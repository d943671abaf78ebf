"""The same work in Numba, as one writes it there: loops, `prange` outside, single precision.

Literals are wrapped in `np.float32`: a bare `1.0` is double precision in Numba and would widen
everything it touches.
"""

from wire import Wire

wire = Wire()

import inputs  # noqa: E402
import numba  # noqa: E402
import numpy as np  # noqa: E402
import timing  # noqa: E402
from numba import prange  # noqa: E402

fast = numba.njit(parallel=True, fastmath=True)

ZERO, QUARTER, HALF, ONE, TWO, FOUR = map(np.float32, (0.0, 0.25, 0.5, 1.0, 2.0, 4.0))


@fast
def saxpy(x, y, a):
    for i in prange(x.size):
        y[i] = a * x[i] + y[i]


@fast
def total(x):
    s = ZERO
    for i in prange(x.size):
        s += x[i]
    return s


@fast
def jacobi(u, v):
    for i in prange(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            v[i, j] = QUARTER * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


@fast
def nbody(x, y, z, mass, ax, ay, az, softening):
    for i in prange(x.size):
        sx = sy = sz = ZERO
        for j in range(x.size):
            dx = x[j] - x[i]
            dy = y[j] - y[i]
            dz = z[j] - z[i]
            inv_r = ONE / np.sqrt(dx * dx + dy * dy + dz * dz + softening * softening)
            pull = mass[j] * inv_r * inv_r * inv_r
            sx += pull * dx
            sy += pull * dy
            sz += pull * dz
        ax[i] = sx
        ay[i] = sy
        az[i] = sz


@fast
def mandelbrot(count, left, top, pixel, patience):
    for row in prange(count.shape[0]):
        im_c = top - pixel * (np.float32(row) + HALF)
        for column in range(count.shape[1]):
            re_c = left + pixel * (np.float32(column) + HALF)
            re = im = ZERO
            steps = 0
            while re * re + im * im <= FOUR and steps < patience:
                next_re = re * re - im * im + re_c
                im = TWO * re * im + im_c
                re = next_re
                steps += 1
            count[row, column] = steps


@fast
def copy(x, y):
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j]


@fast
def transpose(x, y):
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            y[j, i] = x[i, j]


def product(a, b, c):
    np.matmul(a, b, out=c)  # OpenBLAS


@fast
def histogram(bins, keys):
    parts = numba.get_num_threads()
    own = np.zeros((parts, bins.size), bins.dtype)
    share = (keys.size + parts - 1) // parts
    for part in prange(parts):
        for i in range(part * share, min(keys.size, (part + 1) * share)):
            own[part, keys[i]] += 1
    for part in range(parts):
        for k in range(bins.size):
            bins[k] += own[part, k]


@fast
def scatter(sums, keys, values):
    parts = numba.get_num_threads()
    own = np.zeros((parts, sums.size), sums.dtype)
    share = (keys.size + parts - 1) // parts
    for part in prange(parts):
        for i in range(part * share, min(keys.size, (part + 1) * share)):
            own[part, keys[i]] += values[i]
    for part in range(parts):
        for k in range(sums.size):
            sums[k] += own[part, k]


@numba.njit(fastmath=True)
def bump(x):
    for i in range(x.size):
        x[i] = x[i] + ONE


@fast
def bump_parallel(x):
    for i in prange(x.size):
        x[i] = x[i] + ONE


KERNELS = {
    "saxpy 2^24": saxpy,
    "sum 2^24": total,
    "jacobi 2048^2": jacobi,
    "nbody 2048": nbody,
    "mandelbrot 512^2": mandelbrot,
    "copy 8192^2": copy,
    "transpose 8192^2": transpose,
    "product 1024^2": product,
    "histogram 2^24": histogram,
    "scatter 2^24": scatter,
}

prepared = {}


def prepare(case):
    """Compile, run once, and answer with the result's fingerprint."""
    arrays, scalars = inputs.CASES[case]()
    narrow = [np.float32(s) if isinstance(s, float) else np.int32(s) for s in scalars]
    args = [*arrays, *narrow]
    result = KERNELS[case](*args)
    prepared[case] = args
    if case in inputs.RESULT:
        return inputs.fingerprint(args[inputs.RESULT[case]])
    return [float(result)]


def steady(case, budget_s):
    kernel, args = KERNELS[case], prepared[case]
    return timing.calls_within(budget_s, lambda: kernel(*args))


def forget(case):
    del prepared[case]


def launch(cells, storage, launches):
    kernel = bump_parallel if storage == "parallel" else bump
    array = np.zeros(cells, np.float32)
    kernel(array)
    return timing.microseconds_a_launch(launches, kernel, array, lambda: None)


def latencies(cells, launches, rest_s):
    array = np.zeros(cells, np.float32)
    for _ in range(5):
        bump_parallel(array)
    return timing.latencies(launches, bump_parallel, array, lambda: None, rest_s)


wire.serve({
    "prepare": prepare, "steady": steady, "forget": forget, "launch": launch,
    "latencies": latencies,
})  # fmt: skip
