"""Tapes, forward mode, gradients of one's own: what they do around kernels, and their mistakes."""

import numpy as np
import quadrants as qd

INIT = {
    "mistake_overwritten_under_validation": {"debug": True},
    "case_validation": {"debug": True},
}


def fields(n=3, **needs):
    """A field of n and one of none, both with gradients."""
    needs = needs or {"needs_grad": True}
    return qd.field(qd.f64, n, **needs), qd.field(qd.f64, (), **needs)


def squares(x, y):
    """A kernel that adds the squares of x to y."""

    @qd.kernel
    def k():
        for i in x:
            y[None] += x[i] ** 2

    return k


def ramp(x):
    x.from_numpy(np.arange(1.0, x.shape[0] + 1))


def case_gradient_by_hand():
    x, y = fields()
    k = squares(x, y)
    ramp(x)
    y.grad[None] = 2
    k()
    first = k.grad()
    once = x.grad.to_numpy()
    k.grad()
    return [first, y[None], once, x.grad.to_numpy(), y.grad[None]]


def case_tape():
    x, y = fields()
    k = squares(x, y)
    ramp(x)
    y[None] = 5
    with qd.ad.Tape(y):
        k()
    return [y[None], y.grad[None], x.grad.to_numpy()]


def case_clearing():
    x, y = fields()
    k = squares(x, y)
    ramp(x)
    out = []
    for clear in (True, True, False):
        with qd.ad.Tape(y, clear_gradients=clear):
            k()
        out.append(x.grad.to_numpy())
    return out


def case_a_kernel_called_twice():
    x, y = fields()
    k = squares(x, y)
    ramp(x)
    with qd.ad.Tape(y):
        k()
        k()
    return [y[None], x.grad.to_numpy()]


def case_without_loss():
    x, y = fields()
    k = squares(x, y)
    ramp(x)
    with qd.ad.Tape() as tape:
        k()
    before = x.grad.to_numpy()
    y.grad.fill(3)
    tape.grad()
    return [before, x.grad.to_numpy()]


def case_other_kernels_take_no_part():
    x, y = fields()
    n = qd.field(qd.i32, 4)
    k = squares(x, y)

    @qd.kernel
    def count():
        for i in n:
            n[i] += i

    ramp(x)
    with qd.ad.Tape(y):
        count()
        k()
        count()
    return [n.to_numpy(), x.grad.to_numpy()]


def case_gradients_in_a_tape_are_not_recorded():
    x, y = fields()
    k = squares(x, y)
    ramp(x)
    with qd.ad.Tape(y):
        k()
        k.grad()
    return x.grad.to_numpy()


def case_the_body_raises():
    x, y = fields()
    k = squares(x, y)
    ramp(x)
    try:
        with qd.ad.Tape(y):
            k()
            raise ValueError("stop")
    except ValueError as error:
        return [str(error), x.grad.to_numpy()]


def case_result_of_a_kernel():
    x, y = fields()

    @qd.kernel
    def k() -> qd.f64:
        for i in x:
            y[None] += 3 * x[i]
        return 7.0

    with qd.ad.Tape(y):
        got = k()
    return [got, k.grad(), x.grad.to_numpy()]


def case_ndarrays():
    @qd.kernel
    def k(a: qd.types.ndarray(), s: qd.f64, b: qd.types.ndarray()):
        for i in a:
            b[0] += s * a[i] ** 2

    a, b = qd.ndarray(qd.f64, 3, needs_grad=True), qd.ndarray(qd.f64, 1, needs_grad=True)
    a.from_numpy(np.array([1.0, 2.0, 3.0]))
    b[0] = 4
    out = []
    for _ in range(2):
        with qd.ad.Tape(b):
            k(a, 2.0, b)
        out.append([b[0], b.grad[0], a.grad.to_numpy()])
    return out


def case_method():
    @qd.data_oriented
    class Model:
        def __init__(self, scale):
            self.x, self.y = fields()
            self.scale = scale

        @qd.kernel
        def step(self, power: qd.template()):
            for i in self.x:
                self.y[None] += self.scale * self.x[i] ** power

    out = []
    for scale in (1.0, 10.0):
        model = Model(scale)
        ramp(model.x)
        with qd.ad.Tape(model.y):
            model.step(2)
        taped = model.x.grad.to_numpy()
        model.step.grad(3)
        out.append([model.y[None], taped, model.x.grad.to_numpy()])
    return out


def case_grad_replaced():
    x, y = fields()
    k = squares(x, y)

    @qd.kernel
    def backwards(scale: qd.f64):
        for i in x:
            x.grad[i] += scale * y.grad[None]

    @qd.ad.grad_replaced
    def step(scale):
        k()

    @qd.ad.grad_for(step)
    def step_grad(scale):
        backwards(scale)

    ramp(x)
    with qd.ad.Tape(y):
        step(10.0)
        k()
    return [y[None], x.grad.to_numpy()]


def case_stop_grad():
    x, y = fields()

    @qd.kernel
    def k():
        for i in x:
            qd.stop_grad(x)
            y[None] += x[i] ** 2

    @qd.kernel
    def in_a_branch(here: qd.i32):
        for i in x:
            if i == here:
                qd.stop_grad(x)
                y[None] += x[i] ** 2
            y[None] += x[i]

    ramp(x)
    out = []
    with qd.ad.Tape(y):
        k()
    out.append([y[None], x.grad.to_numpy()])
    with qd.ad.Tape(y):
        in_a_branch(1)
    out.append([y[None], x.grad.to_numpy()])
    return out


def case_clear_all_gradients():
    x, y = fields()
    v = qd.Vector.field(2, qd.f32, 2, needs_grad=True)
    for f in (x, y, v):
        f.grad.fill(3)
        f.fill(1)
    qd.ad.clear_all_gradients()
    return [f.grad.to_numpy() for f in (x, y, v)] + [x.to_numpy()]


def case_grad_check():
    x, y = fields()
    k = squares(x, y)
    ramp(x)
    with qd.ad.Tape(y, grad_check=[x]):
        k()
    return [x.grad.to_numpy()]


def case_validation():
    x, y = fields()
    k = squares(x, y)
    ramp(x)
    with qd.ad.Tape(y, validation=True):
        k()
    return [y[None], x.grad.to_numpy()]


def case_forward_mode():
    x, y = fields(needs_dual=True)
    z = qd.field(qd.f64, 2, needs_dual=True)

    @qd.kernel
    def k(s: qd.f64) -> qd.f64:
        for i in x:
            y[None] += s * x[i] ** 2
            z[i % 2] += x[i] * i
        return 5.0

    ramp(x)
    out = []
    for seed in ([1.0, 0.0, 0.0], [0.0, 1.0, 2.0]):
        with qd.ad.FwdMode(loss=[y, z], param=x, seed=seed):
            got = k(3.0)
        out.append([got, y.dual[None], z.dual.to_numpy(), x.dual.to_numpy()])
    with qd.ad.FwdMode(loss=y, param=x, seed=[1.0, 1.0, 1.0], clear_gradients=False):
        k(1.0)
    out.append([y.dual[None], y[None]])
    return out


def case_forward_mode_by_one_number():
    x, y = fields((), needs_dual=True)

    @qd.kernel
    def k():
        y[None] += qd.sin(x[None])

    x[None] = 0.5
    out = []
    with qd.ad.FwdMode(loss=y, param=x):
        k()
    out.append(y.dual[None])
    with qd.ad.FwdMode(loss=y, param=x, seed=[2.0]):
        k()
    return [*out, y.dual[None], x.dual[None]]


def mistake_loss_with_axes():
    """The loss of `Tape` must be a 0-D field, i.e. scalar"""
    x, y = fields()
    with qd.ad.Tape(x):
        pass


def mistake_loss_without_gradients():
    """Gradients of loss are not allocated"""
    with qd.ad.Tape(qd.field(qd.f32, ())):
        pass


def mistake_loss_of_several_elements():
    """The loss of `Tape` must be an ndarray with only one element"""
    with qd.ad.Tape(qd.ndarray(qd.f32, 2, needs_grad=True)):
        pass


def mistake_ndarray_loss_without_gradients():
    """Gradients of loss are not allocated, please set needs_grad=True for all ndarrays"""
    with qd.ad.Tape(qd.ndarray(qd.f32, 1)):
        pass


def mistake_a_tape_twice():
    """Tape can be entered only once."""
    x, y = fields()
    tape = qd.ad.Tape(y)
    for _ in range(2):
        with tape:
            pass


def mistake_tapes_within_each_other():
    x, y = fields()
    k = squares(x, y)
    with qd.ad.Tape(y):
        with qd.ad.Tape(y):
            k()


def mistake_overwritten_under_validation():
    """Breaks the global data access rule."""
    x, y = fields()
    k = squares(x, y)

    @qd.kernel
    def spoil():
        x[1] = 0.0

    with qd.ad.Tape(y, validation=True):
        k()
        spoil()


def mistake_grad_check_of_single_precision():
    x = qd.field(qd.f32, 3, needs_grad=True)
    y = qd.field(qd.f32, (), needs_grad=True)
    k = squares(x, y)
    with qd.ad.Tape(y, grad_check=[x]):
        k()


def mistake_no_gradients():
    x, y = qd.field(qd.f64, 3), qd.field(qd.f64, ())
    squares(x, y).grad()


def mistake_gradient_on_the_host():
    """Field has no allocation"""
    x = qd.field(qd.f64, 3)
    x.grad[0]


def mistake_loop_in_a_loop():
    """Cannot use non static range in Backwards mode"""
    x, y = fields()

    @qd.kernel
    def k():
        for i in x:
            for j in range(3):
                y[None] += x[i]

    k.grad()


def mistake_ndrange_in_a_loop():
    x, y = fields()

    @qd.kernel
    def k():
        for i in x:
            for j, l in qd.ndrange(2, 2):
                y[None] += x[i]

    k.grad()


def mistake_grad_for_a_kernel():
    """Primal function must be a **python** function instead of a quadrants kernel"""
    x, y = fields()
    k = squares(x, y)

    @qd.ad.grad_for(k)
    def k_grad():
        pass


def mistake_grad_for_a_plain_function():
    """Primal function `plain` must be decorated by qd.ad.grad_replaced"""

    def plain():
        pass

    @qd.ad.grad_for(plain)
    def plain_grad():
        pass


def mistake_no_seed():
    """`seed` is not set for non 0-D field, please specify."""
    x, y = fields(needs_dual=True)
    with qd.ad.FwdMode(loss=y, param=x):
        pass


def mistake_length_of_the_seed():
    x, y = fields(needs_dual=True)
    with qd.ad.FwdMode(loss=y, param=x, seed=[1.0]):
        pass


def mistake_loss_of_forward_mode():
    x, y = fields(needs_dual=True)
    with qd.ad.FwdMode(loss=3, param=x, seed=[1.0, 0.0, 0.0]):
        pass


def mistake_forward_mode_twice():
    """Forward mode manager can be entered only once."""
    x, y = fields(needs_dual=True)
    mode = qd.ad.FwdMode(loss=y, param=x, seed=[1.0, 0.0, 0.0])
    for _ in range(2):
        with mode:
            pass


def mistake_gradients_of_an_int_ndarray():
    """i32 is not supported for ndarray with `needs_grad=True` or `needs_dual=True`"""
    qd.ndarray(qd.i32, 3, needs_grad=True)
