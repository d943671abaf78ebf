"""Functions: how arguments are passed, results, defaults, references."""

import numpy as np
import quadrants as qd

vec2 = qd.types.vector(2, qd.f32)


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


def case_template_arguments_are_references():
    @qd.func
    def f(x: qd.template(), d):
        x += d

    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        a = n
        f(a, 5)
        f(a, 7)
        return a

    return k(1)


def case_template_reference_to_an_element():
    x = qd.field(qd.i32, shape=3)

    @qd.func
    def f(e: qd.template()):
        e = 7

    @qd.kernel
    def k():
        for i in range(3):
            f(x[i])

    k()
    return x.to_numpy()


def case_swap_by_template():
    @qd.func
    def swap(a: qd.template(), b: qd.template()):
        c = a
        a = b
        b = c

    @qd.kernel
    def k(x: qd.i32, y: qd.i32) -> tuple[qd.i32, qd.i32]:
        a = x
        b = y
        swap(a, b)
        return a, b

    return k(3, 4)


def case_vectors_by_value():
    @qd.func
    def f(v):
        v[0] = 100.0
        return v.sum()

    @qd.kernel
    def k() -> tuple[qd.f32, qd.f32]:
        a = qd.Vector([1.0, 2.0])
        return f(a), a[0]

    return k()


def case_vectors_by_template():
    @qd.func
    def f(v: qd.template()):
        v[0] = 100.0
        v += 1.0

    @qd.kernel
    def k() -> vec2:
        a = qd.Vector([1.0, 2.0])
        f(a)
        return a

    return k()


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

    @qd.kernel
    def k(a: qd.types.NDArray[qd.i32, 1]):
        for i in a:
            typed(a, i)

    a = np.arange(3, dtype=np.int32)
    k(a)
    return a


def case_fields_by_template():
    x = qd.field(qd.f32, shape=4)

    @qd.func
    def f(a: qd.template(), i):
        a[i] = i * 2.5
        return a.shape[0]

    @qd.kernel
    def k(a: qd.template()) -> qd.i32:
        n = 0
        for i in a:
            n += f(a, i)
        return n

    return [k(x), x.to_numpy()]


def case_loop_inside_a_function_is_parallel():
    @qd.func
    def fill(a: qd.template(), v):
        for i in a:
            a[i] = v + i

    x = qd.field(qd.i32, shape=5)

    @qd.kernel
    def k():
        fill(x, 10)

    k()
    return x.to_numpy()


def case_defaults_and_keywords():
    @qd.func
    def f(a, b=2, c=3):
        return a * 100 + b * 10 + c

    @qd.kernel
    def k() -> tuple[qd.i32, qd.i32, qd.i32, qd.i32]:
        return f(1), f(1, 5), f(1, c=7), f(c=1, b=2, a=3)

    return k()


def case_several_results():
    @qd.func
    def f(a, b):
        return a + b, a - b

    @qd.kernel
    def k() -> tuple[qd.i32, qd.i32]:
        x, y = f(7, 3)
        return x, y

    return k()


def case_typed_result_is_cast():
    @qd.func
    def f(a) -> qd.i32:
        return a

    @qd.kernel
    def k(a: qd.f32) -> qd.f32:
        return f(a)

    return k(2.9)


def case_function_without_a_result():
    @qd.func
    def f(a: qd.template()):
        a += 1

    @qd.kernel
    def k() -> qd.i32:
        x = 1
        f(x)
        return x

    return k()


def case_nested_functions():
    @qd.func
    def g(x):
        return x * x

    @qd.func
    def f(x):
        return g(x) + g(x + 1)

    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        return f(n) + g(10)

    return k(3)


def case_function_as_template_argument():
    @qd.func
    def double(x):
        return 2 * x

    @qd.func
    def apply(f: qd.template(), x):
        return f(f(x))

    @qd.kernel
    def k(f: qd.template(), n: qd.i32) -> qd.i32:
        return apply(f, n) + f(1)

    return k(double, 3)


def case_return_in_a_static_branch():
    @qd.func
    def f(flag: qd.template(), x):
        if qd.static(flag):
            return x + 1
        else:
            return x - 1

    @qd.kernel
    def k(n: qd.i32) -> tuple[qd.i32, qd.i32]:
        return f(True, n), f(False, n)

    return k(10)


def case_recursion_over_a_template_value():
    @qd.func
    def power(x, n: qd.template()):
        r = x
        if qd.static(n > 1):
            r = x * power(x, n - 1)
        return r

    @qd.kernel
    def k(x: qd.i32) -> qd.i32:
        return power(x, 5)

    return k(3)


def case_pyfunc():
    @qd.pyfunc
    def f(x, y):
        return x * 2 + y

    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        return f(n, 1)

    return [f(3, 1), k(3)]


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


def case_ndarray_by_template():
    @qd.func
    def template(a: qd.template(), i):
        a[i] += 100

    @qd.kernel
    def k(a: qd.types.NDArray[qd.i32, 1]):
        for i in a:
            template(a, i)

    a = np.arange(3, dtype=np.int32)
    k(a)
    return a


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


def mistake_error_inside_a_function():
    """Name "missing" is not defined"""

    @qd.func
    def f(x):
        return x + missing

    @qd.kernel
    def k() -> qd.i32:
        y = f(3)
        return y

    k()


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
