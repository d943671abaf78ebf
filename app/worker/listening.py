"""The half of a worker client that hears: what each message changes in the session, and the events
that its owner gets for it. The other half, `client`, hands out jobs and minds the process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

import msgspec

from ...engine.inspect.record import ErrorRecord, LogLine, Record
from ..core.session import Session
from . import events
from .events import Event
from .exit_status import why_stale
from .pace import Pace
from .packing import Unpacker
from .protocol import (
    DeviceLost,
    FileLoaded,
    FromWorker,
    Hello,
    Job,
    JobDone,
    KernelDone,
    Looked,
    Problem,
    Quarantined,
    Studied,
    Working,
)  # fmt: skip

__all__ = ["Listener"]


class Listener:
    """See the module docstring. All but `session` is for the client's thread."""

    def __init__(
        self, on_event: Callable[[Event], object], session: Session, template: Job
    ) -> None:
        self.template = template
        self._emit: Final = on_event
        self._session = session
        self._job: Job | None = None
        self._job_began = 0.0
        self._unpacker = Unpacker()
        self._pace: Final = Pace()
        self._final: set[str] = set()
        self._quarantined: tuple[Quarantined, ...] = ()
        self._looks: dict[str, bytes] = {}
        self._step: Working | None = None
        self._deadline: float | None = None
        self._late_reason = ""
        self._restarts = self._job_restarts = 0

    # ---- what the other half does

    def _follow(self) -> None:
        """Watch the files as they are known now."""
        raise NotImplementedError

    def _done(self, message: JobDone) -> None:
        """The job is over."""
        raise NotImplementedError

    # ---- messages

    def _arm(self, seconds: float, reason: str) -> None:
        """Kill the worker for ``reason`` if nothing disarms or re-arms the clock in time."""
        self._deadline = time.monotonic() + seconds
        self._late_reason = reason

    def _handle(self, message: FromWorker) -> None:
        if isinstance(message, Hello):
            self._session = replace(self._session, tool=message.tool)
            self._emit(events.Started(message.pid, self._restarts))
            return
        if self._job is None or message.job != self._job.id:
            return  # of a job that was given up
        match message:
            case Working():
                self._step = message
                self._deadline = None
                if message.limit_s:
                    reason = message.late_text()
                    self._arm(message.limit_s + self.template.limits.grace_s, reason)
                if not self._job.longer:  # the rows report it
                    self._emit(self._pace.working(message))
            case FileLoaded():
                self._loaded(message)
            case KernelDone():
                update = self._unpacker.unpack(message.kernel, message.again)
                self._pace.updated(update, message.final)
                self._session = self._session.kernel_updated(update, message.final)
                if message.final:
                    self._final.add(message.kernel.id)
                kernel = self._session.kernel(message.kernel.id)
                if kernel is not None:
                    self._emit(events.KernelUpdated(kernel, message.final))
                    if kernel.stale and message.final:
                        why = why_stale(kernel.errors, kernel.name)
                        self._emit(events.Stale((kernel.id,), why))
            case Looked():
                self._looks = {**self._looks, **message.looks}
            case Studied():
                self._emit(events.Studied(message.kernel, message.answer))
            case Problem():
                self._session = self._session.file_problem(message.path, message.error)
                self._emit(events.Failed(message.error))
            case DeviceLost():  # a new worker does what is left, but not the launch at fault
                self._quarantined, self._step = (*self._quarantined, *message.quarantined), None
                self._job = msgspec.structs.replace(self._job, files=message.files)
                self._job_restarts = 0
            case JobDone():
                self._done(message)

    def _loaded(self, message: FileLoaded) -> None:
        self._pace.loaded(message.path, message.kernels)
        if message.config:
            self._session = replace(self._session, config=message.config)
        path, files, errors = message.path, message.files, message.errors
        now = self._session
        if message.ok:
            kernels, partial = message.kernels, message.partial
            now = now.file_loaded(path, files, kernels, errors, self._final, partial)
        else:
            now = now.file_failed(path, files, errors)
        self._session = now
        for error in message.errors:
            self._emit(events.Failed(error))
        if not message.ok:
            self._emit_stale(path, errors)
        self._follow()
        self._emit(events.RecordUpdated(self._record(), complete=False))

    def _emit_stale(self, path: str, errors: tuple[ErrorRecord, ...]) -> None:
        if ids := self._session.ids_in({path}):
            self._emit(events.Stale(ids, why_stale(errors, os.path.basename(path))))

    def _record(self, elapsed_ms: float | None = None) -> Record:
        if elapsed_ms is None:
            elapsed_ms = (time.monotonic() - self._job_began) * 1e3
        created = datetime.now(UTC).isoformat(timespec="seconds")
        return self._session.record(created, round(elapsed_ms, 3))

    def _log(self, lines: Iterable[LogLine]) -> None:
        for line in lines:
            self._session = self._session.logged(line)
            self._emit(events.Log(line))
