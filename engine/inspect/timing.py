"""How long launches take: warm-up apart, then as many as a time budget allows.

Before every launch arrays that the kernel writes are put back, off the clock, so that all launches
do the same work. The median and the median absolute deviation describe what repeats, the minimum
what the machine can do.

Backends that are compared take turns: `measure_together` launches each of them once, then each of
them again, and so on, the one that begins changing from round to round. What slows the machine down
for a while slows all of them down, and launch ``k`` of each belongs to the same moment (`verdicts`
rests on that). Each has a budget of its own; who has spent it leaves the round.

A `Clock` times one launch. On the host the wall clock is read around it. On a device two events are
recorded around it, or the times of the commands in a profiling queue are added up; the host's part,
the time it needs to issue the launch, is told apart, and so is the wall clock from the call to the
end of the wait for it: that is what a person waits for, on every backend.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

from .record import LaunchRecord
from .steps import StepLimit

__all__ = [
    "METHOD", "Clock", "Contender", "EventClock", "HostClock", "QueueClock", "Took",
    "measure", "measure_together", "share",
]  # fmt: skip

METHOD: Final = (
    "host wall clock around one launch of the compiled kernel, synchronised, arguments restored "
    "before each; median over n launches after the warm-up"
)
_EVENTS: Final = (
    "device time between two events around one launch, arguments restored before each; median over "
    "n launches after the warm-up; host: until the call returned; wall clock: until it was over"
)
_QUEUE: Final = (
    "device time from the start of the first to the end of the last kernel of one launch, as its "
    "queue keeps it, arguments restored before each; median over n launches after the warm-up; "
    "host: until the call returned; wall clock: until it was over"
)
_MAX_SAMPLES: Final = 200
_MIN_SAMPLES: Final = 3
_MAX_WARMUP: Final = 5


class Took(NamedTuple):
    """Microseconds of one launch.

    Where ``us`` is time of a device: host_us until the call returned, wall_us until it was over.
    """

    us: float
    host_us: float | None = None
    wall_us: float | None = None

    @property
    def waited_us(self) -> float:
        """What the caller waited, as far as the clock tells it."""
        return self.us if self.wall_us is None else self.wall_us


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
        wall_us = (time.perf_counter_ns() - start) / 1e3
        return Took(float(self._call("cuEventElapsedTime", begin, end)) * 1e3, host_us, wall_us)

    def __del__(self) -> None:
        with suppress(Exception):  # the device may be gone, and the interpreter may end
            for event in self._events:
                self._call("cuEventDestroy", event)


class QueueClock:
    """The times that an OpenCL queue keeps of the kernels that a launch puts into it.

    From the start of the first to the end of the last: what the host needs to put them there is
    hidden where they take longer, and is told apart in any case.
    """

    method = _QUEUE

    def __init__(self, device: Any, executable: Any) -> None:
        """executable: its ``sources`` are the names that its generated code knows, with what
        enqueues a kernel as ``launch``. device: has ``sync()``."""
        self._device: Final = device
        self._sources: Final[list[dict[str, Any]]] = executable.sources
        self._events: Final[list[Any]] = []

    @staticmethod
    def fits(device: Any) -> bool:
        """Whether the queue of a device keeps times."""
        wanted = device.cl.command_queue_properties.PROFILING_ENABLE
        return bool(device.queue.properties & wanted)

    def took(self, launch: Callable[[], object]) -> Took:
        self._device.sync()
        events = self._events
        events.clear()
        replaced = [(names, names["launch"]) for names in self._sources if "launch" in names]
        for names, enqueue in replaced:
            names["launch"] = self._noting(enqueue)
        start = time.perf_counter_ns()
        try:
            launch()
            host_us = (time.perf_counter_ns() - start) / 1e3
            self._device.sync()
            wall_us = (time.perf_counter_ns() - start) / 1e3
        finally:
            for names, enqueue in replaced:
                names["launch"] = enqueue
        if not events:  # nothing was to be done
            return Took(wall_us, host_us, wall_us)
        first = min(event.profile.start for event in events)
        last = max(event.profile.end for event in events)
        return Took((last - first) / 1e3, host_us, wall_us)

    def _noting(self, enqueue: Callable[..., Any]) -> Callable[..., Any]:
        note = self._events.append

        def launch(*args: Any, **named: Any) -> Any:
            event = enqueue(*args, **named)
            note(event)
            return event

        return launch


_HOST_CLOCK: Final = HostClock()


class Contender:
    """One of those that are measured together.

    launch: what is timed. prepare: called before each launch, not timed. first_us: the time of a
    launch that has been made already, the first of the warm-up. budget_s: how long it may go on,
    preparing included; a launch that takes longer is timed once more (`settle`) and, if it still
    does, no further. error: why it left before its time.
    """

    def __init__(
        self,
        launch: Callable[[], object],
        prepare: Callable[[], object],
        budget_s: float,
        first_us: float | None = None,
        clock: Clock = _HOST_CLOCK,
    ) -> None:
        self.launch: Final = launch
        self.prepare: Final = prepare
        self.budget_s: Final = budget_s
        self.clock: Final = clock
        self.first_us = first_us
        self.error: BaseException | None = None
        self._warmup = 0 if first_us is None else 1
        self._likely_us = first_us
        self._spent_ns = 0
        self._us: Final[list[float]] = []
        self._host_us: Final[list[float]] = []
        self._wall_us: Final[list[float]] = []

    @property
    def slow(self) -> bool:
        """Whether a single launch takes longer than its budget, as far as is known."""
        return self._likely_us is not None and self._likely_us > self.budget_s * 1e6

    def settle(self) -> None:
        """Launch a slow one again: the first launch may have made what later ones find.

        This one counts if it is slow, too; else it belongs to the warm-up.
        """
        if self.error is not None or not self.slow or self._us:
            return
        took = self._turn()
        if took is None:
            return
        self._likely_us = took.waited_us
        if self.slow:
            self._count(took)
        else:
            self._warmup += 1

    @property
    def _warm(self) -> bool:
        spent = self._spent_ns >= 0.2e9 * self.budget_s
        return self._warmup > 0 and (self.slow or spent or self._warmup >= _MAX_WARMUP)

    @property
    def _done(self) -> bool:
        n = len(self._us)
        if self.error is not None or n >= _MAX_SAMPLES:
            return True
        if self.slow:
            return n >= 1
        return n >= _MIN_SAMPLES and self._spent_ns >= 1e9 * self.budget_s

    def warm_up(self) -> bool:
        """One launch that does not count; False if there were enough of them."""
        if self.error is not None or self._warm:
            return False
        took = self._turn()
        if took is not None:
            self.first_us = took.waited_us if self.first_us is None else self.first_us
            self._likely_us = took.waited_us if self._likely_us is None else self._likely_us
            self._warmup += 1
        return True

    def time_one(self) -> bool:
        """One launch that counts; False if there were enough of them."""
        if self._done:
            return False
        took = self._turn()
        if took is not None:
            self._count(took)
        return True

    def _count(self, took: Took) -> None:
        self._us.append(took.us)
        if took.host_us is not None:
            self._host_us.append(took.host_us)
        if took.wall_us is not None:
            self._wall_us.append(took.wall_us)

    def _turn(self) -> Took | None:
        began = time.perf_counter_ns()
        try:
            self.prepare()
            return self.clock.took(self.launch)
        except (Exception, StepLimit) as error:
            self.error = error
            return None
        finally:
            self._spent_ns += time.perf_counter_ns() - began

    def record(
        self, workload: str, bytes: int | None = None, flops: int | None = None
    ) -> LaunchRecord | None:
        """What was measured; None if nothing was. bytes, flops: what one launch moves and does."""
        samples, walls = self._us, self._wall_us
        if not samples:
            return None
        median = statistics.median(samples)
        wall = statistics.median(walls) if walls else None
        per_us = 1e-3 / median if median > 0 else 0.0
        return LaunchRecord(
            workload=workload,
            method=self.clock.method,
            n=len(samples),
            warmup=self._warmup,
            first_us=self.first_us or 0.0,
            median_us=median,
            mad_us=_deviation(samples),
            min_us=min(samples),
            max_us=max(samples),
            samples_us=tuple(samples),
            gbps=None if bytes is None else bytes * per_us,
            gflops=None if flops is None else flops * per_us,
            host_us=statistics.median(self._host_us) if self._host_us else None,
            wall_us=wall,
            wall_mad_us=_deviation(walls) if walls else None,
            wall_samples_us=tuple(walls),
        )


def _deviation(samples: Sequence[float]) -> float:
    """The median absolute deviation."""
    median = statistics.median(samples)
    return statistics.median(abs(s - median) for s in samples)


def share(budget_s: float, contenders: int) -> float:
    """The budget of each of so many: that of a single one, all together at most twice as much."""
    return 2.0 * budget_s / (1 + max(1, contenders))


def measure_together(contenders: Sequence[Contender]) -> None:
    """Launch them in turns until all have what they need; see the module docstring.

    One that fails leaves with its `Contender.error`, the others go on.
    """
    for one in contenders:
        one.settle()
    # All have their turn in a round, also after one that has something to do.
    while sum(one.warm_up() for one in contenders):
        pass
    collecting = gc.isenabled()
    gc.disable()
    try:
        first = 0
        while sum(one.time_one() for one in (*contenders[first:], *contenders[:first])):
            first = (first + 1) % len(contenders)
    finally:
        if collecting:
            gc.enable()


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
    """Time ``launch`` alone, each time after an untimed ``prepare``, for about ``budget_s``.

    first_us: as in `Contender`. Raises what a launch fails with.
    """
    one = Contender(launch, prepare, budget_s, first_us, clock)
    measure_together([one])
    if one.error is not None:
        raise one.error
    found = one.record(workload, bytes, flops)
    assert found is not None
    return found
