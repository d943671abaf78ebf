"""Loads of variables whose value is known are left out, and what kernels compute stays the same."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.ir import walk

from .harness import built, load

pytestmark = pytest.mark.usefixtures("interp")

KERNELS = """
@qd.kernel
def k(x: qd.types.NDArray[qd.i32, 1], c: qd.i32):
    for i in range(6):
        BODY
"""

BODIES = {
    "stored again": """a = x[i]
        b = a + c
        a = b * 2
        x[i] = a - b + a""",
    "in a branch": """a = x[i] + 1
        if a > 4:
            a = a * 3
            x[i] = a
        else:
            x[i] = a - 1
        x[i] += a""",
    "in both branches": """a = x[i] + 1
        if a > 4:
            a = a * 3
        else:
            a = a - 2
        x[i] = a + a""",
    "read in a branch of a branch": """a = x[i] + c
        if a > 1:
            if a > 3:
                x[i] = a
            a += 2
            if a > 5:
                x[i] += a
        x[i] -= a""",
    "in a loop": """a = x[i]
        b = a + 1
        for j in range(c):
            x[i] += a
            a = a + b
            if j > 1:
                b = a - x[i]
        x[i] += a * b""",
    "read in a loop": """a = x[i] + 1
        for j in range(c):
            x[i] += a
            if j > 0:
                x[i] -= a - j
        x[i] += a""",
    "in a loop that is left": """a = x[i]
        n = 0
        while n < 5:
            n += 1
            a += n
            if a > 7:
                a = a - 20
                break
            if a == 3:
                continue
            a = a + 1
        x[i] = a * 10 + n""",
    "in a condition": """a = x[i] - 2
        x[i] = a if a > 0 and a * c > 3 or c == 2 else -a
        b = a > 0 or x[i] > 1
        if b and not a == 1:
            a = 5
        x[i] = x[i] * 10 + a + b""",
    "a conversion": """a = x[i]
        b = a + 0.5
        a = int(b * 2.0)
        x[i] = a + int(b)""",
    "a name for a value that changes": """a = x[i]
        b = a
        a = a + 1
        x[i] = a
        b = x[i] + b
        x[i] = a * b""",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("c", [0, 2, 3])
def test_a_kernel_computes_what_python_does(tmp_path, body, c) -> None:
    kernel = load(KERNELS.replace("BODY", body), tmp_path)["k"]
    numbers = np.arange(-1, 5, dtype=np.int32)
    x = numbers.copy()
    kernel(x, c)
    kernel.fn(numbers, c)
    assert x.tolist() == numbers.tolist()


CALLS = """
@qd.func
def raised(a: qd.template(), by):
    a += by
    if a > 10:
        a = a - 10
    return a + 1

@qd.func
def twice(a: qd.template()):
    b = raised(a, 3)
    return raised(a, b)

@qd.kernel
def k(x: qd.types.NDArray[qd.i32, 1]):
    for i in range(6):
        a = x[i]
        b = a * 2
        raised(b, a)
        a = a + b
        x[i] = twice(a) + a
        raised(b, a)
        x[i] += 100 * raised(b, a) + b
        v = qd.Vector([a, b])
        twice(v[1])
        x[i] += v[0] + v[1]
        old = qd.atomic_max(a, 15)
        x[i] += 1000 * (a - old)
        v[i % 2] = 7
        x[i] += v[0] - v[1]
"""


def called(a: int) -> int:
    """What `CALLS` makes of an element."""

    def raised(a: int, by: int) -> tuple[int, int]:
        a += by
        a = a - 10 if a > 10 else a
        return a, a + 1

    def twice(a: int) -> tuple[int, int]:
        a, b = raised(a, 3)
        return raised(a, b)

    i = a + 1
    b, _ = raised(a * 2, a)
    a = a + b
    a, x = twice(a)
    x += a
    b, _ = raised(b, a)
    b, y = raised(b, a)
    x += 100 * y + b
    v = [a, twice(b)[0]]
    x += v[0] + v[1]
    x += 1000 * (max(a, 15) - a)
    v[i % 2] = 7
    return x + v[0] - v[1]


def test_what_a_function_or_an_atomic_writes_is_read(tmp_path) -> None:
    kernel = load(CALLS, tmp_path)["k"]
    numbers = np.arange(-1, 5, dtype=np.int32)
    expected = [called(a) for a in numbers.tolist()]
    kernel(numbers)
    assert numbers.tolist() == expected


@qd.real_func
def moved(a: qd.ref(qd.i32), by: qd.i32) -> None:
    a += by


@qd.kernel
def moves(x: qd.types.NDArray[qd.i32, 1]):
    for i in range(3):
        a = x[i] + 1
        moved(a, a)
        x[i] = a


def test_what_a_real_function_writes_is_read() -> None:
    numbers = np.arange(3, dtype=np.int32)
    moves(numbers)
    assert numbers.tolist() == [2, 4, 6]


@qd.kernel
def shared(x: qd.types.NDArray[qd.i32, 1]) -> qd.i32:
    total = x[0] + 1
    before = total
    for i in range(6):
        total += x[i]
    return total * 100 + before


def test_what_a_parallel_loop_writes_is_read() -> None:
    assert shared(np.arange(6, dtype=np.int32)) == 1601


def test_only_values_that_are_not_known_are_loaded(tmp_path) -> None:
    def loads(name: str) -> int:
        kernel = load(KERNELS.replace("BODY", BODIES[name]), tmp_path)["k"]
        return sum(op.name == "local_load" for op in walk(built(kernel).func.body))

    assert [loads("stored again"), loads("in both branches"), loads("read in a loop")] == [0, 2, 1]
