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
    from .worker.turns import Look, collect_in_turns

    shared = dict(settings)
    config: dict[str, Value] = shared.pop("config", None) or {}
    backends: Sequence[str] = shared.pop("backends", ())
    order = [value for one in visits(values, rounds) for value in one]
    looks = [Look(files, {**config, option: v}, backends, keep=v == values[0]) for v in order]
    total, done = len(order), 0
    rate = Rate(time.monotonic())

    def began(number: int) -> None:
        nonlocal done
        done = number
        say("")

    def heard(event: Event) -> None:
        if isinstance(event, Progress):
            say(f": {event.text}")

    def say(text: str) -> None:
        left = rate.left(time.monotonic(), done, total)
        state = State(f"{option}={order[done]}{text}", f"look {done + 1} of {total}", "", left)
        progress(state)

    stopped = cancelled.is_set if cancelled is not None else bool
    found = collect_in_turns(looks, heard, began=began, cancelled=stopped, **shared)
    out: list[list[Record]] = []
    for first in range(0, len(found) - len(values) + 1, len(values)):
        part = range(first, first + len(values))
        by_value = {order[i]: found[i] for i in part}
        out.append([by_value[value] for value in values])
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
