"""Loops: range, ndrange, grouped, struct-for, continue, loop_config."""

import numpy as np
import quadrants as qd


def case_bounds_are_read_once():
    @qd.kernel
    def k() -> tuple[qd.i32, qd.i32]:
        n = 5
        c = 0
        if c == 0:
            for _ in range(n):
                n += 1
                c += 1
        return n, c

    return k()


def case_bounds_from_an_element():
    @qd.kernel
    def k(a: qd.types.NDArray[qd.i32, 1], o: qd.types.NDArray[qd.i32, 1]):
        for i in range(a[0], a[1]):
            o[i] = i * i

    a, o = np.array([2, 6], np.int32), np.zeros(8, np.int32)
    k(a, o)
    return o


def case_bounds_of_other_types():
    @qd.kernel
    def k(n: qd.i64, m: qd.f32) -> tuple[qd.i32, qd.i32]:
        s = 0
        for _ in range(n):
            s += 1
        t = 0
        for _ in range(m):
            t += 1
        return s, t

    return k(7, 4.9)


def case_ndrange_negative_and_empty():
    @qd.kernel
    def k(b: qd.i32, e: qd.i32) -> qd.i32:
        s = 0
        for i, j in qd.ndrange((b, e), (-1, 2)):
            s += i * 10 + j + 1
        return s

    return [k(-2, 2), k(3, 3), k(3, 1)]


def case_ndrange_of_one():
    @qd.kernel
    def k() -> qd.i32:
        s = 0
        for i in qd.ndrange(5):
            s += i
        for i in qd.ndrange((2, 4)):
            s += i * 100
        return s

    return k()


def case_ndrange_order():
    @qd.kernel
    def k(o: qd.types.NDArray[qd.i32, 1]):
        qd.loop_config(serialize=True)
        for i, j in qd.ndrange(2, 3):
            o[qd.atomic_add(o[0], 1) + 1] = i * 10 + j

    o = np.zeros(8, np.int32)
    k(o)
    return o


def case_grouped_ndrange_starred():
    @qd.kernel
    def k(o: qd.types.NDArray[qd.i32, 2]):
        for I in qd.grouped(qd.ndrange(*o.shape)):
            o[I] = I.x - I.y

    o = np.zeros((3, 2), np.int32)
    k(o)
    return o


def case_continue_in_a_parallel_loop():
    @qd.kernel
    def k(o: qd.types.NDArray[qd.i32, 1]):
        for i in o:
            if i % 3 == 0:
                continue
            o[i] = i

    o = np.zeros(10, np.int32)
    k(o)
    return o


def case_serialized_order():
    @qd.kernel
    def k(o: qd.types.NDArray[qd.i32, 1]):
        qd.loop_config(serialize=True)
        for i in range(1, 1000):
            o[i] = o[i - 1] * 3 + i

    o = np.zeros(1000, np.int32)
    k(o)
    return o


def case_loop_config_applies_to_the_next_loop_only():
    @qd.kernel
    def k() -> qd.i32:
        s = 0
        qd.loop_config(parallelize=2, block_dim=64, name="first")
        for i in range(700):
            s += i
        for i in range(700):
            s += 1
        return s

    return k()


def case_tasks_see_what_was_written_before():
    @qd.kernel
    def k(a: qd.types.NDArray[qd.i32, 1]) -> qd.i32:
        for i in a:
            a[i] = i
        total = 0
        for i in a:
            total += a[i]
        a[0] = total
        for i in a:
            if i > 0:
                a[i] += a[0]
        return a[1]

    a = np.zeros(1000, np.int32)
    return [k(a), int(a[-1])]


def case_many_threads():
    @qd.kernel
    def k(n: qd.i32) -> tuple[qd.i32, qd.i64, qd.f64]:
        c = 0
        s = qd.i64(0)
        f = qd.f64(0.0)
        for i in range(n):
            c += 1
            s += i
            f += 0.5
        return c, s, f

    return k(100000)


def case_underscore_in_nested_loops():
    @qd.kernel
    def k() -> qd.i32:
        s = 0
        for _ in range(2):
            for _ in range(3):
                s += 100
        return s

    return k()
