"""The gate in front of a shared cache: closed for a while after waits in vain."""

from __future__ import annotations

import threading
from time import monotonic
from typing import Final

__all__ = ["Gate"]

_FIRST_S: Final = 1.0
_LONGEST_S: Final = 60.0
_ERRORS: Final = 3
_WINDOW_S: Final = 1.0


class Gate:
    """deadline: seconds of waiting in vain, within a second, that close it."""

    def __init__(self, deadline: float) -> None:
        self._deadline: Final = deadline
        self._lock: Final = threading.Lock()
        self._until = 0.0
        self._pause = _FIRST_S
        self._errors = 0
        self._window = 0.0
        self._spent = 0.0
        self._why = ""

    def closed(self) -> str:
        """The reason why nothing may be asked now; empty if it may."""
        if self._why and monotonic() < self._until:
            return self._why
        return ""

    def answered(self, seconds: float, useful: bool) -> None:
        """An answer came in time. useful: it saves a compile."""
        with self._lock:
            self._errors = 0
            if useful or not self._wasted(seconds):
                self._pause, self._why = _FIRST_S, ""
            else:
                self._close("its answers take long")

    def failed(self, seconds: float, why: str) -> None:
        """A request failed. Three in a row close the gate, or their time does."""
        with self._lock:
            self._errors += 1
            if self._wasted(seconds) or self._errors >= _ERRORS:
                self._close(why)

    def late(self, why: str) -> None:
        """No answer came in time."""
        with self._lock:
            self._close(why)

    def _wasted(self, seconds: float) -> bool:
        now = monotonic()
        if now - self._window > _WINDOW_S:
            self._window, self._spent = now, 0.0
        self._spent += seconds
        return self._spent >= self._deadline

    def _close(self, why: str) -> None:
        self._why, self._errors, self._spent = why, 0, 0.0
        self._until = monotonic() + self._pause
        self._pause = min(2 * self._pause, _LONGEST_S)
