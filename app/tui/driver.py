"""The way to the terminal: Textual's, except that a terminal may go away at any time.

Textual writes from a thread, which ends when a write fails; who writes next waits for it for ever.
Here nothing fails: what is written to a terminal that is gone is dropped, so that the studio can
end in order. The same holds for reading: that there is no terminal any more is no failure to be
explained on it.

Textual reads escape and a digit, which is what terminals send for ``alt+1``, as the sign that a
keyboard of macOS has there. Here it is ``alt+1``.
"""

from __future__ import annotations

import sys
from typing import IO, Any, cast

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver

__all__ = ["StudioDriver"]

for _digit in "0123456789":
    cast("dict[str, Any]", ANSI_SEQUENCES_KEYS).pop(f"\x1b{_digit}", None)


class _Lasting:
    """A file that accepts all writes, even when its terminal is gone."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._gone = False

    def write(self, text: str) -> None:
        """Write, or drop."""
        if not self._gone:
            try:
                self._file.write(text)
            except (OSError, ValueError):
                self._gone = True

    def flush(self) -> None:
        """Flush, or do nothing."""
        if not self._gone:
            try:
                self._file.flush()
            except (OSError, ValueError):
                self._gone = True

    def fileno(self) -> int:
        """The descriptor of the terminal."""
        return self._file.fileno()


class StudioDriver(LinuxDriver):
    """See the module docstring."""

    def __init__(self, app: App[Any], **options: Any) -> None:
        super().__init__(app, **options)  # pyright: ignore[reportUnknownMemberType]
        error, out = sys.__stderr__, sys.__stdout__
        # With ``2>log`` the screen does not belong into the log.
        file = error if error is not None and error.isatty() else out
        self._file = cast("Any", _Lasting(cast("IO[str]", file)))

    def run_input_thread(self) -> None:
        try:
            super().run_input_thread()
        except OSError:
            return  # `ending` hears of it, too
