"""Kernels as one writes them who knows Python: what there is, and what is refused."""

import math
from collections import namedtuple
from enum import Enum, IntEnum

import numpy as np
import quadrants as qd

Point = namedtuple("Point", "x y")


class Mode(Enum):
    A = 1
    B = 2


class Kind(IntEnum):
    A = 1
    B = 2


def case_enumerate_plain():
    @qd.kernel
    def k() -> qd.i32:
        s = 0
        for i, v in qd.static(enumerate([3, 4, 5], start=1)):
            s += i * v
        return s

    return k()


def case_zip_reversed_sorted():
    xs = [3, 1, 2]

    @qd.kernel
    def k() -> qd.i32:
        s = 0
        for a, b in qd.static(zip(sorted(xs), reversed(xs))):
            s = s * 100 + a * 10 + b
        return s

    return k()


def case_range_step_static():
    @qd.kernel
    def k() -> qd.i32:
        s = 0
        for i in qd.static(range(10, 0, -3)):
            s = s * 10 + i
        return s

    return k()


def case_walrus():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        r = 0
        if (m := n * 2) > 5:
            r = m
        return r

    return k(4)


def case_walrus_while():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        s = 0
        i = 0
        while (i := i + 1) < n:
            s += i
        return s

    return k(4)


def case_swap():
    @qd.kernel
    def k(a: qd.i32, b: qd.i32) -> qd.i32:
        x = a
        y = b
        x, y = y, x
        return x * 10 + y

    return k(1, 2)


def case_swap_elements():
    x = qd.field(qd.i32, shape=3)
    x.from_numpy(np.array([1, 2, 3], np.int32))

    @qd.kernel
    def k():
        x[0], x[2] = x[2], x[0]

    k()
    return x.to_numpy()


def case_chained():
    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        return 1 if 0 < a <= 5 else 0

    return [k(0), k(3), k(5), k(6)]


def case_not_and_or():
    @qd.kernel
    def k(a: qd.i32, b: qd.i32) -> qd.i32:
        r = 0
        if not a and b or a > 3:
            r = 1
        return r

    return [k(0, 1), k(1, 1), k(4, 0)]


def case_nested_ternary():
    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        return 1 if a < 0 else 2 if a == 0 else 3

    return [k(-1), k(0), k(1)]


def case_augmented_vector():
    @qd.kernel
    def k() -> qd.types.vector(3, qd.f32):
        v = qd.Vector([1.0, 2.0, 3.0])
        v += 1
        v *= 2
        v /= 4
        v -= qd.Vector([0.5, 0.5, 0.5])
        v **= 2
        return v

    return k()


def case_augmented_ops():
    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        b = a
        b <<= 2
        b |= 1
        b ^= 3
        b &= 31
        b %= 7
        b //= 2
        return b

    return k(5)


def case_namedtuple():
    p = Point(3, 4)

    @qd.kernel
    def k() -> qd.i32:
        return p.x * 10 + p.y

    return k()


def case_enum_static():
    m = Mode.B

    @qd.kernel
    def k() -> qd.i32:
        r = 0
        if qd.static(m == Mode.A):
            r = 1
        elif qd.static(m == Mode.B):
            r = 2
        return r

    return k()


def case_enum_value():
    @qd.kernel
    def k() -> qd.i32:
        return Mode.B.value * 10 + Kind.B

    return k()


def case_star_call():
    @qd.func
    def f(a, b, c):
        return a + b * 10 + c * 100

    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        t = (1, 2)
        return f(a, *t)

    return k(3)


def case_star_vector():
    @qd.func
    def f(a, b, c):
        return a + b * 10 + c * 100

    @qd.kernel
    def k(v: qd.types.vector(3, qd.i32)) -> qd.i32:
        return f(*v)

    return k([1, 2, 3])


def case_double_star_call():
    @qd.func
    def f(a, b):
        return a + b * 10

    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        d = {"a": 1, "b": 2}
        return f(**d)

    return k(3)


def case_starred_assignment():
    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        x, *y = (a, 2, 3)
        return x + y[1]

    return k(3)


def case_multiple_targets():
    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        x = y = a + 1
        x += 1
        return x * 10 + y

    return k(1)


def case_list_negative_index():
    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        xs = [a, a + 1, a + 2]
        return xs[-1] * 10 + len(xs)

    return k(1)


def case_list_slice():
    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        xs = [a, a + 1, a + 2]
        ys = xs[1:]
        return ys[0] * 10 + len(ys)

    return k(1)


def case_list_concat():
    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        xs = [a] + [a + 1] + [3] * 2
        return sum(xs)

    return k(1)


def case_in_static():
    name = "fast"

    @qd.kernel
    def k() -> qd.i32:
        r = 1
        if qd.static(name in ("fast", "slow")):
            r = 2
        return r

    return k()


def case_isinstance():
    @qd.func
    def f(x: qd.template()):
        r = 1
        if qd.static(isinstance(x, tuple)):
            r = 2
        return r

    @qd.kernel
    def k() -> qd.i32:
        return f((1, 2)) * 10 + f(3)

    return k()


def case_try():
    @qd.kernel
    def k() -> qd.i32:
        r = 1
        try:
            r = 2
        except ValueError:
            r = 3
        return r

    return k()


def case_raise():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        if n < 0:
            raise ValueError("negative")
        return n

    return k(1)


def case_match():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        r = 0
        match n:
            case 1:
                r = 10
            case 2:
                r = 20
            case _:
                r = 30
        return r

    return [k(1), k(2), k(3)]


def case_nested_def():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        def f(x):
            return x + 1

        return f(n)

    return k(1)


def case_lambda_inside():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        f = lambda x: x + 1  # noqa: E731
        return f(n)

    return k(1)


def case_early_return():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        if n < 0:
            return -1
        return n

    return [k(-5), k(3)]


def case_func_returns_dict():
    @qd.func
    def f(a):
        return {"x": a, "y": a + 1}

    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        d = f(n)
        return d["x"] + d["y"] * 10

    return k(1)


def case_func_as_argument():
    @qd.func
    def inc(x):
        return x + 1

    @qd.func
    def twice(g: qd.template(), x):
        return g(g(x))

    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        return twice(inc, n)

    return k(1)


def case_list_of_funcs():
    @qd.func
    def a(x):
        return x + 1

    @qd.func
    def b(x):
        return x * 2

    fs = [a, b]

    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        r = n
        for f in qd.static(fs):
            r = f(r)
        return fs[0](r)

    return k(3)


def case_dict_of_funcs():
    @qd.func
    def a(x):
        return x + 1

    fs = {"a": a}

    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        return fs["a"](n)

    return k(3)


def case_conditional_func():
    @qd.func
    def a(x):
        return x + 1

    @qd.func
    def b(x):
        return x * 2

    flag = False

    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        f = qd.static(a if flag else b)
        return f(n)

    return k(3)


def case_string_methods():
    name = "Abc"

    @qd.kernel
    def k() -> qd.i32:
        return qd.static(len(name.lower()) + name.startswith("A"))

    return k()


def case_np_func():
    @qd.kernel
    def k(x: qd.f32) -> qd.f32:
        return np.sin(x)

    return k(1.0)


def case_math_func():
    @qd.kernel
    def k(x: qd.f32) -> qd.f32:
        return math.sin(x)

    return k(1.0)


def case_matrix_from_comprehension():
    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        m = qd.Matrix([[a * i + j for j in range(2)] for i in range(3)])
        return m[2, 1]

    return k(5)
