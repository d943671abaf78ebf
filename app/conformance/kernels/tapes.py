"""Tapes and what they pass over, what has no gradient, forward mode."""

import numpy as np

from .... import engine as qd
from ..feature import Group
from .gradients import EXACT, real

feature = Group("tapes", "Tapes", ("gradients",))


@feature("stop_grad, and functions whose gradients are replaced", [[3.0, 3.0], [1.0, 1.0]], **EXACT)
def replaced():
    x, loss = real(2, values=[3, 3]), real()

    @qd.kernel
    def k():
        for i in x:
            factor = x[i]
            if factor > 0:
                qd.stop_grad(x)
                loss[None] += factor * x[i]

    @qd.kernel
    def through():
        for i in x:
            x.grad[i] += loss.grad[None]

    @qd.ad.grad_replaced
    def rough():
        k()

    @qd.ad.grad_for(rough)
    def rough_grad():
        through()

    with qd.ad.Tape(loss):
        k()
    first = x.grad.to_numpy().copy()
    with qd.ad.Tape(loss):
        rough()
    return [first, x.grad.to_numpy()]


@feature("no_grad: kernels that a tape passes over", [3.0, 6.0], **EXACT)
def passed_over():
    x, y = real(values=1.0), real()

    @qd.kernel
    def add():
        y[None] += 3 * x[None]

    @qd.ad.no_grad
    def warm_up():
        add()

    with qd.ad.Tape(y):
        warm_up()
        add()
    return [x.grad[None], y[None]]


@feature(
    "a tape that checks the rule of access",
    ["QuadrantsAssertionError", [8.0, 8.0]],
    ("checks", "f64"),
    default_fp=qd.f64,
    debug=True,
)
def validated():
    x, loss = real(2, values=[4, 4]), real()

    @qd.kernel
    def k():
        for i in x:
            loss[None] += x[i] * x[i]

    @qd.kernel
    def spoil():
        x[1] = 0.0

    with qd.ad.Tape(loss, validation=True):
        k()
    first = x.grad.to_numpy().copy()
    try:
        with qd.ad.Tape(validation=True):
            k()
            spoil()
    except qd.QuadrantsAssertionError as error:
        return [type(error).__name__, first]
    return ["nothing", first]


@feature("gradients of real functions are refused", ["QuadrantsCompilationError"], **EXACT)
def through_real_functions():
    @qd.real_func
    def squared(a: qd.f64) -> qd.f64:
        return a * a

    x, y = real(2), real(2)

    @qd.kernel
    def k():
        for i in x:
            y[i] = squared(x[i])

    k()
    try:
        k.grad()
    except qd.QuadrantsCompilationError as error:
        return ["QuadrantsCompilationError" if "squared" in str(error) else str(error)]
    return ["nothing"]


@feature("a kernel without gradients says so", ["NoGradientsError"])
def without_gradients():
    z = qd.field(qd.f32, shape=2)

    @qd.kernel
    def k():
        for i in z:
            z[i] = 1.0

    try:
        k.grad()
    except qd.NoGradientsError as error:
        return [type(error).__name__]
    return ["nothing"]


# ---- forward mode

forward = Group("forward", "Forward mode", ("gradients",))


def _dual(shape=(), values=None):
    x = qd.field(qd.f64, shape=shape, needs_dual=True)
    if values is not None:
        x.from_numpy(np.array(values))
    return x


@forward("columns of a Jacobian", [[[5.0, 2.0], [4.0, 0.0], [0.0, 3.0]]], **EXACT)
def jacobian():
    x, y = _dual(2, [2.0, 5.0]), _dual(3)

    @qd.kernel
    def f():
        y[0] = x[0] * x[1]
        y[1] = x[0] ** 2
        y[2] = 3 * x[1]

    columns = []
    for seed in ([1.0, 0.0], [0.0, 1.0]):
        with qd.ad.FwdMode(loss=y, param=x, seed=seed):
            f()
        columns.append(y.dual.to_numpy())
    return [np.stack(columns, axis=1)]


@forward("loops and branches", [[6.0, -1.0]], **EXACT)
def dual_loops():
    x, y = _dual(2, [1.0, -2.0]), _dual(2)

    @qd.kernel
    def f(n: qd.i32):
        for i in x:
            v = 1.0
            for _ in range(n):
                v = v * x[i] if x[i] > 0 else -x[i]
            y[i] = v

    with qd.ad.FwdMode(loss=y, param=x, seed=[1.0, 1.0]):
        f(6)
    return [y.dual.to_numpy()]


@forward("ndarrays with duals", [[2.0, 4.0]], **EXACT)
def dual_arrays():
    A = qd.types.NDArray[qd.f64, 1]

    @qd.kernel
    def f(x: A, y: A):
        for i in x:
            y[i] = x[i] * x[i]

    x, y = (qd.ndarray(qd.f64, 2, needs_dual=True) for _ in range(2))
    x.from_numpy(np.array([1.0, 2.0]))
    with qd.ad.FwdMode(loss=y, param=x, seed=[1.0, 1.0]):
        f(x, y)
    return [y.dual.to_numpy()]
