"""Full code made in the background, by a helper process (`helper`), while first-tier code runs.

`submit` queues a `Pending`. One daemon thread starts the process, passes it one job after the other
and hands on the results: first to the executables, then to the caches. `Pending.finish` is for a
caller that needs the code now: a job that has not begun is then done in this process, and one that
has begun is waited for. So no caller waits longer than for a compile.

At the end of the process code that caches wait for is left to the helper, which writes the entries
and then ends; see `helper`. If there is none, or the user has interrupted the program, the helper
is killed.

A forked child starts no helper: a process for each of many short children costs more than it gains.
Its new kernels have full code at once; it makes that of earlier ones itself, when it is needed.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import cache
from typing import TYPE_CHECKING, Final

from ... import logs as log
from ..base import COMPILING, END_HANDLERS, FORK_HANDLERS
from .helper import BOOT, ORDERS, message, receive

if TYPE_CHECKING:
    from ..tiers import Job, Order

__all__ = ["COMPLETING", "ENDED", "Pending", "available", "background_thread", "prepare", "submit"]

_IDLE: Final = 8.0
"""Seconds without a job after which the helper is ended; less than its own limit."""
_DEATHS: Final = 3
"""Helpers that may die before there are no more first tiers in this process."""
_FIXED, _PER_LINE = 0.005, 0.00006
"""Seconds that LLVM needs for full code: for a kernel, and for each line of its text."""


class Pending:
    """The full code of one kernel, which may be in the making.

    estimate: seconds that it needs to be made. spent: seconds of launches of first-tier code so
    far; the job with most comes first, but those of programs that were reset come last. orders:
    make what the helper needs to write it to the caches that wait for it. lost: the helper could
    not make it. here: a thread of this process makes it. ready: `finish` returns at once.
    """

    def __init__(self, job: Job) -> None:
        self.estimate: Final = _FIXED + _PER_LINE * job.lines
        self.spent = 0.0
        self._program = _programs
        self.lost = False
        self.here = False
        self.orders: list[Callable[[], Order | None]] = []
        self._job: Job | None = job
        self._code: bytes | None = None
        self._error: Exception | None = None
        self._then: list[Callable[[], None]] = []
        self.ready = False

    @property
    def overdue(self) -> bool:
        """True if launches have spent the time of a compile, and no one has begun it."""
        return self.spent > self.estimate and self in _queue

    @property
    def rank(self) -> tuple[bool, float]:
        """The order in the queue, greatest first."""
        return self._program == _programs, self.spent

    def launched(self, seconds: float) -> None:
        """Count a launch of first-tier code."""
        self.spent += seconds
        self._program = _programs

    def settled(self, wait: bool) -> bool:
        """True if the full code is there. wait: until it is."""
        if wait and not self.ready:
            self.finish()
        return self.ready

    def wait(self, seconds: float) -> None:
        """Wait until the code is there, at most so long."""
        with _settled:
            _settled.wait_for(lambda: self.ready, seconds)

    def then(
        self, call: Callable[[], None], order: Callable[[], Order | None] | None = None
    ) -> None:
        """See `tiers.PendingCode`."""
        with _lock:
            if not self.ready:
                self._then.append(call)
                if order is not None:
                    self.orders.append(order)
                    _ordered[self] = None
                return
        if self._code is not None:
            call()

    def begin(self) -> None:
        """Queue the job, if no one has begun it."""
        with _lock:
            if not (self.ready or self is _running or self in _queue):
                _queue.append(self)
                _wake.notify()
                _ensure_thread()

    def finish(self) -> bytes:
        """The code, made here or waited for. Raises what LLVM raises."""
        # Not where there is code: a fork holds the lock while it waits for who passes that on.
        with COMPLETING if not self.ready else nullcontext():
            while not self.ready:
                if not self.here and (_take(self) or self.lost or _forgotten(self)):
                    self.made_here()
                else:
                    self.wait(0.1)
        if self._error is not None:
            raise self._error
        assert self._code is not None
        return self._code

    def made_here(self) -> None:
        """Make the code in this thread."""
        job = self._job
        if job is None:
            return
        try:
            self.settle(job.make())
        except Exception as error:
            self.settle(None, error)

    def settle(self, code: bytes | None, error: Exception | None = None) -> None:
        """Note the result and pass it on. The first result counts."""
        with _lock:
            if self.ready:
                return
            self._code, self._error, self._job = code, error, None
            calls, self._then, self.orders = self._then, [], []
            _ordered.pop(self, None)
            self.ready = True
            _settled.notify_all()
        for call in calls if code is not None else ():
            try:
                call()
            except Exception as failure:
                log.warn(f"full code of a kernel was not passed on: {failure!r}", once=True)

    def job(self) -> Job | None:
        return self._job

    def fell(self) -> None:
        """The helper died of this job."""
        if self._job is not None:
            self._job = self._job.safer()

    def renew(self) -> None:
        """In a forked child: it has no other thread, and the parent writes to the caches."""
        self.orders, self.here = [], False


COMPLETING: Final = threading.RLock()
"""Held while a thread needs full code: it may be inside of LLVM, for which a fork waits."""
_lock = threading.Lock()
"""Held for moments, around the state of `Pending` and of this module."""
_wake = threading.Condition(_lock)
_settled = threading.Condition(_lock)
"""Notified when some code is there: an event of its own would cost each kernel 3 us and more."""
_passing = threading.Lock()
"""Held while a result is passed on; a fork waits for it."""
_starting = threading.Lock()
"""Held while the helper is started or ended, and by the end of the program; a fork waits for it."""
_queue: Final[list[Pending]] = []
_ordered: Final[dict[Pending, None]] = {}
"""Code that caches wait for, begun or not."""
ENDED: Final[list[Callable[[], None]]] = []
"""Called once a helper was killed."""
_running: Pending | None = None
_thread: threading.Thread | None = None
_process: _Process | None = None
_programs = 0
"""Programs that have ended."""
_deaths = 0
_ending = False
_forked = False


class _Process:
    """A helper process, its pipes and its file of orders."""

    def __init__(self) -> None:
        folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        engine = __name__.rpartition(".backends.")[0]
        paths = [path for path in sys.path if os.path.isabs(path)]
        flags = ["-I", "-S", *(["-B"] if sys.dont_write_bytecode else [])]
        words = [sys.executable, *flags, "-c", BOOT, engine, folder, *paths]
        self._sending = threading.Lock()
        into, self.to = os.pipe()
        self.out, result = os.pipe()
        self._orders = _nameless()
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            actions = [
                (os.POSIX_SPAWN_DUP2, into, 0), (os.POSIX_SPAWN_DUP2, result, 1),
                (os.POSIX_SPAWN_DUP2, null, 2), (os.POSIX_SPAWN_DUP2, self._orders, ORDERS),
            ]  # fmt: skip
            try:
                self.pid = os.posix_spawn(words[0], words, os.environ, file_actions=actions)
            finally:
                os.close(null)
        except BaseException:
            self.close()
            raise
        finally:
            os.close(into)
            os.close(result)

    def close(self) -> None:
        """Close the files; the process then ends after its job."""
        for file in (self.to, self.out, self._orders):
            with suppress(OSError):
                os.close(file)

    def end(self, kill: bool = False) -> None:
        """End the process and wait for that."""
        try:
            if kill:
                import signal  # half a millisecond, and seldom needed

                os.kill(self.pid, signal.SIGKILL)
            else:
                self.close()
            os.waitpid(self.pid, 0)
        except OSError:
            pass
        if kill:
            self.close()
            for call in ENDED:
                call()

    def ask(self, pending: Pending) -> bytes | str | None:
        """The result of a job; None for one that is done by now. EOFError if it died."""
        job = pending.job()
        if job is None:
            return None
        try:
            with self._sending:
                _write(self.to, message(job.plain()))
            return receive(self.out)
        except OSError:
            raise EOFError from None

    def leave(self, jobs: list[tuple[Job, list[Order]]]) -> None:
        """Leave jobs with their orders, which the process carries out when its input ends."""
        try:
            for job, orders in jobs:
                _write(self._orders, message((job.plain(), orders)))
        except OSError as error:
            log.debug(f"some code is not kept: {error}")
        if self._sending.acquire(blocking=False):  # else the end of this process closes it
            os.close(self.to)


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _nameless() -> int:
    """A new file without a name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("qd-orders")
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


@cache
def available() -> bool:
    """True if a helper process can be started: not in a program that brings its own Python."""
    program = sys.executable or ""
    name = os.path.basename(program).lower()
    here = os.path.isfile(__file__) and not getattr(sys, "frozen", False)
    runs = name.startswith(("python", "pypy")) and os.access(program, os.X_OK)
    return here and runs and hasattr(os, "posix_spawn")


def submit(job: Job) -> Pending | None:
    """Queue a job; None where there can be no helper process."""
    pending = prepare(job)
    if pending is not None:
        pending.begin()
    return pending


def prepare(job: Job) -> Pending | None:
    """As `submit`, for a job that waits for `Pending.begin` or the end of the process."""
    if _ending or _forked or _deaths >= _DEATHS or not available():
        return None
    return Pending(job)


def _ensure_thread() -> None:
    global _thread
    if _thread is None and _queue:
        _thread = threading.Thread(target=_work, name="qd-background", daemon=True)
        _thread.start()


def background_thread() -> int | None:
    """The identity of the thread that passes jobs on; it touches no array."""
    thread = _thread
    return thread.ident if thread is not None else None


def _take(pending: Pending) -> bool:
    """Take a job out of the queue, to do it here; False if it has begun."""
    with _lock:
        if pending in _queue:
            _queue.remove(pending)
            return True
        return False


def _forgotten(pending: Pending) -> bool:
    """True if no one works on a job that was begun: its thread has not survived a fork."""
    with _lock:
        return not pending.ready and (_running is not pending or _thread is None)


def _next() -> Pending | None:
    """Wait for the next job: that of greatest `Pending.rank`, of equal ones the first."""
    global _running, _thread
    with _lock:
        if not _queue:
            _wake.wait(_IDLE)
        if not _queue or _ending:
            _thread = None
            return None
        _running = max(_queue, key=lambda pending: pending.rank)
        _queue.remove(_running)
        return _running


def _work() -> None:
    """The thread: pass jobs to a process and results on."""
    global _process, _running
    process: _Process | None = None
    while (pending := _next()) is not None:
        try:
            if process is None:
                with _starting:
                    if _ending:
                        return
                    process = _process = _Process()
            found = process.ask(pending)
        except (EOFError, OSError) as error:
            if _ending:
                return
            process = _died(process, pending, error)
            continue
        if _ending:
            return
        if found is not None:
            with _passing:
                if isinstance(found, bytes):
                    pending.settle(found)
                else:
                    _failed(pending, found)
        with _lock:
            _running = None
    with _starting:
        if process is None or _ending:
            return
        _process = None
    process.end()


def _died(process: _Process | None, pending: Pending, error: Exception) -> None:
    """The helper died, or could not be started: its kernel keeps its first-tier code."""
    global _deaths, _process, _running
    _deaths += 1
    _process = None
    if process is not None:
        process.end(kill=True)
        pending.fell()
    what = "cannot be started" if process is None else "died"
    _failed(pending, f"the process that compiles in the background {what} ({error!r})")
    with _lock:
        _running = None


def _failed(pending: Pending, why: str) -> None:
    log.warn(
        f"a kernel keeps its unoptimised code: {why}. tiered=False compiles in the process.",
        once=True,
    )
    pending.lost = True


def _program_ended() -> None:
    global _programs
    _programs += 1


def _at_exit() -> None:
    """Leave what caches wait for to the helper; see the module docstring."""
    global _ending, _process, _running
    with _starting:
        _ending = True
        with _lock:
            # Who needs the code of the running job from now on makes it.
            known = {**dict.fromkeys(_queue), **_ordered}
            waiting = [_running, *sorted(known, key=lambda pending: pending.estimate)]
            _running = None
        left = [_left(pending) for pending in dict.fromkeys(waiting) if pending is not None]
        jobs = [job for job in left if job is not None]
        # The type of the exception that has ended the main program.
        if jobs and getattr(sys, "last_type", None) is not KeyboardInterrupt:
            try:
                process = _process = _process or _Process()
            except OSError as error:
                log.debug(f"some code is not kept: {error}")
            else:
                process.leave(jobs)
        elif _process is not None:
            _process.end(kill=True)


def _left(pending: Pending) -> tuple[Job, list[Order]] | None:
    """The job of code that is not made, with the orders for it; None if no cache waits for it."""
    orders = [order for make in tuple(pending.orders) if (order := make()) is not None]
    job = pending.job()
    return (job, orders) if job is not None and orders else None


def _before_fork() -> None:
    for lock in (COMPLETING, _starting, _passing, _lock):
        lock.acquire()


def _after_fork() -> None:
    for lock in (_lock, _passing, _starting, COMPLETING):
        lock.release()


def _in_child() -> None:
    global _forked, _lock, _passing, _process, _running, _settled, _starting, _thread, _wake
    COMPLETING.release()
    _lock, _passing, _starting = threading.Lock(), threading.Lock(), threading.Lock()
    _wake, _settled = threading.Condition(_lock), threading.Condition(_lock)
    if _process is not None:
        _process.close()
    if _running is not None and not _running.ready:
        _queue.append(_running)
    _process = _running = _thread = None
    _forked = True
    for pending in {**_ordered, **dict.fromkeys(_queue)}:
        pending.renew()
    _ordered.clear()


atexit.register(_at_exit)
COMPILING.append(COMPLETING)
END_HANDLERS.append(_program_ended)
FORK_HANDLERS.append((_before_fork, _after_fork, _in_child))
