"""How long launches take: warm-up apart, then as many as a time budget allows.

The clock is read around each launch; arrays that the kernel writes are put back before every one,
off the clock, so that all launches do the same work. The median and the median absolute deviation
describe what repeats, the minimum what the machine can do.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Final

from .record import LaunchRecord

__all__ = ["METHOD", "measure"]

METHOD: Final = (
    "host wall clock around one launch of the compiled kernel, synchronised, arguments restored "
    "before each; median over n launches after the warm-up"
)
_MAX_SAMPLES: Final = 200
_MIN_SAMPLES: Final = 3
_MAX_WARMUP: Final = 5


def measure(
    workload: str,
    launch: Callable[[], object],
    prepare: Callable[[], object],
    budget_s: float,
    bytes: int | None = None,
    flops: int | None = None,
    first_us: float | None = None,
) -> LaunchRecord:
    """Time ``launch``, each time after an untimed ``prepare``, for about ``budget_s`` seconds.

    first_us: the time of a launch that has been made already, the first of the warm-up. A launch
    that alone takes longer than the budget is timed once more and no further.
    """
    began = time.perf_counter()
    warmup = 0
    if first_us is None:
        first_us = _timed(launch, prepare)
    warmup += 1
    slow = first_us > budget_s * 1e6
    while not slow and warmup < _MAX_WARMUP and time.perf_counter() - began < 0.2 * budget_s:
        _timed(launch, prepare)
        warmup += 1
    at_least = 1 if slow else _MIN_SAMPLES
    samples: list[float] = []
    collecting = gc.isenabled()
    gc.disable()
    try:
        while len(samples) < _MAX_SAMPLES and (
            len(samples) < at_least or time.perf_counter() - began < budget_s
        ):
            samples.append(_timed(launch, prepare))
    finally:
        if collecting:
            gc.enable()
    median = statistics.median(samples)
    per_us = 1e-3 / median if median > 0 else 0.0
    return LaunchRecord(
        workload=workload,
        method=METHOD,
        n=len(samples),
        warmup=warmup,
        first_us=first_us,
        median_us=median,
        mad_us=statistics.median(abs(s - median) for s in samples),
        min_us=min(samples),
        max_us=max(samples),
        samples_us=tuple(samples),
        gbps=None if bytes is None else bytes * per_us,
        gflops=None if flops is None else flops * per_us,
    )


def _timed(launch: Callable[[], object], prepare: Callable[[], object]) -> float:
    """Microseconds of one launch."""
    prepare()
    start = time.perf_counter_ns()
    launch()
    return (time.perf_counter_ns() - start) / 1e3
