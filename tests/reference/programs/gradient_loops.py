"""Gradients of kernels with loops that overwrite values and with several parts; what has none."""

import quadrants as qd

INIT = {
    "*": {"ad_stack_experimental_enabled": True},
    "case_static_loop_needs_no_option": {},
    "mistake_inner_loop_without_the_option": {},
}


def real(shape=()):
    return qd.field(qd.f64, shape=shape, needs_grad=True)


def run(kernel, x, y, *args):
    """y, and x's gradients, of a kernel that adds to y."""
    for i in range(x.shape[0]):
        x[i] = 0.3 + 0.2 * i
    y.grad[None] = 1.0
    kernel(*args)
    kernel.grad(*args)
    return [y[None], *(x.grad[i] for i in range(x.shape[0]))]


def case_loop_carried_value():
    x, y = real(3), real()

    @qd.kernel
    def k():
        for i in range(3):
            v = x[i]
            for _ in range(5):
                v = v * v * 0.5 + qd.sin(v)
            y[None] += v

    return run(k, x, y)


def case_two_nested_loops():
    x, y = real(3), real()

    @qd.kernel
    def k():
        for i in range(3):
            v = x[i]
            for j in range(3):
                w = v * (j + 1)
                for _ in range(2):
                    w = qd.sin(w) + v
                v = v * 0.5 + w * w * 0.1
            y[None] += v

    return run(k, x, y)


def case_bound_from_a_field():
    x, y = real(3), real()
    n = qd.field(qd.i32, shape=())
    n[None] = 4

    @qd.kernel
    def k():
        for i in range(3):
            v = x[i]
            for _ in range(n[None]):
                v = qd.cos(v)
            y[None] += v

    return run(k, x, y)


def ragged(x, y):
    @qd.kernel
    def k(a: qd.types.ndarray(dtype=qd.i32, ndim=1)):
        for i in range(a.shape[0]):
            v = x[i]
            for _ in range(a[i]):
                v = v * 0.95 + 0.01 * v * v
            y[None] += v

    return k


def case_bound_from_an_array_that_changes():
    x, y = real(4), real()
    a = qd.ndarray(qd.i32, shape=(4,))
    a.fill(1)
    k = ragged(x, y)
    first = run(k, x, y, a)
    a[2] = 50
    x.grad.fill(0.0)
    return first, run(k, x, y, a)


def case_bound_from_a_scalar_argument():
    x, y = real(3), real()

    @qd.kernel
    def k(n: qd.i32):
        for i in range(3):
            v = x[i]
            for _ in range(n):
                v = qd.sin(v) + 0.5
            y[None] += v

    return run(k, x, y, 6)


def case_bound_at_an_index_from_an_array():
    x, y = real(3), real()
    a = qd.ndarray(qd.i32, shape=(3,))
    at = qd.ndarray(qd.i32, shape=(3,))
    for i in range(3):
        a[i] = i + 2
        at[i] = 2 - i

    @qd.kernel
    def k(
        a: qd.types.ndarray(dtype=qd.i32, ndim=1),
        at: qd.types.ndarray(dtype=qd.i32, ndim=1),
    ):
        for i in range(a.shape[0]):
            v = x[i]
            for _ in range(a[at[i]]):
                v = v * v + 0.1
            y[None] += v

    return run(k, x, y, a, at)


def case_branch_on_a_carried_value():
    x, y = real(3), real()

    @qd.kernel
    def k():
        for i in range(3):
            v = x[i]
            for _ in range(6):
                if v > 0.55:
                    v = v * v
                else:
                    v = 1.7 * v + 0.01
            y[None] += v

    return run(k, x, y)


def case_min_max_select_in_a_loop():
    x, y = real(3), real()

    @qd.kernel
    def k():
        for i in range(3):
            v = x[i]
            for j in range(4):
                w = qd.max(v * 1.5, 0.4)
                v = qd.select(w > 0.6, w * w, qd.min(w, 0.9) + 0.1 * v)
            y[None] += v

    return run(k, x, y)


def case_two_loops_after_each_other():
    x, y = real(3), real()

    @qd.kernel
    def k():
        for i in range(3):
            v = x[i]
            for _ in range(3):
                v = qd.sin(v) + 0.2
            w = v * v
            for _ in range(2):
                w = w * v
            y[None] += w

    return run(k, x, y)


def case_linear_sum_in_a_loop():
    x, y = real(3), real()

    @qd.kernel
    def k():
        for i in range(3):
            s = 0.0
            for j in range(3):
                s += x[i] * x[j]
            y[None] += s * s

    return run(k, x, y)


def case_vector_carried_by_a_loop():
    x, y = real(3), real()

    @qd.kernel
    def k():
        for i in range(3):
            v = qd.Vector([x[i], 1.0])
            for _ in range(4):
                v = qd.Vector([v.x + 0.1 * v.y, v.y - 0.1 * qd.sin(v.x)])
            y[None] += v.dot(v)

    return run(k, x, y)


def case_several_carried_values():
    x, y = real(3), real()

    @qd.kernel
    def k():
        for i in range(3):
            a, b = x[i], 1.0
            for _ in range(6):
                a, b = b, a * b * 0.9
            y[None] += a + 2.0 * b

    return run(k, x, y)


def case_integer_carried_by_a_loop():
    x, y = real(5), real()

    @qd.kernel
    def k():
        for i in range(5):
            v = x[i]
            n = i
            for _ in range(4):
                n = (n * 3 + 1) % 5
                v = v * x[n]
            y[None] += v

    return run(k, x, y)


def case_index_computed_in_a_loop():
    x, y = real(4), real()

    @qd.kernel
    def k():
        for i in range(4):
            v = 1.0
            for j in range(3):
                v += x[(i + j) % 4] * v
            y[None] += v

    return run(k, x, y)


def case_inner_ndrange():
    x, y = real(3), real()

    @qd.kernel
    def k():
        for i in range(3):
            v = x[i]
            for a, b in qd.ndrange(2, 2):
                v = v * v + 0.1 * a + 0.2 * b
            y[None] += v

    return run(k, x, y)


def case_static_loop_needs_no_option():
    x, y = real(3), real()

    @qd.kernel
    def k():
        for i in range(3):
            v = x[i]
            for _ in qd.static(range(4)):
                v = v * v + 0.1
            y[None] += v

    return run(k, x, y)


def case_loop_at_the_root_only_after_statements():
    x, y = real(3), real()
    z = real()

    @qd.kernel
    def k():
        z[None] = 2.0
        for i in range(3):
            y[None] += x[i] * x[i]

    return run(k, x, y)


def case_outer_loop_runs_once():
    x, y = real(5), real()

    @qd.kernel
    def k():
        for _ in range(1):
            v = 1.0
            for i in range(5):
                v *= x[i]
            y[None] += v

    return run(k, x, y)


def case_function_with_a_loop():
    x, y = real(3), real()

    @qd.func
    def power(v, n):
        r = 1.0
        for _ in range(n):
            r *= v
        return r

    @qd.kernel
    def k():
        for i in range(3):
            y[None] += power(x[i], 4) + power(x[i], i)

    return run(k, x, y)


def case_grad_of_a_kernel_that_returns():
    x, y = real(3), real()

    @qd.kernel
    def k() -> qd.f64:
        for i in range(3):
            y[None] += x[i] * x[i]
        return 1.0

    return run(k, x, y)


def case_prefix_product_in_place():
    """Each iteration reads what the one before wrote: legal in a loop that is not the outermost."""
    x, y = real(4), real()
    p = real(5)

    @qd.kernel
    def k():
        for _ in range(1):
            p[0] = 1.0
            for i in range(4):
                p[i + 1] = p[i] * x[i]
        for i in range(1):
            y[None] += p[4]

    return run(k, x, y)


def case_local_vector_with_computed_indices():
    x, y = real(3), real()

    @qd.kernel
    def k():
        for i in range(3):
            v = qd.Vector([0.0, 0.0, 0.0])
            v[(i + 1) % 3] = x[i] * x[i]
            y[None] += v[(i + 1) % 3] * 2.0 + v[0]

    return run(k, x, y)


def case_atomic_sub():
    x, y = real(3), real()

    @qd.kernel
    def k():
        for i in range(3):
            y[None] -= x[i] * x[i]

    return run(k, x, y)


def case_store_overwrites():
    """The gradient of an element that a kernel stores is used and is 0 after."""
    x, y = real(3), real()
    z = real(3)

    @qd.kernel
    def k():
        for i in range(3):
            z[i] = x[i] * 3.0

    for i in range(3):
        x[i] = 1.0 + i
        z.grad[i] = 10.0 + i
    k()
    k.grad()
    return [x.grad[i] for i in range(3)], [z.grad[i] for i in range(3)], y[None]


def mistake_inner_loop_without_the_option():
    """Cannot use non static range in Backwards mode"""
    x, y = real(3), real()

    @qd.kernel
    def k():
        for i in range(3):
            v = x[i]
            for _ in range(4):
                v = v * v
            y[None] += v

    return run(k, x, y)


def mistake_while_loop():
    x, y = real(3), real()

    @qd.kernel
    def k():
        for i in range(3):
            v = x[i]
            n = 0
            while n < 3:
                v = v * v
                n += 1
            y[None] += v

    return run(k, x, y)


def mistake_read_of_another_iteration():
    """Cross-iteration read-after-write"""
    x, y = real(4), real()

    @qd.kernel
    def k():
        for i in range(1, 4):
            x[i] = x[i - 1] * 2.0

    k()
    k.grad()
    return y[None]
