"""Real functions: loops, structs, references, each other."""

import quadrants as qd


def case_real_functions_call_each_other():
    @qd.real_func
    def even(n: qd.i32) -> qd.i32:
        if n == 0:
            return 1
        return 1 - even(n - 1)

    @qd.real_func
    def twice(n: qd.i32) -> qd.i32:
        return even(n) * 10 + even(n + 1)

    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        return twice(n)

    return [k(4), k(7)]


def case_real_function_sets_a_reference_to_an_element():
    x = qd.field(qd.i32, shape=3)

    @qd.real_func
    def put(e: qd.ref(qd.i32), v: qd.i32):
        e = v

    @qd.kernel
    def k():
        a = 0
        put(a, 7)
        x[1] = a

    k()
    return x.to_numpy()


def mistake_real_function_without_a_result_type():
    @qd.real_func
    def f(a: qd.i32):
        return a

    @qd.kernel
    def k() -> qd.i32:
        return f(3)

    k()


def mistake_real_function_without_a_parameter_type():
    @qd.real_func
    def f(a) -> qd.i32:
        return a

    @qd.kernel
    def k() -> qd.i32:
        return f(3)

    k()
