"""Closes terminals under the studio at bad moments, and looks for what is left of it.

    python -m tests.app.closing --count 200           0 processes may be left after 2 s
    python -m tests.app.closing --count 1 --seed 17   one of them again

Each run starts the studio on a terminal of its own, with a file that does one of several things in
the worker (`FILES`), waits until it is in the middle of it, and ends it in one of the ways of
`WAYS` while it paints. Everything that was started then has a variable of the run in its
environment, by which it is found.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import pty
import random
import select
import signal
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

HEAD = """\
import numpy as np
from qd_studio import engine as qd


@qd.kernel
def scale(x: qd.types.ndarray(dtype=qd.f32, ndim=1), a: qd.f32):
    for i in range(x.shape[0]):
        x[i] = x[i] * a


@scale.workload(n=[64])
def ones(n):
    return np.ones(n, np.float32), 3.0
"""
ENDLESS = """

@qd.kernel
def endless(x: qd.types.ndarray(dtype=qd.i32, ndim=1)):
    qd.loop_config(serialize=True)
    for i in range(1):
        while x[0] >= 0:
            x[0] = (x[0] + 1) % 1000


@endless.workload(n=[1])
def zeros(n):
    return (np.zeros(n, np.int32),)
"""
FILES = {
    "plain": HEAD,
    "many": HEAD + "".join(HEAD.partition("\n\n\n")[2].replace("scale", f"k{i}") for i in range(9)),
    "endless kernel": HEAD + ENDLESS,
    "endless import": HEAD + "\nwhile True:\n    pass\n",
    # Native code that holds the interpreter: no thread of the worker runs.
    "held interpreter": HEAD + "\nimport itertools\nsum(itertools.repeat(0))\n",
    "children": "import subprocess\nsubprocess.Popen(['sleep', '1000'])\n" + HEAD,
    "printing": HEAD + "\nimport time\nwhile True:\n    print('x' * 50)\n    time.sleep(0.001)\n",
}
ENDLESS_IMPORTS = ("endless import", "held interpreter", "printing")
WAYS = ("close", "close and hang up", "SIGHUP", "SIGTERM", "shell", "deaf terminal", "SIGKILL")
STUDIO = "import sys; from qd_studio.app.cli import main; sys.exit(main())"
_KEYS = ("2", "]", "]", "[", "3", "5", "1", "?", "\x1b", "\r", "j", "k", "x", "s", "m", "z")


def marked(mark: str) -> list[str]:
    """The processes with ``QD_CLOSING=mark`` in their environment, without those that ended."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if f"QD_CLOSING={mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if state not in "ZX":
                    found.append(f"{entry.name} {state} {words[-60:]}")
    return found


def sweep(mark: str) -> None:
    """Kill all of `marked`."""
    for line in marked(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(line.split()[0]), signal.SIGKILL)


class Studio:
    """A studio that leads the session of a new terminal, below a shell where ``shell`` is set."""

    def __init__(self, path: str, mark: str, shell: bool) -> None:
        self.mark = mark
        words = [sys.executable, "-c", STUDIO, "--backend", "cpu", path]
        self.pid, self.master = pty.fork()
        if not self.pid:
            os.environ.update(
                TERM="xterm-256color", QD_CLOSING=mark, XDG_CONFIG_HOME=os.path.dirname(path)
            )
            os.chdir(os.path.dirname(path))  # for what keys save
            if shell:
                words = ["/bin/sh", "-c", '"$@"; true', "sh", *words]
            os.execv(words[0], words)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 36, 120, 0, 0))
        self.output = b""

    def pump(self, seconds: float) -> None:
        """Read what it paints."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self.master], [], [], left)[0]:
                try:
                    data = os.read(self.master, 1 << 16)
                except OSError:
                    return
                self.output += data

    def shows(self, word: bytes, seconds: float = 60.0) -> None:
        """Wait for ``word`` in what was painted so far."""
        until = time.monotonic() + seconds
        while word not in self.output:
            if time.monotonic() > until:
                raise AssertionError(f"no {word!r} after {seconds:g} s: {self.output[-500:]!r}")
            self.pump(0.02)

    def end(self, way: str) -> None:
        """End it in one of `WAYS`."""
        if way.startswith("close"):
            os.close(self.master)
            self.master = -1
            if way == "close":
                return
        number = {"SIGTERM": signal.SIGTERM, "deaf terminal": signal.SIGTERM}.get(way)
        number = signal.SIGKILL if way in ("shell", "SIGKILL") else number or signal.SIGHUP
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def left(self) -> list[str]:
        """What still runs of it."""
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)
        return marked(self.mark)

    def sweep(self) -> None:
        """Kill what is left."""
        if self.master >= 0:
            os.close(self.master)
        sweep(self.mark)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def close_one(
    seed: int, folder: Path, seconds: float = 2.0, way: str = "", kind: str = ""
) -> tuple[str, float, list[str]]:
    """(what was done, seconds until nothing was left, what was left after ``seconds``)."""
    chance = random.Random(seed)
    early = chance.random() < 0.15 and not way
    way, kind = way or WAYS[seed % len(WAYS)], kind or chance.choice(list(FILES))
    path = folder / f"kernels{seed}.py"
    path.write_text(FILES[kind])
    studio = Studio(str(path), f"{os.getpid()}.{seed}", way == "shell")
    try:
        if early:
            studio.pump(chance.random() * 0.8)
        else:
            studio.shows(b"\x1b[?1049h")
            studio.shows(b"importing" if kind in ENDLESS_IMPORTS else b"scale")
            for _ in range(chance.randrange(25)):
                os.write(studio.master, chance.choice(_KEYS).encode())
                studio.pump(chance.random() * 0.08)
            # Painting goes on; who reads nothing of it any more has a full buffer soon.
            with contextlib.suppress(OSError):
                os.write(studio.master, b"".join(chance.choice(_KEYS).encode() for _ in range(80)))
            if way == "deaf terminal":
                time.sleep(0.3)
        began = time.monotonic()
        studio.end(way)
        left = studio.left()
        while left and time.monotonic() - began < seconds:
            if studio.master >= 0 and way != "deaf terminal":
                studio.pump(0.05)
            time.sleep(0.05)
            left = studio.left()
        what = f"seed {seed}: {way}, {kind}{', early' if early else ''}"
        return what, time.monotonic() - began, left
    finally:
        studio.sweep()


def main() -> int:
    """Close many; 1 if anything was left."""
    parser = argparse.ArgumentParser(description="Close terminals under the studio.")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    bad, longest = 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.seed, options.seed + options.count):
            what, took, left = close_one(seed, Path(folder), options.seconds)
            longest = max(longest, took)
            if left:
                bad += 1
                print(f"{what}: left after {took:.2f} s:", *left, sep="\n    ", flush=True)
    print(f"{options.count} terminals closed, {bad} left something; longest {longest:.2f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
