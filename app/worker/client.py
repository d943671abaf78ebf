"""The studio's side of the worker: starts it, feeds it, times it, and survives it.

    client = WorkerClient(["kernels.py"], {"fast_math": False}, ("cpu", "interp"), handle)
    client.request_refresh(["kernels.py"])    # after a save; None means everything
    client.set_config({"opt_level": 0})       # run again with other options
    client.stop()

`on_event` is called with the dataclasses of `events`, one at a time, from the client's own thread.
The methods may be called from any thread and return at once.

What happens when the worker ends or hangs
    The step it was in (stage, kernel, backend, pass) is known from the last `Working` message and
    from the flight recorder. It becomes an `ErrorRecord`; kernels that miss a new result are marked
    stale; a new worker takes over what was not done, without the step that was fatal.

What happens when a file is saved while the worker is busy
    The worker is asked to give its job up, which it does between any two passes and anywhere in
    code of the user. Code generation and launches cannot be interrupted: a worker that does not
    answer at once is killed, and the job goes to a standby one, which a client that watches its
    files keeps ready.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from selectors import EVENT_READ, DefaultSelector
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ...engine.inspect.record import ErrorRecord, RunName
from ..core.session import Session, labels_of
from . import events
from .events import Event
from .exit_status import crash_error, how_it_ended, quarantine, undone
from .listening import Listener
from .pace import EVERY_S
from .packing import Unpacker
from .process import Surroundings, WorkerProcess
from .protocol import Job, JobDone, Limits, MessageDecoder, Opening, Working
from .standby import StandbyWorker, WakePipe

if TYPE_CHECKING:
    from ..watch import Watcher

__all__ = ["Value", "WorkerClient"]

Value = str | int | float | bool

_decoder: Final = MessageDecoder()
# Seconds: for the worker to give up an old job when a new one waits, to end by itself, to come up.
_GIVE_UP_S, _END_S = 2.0, 1.0
# The same when a standby worker is there to take over.
_YIELD_S: Final = 0.03
_START_S: Final = 60.0
_MAX_RESTARTS, _TRIES = 20, 2
_SUPERSEDED, _CANCELLED = "a newer request came while it was busy", "cancelled"


class WorkerClient(Listener):
    """See the module docstring."""

    def __init__(
        self,
        files: Iterable[str | os.PathLike[str]],
        config: Mapping[str, Value] | None = None,
        backends: Iterable[str] = (),
        on_event: Callable[[Event], object] = lambda event: None,
        *,
        run: bool = False,
        launch: bool = True,
        only: Iterable[str] = (),
        limits: Limits | None = None,
        opening: Opening | None = None,
        command: Iterable[str] = (),
        watch: bool = False,
        labels: Mapping[str, str] | None = None,
        surroundings: Surroundings | None = None,
        **more: Any,
    ) -> None:
        """Start at once: a worker, and a first look at all ``files``.

        backends: names; none means all that the engine knows. run: also record the calls of the
        files' own `main`. launch: False only compiles. only: kernels to look at, by name or id.
        command: kept in the record. watch: look again after a save.
        labels: as in `Job`; default: of ``files``. surroundings: see `WorkerProcess`.
        more: fields of `Job`.
        """
        paths = tuple(dict.fromkeys(os.path.abspath(file) for file in files))
        template = Job(
            id=0, files=paths, config=dict(config or {}),
            backends=tuple(backends), run=run, launch=launch, only=tuple(only),
            limits=limits or Limits(), opening=opening or Opening(),
            labels=labels_of(paths) if labels is None else dict(labels), **more,
        )  # fmt: skip
        super().__init__(on_event, Session.of(paths, tuple(command)), template)
        self._requests: deque[Callable[[], None]] = deque()
        self._wake_pipe: Final = WakePipe()
        self._stopping = False
        self.failure: Exception | None = None  # what ended the client, if it was not asked to stop
        self._watching: Final = watch
        self._runs: Final = run
        # State of the thread below; no other thread touches it.
        self._watcher: Watcher | None = None
        self._worker: WorkerProcess | None = None
        self._selector: Final = DefaultSelector()
        self._standby: Final = StandbyWorker(self._selector, surroundings)
        self._wanted: set[str] = set(paths)
        self._last_id = 0
        self._looks_before = self._looks
        self._killed_for = ""
        self._thread = threading.Thread(target=self._run, name="worker-client", daemon=True)
        self._thread.start()

    # ---- for any thread

    @property
    def session(self) -> Session:
        """The state so far; an immutable value."""
        return self._session

    @property
    def alive(self) -> bool:
        """True if events may still come: not stopped, and no `failure`."""
        return self._thread.is_alive()

    def request_refresh(self, paths: Iterable[str] | None = None) -> None:
        """Look again at the files that ``paths`` (files or helpers) touch; None: at all."""
        chosen = None if paths is None else [os.path.abspath(path) for path in paths]
        self._ask(lambda: self._want(chosen))

    def set_config(self, config: Mapping[str, Value]) -> None:
        """Use these options from now on, and look again at everything."""
        self._ask(lambda options=dict(config): self._change(config=options))

    def set_texts(
        self, texts: Mapping[str, str], changed: Iterable[str], *, launch: bool = True
    ) -> None:
        """Look again at the files that ``changed`` touches, with unsaved texts in place of files.

        texts: all of them, by path; a save of one of these files changes nothing by itself.
        launch: of this look and those after it, as in `Job`; only with launches, main is run.
        """
        paths = [os.path.abspath(path) for path in changed]
        self._ask(lambda new=dict(texts): self._take_texts(new, paths, launch))

    def set_files(self, files: Iterable[str]) -> None:
        """Follow these files from now on; look at those that are new."""
        paths = tuple(os.path.abspath(file) for file in files)
        self._ask(lambda: self._take_files(paths))

    def set_backends(self, backends: Iterable[str]) -> None:
        """Compile for these backends from now on, and look again at everything."""
        self._ask(lambda names=tuple(backends): self._change(backends=names))

    def measure_peaks(self) -> None:
        """Look again, with `Job.peaks`."""
        self._ask(lambda: self._change(peaks=True))

    def cancel(self) -> None:
        """Give up the job in work, if there is one: what it has brought so far stays."""
        self._ask(self._cancel)

    def stop(self, timeout: float = 5.0) -> None:
        """End the worker and the client's thread. Safe to call twice, and from `on_event`."""
        self._stopping = True
        self._wake_pipe.wake()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def focus(self, kernel: str, watching: bool = False, look: RunName | None = None) -> None:
        """Set the kernel that the user looks at, which comes first from now on; see `Job`."""
        self._ask(lambda: self._set(focus=kernel, watching=watching, look=look))

    def _ask(self, request: Callable[[], None]) -> None:
        self._requests.append(request)
        self._wake_pipe.wake()

    # ---- the thread

    def _run(self) -> None:
        self._selector.register(self._wake_pipe.fd, EVENT_READ, "wake")
        try:
            self._follow()
            while not self._stopping:
                self._turn()
        except Exception as error:
            # No process, no pipes, no temporary file; or a listener that failed.
            self.failure = error
        finally:
            self._shut_down()

    def _follow(self) -> None:
        """Watch the files as they are known now."""
        if not self._watching:
            return
        if self._watcher is None:
            from ..watch import Watcher

            self._watcher = Watcher(self._saved)
        self._watcher.watch(self._session.watched())

    def _turn(self) -> None:
        """One round: requests, work to hand out, events, clocks."""
        while self._requests:
            self._requests.popleft()()
        if self._wanted:
            self._start_job()
        timeout = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        if self._step is not None:
            timeout = EVERY_S if timeout is None else min(timeout, EVERY_S)
        ready = {key.data for key, _ in self._selector.select(timeout)}
        if "wake" in ready:
            self._wake_pipe.drain()
        if "standby" in ready:
            self._standby.read(_decoder)
        worker = self._worker
        if worker is None:
            return
        for stream in ("stdout", "stderr"):
            if stream in ready:
                self._log(worker.output(stream))
        if "message" in ready:
            bodies, ended = worker.messages()
            for body in bodies:
                self._handle(_decoder.decode(body))
            if ended:
                self._worker_ended(worker)
                return
        if self._shows_steps and (moved := self._pace.poll(worker.flight)) is not None:
            self._emit(moved)
        if self._deadline is not None and time.monotonic() > self._deadline:
            self._kill(worker, self._late_reason)

    @property
    def _shows_steps(self) -> bool:
        """True if there is progress to report."""
        return self._step is not None and self._job is not None and not self._job.longer

    def _want(self, paths: list[str] | None) -> None:
        known = [state.path for state in self._session.states]
        self._wanted.update(known if paths is None else self._session.paths_touched_by(paths))

    def _saved(self, paths: list[str]) -> None:
        """Look at what the watcher reports, but for files whose text is that of an editor."""
        changed = [path for path in paths if path not in self.template.texts]
        if changed:
            self.request_refresh(changed)

    def _take_texts(self, texts: dict[str, str], changed: list[str], launch: bool) -> None:
        self._set(texts=texts, launch=launch, run=launch and self._runs)
        self._want(changed)

    def _take_files(self, paths: tuple[str, ...]) -> None:
        new = [path for path in paths if all(s.path != path for s in self._session.states)]
        self._session = self._session.following(paths)
        self._set(files=paths, labels=labels_of(paths))
        self._wanted = (self._wanted | {*new}) & {*paths}
        self._follow()
        self._emit(events.RecordUpdated(self._record(), complete=False))

    def _set(self, **fields: object) -> None:
        self.template = msgspec.structs.replace(self.template, **fields)

    def _change(self, **fields: object) -> None:
        self._set(**fields)
        self._want(None)

    def _start_job(self) -> None:
        """Hand out what is wanted, together with what an unfinished job still owes."""
        changed, self._wanted = self._wanted, set()
        files, skip = set(changed), list[str]()
        if self._job is not None:
            files |= set(self._job.files)
            skip = self._final_in(set(self._job.files) - changed)
        self._quarantined, self._job_restarts, self._looks_before = (), 0, self._looks
        self._send_job(files, skip, changed)
        before = self._session
        self._session = before.job_started(files, self._final)
        if any(s.kernels or s.errors for s in before.states):
            # What is on the screen is pending from now on, also while a slow file is imported.
            self._emit(events.RecordUpdated(self._record(), complete=False))

    def _send_job(self, files: set[str], skip: list[str], once_more: set[str]) -> None:
        if self._worker is None:
            self._spawn()
        assert self._worker is not None
        superseding = self._job is not None
        self._last_id += 1
        self._job = msgspec.structs.replace(
            self.template,
            id=self._last_id,
            files=tuple(s.path for s in self._session.states if s.path in files),
            skip=tuple(skip),
            quarantined=self._quarantined,
            looks=self._looks if self._worker.fresh else {},
        )
        kept = {s.path for s in self._session.states} - once_more
        self._final.intersection_update(self._session.ids_in(kept))
        self._job_began = time.monotonic()
        self._step = None
        self._pace.begin(self._job)
        self._hand_out(self._job)
        if superseding:
            self._arm(_YIELD_S if self._standby.ready else _GIVE_UP_S, _SUPERSEDED)
        else:
            self._arm(_START_S, "the worker did not answer")

    def _hand_out(self, job: Job) -> None:
        assert self._worker is not None
        self._unpacker = Unpacker()
        self._worker.reset_output_limit()
        self._worker.send(job)

    def _go_on(self) -> None:
        """Let the worker launch more often what its last job left unclear; a save ends that."""
        self._last_id += 1
        self._job = msgspec.structs.replace(self.template, id=self._last_id, files=(), longer=True)
        self._hand_out(self._job)
        self._arm(_START_S, "the worker did not answer")

    def _final_in(self, paths: set[str]) -> list[str]:
        """Kernels of these files that need no further look, and neither do their gradients."""
        ids = self._final.intersection(self._session.ids_in(paths))
        found = ((id, self._session.kernel(id)) for id in ids)
        return sorted(
            id for id, k in found if k is None or not k.gradient or k.gradient in self._final
        )

    def _spawn(self) -> None:
        """Get a worker: the standby one, or a new one."""
        self._worker, hello = self._standby.take()
        for name, fd in self._worker.fds.items():
            self._selector.register(fd, EVENT_READ, name)
        self._killed_for = ""
        self._step = None
        if hello is not None:
            self._handle(hello)

    def _done(self, message: JobDone) -> None:
        if self._worker is not None:
            for stream in ("stdout", "stderr"):
                self._log(self._worker.output(stream))
            self._log(self._worker.unfinished_output())
        self._pace.end(not message.given_up)
        again = self._job is not None and self._job.longer
        self._job = None
        self._step = None
        self._deadline = None
        longer = message.unclear > 0 and not (self._wanted or self._stopping)
        self._session = self._session.job_over("this look produced no result", longer)
        self._emit(events.RecordUpdated(self._record(message.elapsed_ms), True, again))
        if longer and self._worker is not None:
            self._go_on()
        elif self._watching and not self._stopping:
            self._standby.start()

    # ---- the end of a worker

    def _cancel(self) -> None:
        if self._job is not None and self._worker is not None:
            self._wanted.clear()
            self._kill(self._worker, _CANCELLED)

    def _kill(self, worker: WorkerProcess, reason: str) -> None:
        """End the worker; the end of the message stream does the rest."""
        self._deadline = None
        self._killed_for = reason
        worker.kill()

    def _worker_ended(self, worker: WorkerProcess) -> None:
        self._log(worker.last_output())
        for fd in worker.fds.values():
            self._selector.unregister(fd)
        status = worker.reap(_END_S)
        pass_name = worker.flight.read()
        worker.close()
        self._worker = None
        self._deadline = None
        self._restarts += 1
        reason = self._killed_for or how_it_ended(status)
        job, step = self._job, self._step
        # A worker may end by itself after a job, to start afresh.
        expected = self._killed_for == _SUPERSEDED or (status == 0 and step is None)
        self._emit(events.Exited(reason, expected))
        self._pace.end(False)
        if job is None:
            return  # between jobs: the next one starts a worker
        if job.longer:
            self._again(set())  # what is known stays as it is
            return
        self._job_restarts += 1
        if self._killed_for == _SUPERSEDED:
            self._again(set(job.files))
        elif self._killed_for == _CANCELLED:
            self._again(set(), _CANCELLED)
        elif step is None and self._job_restarts <= _TRIES:
            self._again(set(job.files))  # it ended before it began with this job
        elif step is None or self._job_restarts > _MAX_RESTARTS:
            self._fail(job.files, crash_error(reason, step, pass_name))
            self._again(set())
        else:
            self._after_crash(job, step, crash_error(reason, step, pass_name), pass_name)

    def _after_crash(self, job: Job, step: Working, error: ErrorRecord, note: str) -> None:
        """Say what was lost, and let a new worker do the rest without the fatal step."""
        files = set(job.files)
        tried = any((h.file, h.stage) == (step.file, "import") for h in self._quarantined)
        self._quarantined = (*self._quarantined, quarantine(step, error, note))
        if step.kernel:
            self._session = self._session.marked_stale([step.kernel])
            self._emit(events.Failed(error))
            self._emit(events.Stale((step.kernel,), error.message))
        elif step.stage != "import":
            self._session = self._session.file_problem(step.file, error)
            self._emit(events.Failed(error))
            self._emit_stale(step.file, (error,))
        elif tried or not error.line:
            files.discard(step.file)
            self._fail((step.file,), error)
        # Else the next worker imports the file up to that line, and sends the error with it.
        self._again(files)

    def _again(self, files: set[str], reason: str = "") -> None:
        """Hand out the rest of a job to a new worker. reason: of what has no result."""
        again = self._job is not None and self._job.longer
        self._job = None
        if not files:
            self._session = self._session.job_over(reason)
            self._emit(events.RecordUpdated(self._record(), True, again))
            return
        # A kernel whose look was cut short is compared with the save before, not with this one.
        self._looks = undone(self._looks, self._looks_before, self._final)
        self._send_job(files, self._final_in(files), set())

    def _fail(self, paths: tuple[str, ...], error: ErrorRecord) -> None:
        """The files at ``paths`` have no result for this reason."""
        for path in paths:
            self._session = self._session.file_failed(path, (), (error,))
        self._emit(events.Failed(error))
        for path in paths:
            self._emit_stale(path, (error,))

    def _shut_down(self) -> None:
        if self._watcher is not None:
            self._watcher.stop()
        self._standby.stop()
        worker = self._worker
        if worker is not None:
            # Killed, not asked: it has nothing to put in order, and it may be unable to answer.
            worker.kill()
            worker.reap(_END_S)
            worker.close()
            self._worker = None
            if self.failure is None:
                self._emit(events.Exited("stopped", expected=True))
        self._selector.close()
        self._wake_pipe.close()
