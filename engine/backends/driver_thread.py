"""A thread of the engine that uses a driver, which must not be in use at a fork or the end.

Drivers hold locks that a forked child would inherit, and compilers crash in a process that runs its
last destructors. So a fork and the end of the process wait for the call that the thread is in. Such
a call is short: the helper process makes what needs long (see `cpu.background`). The end waits for
nothing that is still to begin: the thread is a daemon.
"""

from __future__ import annotations

import atexit
import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, Generic, TypeVar

from .base import FORK_HANDLERS
from .turns import SHORT_TURNS

__all__ = ["DriverThread"]

T = TypeVar("T")

_FORK: Final = 5.0
"""The most seconds for which a fork waits."""


class DriverThread(Generic[T]):
    """work: is called for each item that is submitted, one after the other; it raises nothing, and
    uses the driver within `using`.

    waiting: items. running: there is a thread.
    """

    def __init__(self, name: str, work: Callable[[T], None]) -> None:
        self._name: Final = name
        self._work: Final = work
        self._held = False
        self._ended = False
        self._begin()
        atexit.register(self._at_exit)
        FORK_HANDLERS.append((self._before_fork, self._in_parent, self._begin))

    def _begin(self) -> None:
        """Begin without items and without a thread: a forked child has none."""
        self._lock = threading.Lock()
        self._driver = threading.Lock()
        self._held = False
        self.waiting: deque[T] = deque()
        self.running = False

    def submit(self, item: T) -> None:
        with self._lock:
            self.waiting.append(item)
            begin, self.running = not self.running, True
        if begin:
            try:
                threading.Thread(target=self._run, name=self._name, daemon=True).start()
            except RuntimeError:  # the process is ending
                self.running = False

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self.waiting:
                    self.running = False
                    return
                item = self.waiting.popleft()
            self._work(item)

    @contextmanager
    def using(self) -> Generator[None]:
        """Within it the thread is in the driver; once the process is ending it ends instead."""
        with self._driver:
            if self._ended:
                raise SystemExit  # of the thread alone
            SHORT_TURNS.begin()
            try:
                yield
            finally:
                SHORT_TURNS.end()

    def _at_exit(self) -> None:
        self._ended = True  # before the lock, which the thread might get several times
        self._driver.acquire()

    def _before_fork(self) -> None:
        self._held = not self._ended and self._driver.acquire(timeout=_FORK)

    def _in_parent(self) -> None:
        if self._held:
            self._held = False
            self._driver.release()
