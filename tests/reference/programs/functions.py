"""Functions: how arguments are passed, results, defaults, references."""

import numpy as np
import quadrants as qd


def case_by_value():
    @qd.func
    def f(x):
        x += 10
        return x

    @qd.kernel
    def k(n: qd.i32) -> tuple[qd.i32, qd.i32]:
        a = n
        b = f(a)
        return a, b

    return k(3)


def case_typed_arguments_are_cast():
    @qd.func
    def f(x: qd.i32, y: qd.f32):
        return x + y / 2

    @qd.kernel
    def k(a: qd.f32) -> qd.f32:
        return f(a, 3)

    return k(2.9)


def case_typed_vectors():
    @qd.func
    def f(v: qd.types.vector(2, qd.i32)) -> qd.f32:
        v[1] += 1
        return v[0] + v[1]

    @qd.kernel
    def k() -> tuple[qd.f32, qd.f32]:
        a = qd.Vector([1.9, 2.9])
        return f(a), a[1]

    return k()


def case_ndarray_without_annotation():
    @qd.func
    def untyped(a, i):
        a[i] += 1

    @qd.kernel
    def k(a: qd.types.NDArray[qd.i32, 1]):
        for i in a:
            untyped(a, i)

    a = np.arange(3, dtype=np.int32)
    k(a)
    return a


def case_ndarrays():
    @qd.func
    def typed(a: qd.types.NDArray[qd.i32, 1], i: qd.i32):
        a[i] += 10

    @qd.func
    def template(a: qd.template(), i):
        a[i] += 100

    @qd.kernel
    def k(a: qd.types.NDArray[qd.i32, 1]):
        for i in a:
            typed(a, i)
            template(a, i)

    a = np.arange(3, dtype=np.int32)
    k(a)
    return a


def case_typed_result_is_cast():
    @qd.func
    def f(a) -> qd.i32:
        return a

    @qd.kernel
    def k(a: qd.f32) -> qd.f32:
        return f(a)

    return k(2.9)


def case_local_variables_do_not_leak():
    @qd.func
    def f(x):
        y = x + 1
        return y

    @qd.kernel
    def k() -> qd.i32:
        y = 100
        z = f(1)
        return y + z

    return k()


def case_requires_top_level():
    @qd.func(requires_top_level=True)
    def f(a: qd.template()):
        for i in a:
            a[i] = i

    x = qd.field(qd.i32, shape=3)

    @qd.kernel
    def k():
        f(x)

    k()
    return x.to_numpy()


def mistake_function_called_from_python():
    @qd.func
    def f(x):
        return x

    f(1)


def mistake_kernel_called_in_a_kernel():
    """Kernels cannot call other kernels."""

    @qd.kernel
    def inner():
        pass

    @qd.kernel
    def k():
        inner()

    k()


def mistake_too_few_arguments_of_a_function():
    """Missing argument 'b'"""

    @qd.func
    def f(a, b):
        return a

    @qd.kernel
    def k() -> qd.i32:
        return f(1)

    k()


def mistake_too_many_arguments_of_a_function():
    """Too many arguments"""

    @qd.func
    def f(a):
        return a

    @qd.kernel
    def k() -> qd.i32:
        return f(1, 2)

    k()


def mistake_requires_top_level_under_if():
    @qd.func(requires_top_level=True)
    def f():
        for i in range(3):
            pass

    @qd.kernel
    def k(n: qd.i32):
        if n > 0:
            f()

    k(1)


def mistake_return_in_a_function_under_if():
    """Return inside non-static if/for is not supported"""

    @qd.func
    def f(x):
        if x > 0:
            return 1
        return 2

    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        return f(n)

    k(1)
