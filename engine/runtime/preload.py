"""Loads the code generator in a thread, while the program still runs Python code of its own.

Loading LLVM and compiling the native functions that all kernels share is a fifth of the first
compile, and half of that time the thread does not hold Python's lock. It starts with the program
where no cache can have its kernels, else at the first miss: a program whose kernels are all in the
caches never loads LLVM.

Nothing waits for the thread but what needs LLVM, and a fork: the child would lack the thread, which
may hold locks of imports.
"""

from __future__ import annotations

import threading
from typing import Final

from ..backends.base import FORK_HANDLERS
from ..backends.injected import InjectedCache
from ..backends.llvm import toolchain

__all__ = ["start"]

_BACKENDS: Final = frozenset({"cpu", "cuda"})
_FORK: Final = 5.0
"""The most seconds for which a fork waits."""

_thread: threading.Thread | None = None


def start(backend: str, cache: InjectedCache) -> None:
    """Load what a backend needs to generate code, unless it is there or under way.

    cache: of a compile of the program; the native functions may be in it.
    """
    global _thread
    if backend in _BACKENDS and _thread is None and not toolchain.is_loaded():
        _thread = threading.Thread(
            target=_load, args=(backend, cache), name="qd-preload", daemon=True
        )
        _thread.start()


def _load(backend: str, cache: InjectedCache) -> None:
    try:
        toolchain.host_target()
        if backend == "cpu":
            from ..backends.cpu.native import native

            native(cache)
    except Exception:
        return  # the compile raises it again, where the user sees it


def _before_fork() -> None:
    thread = _thread
    if thread is not None and thread is not threading.current_thread():
        thread.join(_FORK)


def _nothing() -> None:
    pass


FORK_HANDLERS.append((_before_fork, _nothing, _nothing))
