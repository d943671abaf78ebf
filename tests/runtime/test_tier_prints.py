"""First-tier code of the CPU that prints."""

import ctypes
import sys

import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.cpu import background, native
from qd_studio.engine.backends.kernarg import abi
from qd_studio.engine.cache.in_process import IN_PROCESS

from tests.fuzz.tiers import interrupted, no_helper

pytestmark = pytest.mark.skipif(not background.available(), reason="no helper process here")


@pytest.fixture(autouse=True)
def tiered():
    """A program with both tiers, whose helper makes nothing by itself."""
    IN_PROCESS.clear()
    with no_helper():
        qd.init(arch=qd.cpu, tiered=True, offline_cache=False, debug=True)
        yield
        qd.reset()


def executable(kernel):
    """The executable of the only variant of a kernel."""
    (variant,) = set(kernel.launchers.variants.values())
    return variant.executable


@qd.kernel
def shown(a: qd.types.ndarray(qd.i64, 1), n: qd.i32) -> qd.i32:
    print("begin")
    qd.loop_config(serialize=True)
    for i in range(n):
        a[i % 3] += i
        print(i, a[i % 3], qd.f32(i) / 2, qd.f64(i) / 4, i > 1, f"{a[0]:5d}", sep="|")
    return n


def lines_of_shown(n):
    a, out = [0, 0, 0], ["begin"]
    for i in range(n):
        a[i % 3] += i
        out.append(f"{i}|{a[i % 3]}|{i / 2:f}|{i / 4:.12f}|{int(i > 1)}|{a[0]:5d}")
    return "\n".join(out) + "\n"


@pytest.mark.parametrize("n", [0, 4, 2000])
def test_quick_code_prints_when_it_has_ended(capsys, n):
    """What 2,000 lines print has no room: full code runs, and prints them once."""
    a = qd.ndarray(qd.i64, shape=3)
    assert shown(a, n) == n
    assert capsys.readouterr().out == lines_of_shown(n)
    assert executable(shown).is_full == (n == 2000)
    a.fill(0)
    executable(shown)._pending.finish()
    assert shown(a, n) == n
    assert capsys.readouterr().out == lines_of_shown(n)
    assert executable(shown).is_full


@pytest.mark.parametrize("operations", [0, 30, 200])
def test_an_interrupted_launch_has_printed_nothing(capsys, operations):
    a = qd.ndarray(qd.i64, shape=3)
    with interrupted(operations):
        shown(a, 100)
    assert capsys.readouterr().out == lines_of_shown(100)
    assert executable(shown).is_full


def test_what_was_printed_comes_before_the_error_of_an_assertion(capsys):
    @qd.kernel
    def fails(a: qd.types.ndarray(qd.i32, 1)):
        print("first")
        assert a[0] > 0, "not positive"

    with pytest.raises(AssertionError, match="not positive"):
        fails(qd.ndarray(qd.i32, shape=3))
    assert capsys.readouterr().out == "first\n"
    assert not executable(fails).is_full


def test_a_launch_that_failed_is_late_where_there_is_no_room_for_what_it_prints():
    """Other threads may go on after a failure. Full code fails again, and prints all."""
    keep = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int32, ctypes.c_void_p)
    error, value, sizes = (ctypes.c_int64(n) for n in (7, 5, 8))
    at = [ctypes.addressof(cell) for cell in (error, value, sizes)]
    data = (ctypes.c_int64 * 8)(32, 56, at[0], at[2])
    call = keep(native.first_native().keep)
    call(ctypes.addressof(data), 0, at[1])
    assert (error.value, data[:2], data[4:]) == (7, [48, 56], [0, 5, 0, 0])
    call(ctypes.addressof(data), 0, at[1])
    assert error.value == abi.LATE
    assert data[4:] == [0, 5, 0, 0]


def test_a_launch_from_what_prints(monkeypatch):
    """Output may go to an object of the program, which may launch the same kernel."""
    a, b = qd.ndarray(qd.i64, shape=3), qd.ndarray(qd.i64, shape=3)
    written = []

    class Output:
        def write(self, text):
            if len(written) == 1:
                written.append("inside\n")
                assert shown(b, 2) == 2
            written.append(text)

    monkeypatch.setattr(sys, "stdout", Output())
    assert shown(a, 3) == 3
    monkeypatch.undo()
    assert not executable(shown).is_full
    outer, inner = lines_of_shown(3).splitlines(True), lines_of_shown(2).splitlines(True)
    assert written == [outer[0], "inside\n", *inner, *outer[1:]]
    assert b.to_numpy().tolist() == [0, 1, 0]
