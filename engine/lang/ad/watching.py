"""The watchers of kernel calls: a tape, or forward mode.

A watcher sees the calls of the thread that began it, and decides what runs. While no thread has a
watcher, calls of kernels do not use this module at all: the first watcher sets another ``__call__``
in the class of kernels, and the last restores the previous one. In between, the previous
``__call__`` runs the kernels; it may itself be one that records calls.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, Protocol

from ...errors import QuadrantsRuntimeError
from ..kernel import Kernel

__all__ = ["Watcher", "begin", "end", "run", "unwatched", "watcher"]


class Watcher(Protocol):
    """An object that calls are reported to."""

    name: str
    """Its name in messages."""

    def called(self, kernel: Kernel, args: tuple[Any, ...]) -> Any:
        """Do the call of a kernel that is not a derivative, and return the result of the call."""
        ...


class _Here(threading.local):
    watcher: Watcher | None = None


_here: Final = _Here()
_lock: Final = threading.Lock()
_below: Any = Kernel.__call__
"""The function that calls kernels where no watcher does."""
_count = 0


def _watched(kernel: Kernel, *args: Any, **kwargs: Any) -> Any:
    """``Kernel.__call__`` while there is a watcher in some thread."""
    found = _here.watcher
    if found is None or not kernel.is_watched:
        return _below(kernel, *args, **kwargs)
    if kwargs.get("qd_stream") is not None:
        raise QuadrantsRuntimeError(
            f"qd_stream is not compatible with autograd {found.name}. Launch the kernel outside the"
            f" {found.name} context, or omit qd_stream."
        )
    kwargs.pop("qd_stream", None)
    return found.called(kernel, kernel.launchers.bind(args, kwargs) if kwargs else args)


def _count_on(step: int) -> None:
    global _below, _count
    with _lock:
        _count += step
        now: Any = Kernel.__call__
        watched: Any = _watched
        if _count == step == 1 and now is not watched:
            _below = now
            Kernel.__call__ = watched
        elif not _count and now is watched:
            Kernel.__call__ = _below


def run(kernel: Kernel, args: tuple[Any, ...]) -> Any:
    """Call a kernel without reporting the call."""
    return _below(kernel, *args)


def watcher() -> Watcher | None:
    """The watcher of this thread."""
    return _here.watcher


def begin(new: Watcher) -> None:
    """Report calls to ``new``. QuadrantsRuntimeError if this thread has a watcher."""
    old = _here.watcher
    if old is not None:
        raise QuadrantsRuntimeError(
            f"`{new.name}` cannot be entered within another `{old.name}`"
            if new.name == old.name
            else f"`{new.name}` cannot be entered within `{old.name}`",
            hint="end the outer `with` block first",
        )
    _here.watcher = new
    _count_on(1)


def end() -> None:
    """Stop reporting calls to the watcher of this thread."""
    _here.watcher = None
    _count_on(-1)


@contextmanager
def unwatched() -> Generator[None]:
    """Within this, calls are not reported to the watcher of this thread."""
    found, _here.watcher = _here.watcher, None
    try:
        yield
    finally:
        _here.watcher = found
