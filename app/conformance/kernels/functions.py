"""Functions that kernels call, what kernels return and print."""

import contextlib
import io

from .... import engine as qd
from ..feature import Group
from .kit import F32, I32, filled, of, zeros

feature = Group("functions", "Functions, results, prints")


@feature("functions: defaults, keywords, several results", [7, 12, 5])
def inlined():
    @qd.func
    def both(a, b=2, c=3):
        return a * b, a + c

    @qd.kernel
    def k(x: qd.i32) -> tuple[qd.i32, qd.i32, qd.i32]:
        p, q = both(x)
        r, s = both(x, c=1, b=3)
        return q, r, s

    return k(4)


@feature("template arguments go by reference", [2, 1, [5, 1]])
def by_reference():
    @qd.func
    def swap(a: qd.template(), b: qd.template()):
        a, b = b, a

    @qd.kernel
    def k(v: I32) -> tuple[qd.i32, qd.i32]:
        x, y = 1, 2
        swap(x, y)
        swap(v[0], v[1])
        return x, y

    v = of(qd.i32, 1, 5)
    return [*k(v), v]


@feature("functions for kernels and for Python", [12.0, 12.0])
def in_both_worlds():
    @qd.pyfunc
    def area(r):
        return 3.0 * r * r

    @qd.kernel
    def k(r: qd.f32) -> qd.f32:
        return area(r)

    return [area(2.0), k(2.0)]


@feature("recursion at compile time", 120)
def compile_time_recursion():
    @qd.func
    def fact(n: qd.template()):
        if qd.static(n <= 1):
            return 1
        else:
            return n * fact(n - 1)

    @qd.kernel
    def k() -> qd.i32:
        return fact(5)

    return k()


@feature("functions, types and values as template arguments", [9, 6])
def function_arguments():
    @qd.func
    def square(x):
        return x * x

    @qd.func
    def double(x):
        return x + x

    @qd.kernel
    def k(f: qd.template(), dtype: qd.template(), x: qd.i32) -> qd.i32:
        return qd.cast(f(x), dtype)

    return [k(square, qd.i32, 3), k(double, qd.i8, 3)]


@feature("functions made by functions", 30)
def closures():
    offset = 5

    def shifted(factor):
        @qd.func
        def apply(x):
            return x * factor + offset

        return apply

    twice, thrice = shifted(2), shifted(3)

    @qd.kernel
    def k(x: qd.i32) -> qd.i32:
        return twice(x) + thrice(x)

    return k(4)


@feature("real functions that call themselves, with a reference", [120, 5])
def real_recursion():
    @qd.real_func
    def fact(n: qd.i32, calls: qd.ref(qd.i32)) -> qd.i32:
        calls += 1
        if n <= 1:
            return 1
        return n * fact(n - 1, calls)

    @qd.kernel
    def k(n: qd.i32) -> tuple[qd.i32, qd.i32]:
        calls = 0
        result = fact(n, calls)
        return result, calls

    return k(5)


@feature("real functions that return from loops, in a parallel loop", [[7, 3, 2, 7]])
def real_returns():
    @qd.real_func
    def least_divisor(n: qd.i32) -> qd.i32:
        for d in range(2, n):
            if n % d == 0:
                return d
        return n

    @qd.kernel
    def k(x: I32):
        for i in x:
            x[i] = least_divisor(x[i])

    return [filled(k, of(qd.i32, 7, 9, 10, 49))]


@feature("real functions with vectors, structs and arrays", [6.0, 7.0, [1.0, 2.0, 3.0]])
def real_compound():
    vec = qd.types.vector(2, qd.f32)
    Body = qd.types.struct(pos=vec, mass=qd.f32)

    @qd.real_func
    def momentum(b: Body, v: vec) -> vec:
        return v * b.mass + b.pos * 0.0

    @qd.real_func
    def fill(x: F32, start: qd.i32):
        for i in range(x.shape[0]):
            x[i] = start + i

    @qd.kernel
    def k(x: F32) -> tuple[qd.f32, qd.f32]:
        fill(x, 1)
        b = Body(pos=vec(1.0, 1.0), mass=2.0)
        p = momentum(b, vec(3.0, 3.5))
        return p.x, p.y

    x = zeros(qd.f32, 3)
    return [*k(x), x]


@feature("results: numbers of each type, several of them", [-1, 2**40, 200, 0.5, 0.25, 1], ("f64",))
def results():
    @qd.kernel
    def k() -> tuple[qd.i8, qd.i64, qd.u8, qd.f32, qd.f64, qd.u1]:
        return -1, qd.cast(1, qd.i64) << 40, 200, 0.5, 0.25, True

    return k()


@feature("results: vectors, matrices, structs", [[1.0, 2.0], [[1, 2], [3, 4]], 3, [0.5, 0.5]])
def compound_results():
    vec, mat = qd.types.vector(2, qd.f32), qd.types.matrix(2, 2, qd.i32)
    S = qd.types.struct(n=qd.i32, v=vec)

    @qd.kernel
    def k() -> tuple[vec, mat, S]:
        return vec(1.0, 2.0), mat(1, 2, 3, 4), S(n=3, v=vec(0.5, 0.5))

    v, m, s = k()
    return [v.to_list(), m.to_list(), s.n, s.v.to_list()]


@feature("results: early return under a static condition, results are converted", [3, 7])
def converted_results():
    @qd.kernel
    def k(flag: qd.template(), x: qd.f32) -> qd.i32:
        if qd.static(flag):
            return qd.cast(x, qd.i32)
        return 7

    return [k(True, 3.9), k(False, 0.0)]


@feature("values outside of the kernel are captured when it is compiled", 15)
def captured():
    numbers = [1, 2, 3]
    table = {"a": 4, "b": 5}

    @qd.kernel
    def k() -> qd.i32:
        total = 0
        for n in qd.static(numbers):
            total += n
        return total + table["a"] + table["b"]

    return k()


@feature("a kernel is compiled for each kind of argument", [[2, 4], [1.0, 3.0], [[4, 4]]])
def instances():
    @qd.kernel
    def double(x: qd.types.ndarray()):
        for I in qd.grouped(x):
            x[I] += x[I]

    a, b, c = of(qd.i32, 1, 2), of(qd.f32, 0.5, 1.5), zeros(qd.i64, 1, 2) + 2
    for x in (a, b, c):
        double(x)
    return [a, b, c]


@feature("volatile loads", 4)
def volatile():
    @qd.kernel
    def k(x: I32) -> qd.i32:
        return qd.volatile_load(x[0])

    return k(of(qd.i32, 4))


def printed(run):
    """Return the text that ``run`` prints."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        run()
        qd.sync()
    return text.getvalue()


@feature(
    "print: values of each type, sep and end",
    "x|1.250000|-3|18446744073709551615|1!\n7 0.5\n",
    ("prints",),
)
def prints():
    @qd.kernel
    def k(a: qd.f32, c: qd.i8, d: qd.u64, e: qd.u1):
        print("x", a, c, d, e, sep="|", end="!\n")
        print(f"{c + 10:d} {a - 0.75:.1f}")

    return printed(lambda: k(1.25, -3, 2**64 - 1, True))


@feature(
    "print in a parallel loop: each line is whole",
    [[f"item {i} of 8" for i in range(8)]],
    ("prints",),
)
def parallel_prints():
    @qd.kernel
    def k(x: I32):
        for i in x:
            print("item", i, "of", x.shape[0])

    return [sorted(printed(lambda: k(zeros(qd.i32, 8))).splitlines())]


@feature("print of vectors and of f64 with a format", "[1, 2]\n0.333\n", ("prints", "f64"))
def formatted_prints():
    @qd.kernel
    def k(x: qd.f64):
        v = qd.Vector([1, 2])
        print(v)
        print(f"{x / 3.0:.3f}")

    return printed(lambda: k(1.0))
