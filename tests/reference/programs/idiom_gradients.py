"""Reverse mode of inner loops whose trip counts are known, and of kernels without gradients."""

import quadrants as qd


def case_inner_ndrange_of_constants():
    x = qd.field(qd.f32, shape=3, needs_grad=True)
    y = qd.field(qd.f32, shape=(), needs_grad=True)

    @qd.kernel
    def k():
        for i in range(3):
            for j, m in qd.ndrange(2, 2):
                y[None] += x[i] * x[i] * (j + 2 * m)

    for i in range(3):
        x[i] = i + 1
    y.grad[None] = 1
    k()
    k.grad()
    return [y[None], x.grad.to_numpy()]


def case_inner_range_of_a_constant():
    x = qd.field(qd.f32, shape=3, needs_grad=True)
    y = qd.field(qd.f32, shape=(), needs_grad=True)

    @qd.kernel
    def k():
        for i in range(3):
            for _ in range(5):
                y[None] += x[i] * x[i]

    for i in range(3):
        x[i] = i + 1
    y.grad[None] = 1
    k()
    k.grad()
    return [y[None], x.grad.to_numpy()]


def case_inner_range_with_a_local():
    x = qd.field(qd.f32, shape=3, needs_grad=True)
    y = qd.field(qd.f32, shape=3, needs_grad=True)

    @qd.kernel
    def k():
        for i in range(3):
            s = 0.0
            for j in range(4):
                s += x[i] * j
            y[i] = s

    for i in range(3):
        x[i] = i + 1
        y.grad[i] = 1
    k()
    k.grad()
    return [y.to_numpy(), x.grad.to_numpy()]


def case_inner_range_with_a_product():
    x = qd.field(qd.f32, shape=3, needs_grad=True)
    y = qd.field(qd.f32, shape=3, needs_grad=True)

    @qd.kernel
    def k():
        for i in range(3):
            s = 1.0
            for j in range(3):
                s *= x[i]
            y[i] = s

    for i in range(3):
        x[i] = i + 1
        y.grad[i] = 1
    k()
    k.grad()
    return [y.to_numpy(), x.grad.to_numpy()]


def case_grad_without_gradients():
    x = qd.field(qd.f32, shape=3)

    @qd.kernel
    def k():
        for i in range(3):
            x[i] = i

    k.grad()
    return x.to_numpy()


def case_grad_of_integers():
    x = qd.field(qd.i32, shape=3)

    @qd.kernel
    def k():
        for i in range(3):
            x[i] = i

    k.grad()
    return x.to_numpy()


def case_inner_range_of_run_time():
    x = qd.field(qd.f32, shape=3, needs_grad=True)
    y = qd.field(qd.f32, shape=(), needs_grad=True)

    @qd.kernel
    def k(n: qd.i32):
        for i in range(3):
            for _ in range(n):
                y[None] += x[i] * x[i]

    for i in range(3):
        x[i] = i + 1
    y.grad[None] = 1
    k(2)
    k.grad(2)
    return [y[None], x.grad.to_numpy()]


def case_inner_ndrange_with_a_product():
    x = qd.field(qd.f32, shape=3, needs_grad=True)
    y = qd.field(qd.f32, shape=3, needs_grad=True)

    @qd.kernel
    def k(n: qd.i32):
        for i in range(3):
            s = 1.0
            for j, m in qd.ndrange(n, 2):
                s *= x[i]
            y[i] = s

    for i in range(3):
        x[i] = i + 1
        y.grad[i] = 1
    k(2)
    k.grad(2)
    return [y.to_numpy(), x.grad.to_numpy()]
