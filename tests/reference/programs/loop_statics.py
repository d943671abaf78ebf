"""Loops unrolled by qd.static, while, break."""

import numpy as np
import quadrants as qd


def case_static_range():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        s = 0
        for i in qd.static(range(4)):
            if qd.static(i % 2 == 0):
                s += n**i
        return s

    return k(3)


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


def case_static_ndrange():
    @qd.kernel
    def k() -> qd.i32:
        s = 0
        for i, j in qd.static(qd.ndrange(2, (1, 3))):
            s = s * 10 + i + j
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


def case_while():
    @qd.kernel
    def k(n: qd.i32) -> tuple[qd.i32, qd.i32]:
        steps = 0
        x = n
        while x != 1:
            if x % 2 == 0:
                x //= 2
            else:
                x = 3 * x + 1
            steps += 1
        return steps, x

    return [k(1), k(27)]


def case_while_true_with_break():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        i = 0
        while True:
            i += 1
            if i % 2 == 0:
                continue
            if i > n:
                break
        return i

    return [k(5), k(8)]


def case_break_and_continue_in_inner_loops():
    @qd.kernel
    def k(o: qd.types.NDArray[qd.i32, 1]):
        for i in range(5):
            for j in range(10):
                if j == i:
                    continue
                if j > 6:
                    break
                o[i] += j

    o = np.zeros(5, np.int32)
    k(o)
    return o


def case_break_in_a_serialized_loop():
    @qd.kernel
    def k() -> qd.i32:
        last = -1
        qd.loop_config(serialize=True)
        for i in range(100):
            if i * i > 50:
                break
            last = i
        return last

    return k()


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


def case_len_of_shape():
    @qd.kernel
    def k(o: qd.types.NDArray[qd.i32, 3]) -> tuple[qd.i32, qd.i32]:
        n = 1
        for i in qd.static(range(len(o.shape))):
            n *= o.shape[i]
        return n, len(o.shape)

    return k(np.zeros((2, 3, 4), np.int32))
