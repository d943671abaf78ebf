"""The standard streams: the one way in which commands print.

Whatever is printed holds text of users, and goes to terminals: see `core.visible`. What the
encoding of a stream lacks is written as an escape. A stream may also be closed, full, or a pipe
that is no longer read.
"""

from __future__ import annotations

import os
import sys
from typing import Final, TextIO

from .core.charset import escaped, plain_locale, spelled
from .core.visible import visible, visible_line

__all__ = ["OutputError", "has_screen", "open_missing", "talk", "talk_line", "write"]

_NAMES: Final = ("stdin", "stdout", "stderr")
_missing: Final = set[str]()


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
    try:
        _put(sys.stderr, visible(text) + "\n")
    except OSError:
        _drop(2)


def talk_line(text: str) -> None:
    """`talk`, where a line end in ``text`` (in a name, say) must not begin a line."""
    talk(visible_line(text))


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
