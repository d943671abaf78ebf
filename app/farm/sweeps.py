"""A sweep on a farm: one job for each file, since times of two machines cannot be compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from ...engine.inspect.record import Record
from ..core.sweeps import Value, visits
from .executors import Spec
from .jobs import Outcome
from .records import jobs_of, merged, outcomes

__all__ = ["measure"]


def measure(
    files: Sequence[str],
    option: str,
    values: Sequence[Value],
    settings: dict[str, Any],
    rounds: int,
    spec: Spec,
    talk: Callable[[str], object],
    progress: Callable[[str, int, int], object],
) -> list[list[Record]]:
    """The records by round, then by value, as `sweeping.measure` returns them.

    talk, progress: as for `records.outcomes`. FarmError if the farm cannot be used.
    """
    order = visits(values, rounds)
    configs = tuple({**settings["config"], option: value} for row in order for value in row)
    jobs = [replace(job, configs=configs) for job in jobs_of(files, settings)]
    found = outcomes(jobs, spec, talk, progress)
    out: list[list[Record]] = []
    for number, row in enumerate(order):
        records: dict[Value, Record] = {}
        for place, value in enumerate(row, number * len(values)):
            several = [(job, _look(one, place)) for job, one in zip(jobs, found, strict=True)]
            records[value] = merged(several, (), settings["backends"])
        out.append([records[value] for value in values])
    return out


def _look(outcome: Outcome, place: int) -> Outcome:
    """One of the looks of a job."""
    return replace(outcome, records=outcome.records[place : place + 1])
