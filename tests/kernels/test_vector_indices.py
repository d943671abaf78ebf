"""Parts of vectors and matrices that are picked at run time."""

import numpy as np
import pytest
from qd_studio import engine as qd

N = qd.types.ndarray(dtype=qd.i32, ndim=1)
F = qd.types.ndarray(dtype=qd.f32, ndim=1)


@qd.kernel
def shared(out: N, n: qd.i32):
    """Threads write to different parts of one variable, and add to the same ones."""
    counts = qd.Vector([0, 0, 0, 0])
    stored = qd.Vector([-1, -1, -1, -1])
    for k in range(n):
        counts[k % 4] += 1
        if k < 4:
            stored[k] = k * k
    for k in qd.static(range(4)):
        out[k] = counts[k]
        out[4 + k] = stored[k]


def test_threads_do_not_disturb_other_parts(arch):
    out = np.zeros(8, np.int32)
    shared(out, 40000)
    assert out.tolist() == [10000] * 4 + [0, 1, 4, 9]


@qd.kernel
def large(out: F, n: qd.i32):
    v = qd.Vector([0.0] * 50)
    for k in range(n):
        v[k] = k
        v[k] *= 2
        v[k] += 0.5
    m = qd.Matrix.zero(qd.f32, 7, 6)
    qd.loop_config(serialize=True)
    for k in range(n):
        m[k // 6 % 7, k % 6] += v[k]
    total = 0.0
    for k in range(50):
        total += v[k]
    out[0] = total
    out[1] = m.sum()
    out[2] = m[3, 2]
    w = v
    w[n - 1] = -1
    out[3] = v[n - 1]
    out[4] = w.min()


def test_large_locals(arch):
    out = np.zeros(5, np.float32)
    large(out, 42)
    v = np.zeros(50, np.float32)
    v[:42] = np.arange(42) * 2 + 0.5
    assert out.tolist() == [v.sum(), v.sum(), v[20], v[41], -1]


@qd.kernel
def inside(out: N, i: qd.i32, j: qd.i32):
    v = qd.Vector([1, 2, 3])
    m = qd.Matrix([[1, 2], [3, 4]])
    out[0] = v[i] + m[i, j]


@pytest.mark.parametrize(
    "i, j, name",
    [
        (3, 0, "vector 'v'"),
        (-1, 0, "vector 'v'"),
        (1, 2, "matrix 'm'"),
        (2, 0, "matrix 'm'"),
    ],
)
def test_bounds_are_checked_in_debug(arch, i, j, name):
    qd.init(arch=getattr(qd, arch), debug=True, log_level="error")
    with pytest.raises(qd.QuadrantsAssertionError, match=f"Out of bound access to {name} "):
        inside(np.zeros(1, np.int32), i, j)
    out = np.zeros(1, np.int32)
    inside(out, 1, 1)
    assert out[0] == 6


def test_indices_beyond_the_end_do_no_harm(arch):
    out = np.zeros(8, np.int32)
    inside(out, 1 << 20, -5)
    qd.sync()
