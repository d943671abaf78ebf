"""What `debug` and `check_out_of_bound` add to a kernel: checks that raise, reports that do not."""

import sys

import numpy as np
import pytest
from qd_studio import engine as qd

ARCHES = ("cpu", "interp")


@pytest.fixture(params=ARCHES)
def start(request):
    def init(**options):
        qd.init(arch=getattr(qd, request.param), **options)

    yield init
    qd.reset()


@qd.kernel
def wraps(x: qd.types.ndarray(dtype=qd.i32, ndim=1), y: qd.types.ndarray(dtype=qd.u32, ndim=1)):
    for i in x:
        x[i] = i * 1_000_000_000
    y[0] -= 1
    y[1] -= 1


@qd.kernel
def wide(a: qd.i64, b: qd.i64, u: qd.u64, s: qd.i32) -> tuple[qd.i64, qd.i64, qd.u64, qd.i32]:
    return a * b, a - b, u + u, s << s


def test_overflow_is_reported_once_a_line_with_operands_and_count(start, capfd):
    start(debug=True)
    x, y = np.zeros(6, np.int32), np.array([1, 0], np.uint32)
    wraps(x, y)
    assert x.tolist() == [0, 1000000000, 2000000000, -1294967296, -294967296, 705032704]
    assert y.tolist() == [0, 2**32 - 1]
    said = capfd.readouterr().out
    assert said.count(" overflow detected in File ") == 2
    assert "(i32: 3 * 1000000000, the first of 3 in this launch)" in said
    assert "x[i] = i * 1_000_000_000\n           ^^^^^^^^^^^^^^^^^" in said
    assert "(u32: 0 - 1)\n" in said
    assert "y[1] -= 1" in said
    # Counting starts again with each launch.
    wraps(x[:4], np.array([1, 1], np.uint32))
    said = capfd.readouterr().out
    assert said.count("Multiplication overflow detected in File ") == 1
    assert "(i32: 3 * 1000000000)\n" in said


@pytest.mark.parametrize(
    ("args", "reported"),
    [
        ((2**62, 2, 1, 1), ["i64: 4611686018427387904 * 2"]),
        ((-1, -(2**63), 1, 1), ["i64: -1 * -9223372036854775808"]),
        ((-(2**63), 1, 2**63, 30), [
            "i64: -9223372036854775808 - 1",
            "u64: 9223372036854775808 + 9223372036854775808", "i32: 30 << 30",
        ]),
        ((0, -(2**63) + 1, 2**63 - 1, 40), ["i32: 40 << 40"]),
        ((3037000499, -3037000499, 0, 0), []),
    ],
)  # fmt: skip
def test_overflow_of_64_bits_and_of_shifts(start, capfd, args, reported):
    start(debug=True)
    wide(*args)
    said = capfd.readouterr().out
    assert said.count(" overflow detected in File ") == len(reported)
    for text in reported:
        assert f"({text})\n" in said


def test_overflow_is_silent_without_debug(start, capfd):
    start()
    wraps(np.zeros(6, np.int32), np.zeros(2, np.uint32))
    assert capfd.readouterr() == ("", "")


@qd.kernel
def reach(x: qd.types.ndarray(dtype=qd.f32, ndim=2), n: qd.i32):
    for i in range(n):
        x[i, i - 1] += 1


def test_check_out_of_bound_alone_raises(start):
    start(check_out_of_bound=True)
    with pytest.raises(qd.QuadrantsAssertionError) as caught:
        reach(np.zeros((2, 2), np.float32), 1)
    error = caught.value
    assert "with indices [0, -1] (parameter x, shape [2, 2])" in str(error)
    assert error.kernel == "reach"
    assert error.span.source_line.strip() == "x[i, i - 1] += 1"
    # The program goes on.
    reach(np.zeros((2, 2), np.float32), 0)


@qd.kernel
def prints_and_wraps(x: qd.types.ndarray(dtype=qd.i32, ndim=1)):
    for i in range(1):
        print("x is", x[i])
        x[i] = x[i] * 1_000_000_000


def test_without_standard_output_nothing_is_printed(start, monkeypatch):
    """As Python's ``print``: a process that was started without it has ``sys.stdout = None``."""
    start(debug=True)
    x = np.array([3], np.int32)
    monkeypatch.setattr(sys, "stdout", None)
    prints_and_wraps(x)
    assert x[0] == 3_000_000_000 - 2**32
