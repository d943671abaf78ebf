"""Loops, branches, and what is decided at compile time."""

from .... import engine as qd
from ..feature import Group
from .kit import F32, I32, filled, of, zeros

feature = Group("loops", "Loops and branches")


@feature("range with bounds, an empty one, a reversed one", [[0, 0, 1, 1, 1], 0])
def ranges():
    @qd.kernel
    def k(x: I32, a: qd.i32, b: qd.i32) -> qd.i32:
        count = 0
        for i in range(a, b):
            x[i] = 1
        for i in range(b, a):
            count += 1
        for i in range(a, a):
            count += 1
        return count

    x = zeros(qd.i32, 5)
    return [x, k(x, 2, 5)]


@feature("ranges with negative bounds", [[-3, -2, -1, 0, 1]])
def negative_ranges():
    @qd.kernel
    def k(x: I32):
        for i in range(-3, 2):
            x[i + 3] = i

    return [filled(k, zeros(qd.i32, 5))]


@feature("bounds are read once", [4, 8])
def bounds_read_once():
    @qd.kernel
    def k(x: I32) -> qd.i32:
        n = x[0]
        count = 0
        for _ in range(n):
            x[0] += 1
            count += 1
        return count

    x = of(qd.i32, 4)
    return [k(x), x[0]]


@feature("ndrange over a product, with begins", [[[0, 1, 2], [10, 11, 12]], 21])
def products():
    @qd.kernel
    def k(x: qd.types.NDArray[qd.i32, 2]) -> qd.i32:
        total = 0
        for i, j in qd.ndrange(2, 3):
            x[i, j] = i * 10 + j
        for i, j in qd.ndrange((1, 2), (0, 2)):
            total += x[i, j]
        return total

    x = zeros(qd.i32, 2, 3)
    return [x, k(x)]


@feature("ndrange of three axes in another order", [[0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]])
def ordered_products():
    @qd.kernel
    def k(x: I32):
        qd.loop_config(serialize=True)
        n = 0
        for i, j in qd.ndrange(4, 3, axes=(1, 0)):
            x[n] = i * 3 + j
            n += 1

    return [filled(k, zeros(qd.i32, 12))]


@feature("loops over arrays and grouped indices", [[[0, 1], [1, 2]], 4])
def grouped():
    @qd.kernel
    def k(x: qd.types.NDArray[qd.i32, 2]) -> qd.i32:
        count = 0
        for I in qd.grouped(x):
            x[I] = I.sum()
        for i, j in x:
            if x[j, i] == i + j:
                count += 1
        return count

    x = zeros(qd.i32, 2, 2)
    return [x, k(x)]


@feature("grouped ndrange with neighbours", [[0, 2, 4, 3]])
def neighbours():
    @qd.kernel
    def k(x: I32, y: I32):
        for I in qd.grouped(qd.ndrange((1, 3))):
            y[I] = x[I - 1] + x[I + 1]
        y[3] = x[3]

    return [filled(k, of(qd.i32, 0, 1, 2, 3), zeros(qd.i32, 4))]


@feature("loops in loops, with bounds that depend on the outer one", [[0, 0, 1, 5, 14, 30]])
def nested():
    @qd.kernel
    def k(x: I32):
        for i in x:
            total = 0
            for a in range(i):
                for _ in range(a):
                    total += a
            x[i] = total

    return [filled(k, zeros(qd.i32, 6))]


@feature("while, with a condition of variables", [[0, 1, 7, 2, 5, 8, 16, 3]])
def while_loops():
    @qd.kernel
    def k(x: I32):
        for i in x:
            n = i + 1
            steps = 0
            while n > 1:
                n = n // 2 if n % 2 == 0 else 3 * n + 1
                steps += 1
            x[i] = steps

    return [filled(k, zeros(qd.i32, 8))]


@feature("break and continue", [[0, 0, 2, 2, 6, 6, 6, 6]])
def leaving():
    @qd.kernel
    def k(x: I32):
        for i in x:
            total = 0
            for j in range(100):
                if j > i:
                    break
                if j % 2 == 1:
                    continue
                if j > 4:
                    break
                total += j
            x[i] = total

    return [filled(k, zeros(qd.i32, 8))]


@feature("while True with break, and continue in it", 25)
def endless():
    @qd.kernel
    def k() -> qd.i32:
        n = 0
        total = 0
        while True:
            n += 1
            if n > 9:
                break
            if n % 2 == 0:
                continue
            total += n
        return total

    return k()


@feature("if, elif, else", [[10, 20, 30, 30]])
def branches():
    @qd.kernel
    def k(x: I32):
        for i in x:
            if i == 0:
                x[i] = 10
            elif i == 1:
                x[i] = 20
            else:
                x[i] = 30

    return [filled(k, zeros(qd.i32, 4))]


@feature("static loops and branches", [6, 1])
def static():
    @qd.kernel
    def k(n: qd.template(), flag: qd.template()) -> qd.i32:
        total = 0
        for i in qd.static(range(n)):
            total += i
        if qd.static(flag):
            total = 1
        return total

    return [k(4, False), k(4, True)]


@feature("static loops over lists and tuples, static_assert", 18)
def static_lists():
    pairs = [(1, 2), (4, 4)]

    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        total = 0
        qd.static_assert(len(pairs) == 2, "two pairs")
        for x, y in qd.static(pairs):
            total += x * y
        return total * a // a

    return k(3)


@feature("loop_config: serialize, block_dim, name", [9, [1, 1, 1, 1]])
def configured():
    @qd.kernel
    def k(x: I32) -> qd.i32:
        found = -1
        qd.loop_config(serialize=True)
        for i in range(10):
            if i * i > 50:
                found = i
        qd.loop_config(block_dim=64, name="fill")
        for i in x:
            x[i] = 1
        return found

    x = zeros(qd.i32, 4)
    return [k(x), x]


@feature("a serialised loop that is left", 3)
def serial_break():
    @qd.kernel
    def k(x: I32, limit: qd.i32) -> qd.i32:
        found = -1
        qd.loop_config(serialize=True)
        for i in range(x.shape[0]):
            if x[i] > limit:
                found = i
                break
        return found

    return k(of(qd.i32, 1, 2, 3, 9, 10), 4)


@feature("several loops and statements between them", [[42, 44, 46]])
def several():
    @qd.kernel
    def k(x: I32):
        a = 10
        for i in x:
            x[i] = i + a
        a += 1
        b = x[0] + a
        for i in x:
            x[i] += i + a + b

    return [filled(k, zeros(qd.i32, 3))]


@feature("many small tasks in one kernel", [[20]])
def many_tasks():
    @qd.kernel
    def k(x: I32):
        for r in qd.static(range(20)):
            for i in x:
                x[i] += 1

    return [filled(k, zeros(qd.i32, 1))]


@feature("variables of branches and loops end with them", [3, 8])
def scopes():
    @qd.kernel
    def k(a: qd.i32) -> tuple[qd.i32, qd.i32]:
        x = 1
        y = 0
        if a > 0:
            t = a * 2
            x += t // 2 - 1
        for i in range(2):
            t = 4.0
            y += int(t)
        return x, y

    return k(3)


@feature("loops over more cells than there are threads", [750000, 99999])
def long_loop():
    @qd.kernel
    def k(x: I32) -> qd.i32:
        total = 0
        for i in x:
            x[i] = i
        for i in x:
            total += x[i] % 16
        return total

    x = zeros(qd.i32, 100000)
    return [k(x), x[99999]]


@feature("a stencil in two arrays", [[0.0, 1.0, 2.0, 3.0, 4.0]], rtol=1e-6)
def stencil():
    @qd.kernel
    def k(x: F32, y: F32):
        for i in range(1, x.shape[0] - 1):
            y[i] = 0.5 * (x[i - 1] + x[i + 1])
        for i in range(1, x.shape[0] - 1):
            x[i] = y[i]

    x, y = of(qd.f32, 0, 0, 0, 0, 4), zeros(qd.f32, 5)
    for _ in range(60):
        k(x, y)
    return [x]


@feature("the thread's number in its loop", [[0, 1, 2, 3, 4, 5, 6, 7]])
def thread_numbers():
    @qd.kernel
    def k(x: I32):
        for i in x:
            x[i] = qd.global_thread_idx()

    return [filled(k, zeros(qd.i32, 8))]
