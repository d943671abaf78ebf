"""The part of a record about assumptions that were tried; see `assuming`."""

from typing import Annotated

from .record_base import RecordPart, about

__all__ = ["WhatIfCount", "WhatIfRecord"]


class WhatIfCount(RecordPart, frozen=True, kw_only=True, array_like=True):
    """A count that differs under the assumption."""

    name: Annotated[str, about("Name of the count.")]
    before: Annotated[int | None, about("Count without the assumption; null if not known.")]
    after: Annotated[int | None, about("Count with the assumption; null if not known.")]


class WhatIfRecord(RecordPart, frozen=True, kw_only=True):
    """The effect of an assumption on one kernel and backend."""

    assumption: Annotated[str, about("The assumption, as `--assume` accepts it.")]
    title: Annotated[str, about("The assumption in words.")] = ""
    backend: Annotated[str, about("Name of the backend.")] = ""
    verdict: Annotated[
        str, about("Result: faster, slower, within noise, same code, unknown or cannot.")
    ] = "unknown"
    reason: Annotated[str, about("Why there is no other verdict; else empty.")] = ""
    workload: Annotated[str, about("Label of the workload that was timed.")] = ""
    clock: Annotated[str, about("Clock of the times: wall clock or device time.")] = ""
    before_us: Annotated[float, about("Median launch time without the assumption.")] = 0.0
    after_us: Annotated[float, about("Median launch time with it.")] = 0.0
    ratio: Annotated[float, about("Time with it over time without it; 0 if not timed.")] = 0.0
    band: Annotated[float, about("Uncertainty of the ratio.")] = 0.0
    agreement: Annotated[
        str, about("Results with the assumption: ok, differs, unchecked or unknown.")
    ] = "unchecked"
    compared: Annotated[str, about("What the results were compared with, and the difference.")] = ""
    counts: Annotated[tuple[WhatIfCount, ...], about("Counts that differ.")] = ()
    change: Annotated[str, about("What to write to make the assumption in the program.")] = ""
