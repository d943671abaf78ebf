"""How long launches take: warm-up apart, then as many as a time budget allows.

Before every launch arrays that the kernel writes are put back, off the clock, so that all launches
do the same work. The median and the median absolute deviation describe what repeats, the minimum
what the machine can do.

A `Clock` times one launch. On the host the wall clock is read around it. On a device two events are
recorded around it, and the host's part, the time it needs to issue the launch, is told apart.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

from .record import LaunchRecord

__all__ = ["METHOD", "Clock", "EventClock", "HostClock", "Took", "measure"]

METHOD: Final = (
    "host wall clock around one launch of the compiled kernel, synchronised, arguments restored "
    "before each; median over n launches after the warm-up"
)
_EVENTS: Final = (
    "device time between two events around one launch, arguments restored before each; median over "
    "n launches after the warm-up; host: until the call returned"
)
_MAX_SAMPLES: Final = 200
_MIN_SAMPLES: Final = 3
_MAX_WARMUP: Final = 5


class Took(NamedTuple):
    """Microseconds of one launch. host_us: of the host, where ``us`` is time of a device."""

    us: float
    host_us: float | None = None


class Clock(Protocol):
    """Times launches. method: what the time holds, for people."""

    method: str

    def took(self, launch: Callable[[], object]) -> Took:
        """Launch and wait. Raises what the launch fails with."""
        ...


class HostClock:
    """The wall clock. wait: returns when the launch is over, if the launch itself does not."""

    method = METHOD

    def __init__(self, wait: Callable[[], object] | None = None) -> None:
        self._wait: Final = wait

    def took(self, launch: Callable[[], object]) -> Took:
        if self._wait is not None:
            self._wait()
        start = time.perf_counter_ns()
        launch()
        if self._wait is not None:
            self._wait()
        return Took((time.perf_counter_ns() - start) / 1e3)


class EventClock:
    """Events of a CUDA device around launches on its default stream."""

    method = _EVENTS

    def __init__(self, device: Any) -> None:
        """device: has ``call(doing, function, *args)``, which calls the driver, and ``sync()``."""
        self._device: Final = device
        self._events: Final = [self._call("cuEventCreate", 0) for _ in range(2)]

    def _call(self, function: str, *args: Any) -> Any:
        return self._device.call("timing a launch", function, *args)

    def took(self, launch: Callable[[], object]) -> Took:
        begin, end = self._events
        self._device.sync()
        self._call("cuEventRecord", begin, 0)
        start = time.perf_counter_ns()
        launch()
        host_us = (time.perf_counter_ns() - start) / 1e3
        self._call("cuEventRecord", end, 0)
        self._device.sync()
        return Took(float(self._call("cuEventElapsedTime", begin, end)) * 1e3, host_us)

    def __del__(self) -> None:
        with suppress(Exception):  # the device may be gone, and the interpreter may end
            for event in self._events:
                self._call("cuEventDestroy", event)


_HOST_CLOCK: Final = HostClock()


def measure(
    workload: str,
    launch: Callable[[], object],
    prepare: Callable[[], object],
    budget_s: float,
    bytes: int | None = None,
    flops: int | None = None,
    first_us: float | None = None,
    clock: Clock = _HOST_CLOCK,
) -> LaunchRecord:
    """Time ``launch``, each time after an untimed ``prepare``, for about ``budget_s`` seconds.

    first_us: the time of a launch that has been made already, the first of the warm-up. A launch
    that alone takes longer than the budget is timed once more and no further.
    """
    began = time.perf_counter()
    warmup = 0

    def timed() -> Took:
        prepare()
        return clock.took(launch)

    if first_us is None:
        first_us = timed().us
    warmup += 1
    slow = first_us > budget_s * 1e6
    while not slow and warmup < _MAX_WARMUP and time.perf_counter() - began < 0.2 * budget_s:
        timed()
        warmup += 1
    at_least = 1 if slow else _MIN_SAMPLES
    samples: list[float] = []
    host: list[float] = []
    collecting = gc.isenabled()
    gc.disable()
    try:
        while len(samples) < _MAX_SAMPLES and (
            len(samples) < at_least or time.perf_counter() - began < budget_s
        ):
            took = timed()
            samples.append(took.us)
            if took.host_us is not None:
                host.append(took.host_us)
    finally:
        if collecting:
            gc.enable()
    median = statistics.median(samples)
    per_us = 1e-3 / median if median > 0 else 0.0
    return LaunchRecord(
        workload=workload,
        method=clock.method,
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
        host_us=statistics.median(host) if host else None,
    )
