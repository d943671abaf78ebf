"""Run a shell line that ends in the live studio, under a pseudo-terminal, and leave with `q`.

    python .ci/studio_smoke.py SECONDS WORD LINE

Passes when the studio draws WORD on the alternate screen within SECONDS, answers `q` by ending with
status 0, and gives the terminal back: main screen, cursor shown, mouse reports off.
"""

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

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
SHOW_CURSOR, MOUSE_ON, MOUSE_OFF = b"\x1b[?25h", b"\x1b[?1000h", b"\x1b[?1000l"
QUIET_SECONDS = 1.0
LEAVING_SECONDS = 20.0


class Terminal:
    """A child process on a pseudo-terminal of 120 by 40, and all it has written."""

    def __init__(self, line: str) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm-256color", COLUMNS="120", LINES="40")
            os.execvp("bash", ["bash", "-c", line])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.output = b""
        self.ended = False

    def read(self, seconds: float) -> bool:
        """Wait for output; False if none came in time or the child closed the terminal."""
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        self.ended = not data
        self.output += data
        return bool(data)

    def read_until(self, done, deadline: float) -> bool:
        """Collect output until `done()`; False at the deadline or the end of the child."""
        while not done():
            if self.ended or time.monotonic() > deadline:
                return False
            self.read(0.2)
        return True

    def drawn(self) -> str:
        """What was written since the alternate screen was entered, without control sequences."""
        screen = self.output.rpartition(ENTER)[2].decode("utf-8", "replace")
        return re.sub(
            r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_])", "", screen
        )

    def end(self) -> int | None:
        """The exit status; None, and the child is killed, if it does not end in time."""
        deadline = time.monotonic() + LEAVING_SECONDS
        while time.monotonic() < deadline:
            if not self.ended:
                self.read(0.1)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                while not self.ended and self.read(0.2):
                    pass
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.05)
        os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return None


def run(seconds: float, word: str, line: str) -> str | None:
    """Drive the studio once. What went wrong, or None."""
    terminal = Terminal(line)
    deadline = time.monotonic() + seconds
    fault = None
    if not terminal.read_until(lambda: ENTER in terminal.output, deadline):
        fault = "the studio did not start"
    elif not terminal.read_until(lambda: word in terminal.drawn(), deadline):
        fault = f"the studio did not draw {word!r}"
    else:
        while terminal.read(QUIET_SECONDS) and time.monotonic() < deadline:
            pass
        os.write(terminal.fd, b"q")
    if fault and not terminal.ended:
        os.killpg(terminal.pid, signal.SIGTERM)
    status = terminal.end()
    tail = terminal.output.rpartition(ENTER)[2]
    if fault is None:
        if status is None:
            fault = f"it was still there {LEAVING_SECONDS:.0f} s after `q`"
        elif status != 0:
            fault = f"it ended with status {status}"
        elif LEAVE not in tail:
            fault = "it left the alternate screen on"
        elif SHOW_CURSOR not in tail.rpartition(LEAVE)[0] + tail.rpartition(LEAVE)[2]:
            fault = "it left the cursor hidden"
        elif MOUSE_ON in tail and MOUSE_OFF not in tail.rpartition(MOUSE_ON)[2]:
            fault = "it left mouse reports on"
    if fault:
        print(terminal.output[-4000:].decode("utf-8", "replace").replace("\x1b", "^["))
    return fault


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    problem = run(float(sys.argv[1]), sys.argv[2], sys.argv[3])
    if problem:
        sys.exit(f"studio smoke: {problem}")
    print("studio smoke: drew, quit, terminal given back")
