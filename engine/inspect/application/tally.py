"""Counts and times of the launches of one compiled kernel; see `runtime.recording`.

Every launch is counted. How many are timed follows from what timing one costs: where it is more
than 1 % of a launch, so many launches are left out in between that it is 1 % of all. Their number
is random, so that a period of the program does not show. A timed launch stands for those before it
that were not: they are taken to be as long, but together no longer than the time since the launch
timed before. Else one launch that the system interrupts would count a thousand times.
"""

from __future__ import annotations

import itertools
import operator
import random
import sys
import weakref
from collections.abc import Callable, Sequence
from time import perf_counter_ns as now
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final

from ...named_tuple import NamedTuple
from .parts import SLOT

if TYPE_CHECKING:
    from ...runtime.compile import Compiled
    from ...runtime.program import Program
    from ...runtime.variant import Variant
    from .recorder import ApplicationRecorder

__all__ = ["LaunchTally", "Site"]

_WARM: Final = 128
"""The first launches, which are all timed."""
_SHARE: Final = 100
"""Timing may cost one part in this many of what is timed."""
_LONGEST: Final = 4096
_frame: Final[Callable[[int], FrameType]] = getattr(sys, "_getframe")  # noqa: B009
_MOST_SITES: Final = 64
_DEPTH: Final = 6
_FRAME_NS: Final = 400
"""Of a timed launch, the part that the two clock readings cannot see."""

_CLOCK_NS: Final = min(-(now() - now()) for _ in range(100))
"""Nanoseconds that reading the clock adds to a time."""
_random: Final = random.Random(0)  # not the user's


class Site:
    """A place in the user's code that calls the kernel: its frames, the innermost first.

    count: launches. weighed: those that times stand for. total_ns: of these. timed: measured ones.
    least_ns, most_ns: of these. waited, waited_ns: as weighed and total_ns, of launches on a device
    that were waited for.
    """

    __slots__ = ("count", "least_ns", "most_ns", "slot", "timed", "total_ns", "waited", "waited_ns",
                 "weighed")  # fmt: skip

    def __init__(self, slot: int) -> None:
        self.slot: Final = slot
        self.count = self.weighed = self.total_ns = self.timed = 0
        self.least_ns = self.most_ns = self.waited = self.waited_ns = 0

    def add(self, took: int, weight: int, waited: bool, most: int) -> None:
        """A launch that stands for ``weight`` took so many nanoseconds, the others up to ``most``
        together."""
        total = took + min(took * (weight - 1), most)
        if waited:
            self.waited += weight
            self.waited_ns += total
            return
        self.least_ns = took if not self.timed else min(took, self.least_ns)
        self.most_ns = max(took, self.most_ns)
        self.timed += 1
        self.weighed += weight
        self.total_ns += total

    def write(self, counts: Any) -> None:
        """Write the numbers to their slot."""
        if self.slot >= 0:
            SLOT.pack_into(
                counts, self.slot, self.count, self.weighed, self.total_ns, self.timed,
                self.least_ns, self.most_ns, self.waited, self.waited_ns,
            )  # fmt: skip


class _Began(NamedTuple):
    weight: int
    site: Site
    entered: int
    at: int
    waits: bool


class LaunchTally:
    """See the module docstring, and `runtime.recording.Tally`.

    number: of the compile in the record. about: its message in the log. count: launches so far, but
    for those that stubs have counted since the last sample.
    """

    def __init__(
        self, recorder: ApplicationRecorder, number: int, about: dict[str, Any], program: Program,
        compiled: Compiled,
    ) -> None:  # fmt: skip
        self.number: Final = number
        self.about: Final = about
        self.count = 0
        self.declared = False
        self.kept = 0
        self.keep_at: float = 1 if recorder.keeps else float("inf")
        self.has_ir = bool(about["ir"])
        self._recorder: Final = recorder
        self._device: Final = recorder.device_to_wait_for(program)
        self._executable: Final = weakref.ref(compiled.executable)
        self._program: Final = weakref.ref(program)
        self._stacks: Final = compiled.executable.meta.has_stacks
        self._stack_bytes = 0
        self._sites: dict[tuple[Any, ...], Site] = {}
        self._last: Site | None = None
        self._stubs: Final[weakref.WeakSet[Any]] = weakref.WeakSet()
        self._span = 0
        self._next_span = 0
        self._ticks = itertools.repeat(0, 0)
        self._samples = 0
        self._total = 0
        self._ended = now()

    # ---- of stubs

    def watch(self, stub: Callable[..., Any]) -> None:
        """See `recording.Tally`."""
        with self._recorder.lock:
            self._stubs.add(stub)
            stub.__globals__["ticks"] = self._ticks  # type: ignore[attr-defined]

    def sample(self) -> _Began | None:
        """See `recording.Tally`."""
        entered = now()
        with self._recorder.lock:
            weight = 1
            if not operator.length_hint(self._ticks):  # else another thread was here first
                weight += self._span
                self._renew()
            site = self._site(_frame(2))
            if self.count + weight >= self.keep_at:
                self.count += weight - 1
                site.count += weight - 1
                return None
            self.count += weight
            site.count += weight
        device = self._device
        waits = device is not None and self._recorder.may_wait(self._samples)
        if waits and device is not None:
            self._recorder.wait(device)
        return _Began(weight, site, entered, now(), waits)

    def timed(self, began: _Began) -> None:
        """See `recording.Tally`."""
        took = max(now() - began.at - _CLOCK_NS, 0)
        if began.waits and self._device is not None:
            self._recorder.wait(self._device)
            self._add(began.site, now() - began.at, began.weight, True)
        ended = now()
        self._add(began.site, took, began.weight)
        cost = now() - ended + began.at - began.entered + _FRAME_NS
        self._choose(cost)

    def uncount(self) -> None:
        """See `recording.Tally`."""
        with self._recorder.lock:
            self.count -= 1
            if self._last is not None:
                self._last.count -= 1

    def _add(self, site: Site, took: int, weight: int, waited: bool = False) -> None:
        with self._recorder.lock:
            at = now()
            site.add(took, weight, waited, max(0, at - took - self._ended))
            self._ended = at
            site.write(self._recorder.part.counts)
            if not waited:
                self._samples += 1
                self._total += took
            if self._stacks:
                self._note_stacks()

    def _choose(self, cost: int) -> None:
        """Choose how many launches to leave out after the next ones."""
        if self._samples < _WARM:
            return
        mean = max(self._total // self._samples, 1)
        if self._samples >= 2 * _WARM:  # go by the recent ones
            self._samples, self._total = _WARM, _WARM * mean
        span = min(cost * _SHARE // mean, _LONGEST)
        self._next_span = _random.randint(span // 2, span + span // 2)

    def _renew(self) -> None:
        """Let stubs count from 0 again."""
        left = self.keep_at - self.count - self._span - 2
        self._span = max(0, int(min(self._next_span, left)))
        self._ticks = itertools.repeat(0, self._span)
        for stub in self._stubs:
            stub.__globals__["ticks"] = self._ticks

    # ---- of the slow path

    def run(
        self, variant: Variant, values: Sequence[Any], sources: Sequence[Any], resume: int,
        stream: int,
    ) -> Any:  # fmt: skip
        """See `recording.Tally`."""
        recorder, device = self._recorder, self._device
        with recorder.lock:
            self.count += 1
            site = self._site(_frame(1))
            site.count += 1
            site.write(recorder.part.counts)
            number = self.count
        kept = recorder.begin_keeping(self, variant, values, number, resume, stream)
        waits = device is not None and recorder.may_wait(self._samples)
        if waits and device is not None:
            recorder.wait(device)
        began = now()
        try:
            results = variant.numbers(values, sources, resume, stream)
        except BaseException as error:
            if kept is not None:
                recorder.launch_failed(self, kept, error)
            raise
        took = now() - began
        if waits and device is not None:
            recorder.wait(device)
            self._add(site, now() - began, 1, True)
        self._add(site, took, 1)
        if kept is not None:
            recorder.end_keeping(self, variant, kept, values, results)
        return variant.result(results)

    # ---- parts

    def _site(self, frame: FrameType | None) -> Site:
        """The caller; the lock is held."""
        found: list[tuple[CodeType, int]] = []
        is_user = self._recorder.is_user
        while frame is not None and len(found) < _DEPTH:
            code = frame.f_code
            if is_user(code):
                found.append((code, frame.f_lineno))
            frame = frame.f_back
        key = tuple(found)
        site = self._sites.get(key)
        if site is None:
            if len(self._sites) >= _MOST_SITES:
                key = ()
                site = self._sites.get(key)
            if site is None:
                site = self._sites[key] = self._recorder.new_site(self, key)
        self._last = site
        return site

    def _note_stacks(self) -> None:
        """Write down how many bytes the adstacks have, if it is more than before."""
        executable, program = self._executable(), self._program()
        if executable is None or program is None:
            return
        from ...runtime.sizer import bytes_of

        plan = program.stacks.sizer(executable).plan_made
        size = sum(bytes_of(plan.tasks)) if plan is not None else 0
        if size > self._stack_bytes:
            self._stack_bytes = size
            self._recorder.part.write("stacks", kernel=self.number, bytes=size)

    def settle(self) -> None:
        """Count what stubs have counted since the last sample; at the end of the process."""
        done = self._span - operator.length_hint(self._ticks)
        self._span -= done
        self.count += done
        if self._last is not None:
            self._last.count += done
            self._last.write(self._recorder.part.counts)

    def begin_child(self) -> None:
        """Count from 0, in a child by fork."""
        self._span = operator.length_hint(self._ticks)
        self._sites, self._last = {}, None
        self.count, self.declared = 0, False
        self._stack_bytes = 0
        if self.kept:  # by the parent
            self.keep_at = float("inf")
