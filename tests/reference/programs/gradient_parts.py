"""Gradients of kernels with several parts, and what cannot be differentiated."""

import quadrants as qd

INIT = {
    "case_loop_at_the_root_only_after_statements": {"ad_stack_experimental_enabled": True},
    "case_two_root_loops": {"ad_stack_experimental_enabled": True},
    "case_outer_loop_runs_once": {"ad_stack_experimental_enabled": True},
    "case_function_with_a_loop": {"ad_stack_experimental_enabled": True},
    "case_grad_of_a_kernel_that_returns": {"ad_stack_experimental_enabled": True},
    "case_prefix_product_in_place": {"ad_stack_experimental_enabled": True},
    "mistake_while_loop": {"ad_stack_experimental_enabled": True},
    "mistake_read_of_another_iteration": {"ad_stack_experimental_enabled": True},
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


def case_two_root_loops():
    x, y = real(3), real()
    z = real(3)

    @qd.kernel
    def k():
        for i in range(3):
            z[i] = x[i] * x[i]
        for i in range(3):
            y[None] += z[i] * x[i]

    return run(k, x, y), [z.grad[i] for i in range(3)]


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


def case_gradients_accumulate():
    x, y = real(3), real()

    @qd.kernel
    def k():
        for i in range(3):
            y[None] += x[i] * x[i]

    return run(k, x, y), run(k, x, y)


def case_branch_without_a_loop():
    x, y = real(4), real()

    @qd.kernel
    def k():
        for i in range(4):
            if x[i] > 0.6:
                y[None] += x[i] * x[i]
            else:
                y[None] += 5.0 * x[i]

    return run(k, x, y)


def case_struct_for():
    x, y = real(4), real()

    @qd.kernel
    def k():
        for i in x:
            y[None] += qd.exp(x[i])

    return run(k, x, y)


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
