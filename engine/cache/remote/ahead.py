"""Fetches the entries that the last run of a program used, before they are asked for.

Several connections hide the round trips. A look-up uses an entry that is here, waits for one that
is under way, and asks for all others itself. An entry is released when it is used, or some seconds
after the last one came. An error ends the fetching: look-ups report it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from .reply import FAILED, FOUND, Reply

if TYPE_CHECKING:
    from .record import Place
    from .transport import Transport

__all__ = ["Ahead"]

CONNECTIONS: Final = 10
KEPT_S: Final = 10.0
"""Seconds for which fetched entries wait for their look-up."""
LARGEST: Final = 64 << 20
"""Bytes that wait together."""


class Ahead:
    """The fetches of a process.

    places: returns what is to be fetched, in order; called in a thread, with a connection. read:
    asks for one place, and raises nothing.
    """

    def __init__(
        self, connect: Callable[[], Transport], places: Callable[[Transport], list[Place]],
        read: Callable[[Place, Transport], Reply],
    ) -> None:  # fmt: skip
        self._connect: Final = connect
        self._places: Final = places
        self._read: Final = read
        self._lock: Final = threading.Lock()
        self._ended: Final = threading.Event()
        self._waiting: dict[Place, None] = {}
        self._running: dict[Place, threading.Event] = {}
        self._found: dict[Place, Reply] = {}
        self._held = 0

    def start(self) -> None:
        """Begin; nothing is fetched if the system has no thread left."""
        _start(self._run)

    def stop(self) -> None:
        """Begin no further request, and let everything go. It does not wait."""
        with self._lock:
            self._waiting.clear()
            self._found.clear()
            self._held = 0
        self._ended.set()

    def take(self, place: Place, seconds: float) -> tuple[Reply | None, bool]:
        """The fetched entry, or None; and True if it was waited for in vain."""
        with self._lock:
            self._waiting.pop(place, None)
            done = self._running.get(place)
        late = done is not None and not done.wait(seconds)
        with self._lock:
            reply = self._found.pop(place, None)
            if reply is not None:
                self._held -= len(reply.data)
        return reply, late

    def _run(self) -> None:
        """The first thread."""
        with suppress(Exception):  # of a transport; look-ups meet and report it
            transport = self._connect()
            places = self._places(transport)
            with self._lock:
                self._waiting.update(dict.fromkeys(places))
            for _ in range(min(CONNECTIONS, len(places)) - 1):
                _start(self._work)
            self._fetch(transport)
        self._ended.wait(KEPT_S)
        self.stop()

    def _work(self) -> None:
        with suppress(Exception):
            self._fetch(self._connect())

    def _fetch(self, transport: Transport) -> None:
        """Fetch until nothing is left."""
        try:
            while (place := self._next()) is not None:
                self._keep(place, self._read(place, transport))
        finally:
            transport.close()

    def _next(self) -> Place | None:
        with self._lock:
            if self._ended.is_set() or self._held >= LARGEST or not self._waiting:
                return None
            place = next(iter(self._waiting))
            del self._waiting[place]
            self._running[place] = threading.Event()
            return place

    def _keep(self, place: Place, reply: Reply) -> None:
        with self._lock:
            if reply.state == FOUND and not self._ended.is_set():
                self._found[place] = reply
                self._held += len(reply.data)
            elif reply.state == FAILED:
                self._waiting.clear()
            self._running.pop(place).set()


def _start(work: Callable[[], None]) -> None:
    # Daemons: a request that hangs must not keep a program from ending.
    with suppress(RuntimeError):  # the interpreter ends, or the system has no thread left
        threading.Thread(target=work, name="qd-remote-ahead", daemon=True).start()
