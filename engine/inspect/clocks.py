"""Clocks that time one launch, on the host and on devices.

On the host the wall clock is read around a launch, and the CPU time of all threads of the process,
which does not grow while other programs have the processors. A launch on a device has three times:

    wall    from the call until it is over: what a person waits for, on every backend
    host    from the call until it returned
    device  for how long the device was busy, without the round trip

A queue of OpenCL keeps times of its commands, and those of kernels are added up. CUDA has events,
which note when the device reaches them; but a device that is faster than the host waits for it,
between kernels too, and the events would measure the host's time again: 7 us, or 20, for a kernel
of 1.6. So a short launch is timed twice. The first measures wall and host, with nothing around it.
For the second the device is held up until the host has put all of it into the stream
(`CudaDevice.hold`, a kernel that waits), so that it runs as it does after other work, with the gaps
that the device itself needs between two kernels. This is how nvbench measures "cold" GPU time, with
its blocking kernel. Launches that wait for the device in the middle, for a flag or a size, cannot
be timed so, and long ones need not: they are launched once, between two events.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol

from ..named_tuple import NamedTuple

__all__ = ["METHOD", "Clock", "EventClock", "HostClock", "QueueClock", "Took"]

METHOD: Final = (
    "host wall clock around one launch of the compiled kernel, synchronised, arguments restored "
    "before each; median over n launches after the warm-up"
)
_BEFORE: Final = (
    "arguments restored before each; median over n launches after the warm-up; host: until"
)
_HELD: Final = (
    "device time between two events around the kernels of one launch, all queued in the "
    f"stream before the first began, {_BEFORE} the call returned; wall clock: until it was over, "
    "both of launches between these, with nothing around them"
)
_EVENTS: Final = (
    "device time between two events around the kernels of one launch, with what the device waited "
    f"for the host in between, {_BEFORE} the call returned; wall clock: until it was over"
)
_QUEUE: Final = (
    "device time in which kernels of one launch ran, as its queue keeps it, without the gaps "
    f"between them, {_BEFORE} the call returned; wall clock: until it was over"
)

_LONG_US: Final = 1000.0
"""Launches for which a device that waits for the host does not matter."""
_SPARE_US: Final = 20.0
_LONGEST_US: Final = 20_000.0
"""Most that a device is held up."""
_TRIES: Final = 3
"""Launches in a row that outlast the hold, after which no more are held up."""

Launch = Callable[[], object]
Sources = Sequence[dict[str, Any]]
"""The names that the generated code of launches knows: ``sources`` of an executable."""


def _nothing() -> None:
    pass


class Took(NamedTuple):
    """Microseconds of one launch.

    Where ``us`` is time of a device: host_us until the call returned, wall_us until it was over.
    cpu_us: CPU time of all threads of the process, where launches run on the host.
    """

    us: float
    host_us: float | None = None
    wall_us: float | None = None
    cpu_us: float | None = None

    @property
    def waited_us(self) -> float:
        """The time that the caller waited, as far as the clock measures it."""
        return self.us if self.wall_us is None else self.wall_us


class Clock(Protocol):
    """Times launches."""

    @property
    def method(self) -> str:
        """The parts of a launch that the times include, for people."""
        ...

    def took(self, launch: Launch, prepare: Launch = _nothing) -> Took:
        """Launch and wait. Raises what the launch fails with.

        prepare: puts back what a launch changes; called before a second launch, if there is one.
        """
        ...


class HostClock:
    """The wall clock, and CPU time of launches that run on the host.

    wait: returns when a launch is over that does not run on the host.
    """

    method = METHOD

    def __init__(self, wait: Launch | None = None) -> None:
        self._wait: Final = wait

    def took(self, launch: Launch, prepare: Launch = _nothing) -> Took:
        if self._wait is not None:
            self._wait()
            start = time.perf_counter_ns()
            launch()
            self._wait()
            return Took((time.perf_counter_ns() - start) / 1e3)
        worked = time.process_time_ns()
        start = time.perf_counter_ns()
        launch()
        us = (time.perf_counter_ns() - start) / 1e3
        return Took(us, cpu_us=(time.process_time_ns() - worked) / 1e3)


Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


@contextmanager
def _wrapped(sources: Sources, name: str, wrap: Wrap) -> Generator[None]:
    """Within this, generated code calls the result of ``wrap`` in place of the named function."""
    replaced = [(names, names[name]) for names in sources if name in names]
    for names, original in replaced:
        names[name] = wrap(original)
    try:
        yield
    finally:
        for names, original in replaced:
            names[name] = original


class EventClock:
    """Events of a CUDA device around launches on its default stream; see the module docstring."""

    def __init__(self, device: Any, executable: Any) -> None:
        """device: has ``call(doing, function, *args)``, which calls the driver, ``sync()``, and
        ``hold(us)``. executable: its ``sources`` are the names that its generated code knows, with
        what waits for the end and fetches results as ``finish``."""
        self._device: Final = device
        self._sources: Final[Sources] = executable.sources
        self._events: Final = [self._call("cuEventCreate", 0) for _ in range(2)]
        self._issued_ns: int | None = None
        self._known: Took | None = None
        self._issue_us = 0.0
        self._failed = 0
        self._refused = False

    @property
    def method(self) -> str:
        return _HELD if self._holds else _EVENTS

    @property
    def _holds(self) -> bool:
        """True if the device is held up for the next launch: it can be, and that has a use."""
        if self._known is None or self._refused or self._failed >= _TRIES:
            return False
        return self._known.us <= max(_LONG_US, 2.0 * self._issue_us)

    def _call(self, function: str, *args: Any) -> Any:
        return self._device.call("timing a launch", function, *args)

    def took(self, launch: Launch, prepare: Launch = _nothing) -> Took:
        if not self._holds:
            self._known = self._between_events(launch)
            return self._known
        host_us, wall_us = self._waited(launch)
        prepare()
        issue_us = self._issue_us
        held_us = min(1.5 * issue_us + _SPARE_US, _LONGEST_US)
        us = self._between_events(launch, held_us).us
        if self._issue_us <= held_us:
            self._failed = 0
        else:  # the host has waited for the device in the middle, or was held up itself
            self._failed += 1
            self._issue_us = 2.0 * issue_us
        self._known = Took(us, host_us, wall_us)
        return self._known

    def _waited(self, launch: Launch) -> tuple[float, float]:
        """Microseconds until a launch returned, and until it was over."""
        self._device.sync()
        start = time.perf_counter_ns()
        launch()
        host_us = (time.perf_counter_ns() - start) / 1e3
        self._device.sync()
        return host_us, (time.perf_counter_ns() - start) / 1e3

    def _between_events(self, launch: Launch, held_us: float = 0.0) -> Took:
        """Time a launch with events around its kernels, on a device that is held up first."""
        begin, end = self._events
        self._device.sync()
        self._issued_ns = None
        if held_us and not self._device.hold(held_us):
            self._refused = True
        self._call("cuEventRecord", begin, 0)
        start = time.perf_counter_ns()
        with _wrapped(self._sources, "finish", self._ending):
            launch()
        host_us = (time.perf_counter_ns() - start) / 1e3
        if self._issued_ns is None:
            self._end()
        self._device.sync()
        wall_us = (time.perf_counter_ns() - start) / 1e3
        assert self._issued_ns is not None
        self._issue_us = (self._issued_ns - start) / 1e3
        return Took(float(self._call("cuEventElapsedTime", begin, end)) * 1e3, host_us, wall_us)

    def _end(self) -> None:
        """Called when all kernels of the launch are in the stream."""
        self._call("cuEventRecord", self._events[1], 0)
        self._issued_ns = time.perf_counter_ns()

    def _ending(self, finish: Callable[..., Any]) -> Callable[..., Any]:
        def ended(*args: Any) -> Any:
            self._end()
            return finish(*args)

        return ended

    def __del__(self) -> None:
        with suppress(Exception):  # the device may be gone, and the interpreter may end
            for event in self._events:
                self._call("cuEventDestroy", event)


class QueueClock:
    """The times that an OpenCL queue keeps of the kernels that a launch puts into it.

    Those in which at least one of them ran: in between the device may wait for the host.
    """

    method = _QUEUE

    def __init__(self, device: Any, executable: Any) -> None:
        """executable: its ``sources`` are the names that its generated code knows, with what
        enqueues a kernel as ``launch``. device: has ``sync()``."""
        self._device: Final = device
        self._sources: Final[Sources] = executable.sources
        self._events: Final[list[Any]] = []

    @staticmethod
    def fits(device: Any) -> bool:
        """True if the queue of a device keeps times."""
        wanted = device.cl.command_queue_properties.PROFILING_ENABLE
        return bool(device.queue.properties & wanted)

    def took(self, launch: Launch, prepare: Launch = _nothing) -> Took:
        self._device.sync()
        events = self._events
        events.clear()
        with _wrapped(self._sources, "launch", self._noting):
            start = time.perf_counter_ns()
            launch()
            host_us = (time.perf_counter_ns() - start) / 1e3
            self._device.sync()
            wall_us = (time.perf_counter_ns() - start) / 1e3
        if not events:  # nothing was to be done
            return Took(wall_us, host_us, wall_us)
        spans = [(event.profile.start, event.profile.end) for event in events]
        return Took(_covered(spans) / 1e3, host_us, wall_us)

    def _noting(self, enqueue: Callable[..., Any]) -> Callable[..., Any]:
        note = self._events.append

        def launch(*args: Any, **named: Any) -> Any:
            event = enqueue(*args, **named)
            note(event)
            return event

        return launch


def _covered(spans: Sequence[tuple[int, int]]) -> int:
    """The length of the union of these spans."""
    total, reached = 0, min(spans)[0]
    for begin, end in sorted(spans):
        total += max(end - max(begin, reached), 0)
        reached = max(reached, end)
    return total
