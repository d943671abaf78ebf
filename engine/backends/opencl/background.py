"""The code of kernels with two tiers on PoCL: the first tier at once, full code by a thread::

    lower ── OpenCL C ──▶ Making: nothing is built yet
    load ──▶ TieredExecutable: its first launch builds the first tier, without PoCL's optimiser, and
             begins full code; or waits for full code, if its work is not known to be small
    the thread ── build, a launch that does nothing ──▶ full code ──▶ the executable

PoCL compiles one program at a time, so the thread waits until no call needs code. A build makes
bitcode; work-group functions and machine code are made when a kernel is first launched, so the
thread launches it so that its tasks return at once. No lock of Python is held meanwhile. A fork
and the end of the process wait for a compile that is under way: nothing may be in the driver then.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final

from ... import logs as log
from ...named_tuple import NamedTuple
from ..base import FORK_HANDLERS
from . import build

if TYPE_CHECKING:
    from ...config import CompileConfig
    from ..tiers import Order
    from .context import Context
    from .tiered import TieredExecutable
    from .work import Work

__all__ = ["Making", "OpenclFirst", "awaited", "expects_code", "launched", "submit"]

_FORK: Final = 5.0
"""The most seconds for which a fork waits."""
_QUIET: Final = 0.1
"""Seconds without a call that needs code after which full code is made."""
_ENDING: Final = 5.0
"""Seconds in which the end of a program begins full code; a later run of it makes the rest."""


def _nothing(*_: Any) -> None:
    pass


class Making:
    """See `tiers.PendingCode`.

    context: where code is built. work: of the kernel's launches; None once full code is there.
    """

    def __init__(
        self, context: Context, source: build.Source, config: CompileConfig, work: Work
    ) -> None:
        self.work: Work | None = work
        self.context: Final = context
        context.end_by = 0.0
        self._source = source
        self._config: Final = config
        self._making: Final = threading.RLock()
        """Held while full code is made."""
        self._program: Any = None
        self._calls: Final[list[Callable[[], None]]] = []
        self._compile: Callable[[Any], None] = _nothing

    def first(self) -> Any:
        """A program without optimisation, built now."""
        made = build.build_first(self.context, self._source, self._config)
        self._release()
        return made

    def _release(self) -> None:
        """Drop the IR, which only the error of a program that does not build refers to."""
        self._source = self._source._replace(ids=(), func=None)

    def loaded(self, compile: Callable[[Any], None]) -> None:
        """An executable is there. compile: has the driver compile what its launches need."""
        self._compile = compile

    def program(self) -> Any:
        """A program of full code, built now if need be."""
        return self._made(_nothing)

    def compiled(self) -> Any:
        """As `program`; a launch compiles nothing more of one that is built now."""
        return self._made(self._compile)

    def _made(self, compile: Callable[[Any], None]) -> Any:
        with self._making:
            if self._program is None:
                made = build.build(self.context, self._source, self._config)
                compile(made)
                self._program = made
                self.work = None
                self._release()
            return self._program

    @property
    def ready(self) -> bool:
        return self._program is not None

    def finish(self) -> bytes:
        return build.binary_of(self.context, self.compiled())

    def settled(self, wait: bool) -> bool:
        if wait:
            with suppress(Exception):
                self.program()
        return self.ready

    def then(
        self, call: Callable[[], None], order: Callable[[], Order | None] | None = None
    ) -> None:
        self._calls.append(call)

    def device_ended(self) -> None:
        """The program ends: what caches wait for is made now. Before, it would cost more: asked for
        a binary, PoCL compiles for groups of any size, and pyopencl holds Python's lock."""
        calls, context = self._calls[:], self.context
        self._calls.clear()
        context.end_by = context.end_by or monotonic() + _ENDING
        in_time = self.ready or monotonic() < context.end_by
        for call in calls if context.lost is None and in_time else ():
            try:
                call()
            except Exception as error:
                log.debug(f"code of kernel {self._source.kernel} is not kept: {error!r}")
        self._compile = _nothing  # it refers to the device


class OpenclFirst(NamedTuple):
    """See `tiers.FirstCode`. The first launch decides if there is such code at all."""

    pending: Making
    code: bytes = b""


def _runs(event: Any) -> bool:
    """True if a launch has neither ended nor failed."""
    try:
        return event.command_execution_status > 0
    except Exception:  # its context is lost
        return False


class _Thread:
    """The state that the thread shares with calls.

    waiting: executables without full code. busy: held while full code is made. awaited: calls that
    wait for code now. needed: when one last did. launches: events of launches whose code the driver
    compiles first.
    """

    def __init__(self) -> None:
        self.lock: Final = threading.Lock()
        self.busy: Final = threading.Lock()
        self.waiting: Final[deque[TieredExecutable]] = deque()
        self.running = False
        self.awaited = 0
        self.needed = 0.0
        self.launches: Final[deque[Any]] = deque()

    def is_quiet(self) -> bool:
        """True if no call has needed code for a while."""
        while self.launches:
            if _runs(self.launches[0]):
                expects_code()
                return False
            self.launches.popleft()
        return not self.awaited and monotonic() - self.needed >= _QUIET

    def next(self) -> TieredExecutable | None:
        """The kernel to make code of; None if there is none, and then the thread ends."""
        with self.lock:
            if self.waiting:
                return self.waiting.popleft()
            self.running = False
            return None


_state = _Thread()


def expects_code() -> None:
    """Note that a call is about to wait for code."""
    _state.needed = monotonic()


@contextmanager
def awaited() -> Generator[None]:
    """Within it a call waits for code."""
    state = _state
    with state.lock:
        state.awaited += 1
    try:
        yield
    finally:
        with state.lock:
            state.awaited -= 1
        expects_code()


def launched(event: Any) -> None:
    """Note a launch whose code the driver compiles before it runs. event: when it has ended."""
    _state.launches.append(event)


def submit(executable: TieredExecutable) -> None:
    """Have ``executable`` launch full code once it is made.

    Without it, as in a program that ends before, it stays in the first tier, which is right, too.
    """
    state = _state
    with state.lock:
        state.waiting.append(executable)
        begin, state.running = not state.running, True
    if begin:
        try:
            # No daemon: PoCL must not be used once the process is ending.
            threading.Thread(target=_work, args=(state,), name="qd-opencl").start()
        except RuntimeError:  # the process is ending
            state.running = False


def _quiet(state: _Thread) -> bool:
    """Wait until no call needs code; False if the process ends before."""
    main = threading.main_thread()
    while main.is_alive():
        if state.is_quiet():
            return True
        sleep(_QUIET / 4)
    return False


def _work(state: _Thread) -> None:
    """The thread: make full code, and pass it to executables."""
    while (executable := state.next()) is not None:
        if not _quiet(state):
            return
        with state.busy:
            if not executable.device.alive:
                continue
            try:
                executable.complete(executable.making.compiled())
            except Exception as error:
                log.debug(f"kernel {executable.meta.name} stays in the first tier: {error!r}")


_held: Final[list[threading.Lock]] = []
"""During a fork: the lock that keeps the thread out of the driver."""


def _before_fork() -> None:
    busy = _state.busy
    if busy.acquire(timeout=_FORK):
        _held.append(busy)


def _in_parent() -> None:
    while _held:
        _held.pop().release()


def _in_child() -> None:
    global _state
    _held.clear()
    _state = _Thread()


FORK_HANDLERS.append((_before_fork, _in_parent, _in_child))
