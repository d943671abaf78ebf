"""Measuring a sweep: the same files with one value of a compile option after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..engine.inspect.record import Record
from .core.sweeps import Sweep, Value, sweep_of, visits

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
    from .worker.turns import Look, collect_in_turns

    shared = dict(settings)
    config: dict[str, Value] = shared.pop("config", None) or {}
    backends: Sequence[str] = shared.pop("backends", ())
    order = [value for one in visits(values, rounds) for value in one]
    looks = [Look(files, {**config, option: v}, backends, keep=v == values[0]) for v in order]
    found = collect_in_turns(
        looks, began=lambda number: progress(number, len(order), f"{option}={order[number]}"),
        cancelled=stopped, **shared,
    )  # fmt: skip
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
