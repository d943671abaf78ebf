"""Loops unrolled by qd.static, while, break."""

import quadrants as qd


def case_static_iterables():
    names = [3, 5, 8]

    @qd.kernel
    def k() -> qd.i32:
        s = 0
        for x in qd.static(names):
            s += x
        for x in qd.static((1, 2)):
            s += x * 100
        for i, x in qd.static(enumerate(names)):
            s += i * x * 1000
        for a, b in qd.static(zip(names, [1, 2, 3])):
            s += a * b * 100000
        return s

    return k()


def case_static_grouped_ndrange():
    @qd.kernel
    def k() -> qd.i32:
        s = 0
        for I in qd.static(qd.grouped(qd.ndrange(2, 2))):
            s = s * 10 + I[0] * 2 + I[1]
        return s

    return k()


def case_static_break_and_continue():
    @qd.kernel
    def k() -> qd.i32:
        s = 0
        for i in qd.static(range(10)):
            if qd.static(i == 2):
                continue
            if qd.static(i == 5):
                break
            s = s * 10 + i
        return s

    return k()


def case_static_for_over_fields():
    fields = [qd.field(qd.i32, shape=2) for _ in range(3)]

    @qd.kernel
    def k():
        for i, f in qd.static(enumerate(fields)):
            for j in f:
                f[j] = i * 10 + j

    k()
    return [f.to_numpy() for f in fields]


def case_break_in_a_loop_under_if():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        last = -1
        if n > 0:
            for i in range(100):
                if i > n:
                    break
                last = i
        return last

    return [k(5), k(-1)]
