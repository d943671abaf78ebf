"""A line on the terminal when a call compiles, or waits for full code, for more than a second.

It is printed once a process, and only where stderr is a terminal: never into a log.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from time import monotonic
from typing import Final

from .. import logs as log
from ..backends import base

__all__ = ["noted", "waiting"]

_AFTER: Final = 1.0
"""Seconds of one compile after which the line is printed."""

_shown = False
_numbers: Final[dict[str, int]] = {}
"""The number of a kernel's last compile in this process."""
_running: Final[dict[object, tuple[str, float]]] = {}
"""The kernels that are being compiled, or wait for code, and when that began."""
_watcher: threading.Thread | None = None
_pause: Final = threading.Event()  # which no one sets
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.clear)  # other threads go on in the parent alone
_count: Final = itertools.count(1)


def noted(kernel: str) -> AbstractContextManager[None]:
    """Within this context a kernel is compiled."""
    _numbers[kernel] = next(_count)
    return waiting(kernel)


@contextmanager
def waiting(kernel: str) -> Generator[None]:
    """Within this context a kernel is compiled, or a launch of it waits for full code."""
    if _shown or not log.enabled("info") or not _is_terminal():
        yield
        return
    own = object()
    _running[own] = kernel, monotonic()
    _begin_to_watch()
    try:
        yield
    finally:
        _running.pop(own, None)


base.WAITS.append(waiting)


def _begin_to_watch() -> None:
    """Have a thread watch what is running: a timer for each compile would cost it 0.07 ms."""
    global _watcher
    if _watcher is None or not _watcher.is_alive():  # as in a forked child
        _watcher = threading.Thread(target=_watch, name="qd-slow-compile", daemon=True)
        _watcher.start()


def _watch() -> None:
    """Print the line for the first compile that is slow; end when nothing was compiled for long."""
    while not _shown:
        known = list(_running.values())
        for kernel, began in known:
            if monotonic() - began >= _AFTER:
                _show(kernel)
                return
        _pause.wait(min([_AFTER, *[began + _AFTER - monotonic() for _, began in known]]))
        if not known and not _running:
            return


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # closed, or replaced by the program
        return False


def _show(kernel: str) -> None:
    global _shown
    if not _shown:
        _shown = True
        from ..cache.last_run import compiled_last_time

        number, known = _numbers.get(kernel, 1), compiled_last_time()
        place = f"kernel {number} of {known}" if number <= known else f"number {number} of this run"
        log.info(f"compiling kernel {kernel!r} ({place}), for {_AFTER:.0f} s now")
