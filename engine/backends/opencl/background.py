"""The code of kernels with two tiers on PoCL: the first tier at once, full code by a process::

    lower ── OpenCL C ──▶ Making: nothing is built yet
    load ──▶ TieredExecutable: its first launch builds the first tier, without PoCL's optimiser, and
             begins full code; or waits for full code, if its work is not known to be small
    the helper process ── build, a launch that does nothing ──▶ a binary: see `full`
    the thread ── the binary, a launch that does nothing ──▶ full code ──▶ the executable

The thread begins full code when no call needs code, since a computer may have one processor. What
it does itself takes milliseconds; a fork and the end of the process wait for that, since nothing
may be in the driver then.
"""

from __future__ import annotations

import atexit
import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final

from ... import logs as log
from ...named_tuple import NamedTuple
from ..base import FORK_HANDLERS
from ..cpu import background as helping
from . import build, full

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


class Making:
    """See `tiers.PendingCode`. It is ready once there is a program, built here or loaded.

    context: where code is built. pending: the binary, which caches wait for. work: of the kernel's
    launches; None once full code is there, and for a kernel without tiers.
    """

    def __init__(
        self, context: Context, source: build.Source, config: CompileConfig, work: Work | None,
        pending: helping.Pending,
    ) -> None:  # fmt: skip
        self.work: Work | None = work
        self.context: Final = context
        self.pending: Final = pending
        self._source = source
        self._config: Final = config
        self._making: Final = threading.RLock()
        """Held while full code is built or loaded."""
        self._program: Any = None

    def first(self) -> Any:
        """A program without optimisation, built now."""
        made = build.build_first(self.context, self._source, self._config)
        self._release()
        return made

    def _release(self) -> None:
        """Drop the IR, which only the error of a program that does not build refers to."""
        self._source = self._source._replace(ids=(), func=None)

    def program(self) -> Any:
        """A program of full code, built now if need be."""
        with self._making:
            if not self.obtained():
                self._keep(build.build(self.context, self._source, self._config))
            return self._program

    def obtained(self) -> bool:
        """True if there is a program; it is loaded now where the binary is there."""
        if not self.ready and self.pending.ready:
            with suppress(Exception):
                self.loaded()
        return self.ready

    def loaded(self) -> Any:
        """As `program`, from the binary, which is there."""
        with self._making:
            if self._program is None:
                code, source = self.pending.finish(), self._source
                made = build.from_binary(self.context, code, source.kernel, source.options)
                self.context.keep(build.key_of(source.text, source.options), made)
                self._keep(made)
            return self._program

    def _keep(self, program: Any) -> None:
        self._program = program
        self.work = None
        self._release()

    @property
    def ready(self) -> bool:
        return self._program is not None

    def finish(self) -> bytes:
        return self.pending.finish()

    def settled(self, wait: bool) -> bool:
        if wait:
            with suppress(Exception):
                self.program()
        return self.ready

    def then(
        self, call: Callable[[], None], order: Callable[[], Order | None] | None = None
    ) -> None:
        self.pending.then(call, order)


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

    waiting: executables without full code. busy: held while full code is loaded, and from the end
    of the process on. awaited: calls that wait for code now. needed: when one last did. launches:
    events of launches whose code the driver compiles first.
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
            # A daemon: the end of the process waits for the driver alone, see `_at_exit`.
            thread = threading.Thread(target=_work, args=(state,), name="qd-opencl", daemon=True)
            thread.start()
        except RuntimeError:  # the process is ending
            state.running = False


def _quiet(state: _Thread) -> None:
    """Wait until no call needs code."""
    while not state.is_quiet():
        sleep(_QUIET / 4)


def _work(state: _Thread) -> None:
    """The thread: begin full code, and pass it to executables."""
    while (executable := state.next()) is not None:
        pending = executable.making.pending
        _quiet(state)
        if pending.ready:
            _load(executable, state)
        elif executable.device.alive:
            pending.begin()
            pending.then(partial(submit, executable))


def _load(executable: TieredExecutable, state: _Thread) -> None:
    with state.busy:
        if executable.device.alive and not executable.is_full:
            try:
                program = executable.making.loaded()
                executable.compile(program)
                executable.complete(program)
            except Exception as error:
                log.debug(f"kernel {executable.meta.name} stays in the first tier: {error!r}")


_ending = False


def _at_exit() -> None:
    global _ending
    _state.busy.acquire()  # for ever: nothing may be in the driver once the process is ending
    _ending = True


_held: Final[list[threading.Lock]] = []
"""During a fork: the lock that keeps the thread out of the driver."""


def _before_fork() -> None:
    busy = _state.busy
    if not _ending and busy.acquire(timeout=_FORK):
        _held.append(busy)


def _in_parent() -> None:
    while _held:
        _held.pop().release()


def _in_child() -> None:
    global _state
    _held.clear()
    _state = _Thread()


atexit.register(_at_exit)
helping.ENDED.append(full.sweep)
FORK_HANDLERS.append((_before_fork, _in_parent, _in_child))
