"""Ends the program when it is asked to, whatever it is doing.

SIGTERM and SIGHUP become an exception in the main thread (`Ended`), as SIGINT does, or, while the
studio is on the screen, a call that ends it in order. A terminal that is gone has the same effect:
a program that does not lead a session gets no signal for it. If the program still runs after
`GRACE_S` (a thread waits for a terminal that accepts no text, native code does not return), a
separate thread that depends on nothing else ends it: it kills the workers, restores the terminal,
and exits.

Signals reach that thread through a pipe that the interpreter writes to as they come in, so it
receives them also while the main thread does not run Python code.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, NoReturn

__all__ = ["GRACE_S", "Ended", "asking", "ending"]

GRACE_S: Final = 1.0
"""Seconds that an end in order may take."""
_ENDS: Final = (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))
# What a screen in use has set: kitty keys, alternate screen, cursor, focus, mouse, paste, wrapping.
_RESET: Final = (
    b"\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l"
    b"\x1b[?1016l\x1b[?2004l\x1b[?2048l\x1b[?7h"
)


class Ended(BaseException):
    """This process was asked to end. number: by which signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _Ending:
    """The thread and the signal handlers of one run of the program."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        for fd in (self._read, self._write):
            os.set_blocking(fd, False)
        self.asked = False
        self._ask: Callable[[int], object] | None = None
        self._terminal: tuple[int, list[Any]] | None = None
        self._old_handlers: dict[int, Any] = {}
        self._old_fd = -1
        self._thread = threading.Thread(target=self._watch, name="ending", daemon=True)

    # ---- the main thread

    def start(self) -> None:
        self._old_fd = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in set(_ENDS):
            # Ignored by who started this: as nohup does, and then it stays so.
            if signal.getsignal(number) != signal.SIG_IGN:
                self._old_handlers[number] = signal.signal(number, self._handle)
        self._thread.start()

    def stop(self) -> None:
        """Back to how it was; not once an end was asked for, since the rest may hang, too."""
        if self.asked:
            return
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._old_fd)
        os.close(self._write)
        self._thread.join()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self.asked:
            self.asked = True
            if self._ask is None:
                raise Ended(number)
            self._ask(number)

    def asking(self, ask: Callable[[int], object] | None, terminal: int) -> None:
        """Call ``ask`` from now on, from any thread; None raises again."""
        import termios

        self._ask = ask
        self._terminal = None
        if ask is not None:
            with contextlib.suppress(termios.error, OSError):
                self._terminal = (terminal, termios.tcgetattr(terminal))
        os.write(self._write, b"\0")

    # ---- the thread

    def _watch(self) -> None:
        deadline, by = float("inf"), 0
        while True:
            terminal = self._terminal
            poll = select.poll()
            poll.register(self._read, select.POLLIN)
            if terminal is not None and not by:
                poll.register(terminal[0], 0)
            left = None if not by else max(0.0, deadline - time.monotonic()) * 1000
            ready = {fd for fd, _ in poll.poll(left)}
            received = 0
            if self._read in ready:
                data = os.read(self._read, 4096)
                if not data:
                    os.close(self._read)
                    return
                received = next((n for n in data if n in (*_ENDS, signal.SIGINT)), 0)
            elif ready:
                received = self._hung_up()
            if received and not by:
                by, deadline = received, time.monotonic() + GRACE_S
            if by and time.monotonic() >= deadline:
                self._leave(by)

    def _hung_up(self) -> int:
        ask = self._ask
        if not self.asked and ask is not None:
            self.asked = True
            ask(_ENDS[1])
        return _ENDS[1]

    def _leave(self, by: int) -> NoReturn:
        # Not imported here: another thread may hold the lock of imports.
        guard = sys.modules.get(f"{__package__}.worker.guard")
        if guard is not None:
            guard.kill_all()
        if self._terminal is not None:
            with contextlib.suppress(Exception):
                _give_back(*self._terminal)
        os._exit(128 + by)


def _give_back(terminal: int, settings: list[Any]) -> None:
    """Restore the settings of a terminal, unless it accepts no text now."""
    import termios

    # From the background this would stop the process.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    termios.tcsetattr(terminal, termios.TCSANOW, settings)
    poll = select.poll()
    poll.register(terminal, select.POLLOUT)
    if poll.poll(0) == [(terminal, select.POLLOUT)]:
        os.write(terminal, _RESET)


_current: _Ending | None = None


@contextmanager
def ending() -> Generator[None, None, None]:
    """While this is entered, the program ends when it is asked to. Nothing outside of the main
    thread, which alone has to do with signals."""
    global _current
    if (
        threading.current_thread() is not threading.main_thread()
        or not hasattr(os, "killpg")
        or _current is not None
    ):
        yield
        return
    one = _current = _Ending()
    one.start()
    try:
        yield
    finally:
        _current = None
        one.stop()


@contextmanager
def asking(ask: Callable[[int], object], terminal: int) -> Generator[None, None, None]:
    """Meanwhile, call ``ask`` with the signal in place of raising `Ended`; from any thread. An end
    of ``terminal`` (a descriptor) counts as SIGHUP, and it is given back in any case."""
    one = _current
    if one is not None:
        one.asking(ask, terminal)
    try:
        yield
    finally:
        if one is not None:
            one.asking(None, terminal)
