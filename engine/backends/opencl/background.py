"""The code of kernels with two tiers on PoCL: the first tier at once, full code by a process::

    lower ── OpenCL C ──▶ Making: nothing is built yet
    load ──▶ TieredExecutable: its first launch builds the first tier, without PoCL's optimiser, and
             begins full code; or waits for full code, if its work is not known to be small
    the helper process ── build, a launch that does nothing ──▶ a binary: see `full`
    the thread ── the binary, a launch that does nothing ──▶ full code ──▶ the executable

The thread begins full code when no call needs code, since a computer may have one processor. What
it does itself takes milliseconds.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final

from ... import logs as log
from ...named_tuple import NamedTuple
from ..cpu import background as helping
from ..driver_thread import DriverThread
from . import build, full

if TYPE_CHECKING:
    from ...config import CompileConfig
    from ..tiers import Order
    from .context import Context
    from .tiered import TieredExecutable
    from .work import Work

__all__ = ["Making", "OpenclFirst", "awaited", "expects_code", "launched", "submit"]

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


_awaited: Final[dict[object, None]] = {}
"""Calls that wait for code now."""
_launches: Final[deque[Any]] = deque()
"""Events of launches whose code the driver compiles first."""
_needed = 0.0
"""When a call last needed code."""


def expects_code() -> None:
    """Note that a call is about to wait for code."""
    global _needed
    _needed = monotonic()


@contextmanager
def awaited() -> Generator[None]:
    """Within it a call waits for code."""
    call = object()
    _awaited[call] = None
    try:
        yield
    finally:
        del _awaited[call]
        expects_code()


def launched(event: Any) -> None:
    """Note a launch whose code the driver compiles before it runs. event: when it has ended."""
    _launches.append(event)


def _is_quiet() -> bool:
    """True if no call has needed code for a while."""
    while _launches:
        if _runs(_launches[0]):
            expects_code()
            return False
        _launches.popleft()
    return not _awaited and monotonic() - _needed >= _QUIET


def _wait_for_quiet() -> None:
    while not _is_quiet():
        sleep(_QUIET / 4)


def submit(executable: TieredExecutable) -> None:
    """Have ``executable`` launch full code once it is made.

    Without it, as in a program that ends before, it stays in the first tier, which is right, too.
    """
    _thread.submit(executable)


def _advance(executable: TieredExecutable) -> None:
    """Begin full code, or pass it to the executable."""
    pending = executable.making.pending
    _wait_for_quiet()
    if pending.ready:
        _load(executable)
    elif executable.device.alive:
        pending.begin()
        pending.then(partial(submit, executable))


def _load(executable: TieredExecutable) -> None:
    with _thread.using():
        if executable.device.alive and not executable.is_full:
            try:
                program = executable.making.loaded()
                executable.compile(program)
                executable.complete(program)
            except Exception as error:
                log.debug(f"kernel {executable.meta.name} stays in the first tier: {error!r}")


_thread: Final = DriverThread("qd-opencl", _advance)
helping.ENDED.append(full.sweep)
