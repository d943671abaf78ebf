"""Between the app and its helpers: the worker client's thread, and a thread for long pure work.

Both only ferry: they put what they have where the app finds it, and post one message. However many
events come, the app handles them together and paints once.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections import deque
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from textual.message import Message

if TYPE_CHECKING:
    from ..worker.client import WorkerClient

__all__ = ["Computed", "Computer", "EventsReady", "Link", "paused_collector"]

Post = Callable[[Message], Any]
Start = Callable[[Callable[[object], object]], "WorkerClient"]


@contextlib.contextmanager
def paused_collector() -> Generator[None]:
    """Python's collector does not run: long work makes many objects and no garbage in circles."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


class EventsReady(Message):
    """Events wait in the link."""

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, EventsReady)


class Computed(Message):
    """The computer has finished a request; the caller finds the result in its cache."""

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, Computed)


class Link:
    """Starts the worker client on a thread of its own, and keeps its events until they are taken.

    client: None until it runs.
    """

    def __init__(self, start: Start, post: Post) -> None:
        self.client: WorkerClient | None = None
        self._start = start
        self._post = post
        self._events: deque[object] = deque()
        self._posted = threading.Event()
        self._leaving = False

    def connect(self) -> None:
        """Start the client; returns at once."""
        threading.Thread(target=self._connect, name="studio-start", daemon=True).start()

    def _connect(self) -> None:
        client = self._start(self._heard)
        self.client = client
        if self._leaving:
            client.stop()

    def _heard(self, event: object) -> None:
        self._events.append(event)
        if not self._posted.is_set():
            self._posted.set()
            self._post(EventsReady())

    def take(self) -> list[object]:
        """All events since the last call, in order."""
        # Cleared first: an event that comes now may post for nothing, but none is left lying.
        self._posted.clear()
        out: list[object] = []
        while self._events:
            out.append(self._events.popleft())
        return out

    def close(self) -> None:
        """Stop the client, now or as soon as it runs."""
        self._leaving = True
        if self.client is not None:
            self.client.stop()


class Computer:
    """Does one piece of long pure work after the other on a thread; a newer one replaces one that
    still waits. The result belongs into a memory (`core.memo`) that asker and thread share."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._wanted: Callable[[], object] | None = None
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None

    def ask(self, work: Callable[[], object]) -> None:
        """Do ``work``; a `Computed` message follows."""
        with self._condition:
            self._wanted = work
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="studio-work", daemon=True)
                self._thread.start()
            self._condition.notify()

    def _run(self) -> None:
        while True:
            with self._condition:
                while self._wanted is None:
                    self._condition.wait()
                work, self._wanted = self._wanted, None
            with paused_collector():
                work()
            self._post(Computed())
