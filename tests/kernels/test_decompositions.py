"""Decompositions of small matrices, one per thread, against NumPy and by their own equations.

Tolerances count roundings of the type, relative to the largest element. Which sign and order the
factors have is what Quadrants has.
"""

import numpy as np
import pytest
from qd_studio import engine as qd

from tests.frontend.harness import load

pytestmark = pytest.mark.sampled(3)

SPECIAL_2 = [
    [[1, 2], [3, 4]], [[0, 0], [0, 0]], [[1, 0], [0, 1]], [[1, 0], [0, -1]], [[0, 1], [1, 0]],
    [[-2, 0], [0, -3]], [[1, 2], [2, 4]], [[0, -1], [1, 0]], [[1, 0], [0, 5]],
    [[1e-9, 1], [0, 1e-9]],
    [[0, 1], [0, 0]], [[2, 1], [0, 2]], [[3, 0], [0, 1]], [[2, 0], [5, 3]], [[1, 1e-12], [0, 1]],
    [[1, 1e-12], [1e-12, 1]], [[1, 1e-20], [0, 1 + 1e-8]], [[1, 5], [1e-10, 3]],
]  # fmt: skip
SPECIAL_3 = [
    [[1, 2, 3], [4, 5, 6], [7, 8, 10]], [[0] * 3] * 3, [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    [[1, 0, 0], [0, 2, 0], [0, 0, -3]], [[-1, 0, 0], [0, -2, 0], [0, 0, -3]],
    [[0, 1, 0], [1, 0, 0], [0, 0, 1]], [[1, 2, 3], [2, 4, 6], [3, 6, 9]],
    [[5, 0, 0], [0, 5, 0], [0, 0, 2]], [[1, 0, 0], [0, 0, 0], [0, 0, 0]],
    [[0, 0, 0], [0, 0, 0], [0, 0, 1]], [[0, 0, 0], [1, 1, 1], [1, 1, 1]], [[1, 1, 1]] * 3,
    [[1, 1e-9, 0], [0, 1, 1e-9], [0, 0, 1]], [[1, 2, 3], [0, 0, 0], [1, 2, 3 + 1e-7]],
]  # fmt: skip


def matrices(n, dtype):
    """Special ones, large and small ones, random ones, nearly singular ones."""
    special = {2: SPECIAL_2, 3: SPECIAL_3}.get(n, [np.zeros((n, n)), np.eye(n), np.ones((n, n))])
    rng = np.random.default_rng(n)
    found = [np.array(a, float) for a in special]
    found += [a * 1e18 for a in found] + [a * 1e-18 for a in found]
    found += [rng.standard_normal((n, n)) * 10.0 ** rng.integers(-6, 6) for _ in range(40)]
    for k in range(20):
        a = rng.standard_normal((n, n))
        a[:, -1] = a[:, 0] * (2 + 1e-7 * k)
        found.append(a)
    return np.stack(found).astype(dtype.np)


def kernels(n, dt, tmp_path):
    """Kernels that take arrays of matrices; all in one file."""
    text = f"""
M = qd.types.matrix({n}, {n}, qd.{dt})
A = qd.types.ndarray(dtype=M, ndim=1)
V = qd.types.ndarray(dtype=qd.types.vector({n}, qd.{dt}), ndim=1)


@qd.kernel
def svd(a: A, u: A, s: A, v: A):
    for i in a:
        u[i], s[i], v[i] = qd.svd(a[i], qd.{dt})


@qd.kernel
def polar(a: A, u: A, p: A):
    for i in a:
        u[i], p[i] = qd.polar_decompose(a[i], qd.{dt})


@qd.kernel
def sym_eig(a: A, w: V, q: A):
    for i in a:
        w[i], q[i] = qd.sym_eig(a[i], qd.{dt})


@qd.kernel
def spd(a: A, p: A):
    for i in a:
        p[i] = qd.make_spd(a[i], qd.{dt})


@qd.kernel
def solve(a: A, b: V, x: V):
    for i in a:
        x[i] = qd.solve(a[i], b[i], qd.{dt})
"""
    return load(text, tmp_path)


@pytest.fixture(params=[("cpu", "f32"), ("cpu", "f64"), ("interp", "f32")], ids="-".join)
def dt(request):
    arch, name = request.param
    qd.init(arch=getattr(qd, arch), log_level="error")
    yield getattr(qd, name)
    qd.reset()


def run(kernel, a, *shapes):
    """Results of a kernel, in double precision, divided by the scale of each matrix."""
    out = [np.zeros((len(a), *shape), a.dtype) for shape in shapes]
    kernel(a, *out)
    return [x.astype(float) for x in out]


def scales(a):
    found = np.abs(a.astype(float)).max((1, 2))
    return np.where(found == 0, 1.0, found)


def close(found, want, a, roundings=64):
    """Whether two stacks agree within some roundings of the largest element of each of ``a``."""
    error = np.abs(found - want).reshape(len(a), -1).max(1) / scales(a)
    assert error.max() <= roundings * np.finfo(a.dtype).eps, a[error.argmax()]


def orthogonal(u, a):
    one = np.ones((len(a), 1, 1), a.dtype)
    close(u @ u.transpose(0, 2, 1), np.eye(u.shape[1])[None], one.repeat(len(a), 0)[: len(a)])


@pytest.mark.parametrize("n", [2, 3])
def test_svd(n, dt, tmp_path):
    a = matrices(n, dt)
    u, s, v = run(kernels(n, dt, tmp_path)["svd"], a, (n, n), (n, n), (n, n))
    orthogonal(u, a)
    orthogonal(v, a)
    close(u @ s @ v.transpose(0, 2, 1), a, a)
    values = s[:, range(n), range(n)]
    assert not (s - values[:, None] * np.eye(n)).any()
    close(np.abs(values), np.linalg.svd(a.astype(float))[1], a)
    assert (np.diff(np.abs(values)) <= 0).all()
    assert (np.linalg.det(v) > 0).all()
    if n == 2:
        assert (values >= 0).all()
    else:
        assert (values[:, :2] >= 0).all() and (np.linalg.det(u) > 0).all()


@pytest.mark.parametrize("n", [2, 3])
def test_polar_decompose(n, dt, tmp_path):
    a = matrices(n, dt)
    u, p = run(kernels(n, dt, tmp_path)["polar"], a, (n, n), (n, n))
    orthogonal(u, a)
    close(u @ p, a, a)
    close(p, p.transpose(0, 2, 1), a)
    if n == 3:
        assert (np.linalg.det(u) > 0).all()
    else:
        least = np.linalg.eigvalsh(p)[:, 0] / scales(a)
        assert least.min() >= -64 * np.finfo(a.dtype).eps
        clear = np.abs(np.linalg.det(a / scales(a)[:, None, None])) > 1e-4
        signs = np.sign(np.linalg.det(a[clear].astype(float) / scales(a[clear])[:, None, None]))
        assert (np.sign(np.linalg.det(u[clear])) == signs).all()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
def test_sym_eig(n, dt, tmp_path):
    a = matrices(n, dt)
    a = np.ascontiguousarray((a + a.transpose(0, 2, 1)) / 2)
    w, q = run(kernels(n, dt, tmp_path)["sym_eig"], a, (n,), (n, n))
    orthogonal(q, a)
    assert (np.diff(w) >= 0).all()
    close(w, np.linalg.eigvalsh(a.astype(float)), a)
    close(q * w[:, None], a @ q, a)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_make_spd(n, dt, tmp_path):
    a = matrices(n, dt)
    a = np.ascontiguousarray((a + a.transpose(0, 2, 1)) / 2)
    (p,) = run(kernels(n, dt, tmp_path)["spd"], a, (n, n))
    w, q = np.linalg.eigh(a.astype(float))
    close(p, (q * np.maximum(w, 0)[:, None]) @ q.transpose(0, 2, 1), a)


@pytest.mark.parametrize("n", [2, 3])
def test_solve(n, dt, tmp_path):
    rng = np.random.default_rng(n)
    a = rng.standard_normal((60, n, n)) + 4 * rng.permutation(np.eye(n))
    a[0] = np.eye(n)[::-1]
    a[1] = np.roll(np.eye(n), 1, 0)
    b = rng.standard_normal((60, n)).astype(dt.np)
    a = a.astype(dt.np)
    x = np.zeros_like(b)
    kernels(n, dt, tmp_path)["solve"](a, b, x)
    back = (a.astype(float) @ x.astype(float)[:, :, None])[:, :, 0]
    close(back, b, a * np.maximum(1, np.abs(x).max(1))[:, None, None])


M2 = qd.types.matrix(2, 2, qd.f64)
Many2 = qd.types.ndarray(dtype=M2, ndim=1)
Tall = qd.types.ndarray(dtype=qd.types.matrix(4, 2, qd.f64), ndim=1)


@qd.kernel
def eigen(a: Many2, values: Many2, vectors: Tall):
    for i in a:
        values[i], vectors[i] = qd.eig(a[i], qd.f64)


def test_eig(dt):
    a = matrices(2, qd.f64)
    values, vectors = run(eigen, a, (2, 2), (4, 2))
    w = values[:, :, 0] + 1j * values[:, :, 1]
    x = vectors[:, 0::2] + 1j * vectors[:, 1::2]
    close(a @ x, x * w[:, None], a)
    assert np.abs(np.linalg.norm(x, axis=1) - 1).max() < 1e-14
    assert (w[:, 0].real >= w[:, 1].real).all()
    assert (w[:, 0].imag >= 0).all() and (w[:, 0].imag == -w[:, 1].imag).all()
    want = np.sort_complex(np.linalg.eigvals(a / scales(a)[:, None, None]))
    found = np.sort_complex(w / scales(a)[:, None])
    # A double eigenvalue is known to half the digits only.
    assert np.abs(found - want).max() < 1e-7


def test_signs_and_order_are_those_of_quadrants(dt):
    cases = [
        ([[1, 2], [3, 4]], [[-0.404554, -0.914514], [-0.914514, 0.404554]],
         [[-0.576048, 0.817416], [-0.817416, -0.576048]]),
        ([[1, 0], [0, 5]], [[0, 1], [-1, 0]], [[0, 1], [-1, 0]]),
        ([[0, 1], [1, 0]], [[0, 1], [1, 0]], [[1, 0], [0, 1]]),
        ([[0, 1], [0, 0]], [[-1, 0], [0, -1]], [[0, 1], [-1, 0]]),
        ([[1, 2, 3], [4, 5, 6], [7, 8, 10]],
         [[-0.209337, 0.964385, 0.161676], [-0.503849, 0.035321, -0.86307],
          [-0.838042, -0.262133, 0.47851]],
         [[-0.464668, -0.833286, -0.29953], [-0.553755, 0.009499, 0.832626],
          [-0.69097, 0.55276, -0.46585]]),
        ([[1, 0, 0], [0, 2, 0], [0, 0, -3]], [[0, 0, -1], [0, 1, 0], [1, 0, 0]],
         [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]),
    ]  # fmt: skip
    for a, u, v in cases:
        found = qd.svd(qd.Matrix(a), qd.f64)
        np.testing.assert_allclose(found[0].to_numpy(), u, atol=1e-6)
        np.testing.assert_allclose(found[2].to_numpy(), v, atol=1e-6)
    w, q = qd.sym_eig(qd.Matrix([[0.38, -0.93], [-0.93, -4.88]]), qd.f64)
    np.testing.assert_allclose(w.to_numpy(), [-5.039588, 0.539588], atol=1e-6)
    np.testing.assert_allclose(
        q.to_numpy(), [[0.169128, 0.985594], [0.985594, -0.169128]], atol=1e-6
    )
    w, x = qd.eig(qd.Matrix([[1, 2], [3, 4]]), qd.f64)
    np.testing.assert_allclose(w.to_numpy(), [[5.372281, 0], [-0.372281, 0]], atol=1e-6)
    want = [[0.415974, -0.824565], [0, 0], [0.909377, 0.565767], [0, 0]]
    np.testing.assert_allclose(x.to_numpy(), want, atol=1e-6)


@qd.kernel
def at_the_top(a: M2, out: qd.types.ndarray(dtype=qd.f64, ndim=1)):
    u, s, v = qd.svd(a)
    b = u @ s @ v.transpose()
    w, _q = qd.sym_eig(a.transpose() @ a)
    out[0] = b[0, 0]
    out[1] = b[1, 0]
    out[2] = w[1] - s[0, 0] ** 2


def test_outside_of_loops_in_the_default_type(dt):
    out = np.zeros(3)
    at_the_top(M2(1, 2, 3, 4), out)
    np.testing.assert_allclose(out, [1, 3, 0], atol=1e-4)


MISTAKES = {
    "qd.svd(qd.Matrix.identity(float, 4))": "SVD only supports 2×2 to 3×3 matrices, not 4×4",
    "qd.svd(qd.Matrix.zero(float, 2, 3))": "SVD only supports",
    "qd.polar_decompose(qd.Matrix.identity(float, 1))": "Polar decomposition only supports",
    "qd.eig(qd.Matrix.identity(float, 3))": "Eigen solver only supports 2×2 matrices, not 3×3",
    "qd.sym_eig(qd.Matrix.identity(float, 7))": "Symmetric eigen solver only supports 1×1 to 6×6",
    "qd.make_spd(qd.Matrix.identity(float, 7))": "make_spd only supports 1×1 to 6×6",
    "qd.solve(qd.Matrix.identity(float, 4), qd.Vector([1.0, 2.0, 3.0, 4.0]))": "solve only",
    "qd.solve(qd.Matrix.identity(float, 2), qd.Vector([1.0, 2.0, 3.0]))": "A has 2 rows, b 3",
    "qd.svd(qd.Matrix.identity(float, 2), qd.i32)": "i32 is no type of real numbers",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_say_what_is_wrong(text, tmp_path):
    with pytest.raises(TypeError, match=MISTAKES[text]):
        eval(text, {"qd": qd})
    qd.init(arch=qd.interp, log_level="error")
    try:
        kernel = load(f"@qd.kernel\ndef k():\n    x = {text}\n", tmp_path)["k"]
        with pytest.raises(qd.QuadrantsCompilationError, match=MISTAKES[text]):
            kernel()
    finally:
        qd.reset()
