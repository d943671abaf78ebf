"""A line on the terminal when a first call compiles for long: no one waits without knowing why.

It is printed once a process, and only where stderr is a terminal: never into a log.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from .. import logs as log

__all__ = ["noted"]

_AFTER: Final = 1.0
"""Seconds of one compile after which the line is printed."""

_shown = False
_compiles = 0


@contextmanager
def noted(kernel: str) -> Generator[None]:
    """Within this context a kernel is compiled."""
    global _compiles
    _compiles += 1
    if _shown or not log.enabled("info") or not _is_terminal():
        yield
        return
    timer = threading.Timer(_AFTER, _show, (kernel, _compiles))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # closed, or replaced by the program
        return False


def _show(kernel: str, number: int) -> None:
    global _shown
    if not _shown:
        _shown = True
        from ..cache.last_run import compiled_last_time

        known = compiled_last_time()
        place = f"kernel {number} of {known}" if number <= known else f"number {number} of this run"
        log.info(f"compiling kernel {kernel!r} ({place}), for {_AFTER:.0f} s now")
