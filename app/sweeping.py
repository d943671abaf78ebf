"""Measuring a sweep: the same files with one value of a compile option after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..engine.inspect.record import Record
from .core.sweeps import Sweep, Value, sweep_of, visits
from .worker.once import collect

__all__ = ["measure", "sweeps_in"]


def measure(
    files: Sequence[str],
    option: str,
    values: Sequence[Value],
    settings: dict[str, Any],
    rounds: int = 2,
    progress: Callable[[int, int, str], object] = lambda done, total, text: None,
    stopped: Callable[[], bool] = lambda: False,
) -> list[list[Record]]:
    """The records by round, then by value, in the order of ``values``.

    progress: called with (looks done, all looks, what comes). stopped: asked before each look; the
    rounds that are complete are returned.
    """
    out: list[list[Record]] = []
    total, done = rounds * len(values), 0
    config = dict(settings.get("config") or {})
    for order in visits(values, rounds):
        found: dict[Value, Record] = {}
        for value in order:
            if stopped():
                return out
            progress(done, total, f"{option}={value}")
            own: dict[str, Any] = {**settings, "config": {**config, option: value}}
            found[value] = collect(files, **own)
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
