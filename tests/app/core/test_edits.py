"""What the last save did: which looks are compared, and the line on the matrix."""

from __future__ import annotations

from msgspec.structs import replace
from qd_studio.app.core.edits import Edits, changes, edit_lines, looked, with_edits
from qd_studio.app.core.lines import plain
from qd_studio.app.core.views.compared import times_text
from qd_studio.app.core.views.matrix import matrix
from qd_studio.engine import inspect
from qd_studio.engine.inspect import record as rec
from qd_studio.engine.inspect.compare_figures import Timing

from tests.app.records import make_record
from tests.inspect.test_compare import KERNELS, timed


def record(name="base", **options):
    """A record of the kernel with this edit."""
    kernel = inspect.capture_kernel(KERNELS[name], ("cpu", "interp"), launch=False, **options)
    return replace(make_record(), kernels=(kernel,))


def drawn(edits, shown):
    found = matrix(shown, 120)
    return plain(with_edits(found.rows, edits, shown, changes(edits.before, edits.now)))


def edits_of(*records):
    edits = Edits()
    for each in records:
        edits = looked(edits, each)
    return edits


def test_the_first_look_is_compared_with_nothing():
    assert edits_of(record()).before is None


def test_a_save_without_effect_states_no_change():
    now = record("comment")
    assert drawn(edits_of(record(), now), now).splitlines()[1].strip() == "no change"


def test_a_save_states_what_it_did_and_where_the_compiles_part():
    now = record("more")
    edits = edits_of(record(), now)
    text = drawn(edits, now).splitlines()[1].strip()
    assert text.startswith("cpu: +") and ", +1 load, " in text
    assert text.endswith("IR first differs after the front end")
    shown = plain(edit_lines(edits.before, edits.now, now.kernels[0].id, "interp", 120))
    assert "loads" in shown and "1 -> 2  +1" in shown
    assert "interp: the IR after front end, before and after the save" in shown
    assert any("+ " in line and "global_load" in line for line in shown.splitlines())
    shown = plain(edit_lines(edits.before, edits.now, now.kernels[0].id, "interp", 120, True))
    assert "-     x[i] = x[i] * a + 1.0\n" in shown and "+     x[i] = x[i] * a + x[0]\n" in shown


def test_more_launches_of_a_look_leave_the_save_before_where_it_is():
    first, second, third = timed(100), timed(80, text="a"), timed(70, text="a")
    edits = looked(edits_of(first, second), third, again=True)
    assert (edits.before.kernels, edits.now.kernels) == (first.kernels, third.kernels)


def test_a_time_that_is_still_measured_says_for_how_long_at_most():
    timing = Timing("n", "wall clock", 100.0, 101.0, 1.01, 0.05, "unknown",
                    "the machine was busy: threads waited", True, 4.0)  # fmt: skip
    assert times_text(timing, False) == (
        "launch 100 us -> 101 us (unknown: the machine was busy, measuring, at most 4 s)"
    )


def test_time_has_its_verdict_on_the_line():
    now = timed(80, text="a")
    text = drawn(edits_of(timed(100), now), now)
    assert "cpu: launch 100 us -> 80" in text and "us (better)" in text
    assert "(worse)" in drawn(edits_of(now, timed(100)), timed(100))


def test_a_broken_save_says_nothing_and_the_next_is_compared_with_the_last_good_one():
    good = record()
    (kernel,) = good.kernels
    stale = replace(kernel, stale=True)
    broken = replace(
        good, kernels=(stale,), config=(), errors=(rec.ErrorRecord(kind="E", message="e"),)
    )
    edits = edits_of(good, broken)
    assert edits.broken == {kernel.id}
    assert drawn(edits, broken).count("\n") == 1
    now = record("more")
    edits = looked(edits, now)
    text = drawn(edits, now)
    assert "+1 load" in text and "unknown" not in text


def test_a_kernel_that_is_gone_is_named():
    old = record()
    now = replace(old, kernels=())
    assert "removed: step" in plain(with_edits([], edits_of(old, now), now, changes(old, now)))
