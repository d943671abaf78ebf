"""Loads the code generator in threads, while the program still runs Python code of its own.

Loading LLVM is a fifth of the first compile, and most of that time the thread holds no lock of
Python. It starts with the program where no cache can have its kernels, else at the first miss: a
program whose kernels are all in the caches never loads LLVM.

The thread only loads the library and asks for the target. Another one imports the engine's own
modules, where the program starts without a cache: a quarter of the first compile of a small kernel.
Nothing waits for them but what needs LLVM or these modules, and a fork: the child would lack the
threads, which may hold locks of imports.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from typing import Final

from ..backends.base import FORK_HANDLERS
from ..backends.llvm import toolchain

__all__ = ["start"]

_BACKENDS: Final = frozenset({"cpu", "cuda"})
_FORK: Final = 5.0
"""The most seconds for which a fork waits."""

_MODULES: Final = (
    "frontend.build", "frontend.pure_calls", "passes", "cache.keys", "runtime.about",
)  # fmt: skip
_MODULES_OF: Final = {
    "cpu": ("backends.llvm.kernel",),
    "cuda": ("backends.llvm.gpu", "backends.cuda.dialect", "backends.cuda.nvptx", "cache.ptx",
             "backends.cuda.replay", "runtime.stub"),
}  # fmt: skip
"""What compiles and launches a kernel is imported by."""

_threads: Final[list[threading.Thread]] = []


def start(backend: str, modules: bool = False) -> None:
    """Load what a backend needs to generate code, unless it is there or under way.

    modules: of the engine, too.
    """
    if backend in _BACKENDS and not _threads and not toolchain.is_loaded():
        _begin(_load)
        if modules:
            _begin(lambda: _import(backend))


def _begin(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work, name="qd-preload", daemon=True)
    _threads.append(thread)
    thread.start()


def _import(backend: str) -> None:
    engine = __name__.rpartition(".runtime.")[0]
    for name in (*_MODULES, *_MODULES_OF[backend]):
        try:
            importlib.import_module(f"{engine}.{name}")
        except Exception:
            return  # as below


def _load() -> None:
    try:
        toolchain.host_target()
    except Exception:
        return  # the compile raises it again, where the user sees it


def _before_fork() -> None:
    for thread in _threads:
        if thread is not threading.current_thread():
            thread.join(_FORK)


def _nothing() -> None:
    pass


FORK_HANDLERS.append((_before_fork, _nothing, _nothing))
