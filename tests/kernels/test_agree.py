"""The CPU and the interpreter print and fail in the same words, which generated kernels do not."""

from __future__ import annotations

import numpy as np
import pytest
from qd_studio import engine as qd


@qd.kernel
def say(a: qd.f32, b: qd.f64, c: qd.i8, d: qd.u64, e: qd.u1, h: qd.f16):
    print("x", a, b, c, d, e, h, sep="|", end="!\n")
    print(f"{a:.3f} {a=} {b:8.2e} {c:5d} {d} {d:x} {e} {h:.1f}")
    print("%d %% {}", c)


@qd.kernel
def about_values(a: qd.i32, f: qd.f32):
    assert a == 0, f"a is {a} and f {f}: 100% {{x}} %d"


@qd.kernel
def without_text(a: qd.i32):
    assert a == 0


@qd.kernel
def outside(x: qd.types.NDArray[qd.i32, 2], i: qd.i32):
    x[i, 3] = 1


@qd.kernel
def quotient(x: qd.types.NDArray[qd.i32, 1], i: qd.i32):
    x[0] = x[0] // i


@qd.kernel
def power(x: qd.types.NDArray[qd.i32, 1], i: qd.i32):
    x[0] = x[0] ** i


@qd.kernel
def later_tasks(x: qd.types.NDArray[qd.i32, 1], n: qd.i32):
    for i in range(n):
        x[i] += 1
    assert n < 3, "too many"
    for i in range(n):
        x[i] += 10


@qd.kernel
def draw(x: qd.types.NDArray[qd.f64, 1], k: qd.types.NDArray[qd.u32, 1]):
    for i in x:
        x[i] = qd.random(qd.f64)
        for _ in range(i % 3):
            k[i] ^= qd.random(qd.u32)


BACKENDS = (qd.cpu, qd.interp)


@pytest.fixture(autouse=True)
def _no_program_left():
    yield
    qd.reset()


def on_both(run, **options):
    """What ``run`` gives on each backend, which must be the same."""
    outcomes = []
    for arch in BACKENDS:
        qd.init(arch=arch, offline_cache=False, random_seed=7, **options)
        outcomes.append(run())
        qd.sync()
    assert outcomes[0] == outcomes[1]
    return outcomes[0]


def failure(kernel, *args):
    """The text of the error of a launch, and what the arrays held afterwards."""
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    with pytest.raises(qd.QuadrantsAssertionError) as caught:
        kernel(*copies)
    arrays = [a.tolist() for a in copies if isinstance(a, np.ndarray)]
    return str(caught.value), caught.value.line, arrays


def test_prints(capfd):
    def run():
        say(1.25, 2.5, -3, 2**64 - 1, True, 0.1)
        say(float("nan"), float("-inf"), 1, 0, False, 2.0)
        qd.sync()
        return capfd.readouterr().out

    lines = on_both(run, fast_math=False).splitlines()
    assert lines[0] == "x|1.250000|2.500000000000|-3|18446744073709551615|1|0.099976!"
    assert lines[1] == "1.250 a=1.250000 2.50e+00    -3 18446744073709551615 ffffffffffffffff 1 0.1"
    assert lines[2] == "%d %% {} -3"
    assert lines[3] == "x|nan|-inf|1|0|0|2.000000!"


@pytest.mark.parametrize(
    ("kernel", "args", "text"),
    [
        (about_values, (3, 1.5), "a is 3 and f 1.500000: 100% {x} %d"),
        (without_text, (1,), "a == 0"),
        (outside, (np.zeros((2, 3), np.int32), 7), "with indices [7, 3]"),
        (quotient, (np.ones(1, np.int32), 0), "Integer division by zero"),
        (power, (np.full(1, 2, np.int32), -2), "Negative exponent"),
    ],
    ids=lambda v: getattr(v, "name", None),
)
def test_failures_under_debug(kernel, args, text):
    message, line, arrays = on_both(lambda: failure(kernel, *args), debug=True)
    assert text in message
    assert kernel.name in message
    assert line > 0
    assert arrays == [a.tolist() for a in args if isinstance(a, np.ndarray)]


def test_without_debug_nothing_fails():
    def run():
        x = np.zeros(4, np.int32)
        later_tasks(x, 4)
        about_values(3, 1.5)
        one, two = np.ones(1, np.int32), np.full(1, 2, np.int32)
        quotient(one, 0)
        power(two, -2)
        return x.tolist(), one.tolist(), two.tolist()

    assert on_both(run) == ([11, 11, 11, 11], [0], [0])


@pytest.mark.parametrize("options", [{}, {"cpu_max_num_threads": 1}, {"opt_level": 0}], ids=str)
def test_random_numbers(options):
    def run():
        x, k = np.zeros(2000), np.zeros(2000, np.uint32)
        draw(x, k)
        first = x.tobytes(), k.tobytes()
        draw(x, k)
        assert first != (x.tobytes(), k.tobytes())
        assert x.min() >= 0.0 and x.max() < 1.0 and 0.4 < x.mean() < 0.6
        return *first, x.tobytes()

    found = on_both(run, **options)
    assert found == on_both(run)
