"""PTX, and the driver's machine code of it, made in the background::

    lower, with cache.ahead ── LLVM IR ──▶ Making: LLVM ── PTX ──▶ the driver ──▶ a module
    load ──▶ LaterExecutable: its first use waits for both

    lower, with cache.tiered ── LLVM IR ──▶ PTX of the first tier; full PTX by the helper process
    load ──▶ CudaExecutable: launches the first tier, and full code once it is there

A call of a kernel that is made ahead comes soon, so each has a thread of its own. LLVM and the
driver's compiler need most of a compile and hold no lock of Python: several kernels are made at
once, while the caller runs the passes of the next one. A fork and the end of the process wait for
these threads, which begin nothing once the process ends; the end of a program refuses their
modules.

Full code of a kernel with two tiers is less urgent. The helper process makes its PTX (see
`cpu.background`), so nothing waits for LLVM, and a thread loads it. A fork and the end of the
process wait for the driver's compiler if that is at work.

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

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from time import sleep
from typing import TYPE_CHECKING, Any, Final

from ... import logs as log
from ...named_tuple import NamedTuple
from ..base import FORK_HANDLERS, Artifact, StackPlan
from ..turns import SHORT_TURNS
from . import code
from .device import running

if TYPE_CHECKING:
    from ..injected import InjectedCache
    from ..tiers import Order, PendingCode
    from .device import CudaDevice
    from .executable import CudaExecutable

__all__ = ["CudaFirst", "LaterExecutable", "Making", "completed", "submit"]

_FORK: Final = 5.0
"""The most seconds for which a fork waits."""

_threads: Final[set[threading.Thread]] = set()
_QUIET: Final = 0.1
"""Seconds without a compile after which full code is loaded: the driver's compiler makes one module
at a time, and the one that a call waits for comes first."""


_processors = threading.Semaphore(os.cpu_count() or 1)
"""More threads in LLVM than that would only make the end of the process wait for longer."""


class Making:
    """See `tiers.PendingCode`. make: returns the code; it may be called again after a fork."""

    def __init__(self, make: Callable[[], bytes]) -> None:
        self._make: Final = make
        self._process: Final = os.getpid()
        self._lock: Final = threading.Lock()
        self._done: Final = threading.Event()
        self._code = b""
        self._error: BaseException | None = None
        self._then: Final[list[Callable[[], None]]] = []
        _start(self._run)

    def _run(self) -> None:
        with _processors:
            if not threading.main_thread().is_alive():  # the process waits for this thread
                self._done.set()
                return
            try:
                self._code = self._make()
            except BaseException as error:
                self._error = error
        with self._lock:
            self._done.set()
        for call in self._then if self._error is None else ():
            try:
                call()
            except Exception as failure:
                log.warn(f"code of a kernel was not passed on: {failure!r}", once=True)

    @property
    def ready(self) -> bool:
        return self._done.is_set()

    def finish(self) -> bytes:
        if not self.ready and os.getpid() != self._process:
            return self._make()  # a forked child lacks the thread
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._code or self._make()

    def settled(self, wait: bool) -> bool:
        if wait:
            with suppress(Exception):
                self.finish()
        return self.ready

    def then(
        self, call: Callable[[], None], order: Callable[[], Order | None] | None = None
    ) -> None:
        with self._lock:
            if not self.ready:
                self._then.append(call)
                return
        if self._error is None:
            call()


def _start(call: Callable[[], None]) -> None:
    """Run ``call``, which raises nothing, in a thread of its own."""

    def run() -> None:
        call()
        _threads.discard(threading.current_thread())
        SHORT_TURNS.end()

    # No daemon: LLVM must not be used once the process is ending.
    thread = threading.Thread(target=run, name="qd-ptx")
    _threads.add(thread)
    SHORT_TURNS.begin()
    thread.start()


def submit(kernel: str, ptx: Callable[[], str], cache: InjectedCache) -> Making:
    """Begin the PTX of a kernel, which ``ptx`` makes, and its module on the program's device."""
    device = running()

    def make() -> bytes:
        made = ptx().encode()
        if device is not None and threading.main_thread().is_alive():
            with suppress(Exception), device.uses:  # the call loads it again, and says what fails
                device.ahead.append(code.load(device, made, kernel, cache))
        return made

    return Making(make)


class CudaFirst(NamedTuple):
    """See `tiers.FirstCode`. code: PTX."""

    code: bytes
    pending: PendingCode


class _Loader:
    """The state of the thread that loads full code.

    waiting: executables with their full code. running: there is a thread. driver: held while the
    driver compiles, and from the end of the process on.
    """

    def __init__(self) -> None:
        self.lock: Final = threading.Lock()
        self.driver: Final = threading.Lock()
        self.waiting: Final[deque[tuple[CudaExecutable, bytes]]] = deque()
        self.running = False

    def next(self) -> tuple[CudaExecutable, bytes] | None:
        """The next executable; None if there is none, and then the thread ends."""
        with self.lock:
            if self.waiting:
                return self.waiting.popleft()
            self.running = False
            return None


_loader = _Loader()


def _quiet(device: CudaDevice) -> None:
    """Wait until no call waits for code."""
    while not device.is_quiet(_QUIET):
        sleep(_QUIET / 4)


def _load_all(loader: _Loader) -> None:
    """The thread: load full code, one module after the other."""
    SHORT_TURNS.begin()
    while (found := loader.next()) is not None:
        executable, ptx = found
        _quiet(executable.device)
        try:
            with loader.driver, executable.device.uses:
                executable.complete(ptx)
        except Exception as error:
            log.debug(f"kernel {executable.meta.name} stays in the first tier: {error!r}")
    SHORT_TURNS.end()


def completed(executable: CudaExecutable, pending: PendingCode) -> None:
    """Have ``executable`` launch full code once it is made.

    Without it, as in a program that ends before, it stays in the first tier, which is right, too.
    """

    def made() -> None:
        loader = _loader
        with loader.lock:
            loader.waiting.append((executable, pending.finish()))
            begin, loader.running = not loader.running, True
        if begin:
            # A daemon: the end of the process waits for the driver alone, see `_at_exit`.
            threading.Thread(target=_load_all, args=(loader,), name="qd-load", daemon=True).start()

    pending.then(made)


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


_ending = False


def _at_exit() -> None:
    global _ending
    _loader.driver.acquire()  # for ever: the driver must not be used once the process is ending
    _ending = True


_held: Final[list[threading.Lock]] = []
"""During a fork: the lock that keeps the thread out of the driver."""


def _before_fork() -> None:
    for thread in list(_threads):
        thread.join(_FORK)
    driver = _loader.driver
    if not _ending and driver.acquire(timeout=_FORK):
        _held.append(driver)


def _in_parent() -> None:
    while _held:
        _held.pop().release()


def _in_child() -> None:
    global _loader, _processors
    _threads.clear()
    _held.clear()
    _loader = _Loader()
    _processors = threading.Semaphore(os.cpu_count() or 1)


atexit.register(_at_exit)
FORK_HANDLERS.append((_before_fork, _in_parent, _in_child))
