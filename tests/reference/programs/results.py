"""Results of kernels, real functions, template values."""

import quadrants as qd

vec2 = qd.types.vector(2, qd.f32)


def case_real_func_of_several_types():
    @qd.experimental.real_func
    def f(a: qd.i32, b: qd.f64) -> qd.f64:
        if a > 0:
            return b * a
        return -b

    @qd.kernel
    def k(a: qd.i32, b: qd.f64) -> qd.f64:
        return f(a, b) + f(-a, b)

    return k(3, 0.5)


def case_real_func_by_reference():
    @qd.experimental.real_func
    def f(x: qd.ref(qd.i32), d: qd.i32) -> qd.i32:
        x += d
        return x * 2

    @qd.kernel
    def k() -> tuple[qd.i32, qd.i32]:
        a = 5
        b = f(a, 3)
        return a, b

    return k()


def case_results_of_each_kind():
    @qd.kernel
    def tup() -> tuple[qd.i32, qd.f32, qd.u1]:
        return 2.7, 3, 5 > 2

    @qd.kernel
    def paren() -> (qd.i32, qd.f64):
        return 1, 0.5

    @qd.kernel
    def vec() -> vec2:
        return qd.Vector([1, 2.5])

    @qd.kernel
    def mat() -> qd.types.matrix(2, 2, qd.f64):
        return qd.Matrix([[1.5, 2], [3, 4]])

    return [tup(), paren(), vec(), mat()]


def case_result_struct():
    s = qd.types.struct(a=qd.i32, v=vec2)

    @qd.kernel
    def k(n: qd.i32) -> s:
        return s(a=n, v=qd.Vector([n + 0.5, 2.0]))

    r = k(3)
    return [r.a, r.v, r]


def case_keyword_arguments_of_a_kernel():
    @qd.kernel
    def k(a: qd.i32, b: qd.i32) -> qd.i32:
        return a * 10 + b

    return [k(a=1, b=2), k(1, b=3), k(b=1, a=5)]


def case_template_values():
    @qd.kernel
    def k(n: qd.template(), m: qd.Template, x: qd.i32) -> qd.f32:
        return n * m + x

    return [k(3, 0.5, 1), k(4, 2, 1), k(3, 0.5, 2)]


def case_template_true_and_one():
    @qd.kernel
    def k(n: qd.template()) -> qd.i32:
        return n + 1

    return [k(1), k(5), k(-1)]


def mistake_real_matrix_for_a_matrix_of_ints():
    """cannot be converted into required type i32"""

    @qd.kernel
    def k() -> qd.types.matrix(2, 2, qd.i32):
        return qd.Matrix([[1.9, 2], [3, 4]])

    k()


def mistake_result_not_of_the_type_of_real_func():
    @qd.experimental.real_func
    def f(a):
        return a

    @qd.kernel
    def k() -> qd.i32:
        return f(1)

    k()


def mistake_recursion():
    @qd.func
    def f(x):
        return f(x) + 1

    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        return f(n)

    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, limit[1]))
    try:
        k(1)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)
