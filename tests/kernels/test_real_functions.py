"""Real functions: calls at run time, recursion, references, results of every kind, errors.

What is expected here is what Quadrants gives for the same source, where it gives a defined value.
"""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.runtime.program import current

Ints = qd.types.ndarray(dtype=qd.i32, ndim=1)
Vec3 = qd.types.vector(3, qd.f32)
Pair = qd.types.struct(a=qd.i32, b=qd.f32)


pytestmark = pytest.mark.usefixtures("configured")


@qd.real_func
def fact(n: qd.i32) -> qd.i32:
    if n <= 1:
        return 1
    return n * fact(n - 1)


@qd.real_func
def fib(n: qd.i32) -> qd.i32:
    r = n
    if n > 1:
        r = fib(n - 1) + fib(n - 2)
    return r


@qd.real_func
def odd(n: qd.i32) -> qd.i32:
    if n == 0:
        return 0
    return even(n - 1)


@qd.real_func
def even(n: qd.i32) -> qd.i32:
    if n == 0:
        return 1
    return odd(n - 1)


@qd.kernel
def recursive(out: Ints):
    for i in out:
        out[i] = fact(i % 6) + 1000 * fib(i) + 100000 * odd(i) + 200000 * even(i)


def test_recursion():
    out = np.zeros(12, np.int32)
    recursive(out)
    facts = [1, 1, 2, 6, 24, 120]
    fibs = [0, 1]
    for _ in range(10):
        fibs.append(fibs[-1] + fibs[-2])
    assert out.tolist() == [
        facts[i % 6] + 1000 * fibs[i] + (100000 if i % 2 else 200000) for i in range(12)
    ]


@qd.real_func
def add_to(x: qd.ref(qd.i32), d: qd.i32):
    x += d


@qd.real_func
def swap(a: qd.ref(qd.i32), b: qd.ref(qd.i32)):
    old = a
    a = b
    b = old


@qd.kernel
def references(out: Ints) -> qd.i32:
    for i in range(out.shape[0]):
        add_to(out[i], i)
        mine = 100
        add_to(mine, i)
        swap(mine, out[i])
        add_to(out[i], mine)
    total = 5
    add_to(total, 3)
    add_to(total, total)
    return total


def test_references_are_variables_and_elements_of_the_caller():
    out = np.arange(5, dtype=np.int32)
    assert references(out) == 16
    assert out.tolist() == [100 + i + 2 * i for i in range(5)]


@qd.real_func
def same_twice(a: qd.ref(qd.i32), b: qd.ref(qd.i32)) -> qd.i32:
    a = 1
    b += 2
    return a


@qd.kernel
def aliases(x: Ints) -> qd.i32:
    v = 0
    return same_twice(v, v) * 10 + same_twice(x[0], x[0])


def test_references_may_be_to_the_same_variable():
    assert aliases(np.zeros(1, np.int32)) == 33


@qd.real_func
def moved(x: qd.ref(qd.i64), y: qd.ref(qd.i64), d: qd.i32) -> qd.i32:
    before = x
    y += d
    return 1 if x != before else 0


@qd.real_func
def count(x: qd.ref(qd.i64), d: qd.i32):
    x += d


@qd.kernel
def at_once(out: qd.types.ndarray(dtype=qd.i64, ndim=1), n: qd.i32) -> qd.i64:
    total = qd.i64(0)
    for i in range(n):
        count(out[0], i)
        count(total, 1)
        v = qd.i64(0)
        same = moved(v, v, 3)
        other = moved(out[1 + i % 3], v, 3)
        count(out[5], same * 10 + other + qd.cast(v, qd.i32))
    return total


def test_updates_through_references_are_atomic_and_see_each_other():
    out = np.zeros(6, np.int64)
    assert at_once(out, 3000) == 3000
    assert out.tolist() == [3000 * 2999 // 2, 0, 0, 0, 0, 48000]


@qd.real_func
def scaled(v: Vec3, by: qd.f32) -> Vec3:
    return v * by


@qd.real_func
def changed(p: Pair) -> Pair:
    p.a += 1
    return p


@qd.real_func
def two(a: qd.i32) -> tuple[qd.i32, qd.f32]:
    if a > 10:
        return 10, 0.25
    return a, a + 0.5


@qd.kernel
def vectors() -> Vec3:
    return scaled(Vec3(1, 2, 3), 2.0)


@qd.kernel
def structs() -> qd.f32:
    p = Pair(a=1, b=2.0)
    q = changed(p)
    return p.a * 100 + q.a * 10 + q.b


@qd.kernel
def pairs(n: qd.i32) -> qd.f32:
    x, y = two(n)
    return x + y


def test_results_of_every_kind():
    assert list(vectors()) == [2.0, 4.0, 6.0]
    assert structs() == 122.0  # by value: the caller's struct stays
    assert pairs(3) == 6.5
    assert pairs(30) == 10.25


def test_fields_and_arrays_are_those_of_the_launch():
    field = qd.field(qd.f32, shape=(4,))

    @qd.real_func
    def bump(i: qd.i32) -> qd.f32:
        field[i] = field[i] + 2
        return field[i] + 1

    @qd.real_func
    def pick(x: Ints, k: qd.template(), i: qd.i32) -> qd.i32:
        return x[i] * k

    @qd.kernel
    def use(x: Ints, y: Ints) -> qd.f32:
        field[2] = 5
        first = bump(2)
        return first * 1000 + field[2] * 100 + pick(x, 2, 1) * 10 + pick(y, 1, 1)

    assert use(np.array([0, 3], np.int32), np.array([0, 4], np.int32)) == 8764.0


@qd.real_func
def found(x: Ints, limit: qd.i32) -> qd.i32:
    for i in range(x.shape[0]):
        k = 0
        while k < 3:
            if x[i] + k > limit:
                return 10 * i + k
            k += 1
    return -1


@qd.kernel
def search(x: Ints, limit: qd.i32) -> qd.i32:
    return found(x, limit)


def test_return_from_inside_of_loops():
    x = np.array([1, 5, 2, 9], np.int32)
    assert [search(x, n) for n in (0, 2, 6, 10, 11)] == [0, 2, 12, 32, -1]


@qd.real_func
def count_down(n: qd.i32, total: qd.ref(qd.i32)):
    if n == 0:
        return
    total += n
    count_down(n - 1, total)


@qd.kernel
def deep(n: qd.i32) -> qd.i32:
    total = 0
    count_down(n, total)
    return total


@qd.real_func
def endless(n: qd.i32) -> qd.i32:
    return endless(n + 1) + endless(n - 1)


@qd.kernel
def never() -> qd.i32:
    return endless(0)


def test_recursion_that_is_too_deep_is_an_error_and_leaves_the_process_usable():
    on_gpu = current().backend.name == "cuda"
    if not on_gpu:
        assert deep(4000) == 8002000
    most = r"more than \d\d+ levels deep; qd.init" if on_gpu else "more than 4096 levels deep"
    for kernel, args in ((deep, (100000,)), (never, ())):
        with pytest.raises(qd.QuadrantsAssertionError, match=most):
            kernel(*args)
    assert deep(3) == 6


@qd.real_func
def noise(n: qd.i32) -> qd.f32:
    x = qd.random()
    if n > 0:
        x += noise(n - 1)
    return x


@qd.kernel
def noisy(out: qd.types.ndarray(dtype=qd.f32, ndim=1)):
    for i in out:
        out[i] = noise(2) + qd.random()


def test_random_numbers_come_from_the_sequence_of_the_iteration():
    out = np.zeros(400, np.float32)
    noisy(out)
    assert len(set(out.tolist())) > 390
    assert 0 < out.min() < out.max() < 4
    assert abs(out.mean() - 2) < 0.2


@qd.real_func
def checked(n: qd.i32) -> qd.i32:
    assert n < 5, "n is too large"
    return n


@qd.kernel
def checks(n: qd.i32) -> qd.i32:
    total = 0
    for i in range(n):
        total += checked(i)
    return total


def test_asserts_inside_of_functions():
    qd.init(arch=qd.cpu, debug=True, log_level="error")
    assert checks(5) == 10
    with pytest.raises(qd.QuadrantsAssertionError, match="n is too large"):
        checks(9)


@qd.func
def inlined(x):
    return fact(x) + 1


@qd.real_func
def both(x: qd.i32, y: qd.i32 = 4) -> qd.i32:
    return inlined(x) + y


@qd.kernel
def mixed(n: qd.i32) -> qd.i32:
    return both(n) * 100 + both(n, y=1) + inlined(2)


def test_functions_of_both_kinds_call_each_other():
    assert mixed(3) == 1111


def test_mistakes_in_declarations():
    with pytest.raises(qd.QuadrantsSyntaxError, match="must be type annotated"):

        @qd.real_func
        def bare(a) -> qd.i32:
            return a

    with pytest.raises(qd.QuadrantsSyntaxError, match="Only a real function can take a reference"):

        @qd.func
        def inline(a: qd.ref(qd.i32)):
            pass

    with pytest.raises(qd.QuadrantsSyntaxError, match="Invalid type annotation"):

        @qd.kernel
        def kernel(a: qd.ref(qd.i32)):
            pass

    with pytest.raises(TypeError, match="Invalid data type"):
        qd.ref(Vec3)
    with pytest.raises(qd.QuadrantsAssertionError, match="real_func 'fact' can only be called"):
        fact(3)
    with pytest.warns(DeprecationWarning, match="no longer experimental"):
        qd.experimental.real_func(lambda_free)


def lambda_free(a: qd.i32):
    pass


@qd.data_oriented
class Series:
    def __init__(self):
        self.factor = 3
        self.terms = qd.field(qd.f32, shape=4)

    @qd.real_func
    def sum(self, last: qd.i32) -> qd.f32:
        result = self.terms[last]
        if last > 0:
            result += self.sum(last - 1) * self.factor
        return result

    @qd.kernel
    def go(self) -> qd.f32:
        for i in range(4):
            self.terms[i] = i + 1
        return self.sum(3)


def test_methods():
    assert Series().go() == 58.0


@qd.real_func
def reported(n: qd.i32) -> qd.i32:
    print("n is", n)
    return n


@qd.kernel
def reports(n: qd.i32) -> qd.i32:
    return reported(n) + reported(n + 1)


def test_functions_can_print(capfd):
    assert reports(4) == 9
    assert capfd.readouterr().out == "n is 4\nn is 5\n"
