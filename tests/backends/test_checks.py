"""Assertions, printing and overlap: what a kernel reports to the launch."""

import numpy as np
import pytest
from irkit import Kernel, array, config, scalar
from qd_studio.engine.backends import base
from qd_studio.engine.errors import QuadrantsAssertionError
from qd_studio.engine.ir import AssertAttr, get_loc, parse
from qd_studio.engine.ir import codes as C
from qd_studio.engine.types import f16, f32, f64, i8, i32, u1, u64, void


def check(k, cond, text, *values, kind="bound"):
    return k.b.emit(C.ASSERT, (cond, *values), AssertAttr(kind, text), void)


def test_the_first_failure_is_raised_and_ends_the_task():
    k = Kernel([array("x", i32), scalar("limit", i32)])
    b = k.b
    b.loc = get_loc("kernels.py", 12, 4, 12, 9, "k")
    with k.loop(k.extent(0)) as i:
        limit = b.emit(C.ARG_LOAD, (), 1, i32)
        check(k, b.binary(C.CMP_LT, i, limit), "index %d is not below %d", i, limit)
        k.store(0, b.const(1, i32))
    x = np.zeros(10, np.int32)
    with pytest.raises(QuadrantsAssertionError, match="index 4 is not below 4") as caught:
        k.run(x, 4)
    assert x.tolist() == [1] * 4 + [0] * 6
    assert (caught.value.file, caught.value.line, caught.value.kernel) == ("kernels.py", 12, "k")
    k.run(x, 10)
    assert x.tolist() == [1] * 10


def test_values_of_every_kind_are_in_the_message():
    k = Kernel([scalar("a", i8), scalar("b", u64), scalar("c", f32), scalar("d", u1)])
    b = k.b
    values = [b.emit(C.ARG_LOAD, (), n, p.dtype) for n, p in enumerate(k.func.params)]
    check(k, b.const(0, u1), "%d %d %f %d 100%", *values)
    with pytest.raises(QuadrantsAssertionError, match=r"-5 18446744073709551615 2.500000 1 100%"):
        k.run(-5, (1 << 64) - 1, 2.5, 1)


def test_tasks_after_a_failure_do_not_run():
    text = """
    kernel k(x: ndarray<i32, 1>) stage=accesses {
      $0 : offloaded {kind='range_for' unit='chunk'} header {
        <i32> $1 = const 0
        <i32> $2 = const 8
        $3 : bounds $1, $2
      } body {
        <i32> $4 = loop_index $0 [0]
        <i32> $5 = const 5
        <u1> $6 = cmp_ne $4, $5
        $7 : assert $6, $4 {kind='check' text='chunk %d'}
      }
      $8 : offloaded header {
        $9 : bounds
      } body {
        <*i32> $10 = arg_addr [(0, False)]
        <i32> $11 = const 1
        $12 : global_store $10, $11
      }
    }
    """
    backend = base.find("cpu")
    executable = backend.load(backend.lower(parse(text), config()))
    x = np.zeros(1, np.int32)
    for _ in range(20):
        with pytest.raises(QuadrantsAssertionError, match="chunk 5"):
            executable.launch((x,))
        assert x[0] == 0


def test_printing(capsys):
    k = Kernel([scalar("a", i32), scalar("h", f16), scalar("f", f32), scalar("d", f64),
                scalar("t", u1), scalar("u", u64)])  # fmt: skip
    b = k.b
    values = [b.emit(C.ARG_LOAD, (), n, p.dtype) for n, p in enumerate(k.func.params)]
    pieces = []
    for piece in ((None,), (None,), (".2f",), (None,), (None,), (None,)):
        pieces += [piece, " "]
    with k.loop(2):
        b.emit(C.PRINT, tuple(values), (*pieces, "end\n"), void)
    b.emit(C.PRINT, (), ("bare\n",), void)
    k.run(-3, 0.5, 1.25, 2.5, 1, (1 << 64) - 1)
    line = "-3 0.500000 1.25 2.500000000000 1 18446744073709551615 end\n"
    assert capsys.readouterr().out == line * 2 + "bare\n"


def two_arrays():
    """x[i] = y[i] + 1"""
    k = Kernel([array("x", i32), array("y", i32)])
    with k.loop(k.extent(0)):
        k.store(0, k.b.binary(C.ADD, k.load(1), k.b.const(1, i32)))
    return k


@pytest.mark.parametrize(
    ("first", "second", "clash"),
    [((0, 4), (4, 8), False), ((0, 4), (3, 7), True), ((2, 6), (0, 4), True),
     ((0, 4), (0, 4), True), ((2, 2), (0, 4), False), ((4, 8), (0, 4), False)],
)  # fmt: skip
def test_overlap_is_seen_before_anything_runs(first, second, clash):
    k = two_arrays()
    memory = np.zeros(8, np.int32)
    x, y = memory[slice(*first)], memory[slice(*second)]
    if clash:
        with pytest.raises(ValueError, match="overlaps"):
            k.run(x, y)
        assert not memory.any()
    else:
        k.run(x, y)
        assert memory.sum() == len(x)


def test_two_arrays_that_are_only_read_may_be_one():
    k = Kernel([array("x", i32), array("y", i32), array("out", i32)])
    with k.loop(k.extent(0)):
        k.store(2, k.b.binary(C.ADD, k.load(0), k.load(1)))
    x, out = np.arange(5, dtype=np.int32), np.zeros(5, np.int32)
    k.run(x, x, out)
    assert out.tolist() == [0, 2, 4, 6, 8]


def test_code_for_arrays_that_may_overlap_takes_them():
    k = two_arrays()
    k.func.noalias = False
    memory = np.zeros(5, np.int32)
    k.run(memory[1:], memory[:4])
    assert memory.tolist() == [0, 1, 2, 3, 4]
