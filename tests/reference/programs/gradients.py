"""Asking for gradients: fields, arrays, tapes, replaced gradients, forward mode, and mistakes."""

import quadrants as qd

INIT = {
    "case_tape_with_validation": {"debug": True},
    "mistake_tape_with_validation_sees_an_overwrite": {"debug": True},
    "case_grad_check": {"default_fp": "f64"},
}


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


def case_grad_of_a_field():
    x, loss, k = square()
    loss.grad[None] = 2.0
    k()
    k.grad()
    return loss[None], grads(x), loss.grad[None]


def case_grad_has_shape_and_type():
    x, _, _ = square()
    return x.grad.shape, x.grad.dtype == qd.f64


def case_tape():
    x, loss, k = square()
    with qd.ad.Tape(loss=loss):
        k()
    return loss[None], grads(x), loss.grad[None]


def case_tape_clears_the_loss_and_gradients():
    x, loss, k = square()
    loss[None] = 100.0
    x.grad[0] = 50.0
    with qd.ad.Tape(loss=loss):
        k()
    return loss[None], grads(x)


def case_tape_that_does_not_clear():
    x, loss, k = square()
    x.grad[0] = 50.0
    with qd.ad.Tape(loss=loss, clear_gradients=False):
        k()
    return loss[None], grads(x)


def case_tape_without_a_loss():
    x, loss, k = square()
    with qd.ad.Tape() as tape:
        k()
    before = grads(x)
    loss.grad[None] = 1.0
    tape.grad()
    return before, grads(x)


def case_tape_of_several_kernels():
    x, loss, k = square()
    z = qd.field(qd.f64, shape=3, needs_grad=True)

    @qd.kernel
    def first(factor: qd.f64):
        for i in range(3):
            z[i] = x[i] * factor

    @qd.kernel
    def second():
        for i in range(3):
            loss[None] += z[i] ** 3

    with qd.ad.Tape(loss=loss):
        first(2.0)
        second()
        k()
    return loss[None], grads(x), grads(z)


def case_tape_with_an_array_as_loss():
    x = qd.ndarray(qd.f64, shape=(3,), needs_grad=True)
    loss = qd.ndarray(qd.f64, shape=(1,), needs_grad=True)

    @qd.kernel
    def k(x: qd.types.ndarray(dtype=qd.f64, ndim=1), loss: qd.types.ndarray(dtype=qd.f64, ndim=1)):
        for i in range(3):
            loss[0] += x[i] * x[i]

    for i in range(3):
        x[i] = 1.0 + i
    with qd.ad.Tape(loss=loss):
        k(x, loss)
    return loss[0], grads(x)


def case_grad_of_arrays():
    x = qd.ndarray(qd.f64, shape=(3,), needs_grad=True)
    y = qd.ndarray(qd.f64, shape=(3,), needs_grad=True)

    @qd.kernel
    def k(x: qd.types.ndarray(dtype=qd.f64, ndim=1), y: qd.types.ndarray(dtype=qd.f64, ndim=1)):
        for i in range(3):
            y[i] = qd.sin(x[i])

    for i in range(3):
        x[i] = 1.0 + i
        y.grad[i] = 1.0
    k(x, y)
    k.grad(x, y)
    return grads(x), grads(y)


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


def case_clear_all_gradients():
    x, loss, k = square()
    loss.grad[None] = 1.0
    k()
    k.grad()
    qd.ad.clear_all_gradients()
    return grads(x), loss.grad[None]


def case_stop_grad():
    x = qd.field(qd.f64, shape=3, needs_grad=True)
    loss = qd.field(qd.f64, shape=(), needs_grad=True)

    @qd.kernel
    def k():
        for i in range(3):
            qd.stop_grad(x)
            loss[None] += x[i] * x[i]

    for i in range(3):
        x[i] = 1.0 + i
    with qd.ad.Tape(loss=loss):
        k()
    return loss[None], grads(x)


def case_grad_replaced():
    x, loss, k = square()

    @qd.ad.grad_replaced
    def forward(factor):
        k()

    @qd.ad.grad_for(forward)
    def backward(factor):
        k.grad()
        for i in range(3):
            x.grad[i] = x.grad[i] * factor

    with qd.ad.Tape(loss=loss):
        forward(10.0)
    return loss[None], grads(x)


def case_no_grad():
    x, loss, k = square()

    @qd.ad.no_grad
    def hidden():
        k()

    with qd.ad.Tape(loss=loss):
        hidden()
    return loss[None], grads(x)


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


def case_forward_mode():
    x = qd.field(qd.f64, shape=(), needs_dual=True)
    y = qd.field(qd.f64, shape=(), needs_dual=True)

    @qd.kernel
    def k():
        y[None] = x[None] * x[None] * qd.sin(x[None])

    x[None] = 1.5
    with qd.ad.FwdMode(loss=y, param=x):
        k()
    return y[None], y.dual[None]


def case_forward_mode_with_a_seed():
    x = qd.field(qd.f64, shape=3, needs_dual=True)
    y = qd.field(qd.f64, shape=2, needs_dual=True)

    @qd.kernel
    def k():
        for i in range(3):
            y[i % 2] += x[i] * x[i]

    for i in range(3):
        x[i] = 1.0 + i
    with qd.ad.FwdMode(loss=y, param=x, seed=[1.0, 0.5, 0.0]):
        k()
    return [y[i] for i in range(2)], [y.dual[i] for i in range(2)]


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


def case_tape_with_validation():
    x, loss, k = square()
    with qd.ad.Tape(loss=loss, validation=True):
        k()
    return loss[None], grads(x)


def case_grad_check():
    x, loss, k = square()
    with qd.ad.Tape(loss=loss, grad_check=[x]):
        k()
    return grads(x)


def case_no_gradients_at_all():
    x = qd.field(qd.f64, shape=3)

    @qd.kernel
    def k():
        for i in range(3):
            x[i] = x[i] * 2.0

    k()
    k.grad()
    return [x[i] for i in range(3)]


def mistake_integer_field():
    """i32 is not supported for field"""
    qd.field(qd.i32, shape=3, needs_grad=True)


def mistake_integer_array():
    """i32 is not supported for ndarray"""
    qd.ndarray(qd.i32, shape=(3,), needs_grad=True)


def mistake_loss_with_axes():
    """must be a 0-D field"""
    x = qd.field(qd.f64, shape=3, needs_grad=True)
    with qd.ad.Tape(loss=x):
        pass


def mistake_loss_without_gradient():
    """Gradients of loss are not allocated"""
    loss = qd.field(qd.f64, shape=())
    with qd.ad.Tape(loss=loss):
        pass


def mistake_tape_twice():
    """Tape can be entered only once."""
    x, loss, k = square()
    tape = qd.ad.Tape(loss=loss)
    with tape:
        k()
    with tape:
        k()


def mistake_grad_for_a_plain_function():
    """must be decorated by qd.ad.grad_replaced"""

    def plain():
        pass

    @qd.ad.grad_for(plain)
    def backward():
        pass


def mistake_grad_for_a_kernel():
    """Primal function must be a **python** function instead of a quadrants kernel"""
    _, _, k = square()

    @qd.ad.grad_for(k)
    def backward():
        pass


def mistake_forward_mode_without_a_seed():
    """`seed` is not set for non 0-D field"""
    x = qd.field(qd.f64, shape=3, needs_dual=True)
    y = qd.field(qd.f64, shape=(), needs_dual=True)
    with qd.ad.FwdMode(loss=y, param=x):
        pass


def mistake_tape_with_validation_sees_an_overwrite():
    """Breaks the global data access rule"""
    x, loss, k = square()

    @qd.kernel
    def overwrite():
        for i in range(3):
            loss[None] += x[i]
            x[i] = 2.0

    with qd.ad.Tape(loss=loss, validation=True):
        overwrite()


def mistake_kernel_reads_a_gradient_that_is_not_there():
    """has not been placed"""
    x = qd.field(qd.f64, shape=3)

    @qd.kernel
    def k():
        for i in range(3):
            x[i] = x.grad[i]

    k()
