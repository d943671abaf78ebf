"""One worker process, seen from the studio: its pipes, its end, and what it prints."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from typing import Final

from ...engine.inspect.record import LogLine
from . import guard
from .protocol import FlightRecorder, ToWorker, Unframer, frame

__all__ = ["LineCutter", "Surroundings", "WorkerProcess"]

Surroundings = tuple[dict[str, str], str]
"""Environment variables and the current folder."""

_READ: Final = 1 << 20


class LineCutter:
    """Turns what one stream carries into lines, up to a limit.

    Output beyond the limit is read and dropped (a full pipe would stop the worker), which is
    reported once. `reset` starts the count again.
    """

    MAX_LINES: Final = 2000
    MAX_LINE: Final = 4000

    def __init__(self, stream: str) -> None:
        self._stream = stream
        self._rest = b""
        self._lines = 0
        self._dropping = False

    def reset(self) -> None:
        """Allow the full number of lines again."""
        self._lines = 0

    def feed(self, data: bytes) -> list[LogLine]:
        """The lines that ``data`` completes; with empty ``data`` the unfinished last line, too."""
        if self._lines > self.MAX_LINES:
            # Megabytes are not worth cutting up; only where the next line starts matters.
            if data:
                self._dropping = not data.endswith(b"\n")
            return []
        *lines, rest = (self._rest + data).split(b"\n")
        if len(rest) > self.MAX_LINE or (not data and rest):
            lines, rest = [*lines, rest], b""
        self._rest = rest
        out: list[LogLine] = []
        for line in lines:
            if self._dropping:
                self._dropping = False
                continue
            self._lines += 1
            if self._lines > self.MAX_LINES:
                self._rest = b""
                text = f"{self._stream}: more than {self.MAX_LINES} lines; the rest is not shown"
                out.append(LogLine(stream="engine", text=text))
                break
            out.append(LogLine(stream=self._stream, text=self._text(line)))
        return out

    def _text(self, line: bytes) -> str:
        cut = line[: self.MAX_LINE].decode("utf-8", "replace").rstrip("\r")
        return cut + " ..." if len(line) > self.MAX_LINE else cut


class WorkerProcess:
    """Starts a worker. The three read ends do not block; ``fds`` names them for a selector.

    surroundings: the environment variables and the folder to start it with; None: our own.
    """

    def __init__(self, surroundings: Surroundings | None = None) -> None:
        variables, folder = surroundings or (None, None)
        to_worker, self._send_fd = os.pipe()
        self._message_fd, from_worker = os.pipe()
        _enlarge(from_worker)
        with tempfile.TemporaryFile(prefix="qd-studio-") as shared:
            shared.truncate(FlightRecorder.SIZE)
            self.flight: Final = FlightRecorder(shared.fileno())
            fds = (to_worker, from_worker, shared.fileno())
            self._popen = subprocess.Popen(
                # -P: a file in the current folder must not replace a module of ours.
                [sys.executable, "-P", "-m", "qd_studio.app.worker", *map(str, fds)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=fds,
                env=variables,
                cwd=folder,
                bufsize=0,
                # Not the studio's process group: keys such as ctrl+c are for the studio alone, and
                # what the user's file starts dies with the worker.
                start_new_session=True,
            )
        guard.protect(self.pid)
        os.close(to_worker)
        os.close(from_worker)
        assert self._popen.stdout is not None and self._popen.stderr is not None
        self.fds: Final = {
            "message": self._message_fd,
            "stdout": self._popen.stdout.fileno(),
            "stderr": self._popen.stderr.fileno(),
        }
        for fd in self.fds.values():
            os.set_blocking(fd, False)
        self._cutters: Final = {name: LineCutter(name) for name in ("stdout", "stderr")}
        self._unframer: Final = Unframer()
        self.ended = False
        self.fresh = True
        """Nothing has been sent to it yet."""

    @property
    def pid(self) -> int:
        return self._popen.pid

    def send(self, message: ToWorker) -> None:
        """Send; the end of a worker is noticed when its messages end, not here."""
        self.fresh = False
        data = frame(message)
        with contextlib.suppress(BrokenPipeError):
            while data:
                data = data[os.write(self._send_fd, data) :]

    def messages(self) -> tuple[list[bytes], bool]:
        """The message bodies that have come, and whether the stream is at its end."""
        data = _read(self.fds["message"])
        if data is None:
            return [], False
        return self._unframer.feed(data), not data

    def output(self, stream: str) -> list[LogLine]:
        """The lines that have come on ``stream``."""
        data = _read(self.fds[stream])
        return self._cutters[stream].feed(data) if data else []

    def unfinished_output(self) -> list[LogLine]:
        """The begun lines of all streams, as lines: the user's code is done with them."""
        return [line for cutter in self._cutters.values() for line in cutter.feed(b"")]

    def reset_output_limit(self) -> None:
        """A new job: output counts from 0."""
        for cutter in self._cutters.values():
            cutter.reset()

    def last_output(self) -> list[LogLine]:
        """Everything that is still in the pipes, unfinished lines included."""
        out: list[LogLine] = []
        for stream, cutter in self._cutters.items():
            # A bound, for the case that something the worker started lives on and writes.
            for _ in range(64):
                if not (data := _read(self.fds[stream])):
                    break
                out += cutter.feed(data)
        return out + self.unfinished_output()

    def kill(self) -> None:
        """End the worker and what it started, whatever it is doing."""
        if self._popen.returncode is None:
            # It has not been waited for yet, so its number cannot belong to another process by now.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def reap(self, timeout: float) -> int:
        """Wait up to ``timeout`` seconds for the end, then kill the process, and in any case the
        processes that it started and that still run. Return the exit status, as Popen has it."""
        deadline = time.monotonic() + timeout
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        while os.waitid(os.P_PID, self.pid, flags) is None and time.monotonic() < deadline:
            time.sleep(0.002)
        self.kill()
        guard.forget(self.pid)
        return self._popen.wait()

    def close(self) -> None:
        """Close the pipes. The process must have been reaped."""
        self.ended = True
        os.close(self._send_fd)
        os.close(self._message_fd)
        for stream in (self._popen.stdout, self._popen.stderr):
            if stream is not None:
                stream.close()


def _enlarge(fd: int) -> None:
    """Let a pipe hold a whole kernel, so that the two sides need not take turns; where the system
    has pipes of one size only, they do."""
    set_size = getattr(fcntl, "F_SETPIPE_SZ", None)
    if set_size is not None:
        with contextlib.suppress(OSError):
            fcntl.fcntl(fd, set_size, _READ)


def _read(fd: int) -> bytes | None:
    """Read what a non-blocking ``fd`` has: None for nothing now, empty at its end."""
    try:
        return os.read(fd, _READ)
    except BlockingIOError:
        return None
