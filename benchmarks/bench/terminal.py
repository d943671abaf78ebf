"""A pseudo-terminal with a program in it, and a clock on what it paints."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from typing import Self

# Escape sequences: CSI, OSC (ended by BEL or ST), DCS and the like, and two-byte ones.
ESCAPE = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])"
)


class Terminal:
    """A program under a terminal of its own. `written` is all it wrote, escapes included."""

    def __init__(self, command: list[str], rows: int = 40, columns: int = 120, **environment: str):
        self.written = b""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        kept = {name: value for name, value in os.environ.items() if not name.startswith("QD_")}
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=kept | {"TERM": "xterm-256color", "COLORTERM": "truecolor"} | environment,
            start_new_session=True,
        )
        os.close(slave)

    @property
    def text(self) -> str:
        """What was written so far without escapes: words in the order they were painted."""
        return self.text_of(self.written)

    @staticmethod
    def text_of(written: bytes) -> str:
        return ESCAPE.sub(b" ", written).decode("utf-8", "replace")

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def wait(self, done: Callable[[], bool], timeout_s: float = 30.0) -> float:
        """Read until `done()`; the moment it became true. Raises TimeoutError."""
        deadline = time.perf_counter() + timeout_s
        while not done():
            left = deadline - time.perf_counter()
            ready, _, _ = select.select([self._master], [], [], max(left, 0.0))
            if not ready:
                raise TimeoutError(f"not painted after {timeout_s:g} s; last: {self.text[-300:]!r}")
            try:
                self.written += os.read(self._master, 1 << 16)
            except OSError as error:  # Linux: the last program on the terminal has ended
                raise TimeoutError(f"the program ended: {self.text[-300:]!r}") from error
        return time.perf_counter()

    def settle(self, quiet_s: float = 0.3, timeout_s: float = 30.0) -> None:
        """Read until nothing comes for a while."""
        deadline = time.perf_counter() + timeout_s
        while time.perf_counter() < deadline:
            ready, _, _ = select.select([self._master], [], [], quiet_s)
            if not ready:
                return
            self.written += os.read(self._master, 1 << 16)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the program and what it started; no other process is in its session."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(timeout=3)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._master)
