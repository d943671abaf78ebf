"""Launches of first-tier code: to the end, and interrupted at some point with full code after it;
on OpenCL, where no launch is interrupted, one of each.

Without ``fast_math`` both must leave the same bits, on one thread. The number of operations after
which a launch is interrupted follows from the text of the kernel.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from qd_studio.engine.backends.base import find
from qd_studio.engine.backends.cpu import background, first_tier
from qd_studio.engine.backends.injected import InjectedCache
from qd_studio.engine.backends.llvm import text
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.ir import Func

__all__ = ["interrupted", "launches", "launches_on_opencl", "no_helper"]

_OPERATIONS = (0, 1, 5, 25, 100, 1000)


class _Tiered(InjectedCache):
    tiered = True


@contextmanager
def _patched(*values: tuple[Any, str, Any]) -> Iterator[None]:
    saved = [(module, name, getattr(module, name)) for module, name, _ in values]
    for module, name, value in values:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in saved:
            setattr(module, name, value)


@contextmanager
def no_helper() -> Iterator[None]:
    """Full code is made in this process, when it is needed and not before."""
    _let_thread_end()
    with _patched(
        (background, "_ensure_thread", lambda: None), (first_tier, "_alone", lambda: True)
    ):
        try:
            yield
        finally:
            background._queue.clear()


def _let_thread_end(seconds: float = 30.0) -> None:
    """Wait until the thread of earlier programs has passed its jobs on; it waits for no more."""
    late = time.monotonic() + seconds
    while background._thread is not None and time.monotonic() < late:
        with background._lock:
            background._wake.notify_all()
        time.sleep(0.001)


@contextmanager
def interrupted(operations: int) -> Iterator[None]:
    """A launch of first-tier code that is generated and run here stops after so many."""
    with _patched(
        (text, "START", operations), (first_tier, "_LEAST", -1.0), (first_tier, "_MOST", -1.0)
    ):
        yield


def launches(
    func: Func, config: CompileConfig, launch: Callable[[Any], Any]
) -> tuple[Any, Any, bool] | None:
    """What ``launch`` returns for first-tier code, and for an interrupted launch of it; whether
    that one was interrupted. None for a kernel that has no first tier."""
    cpu, text = find("cpu"), str(func.name)
    operations = _OPERATIONS[zlib.crc32(text.encode()) % len(_OPERATIONS)]
    with no_helper():
        made = cpu.lower(func, config, _Tiered())
        if made.first is None:
            return None
        executable = cpu.load(made, _Tiered())
        if not isinstance(executable, first_tier.TieredExecutable):
            return None  # a helper of an earlier program was quicker
        whole = launch(executable)
        with interrupted(operations):
            executable = cpu.load(cpu.lower(func, config, _Tiered()), _Tiered())
            stopped = launch(executable)
        return whole, stopped, getattr(executable, "is_full", True)


def launches_on_opencl(
    func: Func, config: CompileConfig, launch: Callable[[Any], Any]
) -> tuple[Any, Any, bool] | None:
    """As `launches`, on PoCL: what first-tier code returns, and full code that replaces it."""
    from qd_studio.engine.backends.opencl import background, tiered

    opencl = find("opencl")
    with _patched((tiered, "_MOST", 1 << 62), (background, "submit", lambda executable: None)):
        executable: Any = opencl.load(opencl.lower(func, config, _Tiered()), _Tiered())
        if not isinstance(executable, tiered.TieredExecutable):
            return None
        first = launch(executable)
        if executable.is_full:
            return None  # its work is not known
        executable.complete(executable.making.program())
        return first, launch(executable), False
