"""The real program on a pseudo-terminal, with a screen that shows what it has drawn."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable

ESCAPE = re.compile(
    rb"\x1b\[([0-?]*)[ -/]*([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1bP[^\x1b]*\x1b\\"
    rb"|\x1b[ -/]*[0-OQ-Z\\^-~]"
)


class Screen:
    """As much of a terminal as the studio needs: text, cursor movement, erasing."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.cells = [[" "] * columns for _ in range(rows)]
        self.x = self.y = 0
        self._rest = b""

    def feed(self, data: bytes) -> None:
        data = self._rest + data
        self._rest = b""
        # Keep a sequence or character that is not complete yet for the next time.
        at = data.rfind(b"\x1b")
        if at >= 0 and len(data) - at < 64 and not ESCAPE.match(data, at):
            data, self._rest = data[:at], data[at:]
        at = 0
        for match in ESCAPE.finditer(data):
            self._write(data[at : match.start()])
            if match[2]:
                self._control(match[1].decode(), match[2].decode())
            at = match.end()
        self._write(data[at:])

    def _control(self, parameters: str, final: str) -> None:
        if parameters.startswith(("?", ">", "<", "=")):
            return
        numbers = [int(p) if p else 0 for p in parameters.split(";")] if parameters else []
        first = numbers[0] if numbers else 0
        if final in "Hf":
            self.y = max(1, first) - 1
            self.x = max(1, numbers[1] if len(numbers) > 1 else 1) - 1
        elif final == "J" and first == 2:
            self.cells = [[" "] * self.columns for _ in range(self.rows)]
        elif final == "K":
            for x in range(self.x, self.columns):
                self.cells[self.y][x] = " "
        elif final == "C":
            self.x += max(1, first)

    def _write(self, data: bytes) -> None:
        for char in data.decode("utf-8", "replace"):
            if char == "\n":
                self.y = min(self.y + 1, self.rows - 1)
            elif char == "\r":
                self.x = 0
            elif char >= " ":
                if self.y < self.rows and self.x < self.columns:
                    self.cells[self.y][self.x] = char
                self.x += 1

    @property
    def text(self) -> str:
        return "\n".join("".join(row).rstrip() for row in self.cells)


class Terminal:
    """``arguments`` of the interpreter, run on a pseudo-terminal of its own."""

    def __init__(self, arguments: list[str], columns: int = 120, rows: int = 36, **env: str):
        self.screen = Screen(columns, rows)
        self.output = b""
        self._master, slave = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(slave)
        self._slave = slave
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("QD_", "TEXTUAL"))}
        for name in ("NO_COLOR", "SSH_TTY", "COLUMNS", "LINES"):
            kept.pop(name, None)
        environment = kept | {"TERM": "xterm-256color", "COLORTERM": "truecolor"} | env
        self.pid = os.posix_spawn(
            sys.executable,
            [sys.executable, *arguments],
            environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, slave, fd) for fd in (0, 1, 2)],
            setsid=True,
        )
        self.status: int | None = None

    def resize(self, columns: int, rows: int) -> None:
        self.screen.columns, self.screen.rows = columns, rows
        self.screen.cells = [[" "] * columns for _ in range(rows)]
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resized(self, columns: int, rows: int) -> None:
        """Resize while the program runs."""
        self.resize(columns, rows)
        os.kill(self.pid, signal.SIGWINCH)

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], seconds)
        if ready:
            data = os.read(self._master, 65536)
            self.output += data
            self.screen.feed(data)
        return bool(ready)

    def wait(self, done: Callable[[str], bool], seconds: float = 60.0) -> str:
        """Read until the screen is as wanted; its text."""
        deadline = time.monotonic() + seconds
        while not done(self.screen.text):
            if time.monotonic() > deadline or (self.ended() and not self.read(0.1)):
                raise AssertionError(f"not so after {seconds:g} s:\n{self.screen.text}")
            self.read(0.1)
        return self.screen.text

    def shows(self, *words: str, seconds: float = 60.0) -> str:
        """Wait for all of ``words``."""
        return self.wait(lambda text: all(word in text for word in words), seconds)

    def changed(self, part: Callable[[str], str], before: str, seconds: float = 3.0) -> str:
        """Wait for ``part`` of the screen to be other than ``before``, but not for ever."""
        deadline = time.monotonic() + seconds
        while part(self.screen.text) == before and time.monotonic() < deadline:
            self.read(0.1)
        self.settle(0.02)
        return part(self.screen.text)

    def settle(self, quiet: float = 0.15) -> str:
        while self.read(quiet):
            pass
        return self.screen.text

    def stopped(self, seconds: float = 20.0) -> bool:
        """Wait until the process is stopped, as by ctrl+z."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            if pid:
                return os.WIFSTOPPED(status)
            self.read(0.05)
        return False

    def ended(self) -> bool:
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def end(self, seconds: float = 20.0) -> int:
        """Wait for the program to end; its exit status."""
        deadline = time.monotonic() + seconds
        while not self.ended():
            if time.monotonic() > deadline:
                raise AssertionError(f"still there after {seconds:g} s:\n{self.screen.text}")
            self.read(0.02)
        self.settle()
        assert self.status is not None
        return self.status

    def clean(self) -> list[str]:
        """What the program has left behind in the terminal; empty if nothing."""
        faults: list[str] = []
        for what, on, off in (
            ("the alternate screen", b"\x1b[?1049h", b"\x1b[?1049l"),
            ("a hidden cursor", b"\x1b[?25l", b"\x1b[?25h"),
            ("mouse reports", b"\x1b[?1000h", b"\x1b[?1000l"),
            ("bracketed paste", b"\x1b[?2004h", b"\x1b[?2004l"),
        ):
            if self.output.rfind(on) > self.output.rfind(off):
                faults.append(what)
        now = termios.tcgetattr(self._slave)
        if now[:4] != self.before[:4]:
            faults.append("other terminal settings")
        return faults

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.status is None:
            try:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
        os.close(self._master)
        os.close(self._slave)
