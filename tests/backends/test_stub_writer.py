"""The writer of launch stubs: sections come in order, whatever order they are filled in."""

import threading

import pytest
from qd_studio.engine.backends.stub import Stub


def filled(stub):
    """Each section notes its name, and whether the lock is held; they are filled from the last."""
    for name in ("results", "after", "enter", "pack", "take", "checks"):
        section = getattr(stub, name)
        section.add(f"seen.append(('{name}', lock._is_owned()))")
    stub.results.add("return seen")
    return stub


def run(stub, **names):
    function = stub.function({"seen": [], "lock": threading.RLock(), **names}, "<a stub>")
    assert function.__name__ == stub.name and function.__code__.co_filename == "<a stub>"
    return function()


ORDER = ["checks", "take", "pack", "enter", "after", "results"]


@pytest.mark.parametrize(
    ("lock", "lock_all", "held"),
    [("", False, []), ("lock", False, ORDER[1:4]), ("lock", True, ORDER[1:])],
)
def test_sections_come_in_order_and_hold_the_lock(lock, lock_all, held):
    seen = run(filled(Stub("launch", "", lock, lock_all)))
    assert [name for name, _ in seen] == ORDER
    assert [name for name, owned in seen if owned] == held


def test_what_comes_last_runs_after_an_error_too():
    left = []
    stub = Stub("enter", "", first="me = 7", last="leave(me)")
    stub.enter.add("raise ValueError")
    with pytest.raises(ValueError):
        run(stub, leave=left.append)
    assert left == [7]


def test_blocks_are_filled_after_what_follows_them():
    stub = Stub("launch", "x")
    inner = stub.checks.block("if x > 1:")
    stub.checks.add("x += 1")
    deeper = inner.block("try:")
    inner.add("except ValueError: return 'no number'")
    deeper.add("x = int(name)")
    stub.results.add("return x")
    launch = stub.function({"name": "five"}, "<a stub>")
    assert (launch(1), launch(2)) == (2, "no number")


@pytest.mark.parametrize(
    "options", [{}, {"lock": "lock"}, {"first": "me = 1", "last": "seen.clear()"}]
)
def test_sections_may_all_stay_empty(options):
    assert run(Stub("nothing", "", **options)) is None
