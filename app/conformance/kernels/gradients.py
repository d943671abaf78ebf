"""Kernels differentiated in reverse mode, with values kept on adstacks."""

import math

import numpy as np

from .... import engine as qd
from ..feature import Group
from .kit import of

__all__ = ["EXACT", "real"]

feature = Group("gradients", "Gradients", ("gradients",))
STACKS = {"ad_stack_experimental_enabled": True}
EXACT = {"needs": ("f64",), "rtol": 1e-12, "default_fp": qd.f64, **STACKS}


def real(shape=(), dtype=qd.f64, values=None):
    x = qd.field(dtype, shape=shape, needs_grad=True)
    if values is not None:
        x.from_numpy(np.array(values, dtype.np))
    return x


def gradient(kernel, result, variable, *arguments):
    """Return the derivative of the sum of ``result``, which the kernel writes, by ``variable``."""
    kernel(*arguments)
    result.grad.fill(1)
    kernel.grad(*arguments)
    return variable.grad.to_numpy()


@feature("elements computed from elements", [[0.25, 1.0, 2.25], [1.0, 2.0, 3.0]], rtol=1e-6)
def elementwise():
    x, y = real(3, qd.f32, [1, 2, 3]), real(3, qd.f32)

    @qd.kernel
    def k(scale: qd.f32):
        for i in x:
            y[i] = scale * x[i] ** 2

    k(0.25)
    y.grad.fill(2)
    k.grad(0.25)
    return [y.to_numpy(), x.grad.to_numpy()]


@feature("a sum into one number, by a tape", [14.0, [2.0, 4.0, 6.0]], **EXACT)
def summed():
    x, loss = real(3, values=[1, 2, 3]), real()

    @qd.kernel
    def k():
        for i in x:
            loss[None] += x[i] ** 2

    with qd.ad.Tape(loss):
        k()
    return [loss[None], x.grad.to_numpy()]


@feature("several kernels on a tape", [42.0, [6.0, 12.0, 18.0]], **EXACT)
def chained():
    x, y, loss = real(3, values=[1, 2, 3]), real(3), real()

    @qd.kernel
    def square():
        for i in x:
            y[i] = x[i] * x[i]

    @qd.kernel
    def add(factor: qd.f64):
        for i in y:
            loss[None] += factor * y[i]

    with qd.ad.Tape(loss):
        square()
        add(3.0)
    return [loss[None], x.grad.to_numpy()]


@feature("ndarrays with gradients", [[10.0, 20.0, 30.0]], **EXACT)
def arrays():
    A = qd.types.ndarray(dtype=qd.f64, ndim=1, needs_grad=True)

    @qd.kernel
    def k(x: A, y: A):
        for i in x:
            y[0] += 5.0 * x[i] * x[i]

    x, y = qd.ndarray(qd.f64, 3, needs_grad=True), qd.ndarray(qd.f64, 1, needs_grad=True)
    x.from_numpy(np.array([1.0, 2.0, 3.0]))
    return [gradient(k, y, x, x, y)]


_FUNCTIONS = {
    "sin": math.cos, "cos": lambda x: -math.sin(x), "tan": lambda x: 1 / math.cos(x) ** 2,
    "asin": lambda x: 1 / math.sqrt(1 - x * x), "acos": lambda x: -1 / math.sqrt(1 - x * x),
    "tanh": lambda x: 1 - math.tanh(x) ** 2, "exp": math.exp, "log": lambda x: 1 / x,
    "sqrt": lambda x: 0.5 / math.sqrt(x), "rsqrt": lambda x: -0.5 * x**-1.5, "abs": lambda x: 1.0,
}  # fmt: skip


@feature("derivatives of the functions of numbers", [f(0.4) for f in _FUNCTIONS.values()], **EXACT)
def functions():
    x, y = real(len(_FUNCTIONS)), real(len(_FUNCTIONS))
    calls = [getattr(qd, name) for name in _FUNCTIONS]

    @qd.kernel
    def k():
        for _ in range(1):
            for n in qd.static(range(len(calls))):
                y[n] = calls[n](x[n])

    x.fill(0.4)
    return gradient(k, y, x)


@feature(
    "quotients, powers, atan2, min, select",
    [1 / 3, -2 / 9, 12.0, 8 * math.log(2), 3 / 13, -2 / 13, 1.0, 0.0, 5.0],
    **EXACT,
)
def operators():
    a, b, y = real(5), real(5), real(5)

    @qd.kernel
    def k():
        for _ in range(1):
            y[0] = a[0] / b[0]
            y[1] = a[1] ** b[1]
            y[2] = qd.atan2(a[2], b[2])
            y[3] = qd.min(a[3], b[3])
            y[4] = qd.select(a[4] > 1.0, 5.0 * a[4], b[4])

    a.fill(2)
    b.fill(3)
    da, db = gradient(k, y, a), b.grad.to_numpy()
    return [da[0], db[0], da[1], db[1], da[2], db[2], da[3], db[3], da[4]]


@feature("branches that depend on the data", [[2.0, -3.0, 4.0, -3.0]], **EXACT)
def branches():
    x, y = real(4, values=[1, -1, 2, -2]), real(4)

    @qd.kernel
    def k():
        for i in x:
            if x[i] > 0:
                y[i] = x[i] * x[i]
            else:
                y[i] = -3.0 * x[i]

    return [gradient(k, y, x)]


@feature("a loop whose variable is carried on a stack", [[0.5 * 5 * 1.5**4, 1.0]], **EXACT)
def stacked():
    x, n, y = real(2, values=[1.5, 2.0]), qd.field(qd.i32, shape=2), real(2)
    n.from_numpy(of(qd.i32, 5, 1))

    @qd.kernel
    def k():
        for i in x:
            v = 1.0
            for _ in range(n[i]):
                v *= x[i]
            y[i] = v * (0.5 if i == 0 else 1.0)

    return [gradient(k, y, x)]


_SIN = math.sin(0.7)


@feature("a non-linear loop: sin of sin of sin",
         [math.cos(0.7) * math.cos(_SIN) * math.cos(math.sin(_SIN))], **EXACT)  # fmt: skip
def composed():
    x, y = real(1, values=[0.7]), real(1)

    @qd.kernel
    def k(n: qd.i32):
        for i in x:
            v = x[i]
            for _ in range(n):
                v = qd.sin(v)
            y[i] = v

    return gradient(k, y, x, 3)


@feature("loops in loops with bounds of other loops and of data", [[1.0, 2.0, 14.0]], **EXACT)
def nested():
    x, y = real(3, values=[1, 1, 1]), real(3)

    @qd.kernel
    def k():
        for i in x:
            v = x[i]
            for a in range(i):
                for _b in range(a + 1):
                    v = v * x[i]
            y[i] = v * (1.0 if i < 2 else 3.5)

    return [gradient(k, y, x)]


@feature("f32 with stacks of f32 and of integers", [[12.0, 27.0]], rtol=1e-5, **STACKS)
def single():
    x, y = real(2, qd.f32, [2, 3]), real(2, qd.f32)

    @qd.kernel
    def k(n: qd.i32):
        for i in x:
            v = 1.0
            m = 0
            for j in range(n):
                m += 1
                if m % 2 == 1 or j == 1:
                    v = v * x[i]
            y[i] = v

    return [gradient(k, y, x, 3)]


@feature("elements at indices that arrays hold", [[6.0, 0.0, 0.0, 4.0]], **EXACT)
def gathered():
    x, at, loss = real(4, values=[1, 2, 3, 1]), qd.field(qd.i32, shape=4), real()
    at.from_numpy(of(qd.i32, 3, 0, 3, 0))

    @qd.kernel
    def k():
        for i in at:
            loss[None] += x[at[i]] * (i + 1.0)

    with qd.ad.Tape(loss):
        k()
    return [x.grad.to_numpy()]


@feature("vectors and matrices", [[2.0, 4.0], [[1.0, 2.0], [1.0, 2.0]]], **EXACT)
def compound():
    v = qd.Vector.field(2, qd.f64, shape=1, needs_grad=True)
    m = qd.Matrix.field(2, 2, qd.f64, shape=1, needs_grad=True)
    loss = real()

    @qd.kernel
    def squares():
        for i in v:
            loss[None] += v[i].norm_sqr()

    @qd.kernel
    def products():
        for i in m:
            loss[None] += (m[i] @ qd.Vector([1.0, 2.0])).sum()

    v[0] = [1.0, 2.0]
    with qd.ad.Tape(loss):
        squares()
        products()
    return [v.grad.to_numpy()[0], m.grad.to_numpy()[0]]


@feature("functions, and several results of them", [[7.0, 11.0]], **EXACT)
def called():
    @qd.func
    def both(a):
        return a * a, 3.0 * a

    x, loss = real(2, values=[2, 4]), real()

    @qd.kernel
    def k():
        for i in x:
            p, q = both(x[i])
            loss[None] += p + q

    with qd.ad.Tape(loss):
        k()
    return [x.grad.to_numpy()]


@feature("members of structs and members of dataclass arguments", [[3.0, 3.0]], **EXACT)
def members():
    s = qd.types.struct(a=qd.f64, b=qd.f64).field(shape=2, needs_grad=True)
    loss = real()

    @qd.kernel
    def k():
        for i in s:
            loss[None] += s[i].a * s[i].b

    for i in range(2):
        s[i].a = 2.0
        s[i].b = 3.0
    with qd.ad.Tape(loss):
        k()
    return [s.a.grad.to_numpy()]


@feature("a kernel with several loops is differentiated backwards", [[48.0, 48.0]], **EXACT)
def ordered():
    x, y, z = real(2, values=[2, 2]), real(2), real(2)

    @qd.kernel
    def k():
        for i in x:
            y[i] = x[i] * x[i]
        for i in x:
            z[i] = y[i] * x[i] * 4.0

    return [gradient(k, z, x)]


@feature("loops whose iterations are gated by data", [[0.0, 12.0, 0.0, 27.0]], **EXACT)
def gated():
    x, y, active = real(4, values=[1, 2, 3, 3]), real(4), qd.field(qd.i32, shape=4)
    active.from_numpy(of(qd.i32, 0, 1, 0, 1))

    @qd.kernel
    def k():
        for i in x:
            if active[i] > 0:
                v = x[i]
                for _ in range(2):
                    v = v * x[i]
                y[i] = v

    return [gradient(k, y, x)]


@feature("the longest of many loops sizes the stacks", [[float(n) for n in range(200)]], **EXACT)
def ragged():
    x, y, n = real(200), real(200), qd.field(qd.i32, shape=200)
    x.fill(1)
    n.from_numpy(np.arange(200, dtype=np.int32))

    @qd.kernel
    def k():
        for i in x:
            v = 1.0
            for _ in range(n[i]):
                v = v * x[i]
            y[i] = v

    return [gradient(k, y, x)]


@feature(
    "a stack that overflows is an error", ["AdStackOverflowError", 0, 0], ad_stack_size=2, **STACKS
)
def overflow():
    x, y = real(2, qd.f32, [1, 1]), real(2, qd.f32)

    @qd.kernel
    def k(n: qd.i32):
        for i in x:
            v = x[i]
            for _ in range(n):
                v = qd.sin(v)
            y[i] = v

    k(5)
    y.grad.fill(1)
    try:
        k.grad(5)
        qd.sync()
    except qd.AdStackOverflowError as error:
        return [type(error).__name__, error.task, error.stack]
    return ["nothing"]
