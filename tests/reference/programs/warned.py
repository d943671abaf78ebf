"""Warnings while kernels are compiled and called: their categories."""

import dataclasses
import warnings

import quadrants as qd

INIT = {"case_static_loops_below_and_above_the_limit": {"unrolling_limit": 8}}


@dataclasses.dataclass
class Config:
    n: qd.i32


def warned(function, *args):
    """The categories of the warnings that a call gives, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*args)
    return sorted({w.category.__name__ for w in caught})


def case_nothing_to_warn_about():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        s = 0
        for i in range(n):
            s += i
        return s

    return warned(k, 3)


def case_static_loops_below_and_above_the_limit():
    @qd.kernel
    def k(n: qd.template()) -> qd.i32:
        s = 0
        for i in qd.static(range(n)):
            s += i
        return s

    return [warned(k, 5), warned(k, 20)]


def case_python_function_of_run_time_values():
    def double(x):
        return x * 2

    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        return double(n)

    return [warned(k, 3), k(3)]


def case_python_function_of_constants():
    def double(x):
        return x * 2

    @qd.kernel
    def k() -> qd.i32:
        return double(21)

    return [warned(k), k()]


def case_large_matrix():
    @qd.kernel
    def k() -> qd.f32:
        m = qd.Matrix.zero(qd.f32, 13, 13)
        return m[0, 0]

    return warned(k)


def case_dataclass_by_template():
    @qd.kernel
    def k(c: qd.template()) -> qd.i32:
        return c.n

    return [warned(k, Config(3)), k(Config(4))]
