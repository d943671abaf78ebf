"""Work that was given to the device and when it is done: as late as it may be.

A piece of work knows what must be done before it: what its stream was given before; for stream 0
what every stream that is not independent was given before, and for those what stream 0 was given;
for a wait the event's. It is done when somebody waits for it, or when too much is waiting. So a
program that forgets to wait reads old values here, however fast the machine is.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable
from typing import Any

__all__ = ["Event", "Queue", "Stream", "Work"]

_MOST_WAITING = 64


class Work:
    """run: does it. before: what must be done first."""

    __slots__ = ("before", "done", "run")

    def __init__(self, run: Callable[[], Any], before: list[Work]) -> None:
        self.run: Callable[[], Any] | None = run
        self.before = before
        self.done = False


class Stream:
    """last: what it was given last. independent: stream 0 does not wait for it, nor it for that."""

    def __init__(self, number: int, independent: bool, priority: int = 0) -> None:
        self.number = number
        self.independent = independent
        self.priority = priority
        self.last: Work | None = None
        self.waits: list[Work] = []


class Event:
    """work: its place in a stream; None before it was recorded. at: nanoseconds."""

    def __init__(self, timing: bool) -> None:
        self.timing = timing
        self.work: Work | None = None
        self.at = 0


class Queue:
    """All streams of a context. failed: what to do with an error of a piece of work."""

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self.default = Stream(0, False)
        self.streams: dict[int, Stream] = {0: self.default}
        self.waiting: list[Work] = []
        self.failed = failed
        self.random = random.Random(7)
        self.count = itertools.count()

    def put(self, stream: Stream, run: Callable[[], Any]) -> Work:
        """Give ``stream`` something to do."""
        before = [w for w in (stream.last, *stream.waits) if w is not None and not w.done]
        if stream is self.default:
            others = [s for s in self.streams.values() if not s.independent and s is not stream]
            before += [s.last for s in others if s.last is not None and not s.last.done]
        elif not stream.independent and self.default.last is not None:
            before.append(self.default.last)
        work = Work(run, before)
        stream.last = work
        stream.waits = []
        self.waiting.append(work)
        if len(self.waiting) > _MOST_WAITING:
            self.finish()
        return work

    def wait_in(self, stream: Stream, event: Event) -> None:
        """What ``stream`` is given next waits for the event as it was recorded last."""
        if event.work is not None and not event.work.done:
            work = event.work
            self.put(stream, lambda: None).before.append(work)

    def record(self, event: Event, stream: Stream) -> None:
        def stamp() -> None:
            event.at = time.perf_counter_ns()

        event.work = self.put(stream, stamp)

    def do(self, work: Work | None) -> None:
        """See to it that ``work`` is done, and all that must be done before it, and no more."""
        if work is None or work.done:
            return
        todo = [work]
        while todo:
            item = todo[-1]
            open_ = [w for w in item.before if not w.done]
            if open_:
                self.random.shuffle(open_)
                todo += open_
                continue
            todo.pop()
            if item.done:
                continue
            item.done = True
            run, item.run, item.before = item.run, None, []
            assert run is not None
            try:
                run()
            except Exception as error:
                self.failed(error)
        self.waiting = [w for w in self.waiting if not w.done]

    def step(self, work: Work | None) -> bool:
        """Whether ``work`` is done; a little happens if not."""
        if work is None or work.done:
            return True
        while True:
            item = work
            while any(not w.done for w in item.before):
                item = next(w for w in item.before if not w.done)
            self.do(item)
            return work.done

    def finish(self, stream: Stream | None = None) -> None:
        """Do all that a stream, or any, was given."""
        if stream is not None:
            self.do(stream.last)
            return
        while self.waiting:
            self.do(self.random.choice(self.waiting))
