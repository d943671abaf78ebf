"""The progress of a command: one line on standard error that is written again and again.

    with progress.line() as line:
        record = collect(files, on_event=line.heard)

Only on a terminal, and without escape codes: each text is padded over the one before. What else is
written to the terminal meanwhile takes the place of the line (see `streams.talk`). Elsewhere, as in
the log of a build, a line appears every half minute, so that one sees that there is life.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Final

from . import streams
from .core.progress import Rate, State, forms

if TYPE_CHECKING:
    from .worker.events import Event

__all__ = ["ProgressLine", "line"]

_EVERY_S: Final = 0.1
_AFTER_S: Final = 0.5
_QUIET_S: Final = 30.0


class ProgressLine:
    """See the module docstring. Safe to use from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.live: Final = streams.has_status()
        """True if the line is drawn."""
        self._clock: Final = clock
        self._began = self._last = clock()
        self._rate = Rate(self._began)

    def heard(self, event: Event) -> None:
        """Show the progress of a worker."""
        from .worker.events import Progress

        if isinstance(event, Progress):
            self.show(event.forms)

    def counted(self, text: str, done: int, total: int, unit: str) -> None:
        """Show that ``done`` of ``total`` equal parts are done. unit: what one part is called."""
        left = self._rate.left(self._clock(), done, total)
        self.show(forms(State(text, f"{unit} {min(done + 1, total)} of {total}", "", left)))

    def show(self, texts: Sequence[str]) -> None:
        """Show the first of several forms of a text that fits, if it is time to."""
        now = self._clock()
        if not self.live:
            if now - self._last >= _QUIET_S:
                self._last = now
                streams.talk_line(f"... {texts[0]}")
        elif now - self._began >= _AFTER_S and now - self._last >= _EVERY_S:
            self._last = now
            streams.status(texts)


@contextlib.contextmanager
def line() -> Generator[ProgressLine]:
    """A line that is removed in the end."""
    try:
        yield ProgressLine()
    finally:
        streams.status(())
