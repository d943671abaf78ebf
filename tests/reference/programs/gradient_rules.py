"""Derivatives of operations: their rules, their ties, and what they give at edges."""

import quadrants as qd

INIT = {}


def slopes(op, places, dtype=qd.f64):
    """d op(x) / d x at each place."""
    n = len(places)
    x = qd.field(dtype, shape=n, needs_grad=True)
    y = qd.field(dtype, shape=n, needs_grad=True)

    @qd.kernel
    def apply():
        for i in range(n):
            y[i] = op(x[i])

    for i, place in enumerate(places):
        x[i] = place
        y.grad[i] = 1.0
    apply()
    apply.grad()
    return [x.grad[i] for i in range(n)]


def both_slopes(op, places, dtype=qd.f64):
    """(d op(a, b) / d a, d op(a, b) / d b) at each place."""
    n = len(places)
    a = qd.field(dtype, shape=n, needs_grad=True)
    b = qd.field(dtype, shape=n, needs_grad=True)
    y = qd.field(dtype, shape=n, needs_grad=True)

    @qd.kernel
    def apply():
        for i in range(n):
            y[i] = op(a[i], b[i])

    for i, (left, right) in enumerate(places):
        a[i] = left
        b[i] = right
        y.grad[i] = 1.0
    apply()
    apply.grad()
    return [(a.grad[i], b.grad[i]) for i in range(n)]


def case_functions():
    return [
        slopes(qd.abs, [-1.5, 0.0, 2.0]),
        slopes(qd.tan, [-1.0, 0.0, 0.5]),
        slopes(qd.tanh, [-1.0, 0.0, 0.5, 30.0]),
        slopes(qd.sqrt, [0.0, 0.25, 4.0]),
        slopes(qd.rsqrt, [0.25, 4.0]),
        both_slopes(qd.atan2, [(1.0, 2.0), (-3.0, 0.5), (1.0, 0.0)]),
        both_slopes(qd.pow, [(2.0, 3.0), (1.5, -0.5), (1.0, 0.0)]),
    ]


def case_neg():
    @qd.func
    def op(x):
        return -x

    return slopes(op, [-1.5, 0.0, 2.0])


def case_sin_and_cos():
    @qd.func
    def op(x):
        return qd.sin(x) * qd.cos(2.0 * x)

    return slopes(op, [-1.5, 0.0, 2.0])


def case_asin_and_acos():
    @qd.func
    def op(x):
        return qd.asin(x) + 3.0 * qd.acos(x)

    return slopes(op, [-0.75, 0.0, 0.5])


def case_exp_and_log():
    @qd.func
    def op(x):
        return qd.exp(x) + qd.log(x)

    return slopes(op, [0.25, 1.0, 3.0])


def case_floor_and_ceil():
    @qd.func
    def op(x):
        return qd.floor(x) + qd.ceil(x) + 2.0 * x

    return slopes(op, [-1.5, 0.5, 2.25])


def case_round():
    @qd.func
    def op(x):
        return qd.round(x) + 2.0 * x

    return slopes(op, [-1.25, 0.25, 2.75])


def case_sgn():
    @qd.func
    def op(x):
        return qd.math.sign(x) * x

    return slopes(op, [-1.25, 0.25, 2.75])


def case_add_sub_mul():
    @qd.func
    def op(a, b):
        return a * b + 2.0 * a - 3.0 * b

    return both_slopes(op, [(1.0, 2.0), (-3.0, 0.5), (0.0, 0.0)])


def case_div():
    @qd.func
    def op(a, b):
        return a / b

    return both_slopes(op, [(1.0, 2.0), (-3.0, 0.5)])


def case_pow_with_a_constant_exponent():
    @qd.func
    def op(x):
        return x**3 + x**2.5

    return slopes(op, [0.5, 1.0, 2.0])


def case_pow_of_zero_with_a_constant_exponent():
    @qd.func
    def op(x):
        return x**2.0

    return slopes(op, [0.0])


def case_min_and_max_with_ties():
    @qd.func
    def op(a, b):
        return 2.0 * qd.min(a, b) + 5.0 * qd.max(a, b)

    return both_slopes(op, [(1.0, 2.0), (2.0, 1.0), (3.0, 3.0)])


def case_mod():
    @qd.func
    def op(a, b):
        return a % b

    return both_slopes(op, [(7.5, 2.0), (-7.5, 2.0)])


def case_select():
    @qd.func
    def op(a, b):
        return qd.select(a < b, a * 2.0, b * 3.0)

    return both_slopes(op, [(1.0, 2.0), (2.0, 1.0), (3.0, 3.0)])


def case_conditional_expression():
    @qd.func
    def op(a, b):
        return a * 2.0 if a < b else b * a

    return both_slopes(op, [(1.0, 2.0), (2.0, 1.0), (3.0, 3.0)])


def case_cast_between_reals():
    @qd.func
    def op(x):
        return qd.cast(qd.cast(x, qd.f32) * 3.0, qd.f64) * x

    return slopes(op, [0.5, 2.0])


def case_cast_to_an_integer_and_back():
    @qd.func
    def op(x):
        return qd.cast(qd.cast(x, qd.i32), qd.f64) * x

    return slopes(op, [0.5, 2.5, -3.5])


def case_single_precision():
    @qd.func
    def op(x):
        return qd.sin(x) * qd.exp(x) / (x * x + 1.0)

    return slopes(op, [0.5, 2.5, -3.5], qd.f32)


def case_comparison_of_reals_is_constant():
    @qd.func
    def op(x):
        return qd.cast(x > 1.0, qd.f64) * x

    return slopes(op, [0.5, 2.5])


def case_the_same_value_twice():
    @qd.func
    def op(x):
        return x * x * x

    return slopes(op, [0.5, 2.5])


def case_vectors():
    n = 3
    x = qd.Vector.field(2, qd.f64, shape=n, needs_grad=True)
    y = qd.field(qd.f64, shape=n, needs_grad=True)

    @qd.kernel
    def apply():
        for i in range(n):
            v = x[i]
            y[i] = v.norm() + v.dot(qd.Vector([1.0, 2.0])) * v.x

    for i in range(n):
        x[i] = [1.0 + i, 2.0 - i]
        y.grad[i] = 1.0
    apply()
    apply.grad()
    return x.grad.to_numpy()


def case_matrices():
    m = qd.Matrix.field(2, 2, qd.f64, shape=(), needs_grad=True)
    y = qd.field(qd.f64, shape=(), needs_grad=True)

    @qd.kernel
    def apply():
        a = m[None]
        y[None] += a.determinant() + (a @ a.transpose()).trace() + a.inverse()[0, 1]

    m[None] = [[1.0, 2.0], [0.5, 4.0]]
    y.grad[None] = 1.0
    apply()
    apply.grad()
    return m.grad[None].to_list()


def case_square_root_of_a_sum_that_is_zero():
    x = qd.Vector.field(2, qd.f64, shape=(), needs_grad=True)
    y = qd.field(qd.f64, shape=(), needs_grad=True)

    @qd.kernel
    def apply():
        y[None] += x[None].norm(1e-6)

    y.grad[None] = 1.0
    apply()
    apply.grad()
    return x.grad[None].to_list()
