"""The standard streams: the one way in which commands print.

Whatever is printed holds text of users, and goes to terminals: see `core.visible`. What the
encoding of a stream lacks is written as an escape. A stream may also be closed, full, or a pipe
that is no longer read.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Sequence
from typing import Final, TextIO

from .core.charset import escaped, plain_locale, spelled
from .core.progress import fitting
from .core.visible import visible, visible_line

__all__ = [
    "OutputError", "has_screen", "has_status", "open_missing", "status", "talk", "talk_line",
    "write",
]  # fmt: skip

_NAMES: Final = ("stdin", "stdout", "stderr")
_missing: Final = set[str]()
_status: Final = [0]
"""Columns of the status line that is on the terminal now."""
_turn: Final = threading.RLock()


class OutputError(OSError):
    """Standard output cannot be written; the message is a sentence."""


def open_missing() -> None:
    """Open closed standard streams (``<&-``) on the null device: no pipe may get their number."""
    for number, name in enumerate(_NAMES):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(number)
        except OSError:
            fd = os.open(os.devnull, os.O_RDWR)
            if fd != number:
                os.dup2(fd, number)
                os.close(fd)
        _missing.add(name)
        mode = "r" if name == "stdin" else "w"
        stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)


def write(text: str, json: bool = False) -> None:
    """Write data to standard output; all of it is out when this returns.

    It is in ASCII where the locale is not UTF-8. json: ``text`` is JSON, and means the same then.
    BrokenPipeError if the reader has gone, OutputError if it cannot be written for another reason.
    """
    status(())
    if "stdout" in _missing:
        raise OutputError("standard output is closed: give it a place to write to")
    try:
        text = visible(text)
        if plain_locale(os.environ, sys.stdout.encoding):
            text = escaped(text) if json else spelled(text)
        _put(sys.stdout, text)
    except OSError as error:
        _drop(1)
        if isinstance(error, BrokenPipeError):
            raise
        raise OutputError(f"cannot write to standard output: {error.strerror}") from None


def talk(text: str) -> None:
    """Write a message to standard error, where there is one."""
    with _turn:
        status(())
        try:
            _put(sys.stderr, visible(text) + "\n")
        except OSError:
            _drop(2)


def talk_line(text: str) -> None:
    """`talk`, where a line end in ``text`` (in a name, say) must not begin a line."""
    talk(visible_line(text))


def status(texts: Sequence[str]) -> None:
    """Replace the status line on the terminal of standard error by the first of several forms of a
    text that fits; remove it if there is none. It is written without escape codes."""
    with _turn:
        if not texts and not _status[0]:
            return
        # The last column stays free: some terminals begin a new line after it.
        text = visible_line(fitting(texts, shutil.get_terminal_size().columns - 1))
        if plain_locale(os.environ, sys.stderr.encoding):
            text = spelled(text)
        blank = " " * (_status[0] - len(text))
        try:
            _put(sys.stderr, f"\r{text}{blank}" + ("" if text else "\r"))
        except OSError:
            _drop(2)
        _status[0] = len(text)


def has_status() -> bool:
    """True if a status line can be drawn on standard error."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def has_screen() -> bool:
    """True if the studio can be drawn here."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _put(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def _drop(number: int) -> None:
    """Let the rest go nowhere: else Python complains about what is left in its buffer."""
    fd = os.open(os.devnull, os.O_WRONLY)
    os.dup2(fd, number)
    os.close(fd)
