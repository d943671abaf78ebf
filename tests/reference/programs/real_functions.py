"""Real functions: loops, structs, references, each other."""

import numpy as np
import quadrants as qd

vec2 = qd.types.vector(2, qd.f32)


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


def case_real_function_in_a_parallel_loop():
    @qd.real_func
    def collatz(n: qd.i32) -> qd.i32:
        x = n
        steps = 0
        while x > 1:
            if x % 2 == 0:
                x //= 2
            else:
                x = 3 * x + 1
            steps += 1
        return steps

    @qd.kernel
    def k(o: qd.types.NDArray[qd.i32, 1]):
        for i in o:
            o[i] = collatz(i + 1)

    o = np.zeros(30, np.int32)
    k(o)
    return o


def case_real_function_returns_from_a_loop():
    @qd.real_func
    def find(limit: qd.i32) -> qd.i32:
        for i in range(100):
            if i * i > limit:
                return i
        return -1

    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        return find(n)

    return [k(10), k(99999)]


def case_real_function_with_a_struct():
    P = qd.types.struct(v=vec2, m=qd.f32)

    @qd.real_func
    def f(p: P, s: qd.f32) -> qd.f32:
        return p.v.norm_sqr() * s + p.m

    @qd.kernel
    def k() -> qd.f32:
        return f(P(v=vec2(1.0, 2.0), m=0.5), 2.0)

    return k()


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
