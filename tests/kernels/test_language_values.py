"""Values of the language: promotion, rounding, locals, updates, atomics, loops, scopes, returns.

What is expected here is what Quadrants gives for the same source, where it gives a defined value.
"""

import math

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.passes import make_thread_local

pytestmark = pytest.mark.usefixtures("arch")


@qd.kernel
def infinite(a: qd.f32) -> tuple[qd.i32, qd.i32, qd.f32, qd.f32, qd.i32]:
    m = qd.math.inf
    below = 0
    if a < m:
        below = 1
    above = 0
    if a / 0.0 > 1.0:
        above = 1
    nans = 0
    if qd.math.isnan(qd.math.nan * a):
        nans = 1
    return below, above, a / 0.0, min(a, m) + max(a, -m), nans


@qd.kernel
def without_nan(a: qd.f32) -> tuple[qd.f32, qd.f32, qd.i32]:
    low = min(qd.math.nan, a)
    high = max(a, qd.math.nan)
    below = 0
    if low < 3.0:
        below = 1
    return low, high, below


def test_a_constant_nan_loses_against_any_number():
    assert without_nan(2.0) == (2.0, 2.0, 1)
    assert without_nan(4.0) == (4.0, 4.0, 0)
    for variant in without_nan.launchers.variants.values():
        # Under fast_math LLVM may assume that a minimum sees no NaN: a constant one must be gone.
        texts = variant.compiled.artifact
        assert "llvm_ir" not in texts.names or "0x7FF8" not in texts.text("llvm_ir")


@qd.kernel
def smallest(x: qd.types.ndarray(dtype=qd.f32, ndim=1)) -> qd.f32:
    m = qd.math.inf
    for i in x:
        qd.atomic_min(m, x[i])
    return m


def test_infinities_are_values_under_fast_math_too():
    assert infinite(2.0) == (1, 1, math.inf, 4.0, 1)
    assert smallest(np.arange(5, 1000).astype(np.float32)) == 5.0
    assert smallest(np.zeros(0, np.float32)) == math.inf


def test_iterating_over_an_ndarray_on_the_host_is_an_error():
    with pytest.raises(TypeError, match="cannot be iterated over here"):
        list(qd.ndarray(qd.f32, (3, 2)))


@qd.kernel
def guarded_sum(x: qd.types.ndarray(qd.f32, 1), out: qd.types.ndarray(qd.f32, 1), at: qd.i32):
    for i in range(x.shape[0]):
        if at >= 0:
            out[at] += x[i]


def test_a_reduction_that_no_iteration_makes_touches_nothing():
    x, out = np.ones(70000, np.float32), np.zeros(2, np.float32)
    guarded_sum(x, out, 1)
    guarded_sum(x, out, -(1 << 30))
    assert out.tolist() == [0, 70000]


def normal_equations(columns):
    @qd.kernel
    def accumulate(rows: qd.types.ndarray(qd.i32, 2), out: qd.types.ndarray(qd.i32, 2)):
        for i in range(rows.shape[0]):
            for a in qd.static(range(columns)):
                for b in qd.static(range(columns)):
                    out[a, b] += rows[i, a] * rows[i, b]

    rows = np.random.default_rng(3).integers(-9, 9, (700, columns), dtype=np.int32)
    out = np.ones((columns, columns), np.int32)
    accumulate(rows, out)
    assert np.array_equal(out, rows.T @ rows + 1)


def test_more_reductions_in_one_loop_than_a_block_combines_at_a_time():
    normal_equations(7)


@pytest.mark.parametrize("most", [1, 4, 8])
def test_reductions_beyond_those_with_an_accumulator(monkeypatch, most):
    monkeypatch.setattr(make_thread_local, "_CHUNK_MOST", most)
    monkeypatch.setattr(make_thread_local, "_THREAD_MOST", most)
    normal_equations(3)


@qd.kernel
def picked(
    flags: qd.types.ndarray(qd.i32, 2), table: qd.types.ndarray(qd.i32, 1),
    out: qd.types.ndarray(qd.i32, 2), x: qd.u32, y: qd.u32,
):  # fmt: skip
    """A condition decides which iterations of a row use its remainder as an index."""
    for i, j in qd.ndrange(flags.shape[0], flags.shape[1]):
        if flags[i, j] != 0:
            start = (x + qd.cast(i, qd.u32)) % y
            out[i, j] = table[2 * qd.cast(start, qd.i32) + j]


def test_an_index_that_only_some_iterations_divide_for():
    flags, table = np.ones((4, 100), np.int32), np.arange(200, dtype=np.int32)
    flags[:, ::4] = flags[:, 5::8] = 0
    out = np.full((4, 100), -1, np.int32)
    picked(flags, table, out, 17, 5)
    rows, columns = np.indices(flags.shape)
    assert np.array_equal(out, np.where(flags, 2 * ((17 + rows) % 5) + columns, -1))


Bins = qd.types.ndarray(qd.i32, 1)


@qd.kernel
def remainders(out: Bins, n: qd.i32, m: qd.i32):
    for _ in range(1):
        for i in range(n):
            for j in range(m):
                out[(i % 16) * 16 + j % 16] += 1


@qd.kernel
def masks(out: Bins, n: qd.i32, m: qd.i32):
    for _ in range(1):
        for i in range(n):
            for j in range(m):
                out[((((j & 15) & 255) + (j & 7)) + i) & 16383] += 1


@qd.kernel
def bytes_of(out: Bins, n: qd.i32, m: qd.i32):
    for _ in range(1):
        for i in range(n):
            for j in range(m):
                out[((j & 31) + qd.cast(qd.cast(i, qd.i8), qd.i32)) & 1023] += 1


@qd.kernel
def differences(out: Bins, n: qd.i32, m: qd.i32):
    for _ in range(1):
        for i in range(n):
            for j in range(m):
                k = j - j // 16 * 16
                out[(i & 7) * 16 + k] += 1


@pytest.mark.parametrize(
    ("kernel", "place"),
    [
        (remainders, lambda i, j: i % 16 * 16 + j % 16),
        (masks, lambda i, j: (j & 15) + (j & 7) + i),
        (bytes_of, lambda i, j: (j & 31) + i),
        (differences, lambda i, j: (i & 7) * 16 + j % 16),
    ],
)
def test_places_that_repeat_within_a_loop(kernel, place):
    """LLVM's vectoriser took the addresses for those of a row."""
    n, m = 40, 500
    out, expected = np.zeros(1024, np.int32), np.zeros(1024, np.int32)
    kernel(out, n, m)
    np.add.at(expected, place(*np.indices((n, m))).ravel(), 1)
    assert np.array_equal(out, expected)
