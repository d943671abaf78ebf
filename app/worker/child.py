"""The worker process: reads jobs and works on them, one after the other.

While it has no job, it prepares: it loads what a compile will need. Garbage is collected when the
results of a job are out, so that the next job does not wait for it.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import time
from typing import Final

from ...engine import alias, inspect, windows
from .channel import Channel, JobSteps, Superseded, flush
from .protocol import FlightRecorder, Hello, JobDone
from .runner import Runner

__all__ = ["collect_rarely", "main"]

# Seconds of rest after a job before a worker that has grown ends: another save may follow at once.
_REST_S: Final = 0.3
# New objects between two collections that cannot wait for the end of the job.
_GC_EVERY: Final = 200_000
# Every compile retains some memory (interned places, machine code); a worker that has grown to
# this ends between two jobs, and the next job starts another.
_TOO_LARGE: Final = 2 << 30


def main(arguments: list[str]) -> None:
    """Work until asked to stop. arguments: three inherited descriptors (see `WorkerProcess`)."""
    # First of all: what the user's code compiles here must leave no trace in the user's caches.
    inspect.dry_caches()
    fds = [int(argument) for argument in arguments]
    for fd in fds:
        os.set_inheritable(fd, False)
    sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    channel = Channel(fds[0], fds[1])
    flight = FlightRecorder(fds[2])
    for name in ("quadrants", "taichi"):
        alias.install(name)
    windows.install()
    channel.send(Hello(pid=os.getpid(), tool=inspect.tool_info()))
    runner = Runner()
    collect_rarely()
    if not channel.waiting(0.0):
        _warm_up()
    while True:
        if not channel.waiting(_REST_S) and _resident_bytes() > _TOO_LARGE:
            os._exit(0)
        job = channel.next_job()
        steps = JobSteps(channel, flight, job)
        began = time.perf_counter()
        given_up = False
        try:
            runner.run(job, steps)
        except Superseded:
            given_up = True
        flight.note("")
        flush()
        elapsed_ms = (time.perf_counter() - began) * 1e3
        if not channel.waiting(0.0):
            gc.collect()
        channel.send(
            JobDone(
                job=job.id, elapsed_ms=elapsed_ms, given_up=given_up, unclear=len(runner.unclear)
            )
        )
        if steps.tainted or inspect.lost_device() is not None:
            os._exit(0)


def _resident_bytes() -> int:
    """Resident memory of this process; 0 where the system does not report it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def collect_rarely() -> None:
    """Look for garbage as a worker does."""
    # What is loaded now stays; looking through it again and again would find nothing.
    gc.freeze()
    gc.set_threshold(_GC_EVERY, 20, 20)


def _warm_up() -> None:
    """Load what the first compile would load, LLVM included, and run it once."""
    for name in ("frontend", "inspect.capture", "passes"):
        importlib.import_module(f"...engine.{name}", __package__)
    inspect.self_test("cpu")
    gc.collect()
    gc.freeze()
