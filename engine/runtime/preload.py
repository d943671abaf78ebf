"""Loads the code generator in a thread, while the program still runs Python code of its own.

Loading LLVM is a fifth of the first compile, and most of that time the thread holds no lock of
Python. It starts with the program where no cache can have its kernels, else at the first miss: a
program whose kernels are all in the caches never loads LLVM.

The thread only loads the library and asks for the target. Nothing waits for it but what needs LLVM,
and a fork: the child would lack the thread, which may hold locks of imports.

`modules` imports the engine's own part of a compile. It does so in the thread that calls it: Python
3.11 can deadlock where two threads import modules that import each other's.
"""

from __future__ import annotations

import importlib
import threading
from typing import Final

from ..backends.base import FORK_HANDLERS
from ..backends.llvm import toolchain

__all__ = ["start"]

_BACKENDS: Final = frozenset({"cpu", "cuda"})
_FORK: Final = 5.0
"""The most seconds for which a fork waits."""

_thread: threading.Thread | None = None


def start(backend: str) -> None:
    """Load what a backend needs to generate code, unless it is there or under way."""
    global _thread
    if backend in _BACKENDS and _thread is None and not toolchain.is_loaded():
        _thread = threading.Thread(target=_load, name="qd-preload", daemon=True)
        _thread.start()


_MODULES: Final = (
    "frontend.build", "frontend.pure_calls", "passes", "cache.keys", "cache.ptx", "runtime.about",
    "runtime.stub", "backends.llvm.gpu", "backends.cuda.dialect", "backends.cuda.nvptx",
    "backends.cuda.background", "backends.cuda.replay",
)  # fmt: skip
"""The modules that compile and launch a kernel on CUDA, with all that they import."""


def modules() -> None:
    """Import what a first compile for CUDA needs, while another thread loads LLVM."""
    engine = __name__.rpartition(".runtime.")[0]
    for name in _MODULES:
        importlib.import_module(f"{engine}.{name}")


def _load() -> None:
    try:
        toolchain.host_target()
    except Exception:
        return  # the compile raises it again, where the user sees it


def _before_fork() -> None:
    thread = _thread
    if thread is not None and thread is not threading.current_thread():
        thread.join(_FORK)


def _nothing() -> None:
    pass


FORK_HANDLERS.append((_before_fork, _nothing, _nothing))
