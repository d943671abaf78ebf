"""The worker process: reads jobs and works on them, one after the other."""

from __future__ import annotations

import os
import sys
import time

from ...engine import alias, inspect
from .channel import Channel, JobSteps, Superseded, flush
from .protocol import FlightRecorder, Hello, JobDone
from .runner import Runner

__all__ = ["main"]


def main(arguments: list[str]) -> None:
    """Work until told to stop. arguments: three inherited descriptors (see `WorkerProcess`)."""
    fds = [int(argument) for argument in arguments]
    for fd in fds:
        os.set_inheritable(fd, False)
    sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    channel = Channel(fds[0], fds[1])
    flight = FlightRecorder(fds[2])
    alias.install("quadrants")
    channel.send(Hello(pid=os.getpid(), tool=inspect.tool_info()))
    runner = Runner()
    while True:
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
        channel.send(JobDone(job=job.id, elapsed_ms=elapsed_ms, given_up=given_up))
        if steps.tainted:
            os._exit(0)
