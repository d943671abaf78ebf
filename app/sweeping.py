"""Measuring a sweep: the same files with one value of a compile option after the other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from ..engine.inspect.record import Record
from .core.progress import Rate, State
from .core.sweeps import Sweep, Value, sweep_of, visits
from .worker.events import Event, Progress
from .worker.once import CancelledError, collect

__all__ = ["measure", "sweeps_in"]


def measure(
    files: Sequence[str],
    option: str,
    values: Sequence[Value],
    settings: dict[str, Any],
    rounds: int = 2,
    progress: Callable[[State], object] = lambda state: None,
    cancelled: threading.Event | None = None,
) -> list[list[Record]]:
    """The records by round, then by value, in the order of ``values``.

    progress: called with what is done now and how far it is. cancelled: when it is set, the look in
    work is given up, and the rounds that are complete are returned.
    """
    out: list[list[Record]] = []
    total, done, setting = rounds * len(values), 0, ""
    config = dict(settings.get("config") or {})
    rate = Rate(time.monotonic())

    def heard(event: Event) -> None:
        if isinstance(event, Progress):
            say(f"{setting}: {event.text}")

    def say(text: str) -> None:
        left = rate.left(time.monotonic(), done, total)
        progress(State(text, f"look {done + 1} of {total}", "", left))

    for order in visits(values, rounds):
        found: dict[Value, Record] = {}
        for value in order:
            setting = f"{option}={value}"
            say(setting)
            own: dict[str, Any] = {**settings, "config": {**config, option: value}}
            try:
                found[value] = collect(files, on_event=heard, cancelled=cancelled, **own)
            except CancelledError:
                return out
            done += 1
        out.append([found[value] for value in values])
    return out


def sweeps_in(
    option: str, values: Sequence[Value], records: Sequence[Sequence[Record]], kernel: str = ""
) -> list[Sweep]:
    """A sweep for each kernel and launching backend of the records. kernel: a name or id."""
    out: list[Sweep] = []
    for one in records[0][0].kernels if records else ():
        if kernel and kernel not in (one.id, one.name):
            continue
        for backend in one.backends:
            if backend.backend != "interp" and backend.status in ("ok", "error"):
                out.append(sweep_of(option, values, records, one.id, backend.backend))
    return out
