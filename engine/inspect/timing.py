"""Times launches: a warm-up, which does not count, then as many as a time budget allows.

Before every launch arrays that the kernel writes are put back, off the clock, so that all launches
do the same work. The median and the median absolute deviation describe what repeats, the minimum
what the machine can do.

Backends that are compared take turns: `measure_together` launches each of them once, then each of
them again, and so on, the one that begins changing from round to round. What slows the machine down
for a while slows all of them down, and launch ``k`` of each belongs to the same moment (`verdicts`
depends on that). Each has a budget of its own; a backend that has spent it leaves the round.

A verdict needs more launches than a description. So those that are compared go on
after their number is reached, until the uncertainty of their ratio is at most `_ENOUGH`, or 1 is
far outside of it, or the budget is spent. `measure_longer` goes on with two for which that was not
enough, or whose launches were few on a busy machine. Precision ends it, not the verdict: looking
at a verdict again and again until it appears would find one by chance. A record then holds medians
of as many consecutive launches each, so that it does not grow.

A `clocks.Clock` times one launch; its class depends on the backend.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final

from .clocks import Clock, HostClock, Took
from .machine_load import LoadClock, busy
from .record import LaunchRecord, LoadRecord
from .steps import StepLimit
from .verdicts import merged, of_short, uncertainty

__all__ = ["Contender", "decided", "measure", "measure_longer", "measure_together", "share"]

_MAX_SAMPLES: Final = 200
_MIN_SAMPLES: Final = 3
_MAX_WARMUP: Final = 5
_ENOUGH: Final = 0.006
"""The uncertainty of a ratio, three standard errors, from which on more launches are of no use."""
_FAR: Final = 4.0
"""Or that many times as far from 1."""
_DECIDED: Final = 0.012
"""The uncertainty from which on the band has its least width."""

_HOST_CLOCK: Final = HostClock()


def _nothing(_: int) -> None:
    pass


class Contender:
    """One of those that are measured together.

    launch: what is timed. prepare: called before each launch, not timed; a clock may launch twice,
    and calls it in between. first_us: the time of a launch that has been made already, the first of
    the warm-up. budget_s: how long it may go on, preparing included; a launch that takes longer is
    timed once more (`settle`) and, if it still does, no further. error: why it left before its
    time. load: of the machine meanwhile. burst: so many launches are one sample of the record.
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
        self.budget_s = budget_s
        self.clock: Final = clock
        self.first_us = first_us
        self.error: BaseException | None = None
        self.load: LoadRecord | None = None
        self.burst = 1
        self._most = _MAX_SAMPLES
        self._warmup = 0 if first_us is None else 1
        self._likely_us = first_us
        self._spent_ns = 0
        self._us: Final[list[float]] = []
        self._host_us: Final[list[float]] = []
        self._wall_us: Final[list[float]] = []
        self._cpu_us: Final[list[float]] = []

    @property
    def slow(self) -> bool:
        """True if a single launch takes longer than its budget, as far as is known."""
        return self._likely_us is not None and self._likely_us > self.budget_s * 1e6

    def settle(self) -> None:
        """Launch a slow one again: the first launch may have made what later ones find.

        This one counts if it is slow, too; else it belongs to the warm-up.
        """
        if self.error is not None or not self.slow or self._us:
            return
        clock = LoadClock()
        took = self._turn()
        self.load = clock.record()
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
        if self.error is not None or n >= self._most:
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
            self._seen(took)
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

    @property
    def n(self) -> int:
        """The number of timed launches."""
        return len(self._us)

    @property
    def may_go_on(self) -> bool:
        """True if there is time for more launches."""
        spent = self._spent_ns >= 1e9 * self.budget_s
        return not (spent or self.slow) and self.error is None

    def go_on(self, most: int) -> None:
        """Time up to ``most`` launches."""
        self._most = most

    def go_on_from(self, n: int, seconds: float) -> None:
        """Allow some seconds more, as if ``n`` launches had been timed so far."""
        for times in (self._us, self._host_us, self._wall_us, self._cpu_us):
            del times[n:]
        self.budget_s = self._spent_ns / 1e9 + seconds

    def times(self, waits: bool) -> list[float]:
        """All of them. waits: those that the caller waited."""
        return self._wall_us if waits and self._wall_us else self._us

    def _seen(self, took: Took) -> None:
        """A stall makes no launch slow: the fastest so far counts."""
        before = self._likely_us
        self._likely_us = took.waited_us if before is None else min(before, took.waited_us)

    def _count(self, took: Took) -> None:
        self._seen(took)
        self._us.append(took.us)
        if took.host_us is not None:
            self._host_us.append(took.host_us)
        if took.wall_us is not None:
            self._wall_us.append(took.wall_us)
        if took.cpu_us is not None:
            self._cpu_us.append(took.cpu_us)

    def _turn(self) -> Took | None:
        began = time.perf_counter_ns()
        try:
            self.prepare()
            return self.clock.took(self.launch, self.prepare)
        except (Exception, StepLimit) as error:
            self.error = error
            return None
        finally:
            self._spent_ns += time.perf_counter_ns() - began

    def record(
        self,
        workload: str,
        bytes: int | None = None,
        flops: int | None = None,
        burst: int | None = None,
    ) -> LaunchRecord | None:
        """Return what was measured; None if nothing was. bytes, flops: the work of one launch.
        burst: so many launches are one sample; None: as was chosen."""
        samples, walls = self._us, self._wall_us
        if not samples:
            return None
        burst = self.burst if burst is None else burst
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
            samples_us=tuple(merged(samples, burst)),
            burst=burst,
            gbps=None if bytes is None else bytes * per_us,
            gflops=None if flops is None else flops * per_us,
            host_us=statistics.median(self._host_us) if self._host_us else None,
            wall_us=wall,
            wall_mad_us=_deviation(walls) if walls else None,
            wall_samples_us=tuple(merged(walls, burst)),
            cpu_samples_us=tuple(merged(self._cpu_us, burst)) if busy(self.load) else (),
            load=self.load,
        )


def _deviation(samples: Sequence[float]) -> float:
    """The median absolute deviation."""
    median = statistics.median(samples)
    return statistics.median(abs(s - median) for s in samples)


def share(budget_s: float, contenders: int) -> float:
    """The budget of each: that of a single one, but all together at most twice as much."""
    return 2.0 * budget_s / (1 + max(1, contenders))


def measure_together(
    contenders: Sequence[Contender],
    pairs: Sequence[tuple[Contender, Contender]] | None = None,
    between: Callable[[int], object] = _nothing,
) -> None:
    """Launch them in turns until all have what they need; see the module docstring.

    pairs: that are compared; None: each with the first. One that fails leaves with its
    `Contender.error`, the others go on. between: called with the number of each round, not timed;
    it may raise.
    """
    for one in contenders:
        one.settle()
    # All have their turn in a round, also after one that has something to do.
    while sum(one.warm_up() for one in contenders):
        pass
    with _measuring(contenders) as clock:
        _rounds(contenders, clock, between)
        most = _MAX_SAMPLES
        if pairs is None:
            pairs = [(one, contenders[0]) for one in contenders[1:]]
        while _undecided(contenders, pairs, 2 * most):
            most *= 2
            _rounds(contenders, clock, between)
        _choose_bursts(contenders)


@contextmanager
def _measuring(contenders: Sequence[Contender]) -> Generator[LoadClock, None, None]:
    """Encloses launches that are timed: the load of the machine meanwhile is noted."""
    collecting = gc.isenabled()
    gc.disable()
    clock = LoadClock()
    try:
        yield clock
    finally:
        if collecting:
            gc.enable()
        load = clock.record()
        for one in contenders:
            one.load = one.load if one.slow and one.load is not None else load


def measure_longer(
    one: Contender,
    other: Contender,
    seconds: float,
    between: Callable[[int], object] = _nothing,
) -> None:
    """Go on with two that were measured together until they are `decided`, for so long at most."""
    both = (one, other)
    while sum(each.warm_up() for each in both):
        pass
    most = min(one.n, other.n)
    for each in both:
        each.go_on_from(most, seconds / 2)
        each.burst = 1
    with _measuring(both) as clock:
        while one.may_go_on and other.may_go_on and not decided(one, other):
            most = max(2 * most, _MAX_SAMPLES)
            for each in both:
                each.go_on(most)
            _rounds(both, clock, between)


def decided(one: Contender, other: Contender) -> bool:
    """True if more launches would not make the band of a verdict narrower.

    On a busy machine the uncertainty of fewer than `_MAX_SAMPLES` is not trusted: most launches
    were delayed, and from a hundred of them it was estimated too small.
    """
    if any(x.n < _MAX_SAMPLES and x.load is not None and busy(x.load) for x in (one, other)):
        return False
    return _decided(one, other, _DECIDED)


def _rounds(
    contenders: Sequence[Contender], clock: LoadClock, between: Callable[[int], object]
) -> None:
    first = 0
    rounds = 0
    while sum(one.time_one() for one in (*contenders[first:], *contenders[:first])):
        first = (first + 1) % len(contenders)
        clock.tick()
        rounds += 1
        between(rounds)


def _choose_bursts(contenders: Sequence[Contender]) -> None:
    """One size for all that need one: samples of one number belong to one moment."""
    most = max(one.n for one in contenders)
    for one in contenders:
        one.burst = -(-most // _MAX_SAMPLES) if one.n > _MAX_SAMPLES else 1


def _undecided(
    contenders: Sequence[Contender], pairs: Sequence[tuple[Contender, Contender]], most: int
) -> bool:
    """Let those go on that more launches can decide about; False if there are none."""
    _choose_bursts(contenders)
    going: set[Contender] = set()
    for pair in pairs:
        # Both or none: one alone would not decide anything.
        able = all(2 * one.n == most and (one in going or one.may_go_on) for one in pair)
        if able and not _decided(*pair):
            going.update(pair)
    for one in going:
        one.go_on(most)
    return bool(going)


def _decided(one: Contender, first: Contender, enough: float = _ENOUGH) -> bool:
    return all(
        _clear(*uncertainty(merged(ours, one.burst), merged(theirs, first.burst)), enough)
        or _clear(*of_short(ours, theirs), enough)
        for ours, theirs in ((one.times(waits), first.times(waits)) for waits in (True, False))
    )


def _clear(ratio: float, error: float, enough: float) -> bool:
    return error <= enough * ratio or abs(ratio - 1.0) >= _FAR * error


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
