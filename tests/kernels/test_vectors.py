"""Vectors and matrices in kernels: values, on both backends, against NumPy."""

import numpy as np
import pytest
from qd_studio import engine as qd


@pytest.fixture(params=("cpu", "interp"), autouse=True)
def _start(request):
    qd.init(arch=getattr(qd, request.param), log_level="error")
    yield
    qd.reset()


F = qd.types.ndarray(dtype=qd.f32, ndim=1)
N = qd.types.ndarray(dtype=qd.i32, ndim=1)
vec2, vec3 = qd.types.vector(2, qd.f32), qd.types.vector(3, qd.f32)
mat2 = qd.types.matrix(2, 2, qd.f32)
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
def literals(out: F):
    put(out, 0, qd.Vector([1, 2.5]))
    put(out, 2, qd.Matrix([[1, 2], [3, 4.5]]))
    put(out, 6, vec3(vec2(7, 8), 9))
    put(out, 9, vec2(3))
    put(out, 11, mat2([1, 2], vec2(3, 4)))


def test_literals_and_typed_calls():
    want = [1, 2.5, 1, 2, 3, 4.5, 7, 8, 9, 3, 3, 1, 2, 3, 4, 0]
    assert run(literals).tolist() == want


@qd.kernel
def named_makers(out: F):
    put(out, 0, qd.Matrix.zero(qd.f32, 2) + 5)
    put(out, 2, qd.Matrix.one(qd.i32, 2))
    put(out, 4, qd.Matrix.identity(qd.f32, 2))
    put(out, 8, qd.Matrix.unit(3, 1))
    put(out, 11, qd.Matrix.diag(2, 1.5))
    put(out, 15, qd.Matrix.rows([qd.Vector([1, 2]), [3, 4]]))
    put(out, 19, qd.Matrix.cols([qd.Vector([1, 2]), [3, 4]]))


def test_named_constructors():
    got = run(named_makers, count=23).tolist()
    assert got == [5, 5, 1, 1, 1, 0, 0, 1, 0, 1, 0, 1.5, 0, 0, 1.5, 1, 2, 3, 4, 1, 3, 2, 4]


@qd.kernel
def arithmetic(out: F, a: F, b: F):
    u, v = qd.Vector([a[0], a[1], a[2]]), qd.Vector([b[0], b[1], b[2]])
    put(out, 0, u + v * 2)
    put(out, 3, 1 - u / v)
    put(out, 6, u**2 - v % 2)
    put(out, 9, -u // v)
    put(out, 12, qd.select(u < v, u, v) + qd.min(u, 0.5))
    w = u
    w += v
    w *= [2, 3, 4]
    w -= 1
    put(out, 15, w)


def test_arithmetic_is_by_element():
    a, b = RNG.uniform(0.2, 3, 3).astype(np.float32), RNG.uniform(0.2, 3, 3).astype(np.float32)
    want = [a + b * 2, 1 - a / b, a**2 - b % 2, -a // b, np.minimum(a, b) + np.minimum(a, 0.5)]
    want.append((a + b) * np.float32([2, 3, 4]) - 1)
    got = run(arithmetic, a, b, count=18)
    np.testing.assert_allclose(got, np.concatenate(want), rtol=2e-6)


@qd.kernel
def products(out: F, a: F):
    m = qd.Matrix([[a[0], a[1], a[2]], [a[3], a[4], a[5]]])
    v = qd.Vector([a[0], a[5], a[2]])
    put(out, 0, m @ v)
    put(out, 2, m @ m.transpose())
    put(out, 6, qd.Vector([a[1], a[3]]) @ m)
    out[9] = v @ v
    out[10] = v.dot(v + 1)
    put(out, 11, v.cross(v.zxy))
    put(out, 14, v.outer_product(v.xy))


def test_products():
    a = RNG.standard_normal(6).astype(np.float32)
    m, v = a.reshape(2, 3), a[[0, 5, 2]]
    want = [
        m @ v, (m @ m.T).ravel(), a[[1, 3]] @ m, [v @ v, v @ (v + 1)], np.cross(v, v[[2, 0, 1]]),
        np.outer(v, v[:2]).ravel(),
    ]  # fmt: skip
    np.testing.assert_allclose(run(products, a, count=20), np.concatenate(want), rtol=1e-5)


@qd.kernel
def reductions(out: F, a: F):
    v = qd.Vector([a[0], a[1], a[2]])
    out[0] = v.sum()
    out[1] = v.max()
    out[2] = v.min()
    out[3] = v.norm()
    out[4] = v.norm_sqr()
    out[5] = v.norm_inv()
    out[6] = v.norm(0.5)
    put(out, 7, v.normalized())
    out[10] = (v > 0).all()
    out[11] = (v > 0).any()
    out[12] = v.normalized(0.5).x


def test_reductions():
    a = np.float32([3, -4, 12])
    got = run(reductions, a)
    want = [11, 12, -4, 13, 169, 1 / 13, np.sqrt(169.5), 3 / 13, -4 / 13, 12 / 13, 0, 1, 3 / 13.5]
    np.testing.assert_allclose(got[:13], want, rtol=1e-6)


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


@qd.kernel
def swizzles(out: N):
    v = qd.Vector([1, 2, 3, 4])
    v.xy = v.yx
    v.zw += 10
    v.a *= 2
    v.rg = 7
    put(out, 0, v)
    put(out, 4, v.wzx)
    out[7] = v.q
    u = qd.Vector([1, 2])
    u.x, u.y = u.y, u.x
    put(out, 8, u)


def test_swizzles_are_read_and_written():
    assert run(swizzles, count=10, dtype=np.int32).tolist() == [7, 7, 13, 28, 28, 13, 7, 28, 2, 1]


@qd.kernel
def slices(out: N):
    m = qd.Matrix([[1, 2, 3], [4, 5, 6]])
    m[1, :] = m[0, :] * 10
    m[:, 2] += [1, 2]
    put(out, 0, m)
    v = qd.Vector([1, 2, 3, 4])
    v[1:3] = v[:2]
    v[::2] += 100
    put(out, 6, v)
    put(out, 10, m[0:2, 1:3])


def test_slices_are_read_and_written():
    want = [1, 2, 4, 10, 20, 32, 101, 1, 102, 4, 2, 4, 20, 32]
    assert run(slices, count=14, dtype=np.int32).tolist() == want


@qd.kernel
def values_are_copied(out: N):
    a = qd.Vector([1, 2])
    b = a
    b.x = 50
    put(out, 0, a)
    a, b = b, a
    put(out, 2, a)
    put(out, 4, b)
    rows = [a, b]
    rows[0].y = 9
    put(out, 6, a)
    put(out, 8, rows[0])
    r = qd.Matrix([[1, 2], [3, 4]])
    t = r.transpose()
    r[0, 1] = 8
    put(out, 10, t)


def test_assignment_copies():
    got = run(values_are_copied, count=14, dtype=np.int32).tolist()
    assert got == [1, 2, 50, 2, 1, 2, 50, 2, 50, 9, 1, 3, 2, 4]


@qd.func
def by_value(v):
    v[0] = 9
    v.y += 1
    v.fill(v.y)
    return v


@qd.func
def by_reference(v: qd.template(), k):
    v[k] = 9


@qd.kernel
def passed(out: N):
    v = qd.Vector([1, 2])
    w = by_value(v)
    put(out, 0, v)
    put(out, 2, w)
    by_reference(v, 1)
    put(out, 4, v)


def test_functions_get_copies_or_references():
    assert run(passed, count=6, dtype=np.int32).tolist() == [1, 2, 3, 3, 1, 9]


@qd.kernel
def types_of_locals(out: F):
    v = qd.Vector([1, 2])
    v[0] += 1.9
    v.y = 2.9
    put(out, 0, v)
    w = qd.Vector([1, 2.5])
    w = [3, 4]
    put(out, 2, w)
    v = 5
    put(out, 4, v)
    u: vec2 = [1, 2]
    put(out, 6, u / 4)
    t: qd.f32 = qd.Vector([1, 2])
    put(out, 8, t / 4)


def test_the_first_assignment_fixes_the_type():
    assert run(types_of_locals, count=10).tolist() == [2, 2, 3, 4, 5, 5, 0.25, 0.5, 0.25, 0.5]


@qd.kernel
def conditions(out: N, k: qd.i32):
    a, b = qd.Vector([1, 0, 2]), qd.Vector([1, 5, 0])
    put(out, 0, a and b)
    put(out, 3, a or b)
    put(out, 6, not a)
    put(out, 9, a if a < b else b)
    put(out, 12, a if k > 0 else b)
    put(out, 15, a if k > 1 else 7)
    if (a == b).any() and not (a == b).all():
        out[18] = 1


def test_conditions():
    got = run(conditions, 1, count=19, dtype=np.int32).tolist()
    want = [1, 0, 0, 1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 0, 2, 7, 7, 7, 1]
    assert got == want


GRAVITY = qd.Vector([0.5, -9.0])
TURN = qd.Matrix([[0, -1], [1, 0]])
STEPS = [qd.Vector([0, 1]), qd.Vector([1, 0])]


@qd.kernel
def captured(out: F):
    put(out, 0, TURN @ GRAVITY + GRAVITY.y)
    for k in qd.static(range(2)):
        put(out, 2 + 2 * k, STEPS[k] * 3)
    for step in qd.static(STEPS):
        out[6] += step.x
    out[7] = qd.static(TURN.n) + len(GRAVITY)


def test_values_of_python_scope_are_captured():
    assert run(captured, count=8).tolist() == [0, -8.5, 0, 3, 3, 0, 1, 4]


@qd.kernel
def functions(out: F, a: F):
    v = qd.Vector([a[0], a[1]])
    put(out, 0, qd.sin(v) + qd.cos(v) * qd.exp(v) - qd.sqrt(v))
    put(out, 2, qd.max(v, 1.0, v * 2) + qd.abs(-v))
    put(out, 4, qd.floor(v) + qd.round(v) + qd.ceil(v))
    put(out, 6, qd.atan2(v, 2.0) + qd.pow(v, 3))
    put(out, 8, qd.cast(v, qd.i32))
    put(out, 10, qd.math.clamp(v, 0.5, 1.0) + qd.math.fract(v))
    put(out, 12, qd.math.mix(v, 2.0, 0.25) + qd.math.step(1.0, v))
    put(out, 14, qd.bit_cast(qd.bit_cast(v, qd.i32), qd.f32))


def test_functions_apply_to_each_element():
    a = np.float32([0.3, 1.7])
    want = [
        np.sin(a) + np.cos(a) * np.exp(a) - np.sqrt(a), np.maximum(np.maximum(a, 1), a * 2) + a,
        np.floor(a) + np.round(a) + np.ceil(a), np.arctan2(a, 2) + a**3, np.trunc(a),
        np.clip(a, 0.5, 1) + a % 1, a * 0.75 + 0.5 + (a >= 1), a,
    ]  # fmt: skip
    np.testing.assert_allclose(run(functions, a), np.concatenate(want), rtol=2e-6)
