"""Control flow and compile time at their edges, printing, perf_dispatch."""

import numpy as np
import quadrants as qd

vec2 = qd.types.vector(2, qd.f32)
INIT = {
    "case_print_from_a_parallel_loop": {"cpu_max_num_threads": 1},
    "case_checked_indices_that_are_right": {"debug": True},
    "mistake_vector_index_under_debug": {"debug": True},
    "mistake_two_asserts": {"debug": True},
}


def case_break_in_nested_whiles():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        count = 0
        i = 0
        while i < n:
            j = 0
            while True:
                if j > i:
                    break
                if (i + j) % 3 == 0:
                    j += 1
                    continue
                count += 1
                j += 1
            if count > 20:
                break
            i += 1
        return count * 100 + i

    return [k(3), k(50)]


def case_break_in_a_function():
    @qd.func
    def first_factor(n):
        found = n
        i = 2
        while i * i <= n:
            if n % i == 0:
                found = i
                break
            i += 1
        return found

    @qd.kernel
    def k(o: qd.types.NDArray[qd.i32, 1]):
        for i in o:
            o[i] = first_factor(i + 2)

    o = np.zeros(20, np.int32)
    k(o)
    return o


def case_loops_and_statements_in_turn():
    @qd.kernel
    def k(a: qd.types.NDArray[qd.i32, 1]) -> qd.i32:
        x = 1
        for i in a:
            a[i] = i + x
        x = a[3]
        if x > 2:
            x *= 10
        for i in range(2, 6):
            a[i] += x
        while x > 5:
            x -= 3
        for i in a:
            qd.atomic_max(x, a[i])
        return x

    a = np.zeros(8, np.int32)
    return [k(a), a]


def case_static_ndrange_in_a_stencil():
    f, g = qd.field(qd.f32, shape=(5, 5)), qd.field(qd.f32, shape=(5, 5))

    @qd.kernel
    def k():
        for i, j in f:
            f[i, j] = i * 5 + j
        for i, j in g:
            s = 0.0
            for di, dj in qd.static(qd.ndrange((-1, 2), (-1, 2))):
                if 0 <= i + di < 5 and 0 <= j + dj < 5:
                    s += f[i + di, j + dj] * (1 + di * di + dj * dj)
            g[i, j] = s

    k()
    return g.to_numpy()


def case_static_if_of_types_and_shapes():
    f, g = qd.field(qd.f32, shape=3), qd.field(qd.i32, shape=(2, 2))

    @qd.kernel
    def k(x: qd.template()) -> qd.i32:
        r = 0
        if qd.static(x.dtype == qd.f32):
            r += 1
        if qd.static(len(x.shape) == 2):
            r += 10
        else:
            r += 20
        return r

    return [k(f), k(g)]


def case_static_expressions():
    n = 6

    @qd.kernel
    def k(x: qd.i32) -> qd.i32:
        a = qd.static(n * 2)
        b = qd.static([i * i for i in range(3)])
        c = qd.static(max(b) + len(b))
        return x * a + c + b[1]

    return k(10)


def case_nested_comprehensions_and_dicts():
    table = {"w": [1, 2, 3], "k": {"x": 5}}

    @qd.kernel
    def k() -> qd.i32:
        s = 0
        for w in qd.static([i * j for i in table["w"] for j in (1, 10)]):
            s += w
        return s * table["k"]["x"]

    return k()


def case_tuples_as_values():
    @qd.func
    def pair(a):
        return (a, a * 2), a + 1

    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        t, u = pair(n)
        x, y = t
        return x * 100 + y * 10 + u

    return k(3)


def case_conditional_expressions_nest():
    @qd.kernel
    def k(x: qd.i32) -> qd.i32:
        return -1 if x < 0 else (0 if x == 0 else (1 if x < 10 else 2))

    return [k(-5), k(0), k(5), k(50)]


def case_walrus_in_a_while():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        x = n
        c = 0
        while (y := x // 2) > 0:
            x = y
            c += 1
        return c

    return [k(1), k(100)]


def case_chained_comparison_of_reals():
    @qd.kernel
    def k(x: qd.f32) -> qd.i32:
        r = 0
        if 0.25 <= x < 0.75 <= 1.0:
            r = 1
        return r

    return [k(0.0), k(0.25), k(0.5), k(0.75)]


def case_print_from_a_parallel_loop():
    @qd.kernel
    def k():
        qd.loop_config(serialize=True)
        for i in range(3):
            print("i", i, i * 0.5)

    k()
    qd.sync()
    return 0


def case_print_escapes():
    @qd.kernel
    def k(n: qd.i32):
        print("100% {} %d \\ 'q'", n, "\ttab")
        print(f"{n}% {{}} {n:>6}|")

    k(5)
    return 0


def case_checked_indices_that_are_right():
    f = qd.field(qd.i32, shape=(3, 4), offset=(-1, 2))

    @qd.kernel
    def k(a: qd.types.NDArray[qd.i32, 1]) -> qd.i32:
        for i, j in f:
            f[i, j] = a[(i + 1) * 4 + j - 2]
        return f[1, 5]

    return k(np.arange(12, dtype=np.int32))


def case_perf_dispatch():
    @qd.perf_dispatch(get_geometry_hash=lambda x: x.shape)
    def fill(x: qd.types.NDArray[qd.i32, 1]): ...

    @fill.register
    @qd.kernel
    def by_range(x: qd.types.NDArray[qd.i32, 1]):
        for i in range(x.shape[0]):
            x[i] = i * 2

    @fill.register
    @qd.kernel
    def by_elements(x: qd.types.NDArray[qd.i32, 1]):
        for i in x:
            x[i] = i * 2

    out = []
    for _ in range(6):
        x = np.zeros(5, np.int32)
        fill(x)
        out.append(x)
    return out


def mistake_vector_index_under_debug():
    @qd.kernel
    def k(i: qd.i32) -> qd.f32:
        f = vec2(1.0, 2.0)
        return f[i]

    k(2)
    qd.sync()


def mistake_two_asserts():
    """second"""

    @qd.kernel
    def k(n: qd.i32):
        assert n > 0, "first"
        assert n > 5, "second"

    k(3)
    qd.sync()


def case_return_twice():
    @qd.kernel
    def k() -> qd.i32:
        return 1
        return 2

    return k()


def mistake_loop_over_a_number():
    @qd.kernel
    def k(n: qd.i32):
        for i in n:
            pass

    k(3)


def mistake_range_without_arguments():
    @qd.kernel
    def k():
        for i in range():
            pass

    k()


def mistake_augmented_undefined():
    """Name "y" is not defined"""

    @qd.kernel
    def k():
        y += 1

    k()


def mistake_print_of_an_undefined_name():
    """Name "y" is not defined"""

    @qd.kernel
    def k():
        print("y is", y)

    k()


def mistake_static_of_a_local():
    @qd.kernel
    def k():
        x = 3
        for i in qd.static(range(x)):
            pass

    k()
