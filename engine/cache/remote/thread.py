"""A thread that does pieces of work in order, started with the first one."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Final

__all__ = ["Job", "Thread"]


class Job:
    """A piece of work. size: bytes that it keeps in memory. done: an event."""

    __slots__ = ("done", "size", "work")

    def __init__(self, work: Callable[[], None], size: int = 0) -> None:
        self.work, self.size, self.done = work, size, threading.Event()


class Thread:
    """limit: jobs that may wait; bytes: their sizes together. Work must not raise."""

    def __init__(self, name: str, limit: int, bytes: int) -> None:
        self._name: Final = name
        self._limit: Final = limit
        self._bytes: Final = bytes
        self._jobs: deque[Job] = deque()
        self._held = 0
        self._changed: Final = threading.Condition()
        self._running: Job | None = None
        self._since = 0.0
        self._started = False

    def add(self, job: Job) -> bool:
        """Have a job done; False if too much is waiting."""
        with self._changed:
            if len(self._jobs) >= self._limit or self._held + job.size > self._bytes:
                return False
            if not self._started:
                # A daemon: a request that hangs must not keep a program from ending.
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the interpreter ends, or the system has no thread left
                    return False
                self._started = True
            self._jobs.append(job)
            self._held += job.size
            self._changed.notify_all()
        return True

    @property
    def busy_for(self) -> float:
        """Seconds since the running job began; 0 if none runs."""
        return monotonic() - self._since if self._running is not None else 0.0

    @property
    def waiting(self) -> int:
        """Jobs that are not done."""
        return len(self._jobs) + (self._running is not None)

    def drop(self) -> int:
        """Forget the jobs that wait; return how many."""
        with self._changed:
            count = len(self._jobs)
            self._jobs.clear()
            self._held = self._running.size if self._running else 0
        return count

    def finish(self, seconds: float) -> bool:
        """Wait until all is done, for that long at most; True if it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.waiting, seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._jobs:
                    self._changed.wait()
                job = self._running = self._jobs.popleft()
                self._since = monotonic()
            try:
                job.work()
            finally:
                job.done.set()
                with self._changed:
                    self._held = max(0, self._held - job.size)
                    self._running = None
                    self._changed.notify_all()
