"""Compiles kernels of the CPU in the background: `qd.compile_ahead`.

A thread runs our part of the compile, holding the lock of the program like any compile; LLVM's part
is a job of the helper process (`cpu.background`), so that the program may end, fork or reset at any
time. The code waits in memory, in the layer that every compile asks first; once it is complete the
thread obtains the kernel from there, as a call would do. A call that comes earlier begins with
first-tier code, as calls of other kernels do; it waits where the kernel has none.

No error is raised here: the call compiles again, and raises it where the program can handle it.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from ..backends.base import FORK_HANDLERS
from ..backends.turns import OWN_THREADS
from .program import Program

if TYPE_CHECKING:
    from .launch import Prepared

__all__ = ["in_background", "submit"]


_AT_EXIT: Final = 1.0
"""The most seconds for which the end of the process waits for a load, usually milliseconds: the
first one compiles the functions of the thread pool, and LLVM must not be used once it is ending."""

_TURN: Final = 0.001
"""Seconds between two kernels: a call that waits for the lock of the program is next."""

_lock = threading.Lock()
_loading = threading.Lock()
"""Held while a kernel is loaded."""
_ending = False
_queue: Final[deque[Prepared]] = deque()
_thread: threading.Thread | None = None


def in_background(program: Program) -> bool:
    """True if kernels of a program are compiled in the background."""
    if program.backend.name != "cpu":
        return False
    from ..backends.cpu import background

    return background.available()


def submit(task: Prepared) -> None:
    """Compile a kernel in the background, after those that were submitted before."""
    global _thread
    with _lock:
        _queue.append(task)
        if _thread is None:
            _thread = threading.Thread(target=_work, name="qd-ahead", daemon=True)
            _thread.start()


def _work() -> None:
    """The thread: compile all kernels."""
    OWN_THREADS.add(threading.get_ident())
    try:
        _compile_all()
    finally:
        OWN_THREADS.discard(threading.get_ident())


def _compile_all() -> None:
    """Pass all kernels to the helper, then load them one by one."""
    global _thread
    waiting: deque[tuple[Prepared, Any]] = deque()
    while True:
        with _lock:
            task = _queue.popleft() if _queue else None
            if task is None and not waiting:
                _thread = None
                return
        if task is None:
            _finish(waiting)
            continue
        with suppress(Exception):
            artifact = task.begin()
            if artifact is not None:
                first = artifact.first if artifact.later is not None else None
                waiting.append((task, first and first.pending))
        time.sleep(_TURN)


def _finish(waiting: deque[tuple[Prepared, Any]]) -> None:
    """Load the kernel that was submitted first, or wait for it a little."""
    task, pending = waiting[0]
    if pending is not None and not pending.ready and not pending.lost and task.program.alive:
        pending.wait(0.05)
        return
    waiting.popleft()
    if task.program.alive and (pending is None or pending.ready):
        with _loading, suppress(Exception):
            if not _ending:
                task.finish()


def _at_exit() -> None:
    global _ending
    _ending = True
    _loading.acquire(timeout=_AT_EXIT)


def _before_fork() -> None:
    _lock.acquire()


def _after_fork() -> None:
    _lock.release()


def _in_child() -> None:
    global _loading, _lock, _thread
    _lock, _loading, _thread = threading.Lock(), threading.Lock(), None
    _queue.clear()


atexit.register(_at_exit)
FORK_HANDLERS.append((_before_fork, _after_fork, _in_child))
