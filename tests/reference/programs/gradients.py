"""Asking for gradients: fields, arrays, tapes, replaced gradients, forward mode, and mistakes."""

import quadrants as qd


def square():
    """A sum of squares of a field, and its fields."""
    x = qd.field(qd.f64, shape=3, needs_grad=True)
    loss = qd.field(qd.f64, shape=(), needs_grad=True)

    @qd.kernel
    def k():
        for i in range(3):
            loss[None] += x[i] * x[i]

    for i in range(3):
        x[i] = 1.0 + i
    return x, loss, k


def grads(x):
    return [x.grad[i] for i in range(x.shape[0])]


def case_grad_has_shape_and_type():
    x, _, _ = square()
    return x.grad.shape, x.grad.dtype == qd.f64


def case_an_array_without_grad_is_a_constant():
    x = qd.ndarray(qd.f64, shape=(3,), needs_grad=True)
    c = qd.ndarray(qd.f64, shape=(3,))
    y = qd.ndarray(qd.f64, shape=(3,), needs_grad=True)

    @qd.kernel
    def k(
        x: qd.types.ndarray(dtype=qd.f64, ndim=1),
        c: qd.types.ndarray(dtype=qd.f64, ndim=1),
        y: qd.types.ndarray(dtype=qd.f64, ndim=1),
    ):
        for i in range(3):
            y[i] = c[i] * x[i]

    for i in range(3):
        x[i] = 1.0 + i
        c[i] = 2.0 + i
        y.grad[i] = 1.0
    k(x, c, y)
    k.grad(x, c, y)
    return grads(x)


def case_lazy_grad():
    x = qd.field(qd.f64)
    loss = qd.field(qd.f64)
    qd.root.dense(qd.i, 3).place(x)
    qd.root.place(loss)
    qd.root.lazy_grad()

    @qd.kernel
    def k():
        for i in range(3):
            loss[None] += x[i] * x[i]

    for i in range(3):
        x[i] = 1.0 + i
    with qd.ad.Tape(loss=loss):
        k()
    return grads(x)


def case_gradient_in_a_kernel():
    x, loss, k = square()

    @qd.kernel
    def descend():
        for i in range(3):
            x[i] -= 0.1 * x.grad[i]

    with qd.ad.Tape(loss=loss):
        k()
    descend()
    return [x[i] for i in range(3)]


def case_forward_mode_through_a_loop():
    x = qd.field(qd.f64, shape=(), needs_dual=True)
    y = qd.field(qd.f64, shape=(), needs_dual=True)

    @qd.kernel
    def k(n: qd.i32):
        for _ in range(1):
            v = x[None]
            for _j in range(n):
                v = qd.sin(v) * 1.5
            y[None] = v

    x[None] = 0.5
    with qd.ad.FwdMode(loss=y, param=x):
        k(6)
    return y[None], y.dual[None]


def mistake_integer_field():
    """i32 is not supported for field"""
    qd.field(qd.i32, shape=3, needs_grad=True)


def mistake_kernel_reads_a_gradient_that_is_not_there():
    """has not been placed"""
    x = qd.field(qd.f64, shape=3)

    @qd.kernel
    def k():
        for i in range(3):
            x[i] = x.grad[i]

    k()
