"""Stencils that clamp or wrap their indices at the edges, and their gradients, as by NumPy."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir import walk
from qd_studio.engine.runtime.compile import compile_kernel

F1, F2 = qd.types.NDArray[qd.f32, 1], qd.types.NDArray[qd.f32, 2]


@qd.func
def clamped(i, n):
    return qd.min(qd.max(i, 0), n - 1)


@qd.kernel
def wrapped(x: F1, y: F1):
    for i in range(x.shape[0]):
        n = x.shape[0]
        y[i] = x[(i - 1 + n) % n] + 10.0 * x[(i + 1) % n] + 100.0 * x[(i - 2) % n]


@qd.kernel
def chosen(x: F1, y: F1):
    for i in range(x.shape[0]):
        left = qd.select(i > 0, i - 1, 0)
        right = qd.select(i + 1 >= x.shape[0], 0, i + 1)
        y[i] = x[left] + 10.0 * x[right]


@qd.kernel
def shifted(x: F1, y: F1, by: qd.i32):
    for i in range(x.shape[0]):
        y[i] = x[clamped(i + by, x.shape[0])] + 10.0 * x[qd.max(clamped(i - by, x.shape[0]) - 1, 0)]


@qd.kernel
def twice(x: F1, y: F1, by: qd.i32):
    for i in range(x.shape[0]):
        y[i] = x[clamped(qd.max(i + by, 0) + by, x.shape[0])]


@qd.kernel
def smoothed(x: F2, y: F2):
    for i, j in qd.ndrange(x.shape[0], x.shape[1]):
        total = 0.0
        for di, dj in qd.static(qd.ndrange((-1, 2), (-1, 2))):
            total += x[clamped(i + di, x.shape[0]), clamped(j + dj, x.shape[1])]
        y[i, j] = total


def numbers(*shape):
    return np.random.default_rng(5).integers(-50, 50, shape).astype(np.float32)


SIZES = (0, 1, 2, 3, 37, 300)


@pytest.mark.parametrize("arch", [qd.cpu, qd.interp], ids=["cpu", "interp"])
def test_rows(arch):
    qd.init(arch=arch, offline_cache=False, cpu_max_num_threads=2)
    for n in SIZES:
        x, y = numbers(n), np.zeros(n, np.float32)
        wrapped(x, y)
        assert (y == np.roll(x, 1) + 10 * np.roll(x, -1) + 100 * np.roll(x, 2)).all(), n
        at = np.arange(n)
        chosen(x, y)
        assert (y == x[np.maximum(at - 1, 0)] + 10 * x[(at + 1) % max(n, 1)]).all(), n
        for by in (0, 1, -3, 40, -40, 2**31 - 1, -(2**31) + 1):
            shifted(x, y, by)
            # i + by wraps in 32 bits, as it does in the kernel
            first, second = at.astype(np.int32) + np.int32(by), at.astype(np.int32) - np.int32(by)
            right = np.maximum(np.clip(second, 0, n - 1) - 1, 0)
            assert (y == x[np.clip(first, 0, n - 1)] + 10 * x[right]).all(), (n, by)
        for by in (1, -1, 3, 20):
            twice(x, y, by)
            assert (y == x[np.clip(np.maximum(at + by, 0) + by, 0, n - 1)]).all(), (n, by)


def cold(kernel, *more):
    """Of each loop in the one task of a kernel that is new, whether it is cold."""
    kernel(numbers(40), np.zeros(40, np.float32), *more)
    (variant,) = kernel.launchers.variants.values()
    (task,) = compile_kernel(variant._request).func.tasks()
    return [op.attr.cold for op in walk(task.regions[1]) if op.code == C.RANGE_FOR]


def test_edges_that_may_hold_all_cells_are_worth_vector_instructions():
    qd.init(arch=qd.cpu, offline_cache=False)

    @qd.kernel
    def near(x: F1, y: F1):
        for i in range(x.shape[0]):
            y[i] = x[qd.select(i + 1 < x.shape[0], i + 1, 0)] + x[clamped(i - 1, x.shape[0])]

    @qd.kernel
    def anywhere(x: F1, y: F1, by: qd.i32):
        for i in range(x.shape[0]):
            y[i] = x[clamped(i + by, x.shape[0])]

    @qd.kernel
    def shorter(x: F1, y: F1):
        for i in range(y.shape[0]):
            y[i] = x[qd.min(i, x.shape[0] - 1)]

    # the cells in the middle, the two edges, the cells of one of these
    assert cold(near) == [False, True, True]
    assert cold(anywhere, 3) == [False, True, False]
    assert cold(shorter) == [False, True, False]


@pytest.mark.parametrize("arch", [qd.cpu, qd.interp], ids=["cpu", "interp"])
def test_planes(arch):
    qd.init(arch=arch, offline_cache=False, cpu_max_num_threads=2)
    for shape in ((1, 1), (3, 2), (40, 5), (5, 40), (33, 65)):
        x, y = numbers(*shape), np.zeros(shape, np.float32)
        smoothed(x, y)
        wide = np.pad(x, 1, mode="edge")
        windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3))
        assert (y == windows.sum(axis=(2, 3))).all(), shape


@pytest.mark.parametrize("arch", [qd.cpu, qd.interp], ids=["cpu", "interp"])
def test_gradients(arch):
    qd.init(arch=arch, offline_cache=False, cpu_max_num_threads=2)
    n = 50
    x, y = (qd.field(qd.f32, n, needs_grad=True) for _ in range(2))

    @qd.kernel
    def differences():
        for i in x:
            y[i] = x[(i + 1) % n] * x[clamped(i - 1, n)]

    x.from_numpy(numbers(n))
    slope = numbers(n, 2)[:, 1]
    y.grad.from_numpy(slope)
    differences()
    differences.grad()
    value = x.to_numpy()
    want = np.zeros(n, np.float32)
    at = np.arange(n)
    left, right = np.maximum(at - 1, 0), (at + 1) % n
    np.add.at(want, right, slope * value[left])
    np.add.at(want, left, slope * value[right])
    assert (y.to_numpy() == value[right] * value[left]).all()
    assert (x.grad.to_numpy() == want).all()


VECTORS = qd.types.ndarray(qd.types.vector(3, qd.f32), 1, needs_grad=True, boundary="clamp")
MATRICES = qd.types.ndarray(qd.types.matrix(2, 3, qd.f32), 2, boundary="clamp")


@qd.kernel
def component(x: MATRICES, i: qd.i64, j: qd.u32, k: qd.i32, m: qd.i8) -> qd.f32:
    return x[i, j][k, m]


@qd.kernel
def set_component(x: VECTORS, i: qd.i32, k: qd.i32):
    x[i][k] = 100.0
    x[i + 5][k] += 1.0


@qd.kernel
def sum_of_component(x: VECTORS, y: qd.types.ndarray(qd.f32, 1, needs_grad=True), k: qd.i32):
    for i in range(6):
        y[0] += 3.0 * x[i - 1][k]


@pytest.mark.parametrize("arch", [qd.cpu, qd.interp], ids=["cpu", "interp"])
def test_indices_into_an_element_are_clamped(arch):
    qd.init(arch=arch, offline_cache=False)
    values = np.arange(24, dtype=np.float32).reshape(2, 2, 2, 3)
    x = qd.Matrix.ndarray(2, 3, qd.f32, (2, 2))
    x.from_numpy(values)
    for index in ((0, 0, -1, 0), (1, 1, 0, 3), (0, 1, 5, -7), (-(2**40), 2**32 - 1, 2**31 - 1, 127),
                  (2**40, 0, -(2**31), -128), (1, 0, 1, 2)):  # fmt: skip
        at = tuple(min(max(n, 0), most) for n, most in zip(index, (1, 1, 1, 2), strict=True))
        assert component(x, *index) == values[at], index


@pytest.mark.parametrize("arch", [qd.cpu, qd.interp], ids=["cpu", "interp"])
def test_writes_and_gradients_of_clamped_components(arch):
    qd.init(arch=arch, offline_cache=False)
    x = qd.Vector.ndarray(3, qd.f32, 4, needs_grad=True)
    y = qd.ndarray(qd.f32, 1, needs_grad=True)
    set_component(x, -1, 3)
    want = np.zeros((4, 3), np.float32)
    want[0, 2], want[3, 2] = 100, 1
    assert (x.to_numpy() == want).all()
    sum_of_component(x, y, -4)
    y.grad.fill(1.0)
    sum_of_component.grad(x, y, -4)
    want[:] = 0
    want[:, 0] = 6, 3, 3, 6
    assert (x.grad.to_numpy() == want).all()


@qd.kernel
def at_both_ends(x: qd.types.ndarray(qd.f32, 1, boundary="clamp"), y: qd.types.NDArray[qd.f32, 1]):
    for i in range(y.shape[0]):
        y[i] = x[i - 5] + x[i + 7]


@pytest.mark.parametrize("arch", [qd.cpu, qd.interp], ids=["cpu", "interp"])
def test_checks_find_clamped_indices_into_empty_arrays(arch):
    qd.init(arch=arch, offline_cache=False, check_out_of_bound=True)
    y = np.zeros(4, np.float32)
    at_both_ends(np.arange(3, dtype=np.float32), y)
    assert (y == 2).all()
    with pytest.raises(qd.QuadrantsAssertionError, match=r"indices \[0\].* x, shape \[0\]"):
        at_both_ends(np.zeros(0, np.float32), y)
