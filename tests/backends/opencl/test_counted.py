"""PoCL: the work of a launch with loops that a counter ends, whatever else may."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.opencl import background, hardware, tiered
from qd_studio.engine.backends.opencl.executable import OpenclExecutable
from qd_studio.engine.cache.in_process import IN_PROCESS

HAS = not hardware.unavailable() and hardware.usual().is_pocl
pytestmark = [pytest.mark.opencl, pytest.mark.skipif(not HAS, reason="there is no PoCL here")]

X = qd.types.ndarray(qd.i32, 1)
F = qd.types.ndarray(qd.f32, 1)
MOST = 2**31 - 1


@pytest.fixture(autouse=True)
def program(monkeypatch):
    """A program that makes no full code in the background."""
    monkeypatch.setattr(background, "submit", lambda executable: None)
    IN_PROCESS.clear()
    qd.init(arch=qd.opencl, offline_cache=False, tiered="auto", opencl_mapping="chunks")


def executable(kernel):
    (variant,) = set(kernel.launchers.variants.values())
    return variant.executable


def work(kernel, *args):
    """The work that is known of a launch; None if none is."""
    kernel(*args)
    found = executable(kernel)
    if type(found) is OpenclExecutable:
        return None
    return found.making.work.of(found.arguments().free[-1].ints)


def array(n):
    return qd.ndarray(qd.i32, n)


def counted():
    """(kernel, arguments, iterations that the counters permit)."""

    @qd.kernel
    def left(x: X, n: qd.i32):
        for i in x:
            for j in range(n):
                if x[i] < 0:
                    break
                x[i] += j

    @qd.kernel
    def both(x: X, n: qd.i32):
        for i in x:
            steps = 0
            while x[i] >= 0 and steps < n:
                x[i] += steps
                steps += 1

    @qd.kernel
    def closed(x: X, n: qd.i32):
        for i in x:
            steps = -3
            while n >= steps:
                steps += 2
                x[i] += steps

    @qd.kernel
    def escape(x: F, n: qd.i32):  # groups of iterations run together
        for i in x:
            value = 0.0
            steps = 0
            while value * value <= 4.0 and steps < n:
                value = value * value + 0.001 * i
                steps += 1
            x[i] = steps

    return [
        (left, (array(1000), 100), 100_000),
        (both, (array(1000), 100), 100_000),
        (closed, (array(1000), 100), 100_000),
        (escape, (qd.ndarray(qd.f32, 1000), 100), 100_000),
        (escape, (qd.ndarray(qd.f32, 3), 100), 300),
    ]


@pytest.mark.parametrize("number", range(5))
def test_the_work_is_that_of_the_iterations_of_the_counter(number, monkeypatch):
    monkeypatch.setattr(tiered, "_MOST", 1 << 60)
    kernel, args, count = counted()[number]
    found = work(kernel, *args)
    assert found is not None and count <= found <= 400 * count + 100_000


@pytest.mark.parametrize("number", range(4))
def test_a_counter_that_may_wrap_bounds_nothing(number):
    kernel, args, _ = counted()[number]
    assert work(kernel, qd.ndarray(args[0].dtype, 20), 77) is not None
    making = executable(kernel).making
    known = making.work
    ints = np.frombuffer(executable(kernel).arguments().free[-1].ints, np.int32).copy()
    assert (ints == 77).sum() == 1
    ints[ints == 77] = MOST
    assert known.of(memoryview(ints.tobytes()).cast("i")) is None


def unknown():
    @qd.kernel
    def now_and_then(x: X, n: qd.i32):
        for i in x:
            steps = 0
            while x[i] < 5 and steps < n:
                x[i] += 1
                if x[i] > 2:
                    steps += 1

    @qd.kernel
    def set_back(x: X, n: qd.i32):
        for i in x:
            steps = 0
            while x[i] < 5 and steps < n:
                x[i] += 1
                if x[i] == 2:
                    steps = 0
                steps += 1

    @qd.kernel
    def jumps(x: X, n: qd.i32):
        for i in x:
            steps = 0
            while x[i] < 5 and steps < n:
                x[i] += 1
                if x[i] > 2:
                    continue
                steps += 1

    @qd.kernel
    def either(x: X, n: qd.i32):
        for i in x:
            steps = 0
            while x[i] < 5 or steps < n:
                x[i] += 1
                steps += 1

    @qd.kernel
    def downwards(x: X, n: qd.i32):
        for i in x:
            steps = n
            while x[i] < 5 and steps > 0:
                x[i] += 1
                steps -= 1

    @qd.kernel
    def from_memory(x: X, n: qd.i32):
        for i in x:
            steps = x[i]
            while steps < n:
                x[i] += 1
                steps += 1

    @qd.kernel
    def to_memory(x: X, n: qd.i32):
        for i in x:
            steps = 0
            while steps < x[i] and x[i] < n:
                x[i] += 1
                steps += 1

    @qd.kernel
    def set_in_between(x: X, n: qd.i32):
        for i in x:
            steps = 0
            if x[i] > 0:
                steps = x[i]
            while x[i] < 5 and steps < n:
                x[i] += 1
                steps += 1

    @qd.kernel
    def multiplied(x: X, n: qd.i32):
        for i in x:
            steps = 1
            while steps < n:
                x[i] += 1
                steps *= 2

    found = [now_and_then, set_back, jumps, either, downwards, from_memory, to_memory]
    return [*found, set_in_between, multiplied]


@pytest.mark.parametrize("number", range(9))
def test_what_does_not_count_up_to_a_limit_waits_for_full_code(number):
    assert work(unknown()[number], array(20), 4) is None
