"""The worker's end of the pipes, and the steps of a job as they are reported through them.

Limits of time are enforced twice: here by an alarm, which raises `StepLimit` in the user's code and
so can name the line that does not end, and by the studio, which kills a worker that nothing can
interrupt. A newer job interrupts code of the user the same way.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec

from ...engine import inspect
from ...engine.inspect.record import ErrorRecord, KernelRecord
from .packing import Packer
from .protocol import (
    AFRESH,
    Counts,
    DeviceLost,
    FlightRecorder,
    FromWorker,
    Job,
    KernelDone,
    Quarantined,
    ToWorker,
    Unframer,
    Working,
    frame,
    note_of,
)

if TYPE_CHECKING:
    from .locks import Turns

__all__ = ["Channel", "JobSteps", "Superseded", "flush"]

_decoder: Final = msgspec.msgpack.Decoder(ToWorker)
# Steps that run code of the user in Python, which a newer job may interrupt anywhere.
_INTERRUPTIBLE: Final = frozenset({"import", "run", "make", "check"})
# Parts of a compile other than passes: those that last.
_PARTS: Final = {"frontend": "building IR", "codegen": "generating code", "load": "loading code"}
# A stop in the middle of these may leave the compiler in pieces: start afresh after the job.
_FRAGILE: Final = frozenset({"compile", "launch"})


class Superseded(BaseException):
    """A newer job waits; the one in work is given up."""


class Channel:
    """The worker's end of the pipes."""

    def __init__(self, requests: int, messages: int) -> None:
        self._requests = requests
        self._messages = messages
        self._jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._arrived = threading.Event()
        self.newest = 0
        self.sending = False
        self.interrupt: Callable[[], None] = lambda: None
        threading.Thread(target=self._read, name="requests", daemon=True).start()

    def _read(self) -> None:
        """Queue incoming jobs. The end of the pipe (the studio is gone) ends the worker."""
        unframer = Unframer()
        while data := os.read(self._requests, 65536):
            for body in unframer.feed(data):
                message = _decoder.decode(body)
                self.newest = message.id
                self._jobs.put(message)
                self._arrived.set()
                self.interrupt()
        _end()

    def waiting(self, timeout: float) -> bool:
        """True if a job waits; one that comes within ``timeout`` seconds counts."""
        return self._arrived.wait(timeout)

    def next_job(self) -> Job:
        """The newest job, when there is one; older ones are dropped."""
        job = self._jobs.get()
        self._arrived.clear()
        while not self._jobs.empty():
            job = self._jobs.get()
        return job

    def send(self, message: FromWorker) -> None:
        """Write a whole message. If the reader is gone, there is nothing left to do."""
        data = memoryview(frame(message))
        self.sending = True
        try:
            while data:
                data = data[os.write(self._messages, data) :]
        except BrokenPipeError:
            _end()
        finally:
            self.sending = False


class JobSteps(inspect.Steps):
    """Announces and limits the steps of one job; see `engine.inspect.Steps`.

    file, kernel: what the next steps belong to, left: the files that the job still needs, with this
    one, lost_before: the error by which the file itself has lost a device; set by the runner.
    tainted: a step was stopped where that may have left something in pieces.
    """

    def __init__(self, channel: Channel, flight: FlightRecorder, job: Job) -> None:
        self._channel: Final = channel
        self._flight: Final = flight
        self.job: Final = job
        self.file = ""
        self.kernel: KernelRecord | None = None
        self.left: tuple[str, ...] = ()
        self.lost_before: Exception | None = None
        self.done = 0
        self.total = 0
        self.tainted = False
        self._kind = ""
        self._line = 0
        self._counts = Counts()
        self._packer: Final = Packer()
        self._turns: Turns | None = None
        self._limits: Final = {
            "import": job.limits.import_s,
            "run": job.limits.run_s,
            "make": job.limits.launch_s,
            "check": job.limits.launch_s,
            "compile": job.limits.compile_s,
            "launch": job.limits.launch_s,
            "interpret": job.limits.interpret_s,
        }
        signal.signal(signal.SIGALRM, self._alarm)
        channel.interrupt = self._interrupt

    @contextmanager
    def step(
        self, stage: str, text: str, *, backend: str = "", kind: str = "", note: str = "",
        loop: int = 0,
    ) -> Generator[None, None, None]:  # fmt: skip
        self.give_way()
        self._line = 0
        self._flight.note("")
        self._count(Counts())
        limit = self._limits.get(kind, 0.0)
        kernel = self.kernel
        self._channel.send(
            Working(
                job=self.job.id,
                stage=stage,
                text=text,
                limit_s=limit,
                file=self.file,
                kernel="" if kernel is None else kernel.id,
                kernel_name="" if kernel is None else kernel.name,
                backend=backend,
                line=0 if kernel is None else kernel.line,
                done=self.done,
                total=self.total,
                note=note,
                loop=loop,
            )
        )
        self._what, self._note, self._limit, self._kind = text, note, limit, kind
        if limit:
            signal.setitimer(signal.ITIMER_REAL, limit)
        try:
            yield
        finally:
            self._kind = ""
            signal.setitimer(signal.ITIMER_REAL, 0)
            if kernel is not None:
                self.end_without_device(backend)

    def turn(self) -> None:
        """Let other jobs have this machine, where it is shared, and wait for a processor."""
        if self.job.locks:
            with self.step("worker", "waiting for a processor"):
                self._taken().compute()

    @contextmanager
    def alone(self) -> Generator[None, None, None]:
        """Enclose what is timed: no other job runs on these processors or this device."""
        if not self.job.locks:
            yield
            return
        with self.step("worker", "waiting until other jobs leave the machine"):
            self._taken().measure()
        try:
            yield
        finally:
            self.end_turn()
        self.turn()

    def end_turn(self) -> None:
        """Release the processors and the device."""
        if self._turns is not None:
            self._turns.release()

    def _taken(self) -> Turns:
        if self._turns is None:
            from .locks import Turns

            self._turns = Turns(self.job.locks)
        return self._turns

    def end_without_device(self, backend: str = "") -> None:
        """End the process if a device is of no more use to it, be it after a launch of a kernel.

        A new process gets the device back, and does the rest of the job without that launch.
        backend: the one of the step, if it has one.
        """
        lost, kernel = inspect.lost_device(), self.kernel
        if lost is None or (kernel is not None and lost is self.lost_before):
            return
        quarantined: list[Quarantined] = []
        if kernel is not None:
            asked = [name for name in self.job.backends if name.partition(":")[0] == "cuda"]
            for name in [backend] if backend in asked else asked or ["cuda"]:
                error = inspect.error_record(lost, "launch", kernel=kernel.name, backend=name)
                quarantined.append(
                    Quarantined(
                        file=self.file, kernel=kernel.id, backend=name, stage="launch", error=error
                    )
                )
        self.send(DeviceLost(job=self.job.id, files=self.left, quarantined=tuple(quarantined)))
        os._exit(AFRESH)

    def _alarm(self, number: int, frame: Any) -> None:
        kind = self._kind
        if not kind:
            return
        if self._channel.sending:
            # Half a message would be the end of all others: come back when it is out.
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            return
        if self.superseded and kind in _INTERRUPTIBLE:
            raise Superseded
        self.tainted |= kind in _FRAGILE
        raise inspect.StepLimit(self._limit, self._what, self._note)

    def _interrupt(self) -> None:
        if self._kind in _INTERRUPTIBLE:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)

    @property
    def superseded(self) -> bool:
        """True if a newer job waits."""
        return self._channel.newest > self.job.id

    def give_way(self) -> None:
        """Raise Superseded if a newer job waits."""
        if self.superseded:
            raise Superseded

    @contextmanager
    def silent(self) -> Generator[None, None, None]:
        flush()
        null = os.open(os.devnull, os.O_WRONLY)
        saved = os.dup(1), os.dup(2)
        try:
            os.dup2(null, 1)
            os.dup2(null, 2)
            yield
        finally:
            flush()
            os.dup2(saved[0], 1)
            os.dup2(saved[1], 2)
            for fd in (null, *saved):
                os.close(fd)

    def passing(self, text: str, statements: int = 0) -> None:
        # Between two passes nothing is half done: a good moment to give up an old job.
        self.give_way()
        self._flight.note(text)
        if statements:
            self._count(Counts(self._counts.done + 1, 0, statements, "pass"))
        elif text in _PARTS:
            self._count(Counts(0, 0, self._counts.statements, _PARTS[text]))

    def counted(self, done: int, total: int = 0, unit: str = "") -> None:
        self.give_way()
        self._count(Counts(done, total, 0, unit))

    def _count(self, counts: Counts) -> None:
        self._counts = counts
        self._flight.count(counts)

    def at_line(self, line: int) -> None:
        """Note the statement of the file that is executed next."""
        self._line = line
        self._flight.note(note_of(line))

    def at_launch(self, count: int) -> None:
        """Note the recorded launch that is made next."""
        self._flight.note(note_of(self._line, count))

    def quarantined(self, backend: str, stage: str) -> ErrorRecord | None:
        quarantined = self.quarantined_step(backend, stage)
        return None if quarantined is None else quarantined.error

    def quarantined_step(self, backend: str, stage: str) -> Quarantined | None:
        """The record of this step, if an earlier worker ended because of it; else None."""
        kernel = "" if self.kernel is None else self.kernel.id
        for quarantined in self.job.quarantined:
            if (quarantined.file, quarantined.kernel, quarantined.backend, quarantined.stage) == (
                self.file, kernel, backend, stage,
            ):  # fmt: skip
                return quarantined
        return None

    def updated(self, kernel: KernelRecord) -> None:
        self.give_way()
        self.send_kernel(kernel, final=False)

    def send_kernel(self, kernel: KernelRecord, final: bool) -> None:
        """Send the present record of a kernel."""
        flush()
        packed, again = self._packer.pack(kernel)
        self._channel.send(KernelDone(job=self.job.id, kernel=packed, final=final, again=again))

    def send(self, message: FromWorker) -> None:
        """Pass on another message, after what was printed before it."""
        flush()
        self._channel.send(message)


def _end() -> NoReturn:
    """End this process and what the user's code started, which is of its group."""
    if os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def flush() -> None:
    """Pass on what the user's code has printed so far."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
