"""Messages of the engine to the user: short lines on stderr, by level, with one prefix.

stdout belongs to the user's program and to data. Nothing here is kept or formatted when its level
is off.
"""

from __future__ import annotations

import sys
from typing import Final

LEVELS: Final = ("trace", "debug", "info", "warn", "error", "critical")
PREFIX: Final = "[qd-studio]"

_threshold = LEVELS.index("info")
_said: set[str] = set()


def check_level(level: str) -> None:
    """ValueError for a name that is not in `LEVELS`."""
    if level not in LEVELS:
        raise ValueError(f"log level must be one of {', '.join(LEVELS)}, not {level!r}")


def set_level(level: str) -> None:
    """Say only what is at `level` or above. ValueError for a name that is not in `LEVELS`."""
    global _threshold
    check_level(level)
    _threshold = LEVELS.index(level)


def enabled(level: str) -> bool:
    """True if a message at `level` would be shown; check before building an expensive one."""
    return LEVELS.index(level) >= _threshold


def say(level: str, text: str, *, once: bool = False) -> None:
    """Write one message. With `once`, the same text is written at most once a process."""
    if not enabled(level):
        return
    if once:
        if text in _said:
            return
        _said.add(text)
    mark = "" if level == "info" else f" {'warning' if level == 'warn' else level}:"
    if sys.stderr is not None:  # `print` would take standard output
        # With the end of the line in it: another thread may write between two writes.
        print(f"{PREFIX}{mark} {text}\n", end="", file=sys.stderr, flush=True)


def debug(text: str) -> None:
    say("debug", text)


def info(text: str) -> None:
    say("info", text)


def warn(text: str, *, once: bool = False) -> None:
    say("warn", text, once=once)


def error(text: str) -> None:
    say("error", text)
