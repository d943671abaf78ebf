"""PTX, and the driver's machine code of it, made in the background::

    lower, with cache.tiered ── LLVM IR ──▶ PTX of the first tier; full PTX by the helper process
    load ──▶ CudaExecutable: launches the first tier, and full code once it is there

    lower, with cache.ahead ── LLVM IR ──▶ PTX by a thread or the helper process
    load ──▶ LaterExecutable: its first use waits for the PTX, and for the driver

The helper process makes PTX (see `cpu.background`), so nothing waits for LLVM, and a thread has the
driver make machine code of it. The end of a program refuses modules. A fork and the end of the
process wait for the driver's compiler if that is at work.

A call of a kernel that is made ahead comes soon, often before a helper process has started. So a
short one is made by a thread of its own, for which a fork and the end of the process wait; several
are made at once, while the caller runs the passes of the next one. The job of a long one is the
first that the helper process gets.

The first tier has all our own passes and the driver's optimiser, so that launches of any length may
begin in it, but a shorter text (`gpu.GpuText.first_tier`), few of LLVM's passes and its fastest
code generator. It has no loop over the iterations of a thread where a launch can have a thread for
each (`facts.CudaTask.first`). Only products in tiles are much slower in it: where there are several
tiles, the launch waits for full code (`facts.CudaTask.tiled`). It is for the kernels that
`nvptx.has_first_tier` names. A swap only replaces the functions and the numbers of blocks that
launches refer to: tasks, arguments and buffers are the same. Full code is right with any number of
blocks, so that a launch may take that before the swap and the function after it, never the other
way round.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from math import inf
from time import sleep
from typing import TYPE_CHECKING, Any, Final

from ... import logs as log
from ...named_tuple import NamedTuple
from ..base import FORK_HANDLERS, Artifact, StackPlan
from ..cpu import background as helping
from ..driver_thread import DriverThread
from ..turns import SHORT_TURNS
from . import code

if TYPE_CHECKING:
    from ..injected import InjectedCache
    from ..tiers import Job, PendingCode
    from .device import CudaDevice
    from .executable import CudaExecutable

__all__ = ["CudaFirst", "LaterExecutable", "begin_ahead", "completed", "load_ahead"]

_QUIET: Final = 0.1
"""Seconds without a compile after which full code is loaded: the driver's compiler makes one module
at a time, and the one that a call waits for comes first."""
_FORK: Final = 5.0
"""The most seconds for which a fork waits."""
_SHORT: Final = 0.1
"""Seconds that LLVM may need in this process for code that is made ahead."""
_here: Final[dict[helping.Pending, threading.Thread]] = {}
"""Code that threads of this process make."""
_processors = threading.Semaphore(os.cpu_count() or 1)
"""More threads in LLVM than that would only make the end of the process wait for longer."""


class CudaFirst(NamedTuple):
    """See `tiers.FirstCode`. code: PTX."""

    code: bytes
    pending: PendingCode


def _quiet(device: CudaDevice) -> None:
    """Wait until no call waits for code."""
    while not device.is_quiet(_QUIET):
        sleep(_QUIET / 4)


def _complete(item: tuple[CudaExecutable, bytes]) -> None:
    executable, ptx = item
    _quiet(executable.device)
    try:
        with _loader.using(), executable.device.uses:
            executable.complete(ptx)
    except Exception as error:
        log.debug(f"kernel {executable.meta.name} stays in the first tier: {error!r}")


def completed(executable: CudaExecutable, pending: PendingCode) -> None:
    """Have ``executable`` launch full code once it is made.

    Without it, as in a program that ends before, it stays in the first tier, which is right, too.
    """
    pending.then(lambda: _loader.submit((executable, pending.finish())))


def begin_ahead(job: Job) -> helping.Pending:
    """Begin code that a call needs soon."""
    pending = helping.prepare(job)
    if pending is not None and pending.estimate > _SHORT:
        pending.spent = inf
        pending.begin()
        return pending
    pending = helping.Pending(job)
    pending.here = True
    # No daemon: LLVM must not be used once the process is ending.
    thread = threading.Thread(target=_make, args=(pending,), name="qd-ptx")
    _here[pending] = thread
    SHORT_TURNS.begin()
    thread.start()
    return pending


def _make(pending: helping.Pending) -> None:
    with _processors:
        if threading.main_thread().is_alive():  # else the process waits for this thread
            pending.made_here()
    pending.here = False
    del _here[pending]
    SHORT_TURNS.end()


def _load_ahead(item: tuple[CudaDevice, Callable[[], code.Code]]) -> None:
    device, load = item
    # The call loads it again, and says what fails.
    with suppress(Exception), _ahead.using(), device.uses:
        device.ahead.append(load())


def load_ahead(device: CudaDevice, artifact: Artifact, cache: InjectedCache) -> None:
    """Have the driver load a kernel, which is called soon, once its PTX is there."""
    first = artifact.first
    assert first is not None
    pending, name = first.pending, artifact.meta.name

    def load() -> code.Code:
        return code.load(device, pending.finish(), name, cache)

    pending.then(lambda: _ahead.submit((device, load)))


_loader: Final = DriverThread("qd-load", _complete)
_ahead: Final = DriverThread("qd-ahead", _load_ahead)


class LaterExecutable:
    """See `base.Executable`. load: makes the executable, and waits for its code."""

    def __init__(self, artifact: Artifact, load: Callable[[], CudaExecutable]) -> None:
        self.meta = artifact.meta
        self._load: Final = load

    @cached_property
    def loaded(self) -> CudaExecutable:
        return self._load()

    def arguments(self, stream: int = 0) -> Any:
        return self.loaded.arguments(stream)

    def launch(
        self, values: Sequence[Any], seed: int = 0, stacks: StackPlan | None = None,
        stream: int = 0, resume: int = 0, times: list[int] | None = None,
    ) -> tuple[Any, ...]:  # fmt: skip
        return self.loaded.launch(values, seed, stacks, stream, resume, times)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loaded, name)


def _before_fork() -> None:
    for thread in list(_here.values()):
        thread.join(_FORK)


def _in_child() -> None:
    global _processors
    for pending in _here:
        pending.renew()
    _here.clear()
    _processors = threading.Semaphore(os.cpu_count() or 1)


# The first: the others hold locks that these threads need.
FORK_HANDLERS.insert(0, (_before_fork, lambda: None, _in_child))
