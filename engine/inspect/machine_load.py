"""Measures how busy the machine is while launches are timed, to make times of runs comparable.

A busy machine makes every launch of a run longer by about the same, which the spread within the
run does not show: unchanged code took 1.67 times as long in one run out of five. Two things are
measured next to the launches:

* a fixed loop of Python, once in each round. Compared with the loop in the other run it shows a
  machine that is slower altogether (another clock rate, the other half of a core in use);
* how long threads of this process were ready and waited for a processor, which Linux counts in
  nanoseconds. Elsewhere that is not known, and the spread of the fixed loop is used.

Waking a thread needs a few microseconds on an idle machine, too: sixteen threads that each launch
wakes are 100 us of waiting in a launch of 30 us. So up to `_WAKING_S` each time that a thread got a
processor do not count; a thread that another program keeps from its processor waits for
milliseconds.
"""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path
from typing import Final

from .record_launch import LaunchRecord, LoadRecord

__all__ = ["LoadClock", "busy", "unlike"]

_TURNS: Final = 150
_LOOPS: Final = 3
"""Loops of a round; the fastest counts: an interrupt is no load."""
_LEAST: Final = 15
_WAITED: Final = 0.05
"""A share of the time spent waiting for a processor from which times are not compared."""
_WAKING_S: Final = 100e-6
_SPREAD: Final = 1.35
_SLOWER: Final = 1.25


class LoadClock:
    """Measures from its creation to `record`; call `tick` in each round."""

    def __init__(self) -> None:
        self._began: Final = time.perf_counter()
        self._waited: Final = _waits()
        self._us: Final[list[float]] = []

    def tick(self) -> None:
        """Time the fixed loop."""
        clock, took = time.perf_counter_ns, 1 << 62
        for _ in range(_LOOPS):
            began = clock()
            for _ in range(_TURNS):
                pass
            took = min(took, clock() - began)
        self._us.append(took / 1e3)

    def record(self) -> LoadRecord:
        """Return the record of what was measured so far."""
        while len(self._us) < _LEAST:
            self.tick()
        waited, before = _waits(), self._waited
        wall = time.perf_counter() - self._began
        share = None
        if waited is not None and before is not None and wall > 0:
            share = _in_excess(before, waited) / wall
        quarter = statistics.quantiles(self._us, n=10)
        return LoadRecord(
            cpus=_cpus(),
            waited=share,
            loop_us=statistics.median(self._us),
            loop_fast_us=quarter[0],
            loop_slow_us=quarter[-1],
        )


def _cpus() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 0


def _waits() -> dict[str, tuple[int, int]] | None:
    """By thread of this process: nanoseconds that it has waited for a processor, and how often it
    got one; None if not known."""
    found: dict[str, tuple[int, int]] = {}
    try:
        for thread in Path("/proc/self/task").iterdir():
            _, waited, slices = (thread / "schedstat").read_text().split()[:3]
            found[thread.name] = int(waited), int(slices)
    except (OSError, ValueError):
        return None
    return found


def _in_excess(before: dict[str, tuple[int, int]], now: dict[str, tuple[int, int]]) -> float:
    """Seconds of waiting beyond the time of waking. Threads that have ended are missing."""
    total = 0.0
    for thread, (waited, slices) in now.items():
        past = before.get(thread, (0, 0))
        total += max(0.0, (waited - past[0]) / 1e9 - _WAKING_S * (slices - past[1]))
    return total


def busy(load: LoadRecord | None) -> str:
    """The reason why the machine was too busy to compare its times; empty if it was not."""
    if load is None:
        return "how busy the machine was is not known"
    if load.waited is not None and load.waited > _WAITED:
        share = f"{load.waited:.0%} of the time" if load.waited < 1 else "all the time"
        return f"the machine was busy: threads waited for a processor {share}"
    if load.loop_fast_us and load.loop_slow_us / load.loop_fast_us > _SPREAD:
        ratio = load.loop_slow_us / load.loop_fast_us
        return f"the machine was busy: a fixed loop took up to {ratio:.1f} times as long as at best"
    return ""


def unlike(
    now: LaunchRecord,
    before: LaunchRecord,
    names: tuple[str, str] = ("in this run", "in the baseline"),
) -> str:
    """The reason why the wall clock times of two runs cannot be compared; empty if they can.

    names: what the reason calls the two runs.
    """
    for when, launch in zip(names, (now, before), strict=True):
        why = busy(launch.load)
        if why:
            return f"{when} {why}"
    assert now.load is not None and before.load is not None
    ours, theirs = now.load.loop_us, before.load.loop_us
    if not (ours and theirs):
        return "how fast the machine was is not known"
    ratio = ours / theirs
    if not 1 / _SLOWER <= ratio <= _SLOWER:
        return f"a fixed loop of Python took {ratio:.2f} times as long as {names[1]}"
    return ""
