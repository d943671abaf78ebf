"""debug_nan: the operation, the iteration and the kind, in programs as users write them.

The line of the operation ends in ``# here``."""

import importlib.util

import numpy as np
import pytest
from qd_studio import engine as qd

HEAD = """
from qd_studio import engine as qd

F = qd.types.ndarray(qd.f32, 1)
D = qd.types.ndarray(qd.f64, 1)
H = qd.types.ndarray(qd.f16, 1)
I = qd.types.ndarray(qd.i32, 1)
V3 = qd.types.ndarray(qd.types.vector(3, qd.f32), 1)
M2 = qd.types.ndarray(qd.types.matrix(2, 2, qd.f32), 1)
"""


def f16(*values):
    return np.array(values, np.float16)


def f32(*values):
    return np.array(values, np.float32)


def f64(*values):
    return np.array(values, np.float64)


def i32(*values):
    return np.array(values, np.int32)


def zeros(n=4):
    return np.zeros(n, np.float32)


CASES = [
    ("vec div zeros", """
@qd.kernel
def k(x: V3, y: V3):
    for i in x:
        a = x[i]
        y[i] = a / a  # here
""", lambda: (np.array([[1, 2, 3], [1, 0, 3], [0, 0, 0]], np.float32),
    np.zeros((3, 3), np.float32)), 1, "made"),
    ("sqrt in func in loop", """
@qd.func
def g(v):
    return qd.sqrt(v) * 0.5  # here
@qd.kernel
def k(x: F, y: F):
    for i in x:
        t = 0.0
        for j in range(3):
            t += g(x[i] - j)
        y[i] = t
""", lambda: (f32(5, 6, 1, 7), zeros()), 2, "made"),
    ("inf-inf in a reduction", """
@qd.kernel
def k(x: F, y: F):
    for i in range(1):
        s = 0.0
        for j in range(4):
            s += x[j] * 1e30  # here
        y[0] = s - 1.0
""", lambda: (f32(1e10, -1e10, 1, 2), zeros()), 0, "made"),
    ("pow neg", """
@qd.kernel
def k(x: F, y: F):
    for i in x:
        y[i] = x[i] ** 1.5  # here
""", lambda: (f32(1, 2, -3, -4), zeros()), 2, "made"),
    ("log0 mid", """
@qd.kernel
def k(x: F, y: F):
    for i in x:
        p = x[i] / 10.0
        q = p * qd.log(p)  # here
        y[i] = -q
""", lambda: (f32(1, 2, 0, 4), zeros()), 2, "made"),
    ("acos slightly", """
@qd.kernel
def k(x: F, y: F):
    for i in x:
        c = x[i]
        y[i] = qd.acos(c) * 57.3  # here
""", lambda: (f32(1, 0.5, 1.0000002, .2), zeros()), 2, "made"),
    ("atomic overflow f32", """
@qd.kernel
def k(x: F, y: F):
    for i in x:
        qd.atomic_add(y[0], x[i])  # here
""", lambda: (f32(1e38, 2e38, 3e38, 1e38), zeros()), None, "made"),
    ("f16 product", """
@qd.kernel
def k(x: H, y: H):
    for i in x:
        a = x[i]
        b = a * a  # here
        y[i] = b * qd.cast(0.5, qd.f16)
""", lambda: (f16(1, 200, 300, 2), np.zeros(4, np.float16)), 2, "made"),
    ("nan argument", """
@qd.kernel
def k(x: F, y: F, a: qd.f32):  # here
    for i in x:
        y[i] = x[i] * a
""", lambda: (f32(1, 2, 3, 4), zeros(), float("nan")), 0, "argument"),
    ("int div zero", """
@qd.kernel
def k(x: I, y: F):
    for i in x:
        n = x[i] - 2
        y[i] = 1.0 / n  # here
""", lambda: (i32(5, 4, 2, 1), zeros()), 2, "made"),
    ("selected away", """
@qd.kernel
def k(x: F, y: F):
    for i in x:
        r = qd.sqrt(x[i])
        s = qd.select(x[i] >= 0.0, r, 0.0)
        y[i] = s + 1.0 / (x[i] - 2.0)  # here
""", lambda: (f32(-5, 4, 2, 1), zeros()), 2, "made"),
    ("matrix inverse singular", """
@qd.kernel
def k(x: M2, y: M2):
    for i in x:
        y[i] = x[i].inverse()  # here
""", lambda: (np.array([[[1, 0], [0, 1]], [[1, 2], [2, 4]]], np.float32),
    np.zeros((2, 2, 2), np.float32)), 1, "made"),
    ("normalize zero", """
@qd.kernel
def k(x: V3, y: V3):
    for i in x:
        n = x[i].normalized()  # here
        y[i] = n * 2.0
""", lambda: (np.array([[1, 2, 3], [0, 0, 0]], np.float32),
    np.zeros((2, 3), np.float32)), 1, "made"),
    ("tan/atan ok, then 0*inf", """
@qd.kernel
def k(x: F, y: F):
    for i in x:
        a = qd.exp(x[i] * 100.0)  # here
        b = 1.0 / a
        y[i] = a * b
""", lambda: (f32(0, .1, 2, .3), zeros()), 2, "made"),
    ("f64 exp", """
@qd.kernel
def k(x: D, y: D):
    for i in x:
        y[i] = qd.exp(x[i])  # here
""", lambda: (f64(1, 700, 710, 3), np.zeros(4)), 2, "made"),
    ("cast f64->f32", """
@qd.kernel
def k(x: D, y: F):
    for i in x:
        y[i] = qd.cast(x[i] * 2.0, qd.f32) / 1e30  # here
""", lambda: (f64(1, 1e30, 3e38, 3), zeros()), 2, "made"),
    ("mod zero", """
@qd.kernel
def k(x: F, y: F):
    for i in x:
        y[i] = 5.0 % x[i]  # here
""", lambda: (f32(1, 2, 0, 4), zeros()), 2, "made"),
    ("while newton", """
@qd.kernel
def k(x: F, y: F):
    for i in x:
        t = x[i]
        n = 0
        while n < 4:
            t = t - (t * t - 2.0) / (2.0 * t)  # here
            n += 1
        y[i] = t
""", lambda: (f32(1, 2, 0, 4), zeros()), 2, "made"),
    ("loaded", """
@qd.kernel
def k(x: F, y: F):
    for i in x:
        y[i] = x[i] + 1.0  # here
""", lambda: (f32(1, 2, np.nan, 4), zeros()), 2, "loaded"),
    ("second task", """
@qd.kernel
def k(x: F, y: F):
    for i in x:
        y[i] = x[i] - 2.0
    for i in x:
        x[i] = 1.0 / y[i]  # here
""", lambda: (f32(1, 4, 2, 4), zeros()), 2, "made"),
    ("early return func", """
@qd.func
def g(v):
    r = 0.0
    if v > 0.0:
        r = qd.log(v - 1.0)  # here
    return r
@qd.kernel
def k(x: F, y: F):
    for i in x:
        y[i] = g(x[i])
""", lambda: (f32(-1, 4, 1, 4), zeros()), 2, "made"),
    ("min hides nan", """
@qd.kernel
def k(x: F, y: F):
    for i in x:
        y[i] = qd.rsqrt(x[i]) * 0.0 + 1.0  # here
""", lambda: (f32(1, 4, 0, 4), zeros()), 2, "made"),
    ("atan2 fine hypot overflow", """
@qd.kernel
def k(x: F, y: F):
    for i in x:
        a = qd.atan2(x[i], x[i])
        l = qd.sqrt(x[i] * x[i] + 1.0)  # here
        y[i] = l + a
""", lambda: (f32(1, 4, 1e25, 4), zeros()), 2, "made"),
    ("softmax", """
@qd.kernel
def k(x: F, y: F):
    for i in range(1):
        s = 0.0
        for j in range(4):
            s += qd.exp(x[j])  # here
        for j in range(4):
            y[j] = qd.exp(x[j]) / s
""", lambda: (f32(1, 4, 100, 4), zeros()), 0, "made"),
    ("u32 cast", """
@qd.kernel
def k(x: F, y: F):
    for i in x:
        u = qd.cast(x[i], qd.i32)
        y[i] = qd.sqrt(qd.cast(u - 3, qd.f32))  # here
""", lambda: (f32(3.5, 4.5, 2.5, 9), zeros()), 2, "made"),
    ("variance", """
@qd.kernel
def k(x: F, y: F):
    for i in x:
        m = x[i]
        v = x[i] * x[i] - m * m - 1e-6
        y[i] = qd.sqrt(v)  # here
""", lambda: (f32(3, 4, 5, 6), zeros()), 0, "made"),
    ("atomic sub inf", """
@qd.kernel
def k(x: F, y: F):
    for i in x:
        y[i] -= x[i] * 2.0  # here
""", lambda: (f32(3, 4, 2e38, 6), zeros()), 2, "made"),
    ("nested 2d", """
@qd.kernel
def k(x: qd.types.ndarray(qd.f32, 2), y: qd.types.ndarray(qd.f32, 2)):
    for i, j in x:
        y[i, j] = (x[i, j] - 1.0) / (x[i, j] - 1.0)  # here
""", lambda: (np.array([[0, 2], [1, 3]], np.float32),
    np.zeros((2, 2), np.float32)), (1, 0), "made"),
    ("struct like dot", """
@qd.kernel
def k(x: V3, y: F):
    for i in x:
        n = x[i].norm()
        y[i] = qd.acos(x[i].dot(x[i]) / (n * n) * 1.5)  # here
""", lambda: (np.array([[1, 2, 3], [0, 1, 0]], np.float32), zeros(2)), 0, "made"),
    ("tanh fine, cosh-like", """
@qd.kernel
def k(x: F, y: F):
    for i in x:
        e = qd.exp(x[i])  # here
        g = qd.exp(-x[i])
        y[i] = (e - g) / (e + g)
""", lambda: (f32(3, 4, 200, 6), zeros()), 2, "made"),
    ("asin norm", """
@qd.kernel
def k(x: F, y: F):
    for i in x:
        y[i] = qd.asin(x[i] * 2.0) + qd.sqrt(4.0)  # here
""", lambda: (f32(.1, .2, .7, .3), zeros()), 2, "made"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_the_origin(case, tmp_path):
    _, text, arguments, iteration, kind = case
    path = tmp_path / "program.py"
    path.write_text(HEAD + text)
    lines = path.read_text().split("\n")
    (line,) = [i for i, text in enumerate(lines, 1) if text.endswith("# here")]
    spec = importlib.util.spec_from_file_location("program", path)
    module = importlib.util.module_from_spec(spec)
    # With fast_math x / x is 1, and x * 0 is 0.
    qd.init(arch=qd.cpu, debug_nan=True, fast_math=False, offline_cache=False)
    spec.loader.exec_module(module)
    with pytest.raises(qd.NanError) as caught:
        module.k(*arguments())
    error = caught.value
    assert error.kind == kind
    # The last location is the innermost.
    places = [row for row in str(error).split("(kernel=")[0].split("\n") if ", line " in row]
    assert f", line {line}, in" in places[-1]
    if iteration is not None:
        wanted = iteration if isinstance(iteration, tuple) else (iteration,)
        assert tuple(error.iteration) == wanted
