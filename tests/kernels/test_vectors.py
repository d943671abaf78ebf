"""Vectors and matrices in kernels: values, on both backends, against NumPy."""

import numpy as np
import pytest
from qd_studio import engine as qd

pytestmark = pytest.mark.usefixtures("arch")


F = qd.types.ndarray(dtype=qd.f32, ndim=1)
vec2, vec3 = qd.types.vector(2, qd.f32), qd.types.vector(3, qd.f32)
RNG = np.random.default_rng(7)


@qd.func
def put(out, at, v):
    """Write the elements of a vector or matrix one after the other."""
    if qd.static(len(v.shape) == 1):
        for i in qd.static(range(v.n)):
            out[at + i] = v[i]
    else:
        for i in qd.static(range(v.n)):
            for j in qd.static(range(v.m)):
                out[at + i * v.m + j] = v[i, j]


def run(kernel, *args, count=16, dtype=np.float32):
    out = np.zeros(count, dtype)
    kernel(out, *args)
    return out


@qd.kernel
def inverted(out: F, a: F, n: qd.template()):
    m = qd.Matrix([[a[i * n + j] for j in range(n)] for i in range(n)])
    put(out, 0, m.inverse())
    if qd.static(n <= 4):
        out[n * n] = m.determinant()
    out[n * n + 1] = m.trace()


@pytest.mark.parametrize("n", range(1, 7))
def test_inverse_and_determinant(n):
    m = RNG.uniform(-1, 1, (n, n)).astype(np.float32) + np.eye(n, dtype=np.float32)[::-1] * 3
    got = run(inverted, m.ravel().copy(), n, count=n * n + 2)
    wide = m.astype(np.float64)
    np.testing.assert_allclose(got[: n * n].reshape(n, n), np.linalg.inv(wide), atol=2e-5)
    if n <= 4:
        np.testing.assert_allclose(got[n * n], np.linalg.det(wide), rtol=1e-5)
    np.testing.assert_allclose(got[n * n + 1], np.trace(wide), rtol=1e-5)


@qd.kernel
def pivots(out: F):
    # Without exchanging rows the first pivot would be 0.
    m = qd.Matrix(
        [[0.0, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 2, 0], [0, 0, 4, 0, 0], [0, 0, 0, 0, 5]]
    )
    put(out, 0, m.inverse())


def test_elimination_exchanges_rows():
    got = run(pivots, count=25).reshape(5, 5)
    want = np.zeros((5, 5))
    want[0, 1] = want[1, 0] = 1
    want[2, 3], want[3, 2], want[4, 4] = 0.25, 0.5, 0.2
    assert got.tolist() == want.astype(np.float32).tolist()
