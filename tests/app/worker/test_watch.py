"""Watching files: what counts as a change, and how bursts are gathered."""

import os
import queue
import threading

import pytest
from qd_studio.app.watch import Debounce, Watcher

LONG_S = 30.0


@pytest.fixture
def watched(tmp_path):
    """A file, a queue of reported changes, and the watcher."""
    path = tmp_path / "kernels.py"
    path.write_text("one")
    changes = queue.Queue()
    watcher = Watcher(changes.put)
    watcher.watch([str(path)])
    yield path, changes, watcher
    watcher.stop()


def replace_with(path, text):
    """Save as many editors do: write another file, move it over."""
    part = path.with_suffix(".part")
    part.write_text(text)
    os.replace(part, path)


def test_a_save_in_place_is_seen(watched):
    path, changes, _ = watched
    path.write_text("two")
    assert changes.get(timeout=LONG_S) == [str(path)]


def test_a_save_by_rename_is_seen_each_time(watched):
    path, changes, _ = watched
    for text in ("two", "three", "four"):
        replace_with(path, text)
        assert changes.get(timeout=LONG_S) == [str(path)]


def test_deleting_and_coming_back_are_changes(watched):
    path, changes, _ = watched
    path.unlink()
    assert changes.get(timeout=LONG_S) == [str(path)]
    path.write_text("back")
    assert changes.get(timeout=LONG_S) == [str(path)]


def test_only_watched_content_counts(watched):
    """Touching, other files, and a watched file given up are silent; what follows is not."""
    path, changes, watcher = watched
    os.utime(path)
    (path.parent / "other.py").write_text("x")
    helper = path.parent / "helper.py"
    helper.write_text("h")
    watcher.watch([str(helper)])
    path.write_text("not watched")
    helper.write_text("changed")
    assert changes.get(timeout=LONG_S) == [str(helper)]
    assert changes.empty()


def test_several_files_are_reported_together(watched):
    path, changes, watcher = watched
    helper = path.parent / "helper.py"
    helper.write_text("h")
    watcher.watch([str(path), str(helper)])
    path.write_text("two")
    helper.write_text("h2")
    seen = set()
    while seen != {str(path), str(helper)}:
        seen |= set(changes.get(timeout=LONG_S))


def test_a_link_is_followed(tmp_path):
    real = tmp_path / "real"
    real.mkdir()
    (real / "k.py").write_text("one")
    (tmp_path / "link").symlink_to(real)
    changes = queue.Queue()
    watcher = Watcher(changes.put)
    try:
        given = str(tmp_path / "link" / "k.py")
        watcher.watch([given])
        (real / "k.py").write_text("two")
        assert changes.get(timeout=LONG_S) == [given]
    finally:
        watcher.stop()


def test_twenty_saves_are_few_reports_and_the_last_content_is_seen(path):
    path.write_text("start")
    contents = []
    last = threading.Event()

    def changed(paths):
        contents.append(path.read_text())
        if contents[-1] == "save 19":
            last.set()

    # Saves follow each other without a pause, so that one burst holds them all on any machine.
    watcher = Watcher(changed, Debounce(quiet_s=1.0))
    try:
        watcher.watch([str(path)])
        for i in range(20):
            (path.write_text if i % 2 else lambda text: replace_with(path, text))(f"save {i}")
        assert last.wait(LONG_S)
    finally:
        watcher.stop()
    assert len(contents) <= 2
    assert contents[-1] == "save 19"


def test_no_call_after_stop(watched):
    path, changes, watcher = watched
    watcher.stop()
    path.write_text("late")
    assert changes.empty()


@pytest.mark.parametrize(
    ("events", "at", "left"),
    [
        ([], 5.0, None),
        ([1.0], 1.0, 0.25),
        ([1.0], 1.25, 0.0),
        ([1.0, 1.125], 1.25, 0.125),
        ([1.0, 1.125, 1.25, 1.375, 1.5, 1.625, 1.75, 1.875], 1.875, 0.25),
        ([1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75], 2.75, 0.25),
        ([1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0], 3.0, 0.0),
    ],
)
def test_events_are_acted_on_when_it_is_quiet_or_they_are_old(events, at, left):
    debounce = Debounce(quiet_s=0.25, busy_quiet_s=0.5, at_most_s=2.0)
    for time in events:
        debounce.event(time)
    assert debounce.wait(at) == left


def test_a_burst_needs_more_quiet_and_is_forgotten():
    debounce = Debounce(quiet_s=0.25, busy_quiet_s=0.5, at_most_s=2.0)
    debounce.event(1.0)
    debounce.done(1.25)
    assert debounce.wait(1.25) is None
    debounce.event(1.5)
    assert debounce.wait(1.5) == 0.5
    debounce.done(2.0)
    debounce.event(4.0)
    assert debounce.wait(4.0) == 0.25


@pytest.mark.parametrize("gap", [0.0, 0.001, 0.01, 0.014, 0.016, 0.03, 0.04, 0.05])
def test_twenty_saves_within_a_second_are_at_most_two_reports(gap):
    """By a clock made up, with the shipped settings; the last save is in the last report."""
    debounce = Debounce()
    saves = [5.0 + gap * i for i in range(20)]
    reports, now = [], 5.0
    while saves or debounce.wait(now) is not None:
        wait = debounce.wait(now)
        if wait == 0.0:
            reports.append(now)
            debounce.done(now)
        elif saves and (wait is None or saves[0] <= now + wait):
            now = saves.pop(0)
            debounce.event(now)
        else:
            now += wait
    assert len(reports) <= 2
    assert reports[-1] >= 5.0 + gap * 19


def test_the_end_of_a_save_is_acted_on_at_once_unless_it_is_one_of_many():
    debounce = Debounce(quiet_s=0.5, busy_quiet_s=2.0, at_most_s=10.0)
    debounce.event(100.0)
    assert debounce.wait(100.0) == 0.5
    debounce.event(100.1, settled=True)
    assert debounce.wait(100.1) == 0.0
    debounce.done(100.1)
    debounce.event(101.0, settled=True)
    assert debounce.wait(101.0) == 2.0
    debounce.done(103.0)
    debounce.event(120.0, settled=True)
    debounce.event(120.1)
    assert debounce.wait(120.1) == pytest.approx(0.5)
