"""The client's view of how far a job is: the events about it, and what it has learnt from earlier
jobs, kept in the user's state folder from start to start.

The file holds the times of the steps of the files looked at last, by the hash of their path. One
that cannot be read or written changes nothing but that there is no estimate at first.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from ...engine.inspect.record import KernelRecord
from ..core.pace import JobPace, PastTimes, Step, StepTimes
from ..core.progress import Countdown, State
from .events import Progress
from .protocol import Counts, FlightRecorder, Job, Working

__all__ = ["EVERY_S", "Pace"]

EVERY_S: Final = 0.25
"""Seconds between two looks at the flight recorder."""
_FILES: Final = 24
_KEPT_S: Final = 0.5


class _File(msgspec.Struct):
    """The content of the file on disk; the members are those of `PastTimes`."""

    version: int = 1
    steps: dict[str, StepTimes] = {}
    compiles: dict[str, tuple[int, float]] = {}
    launch_s: float | None = None
    passes: dict[str, dict[str, int]] = {}
    """The number of passes of a file's compiles, by kernel and backend."""


class Pace:
    """The progress of the jobs of one client. For its thread only."""

    def __init__(
        self, path: Path | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """path: of the file; None: the usual one."""
        self._path = path
        self._clock: Final = clock
        self._past: _File | None = None
        self._pace: JobPace | None = None
        self._keys: dict[str, str] = {}
        self._launches = False
        self._wanted: Callable[[str], bool] = lambda id: True
        self._working: Working | None = None
        self._countdown = Countdown()
        self._passes: dict[str, dict[str, int]] = {}
        self._last: Progress | None = None
        self._began = 0.0

    # ---- events of a job

    def begin(self, job: Job) -> None:
        """A job was handed out."""
        past = self._past = self._past or self._read()
        self._wanted = lambda id: id not in job.skip and _chosen(job, id)
        self._keys = {file: _key(job, file) for file in job.files}
        own = {f: past.steps[key] for f, key in self._keys.items() if key in past.steps}
        known = PastTimes(own, past.compiles, past.launch_s)
        self._launches = job.launch and job.study is None and not job.assume and job.edit is None
        self._pace = JobPace(
            job.files, known, launches=job.launch, plain=job.study is None and not job.assume,
            wanted=self._wanted,
        )  # fmt: skip
        for file, key in self._keys.items():
            self._passes.setdefault(file, dict(past.passes.get(key, {})))
        self._countdown, self._working, self._last = Countdown(), None, None
        self._began = self._clock()

    def working(self, message: Working) -> Progress:
        """A step begins."""
        self._working = message
        if self._pace is not None:
            self._pace.step(
                self._clock(),
                Step(message.file, message.kernel, message.stage, message.backend, message.text),
            )
        return self._made(Counts())

    def loaded(self, path: str, kernels: Sequence[KernelRecord]) -> None:
        """A file was imported."""
        if self._pace is not None:
            self._pace.loaded(path, {k.id: k.end_line - k.line + 1 for k in kernels})

    def updated(self, kernel: KernelRecord, final: bool) -> None:
        """The record of a kernel has come."""
        if self._working is None:
            return
        file = self._working.file
        for backend in kernel.backends:
            if backend.compile is not None and backend.status == "ok":
                name = f"{kernel.id} {backend.backend}"
                self._passes.setdefault(file, {})[name] = len(backend.compile.runs)
        if final and self._pace is not None:
            self._pace.done(file, kernel.id)

    def poll(self, flight: FlightRecorder) -> Progress | None:
        """The event to report now; None if nothing has moved that is shown."""
        if self._working is None or self._pace is None:
            return None
        counts = flight.counts()
        if counts.statements:
            self._pace.statements = counts.statements
        before, now = self._last, self._made(counts)
        return None if before is not None and before.forms == now.forms else now

    def end(self, complete: bool) -> None:
        """The job is over. complete: nothing was given up or has crashed."""
        pace, self._pace, self._working = self._pace, None, None
        if pace is None or not complete:
            return
        pace.end(self._clock())
        if self._clock() - self._began >= _KEPT_S:
            self._learn(pace)

    def _made(self, counts: Counts) -> Progress:
        """The event about the present step."""
        working, pace, now = self._working, self._pace, self._clock()
        assert working is not None
        if pace is None:
            return Progress(working.text, working.done, working.total)
        left = self._countdown.shown(now, pace.left(now))
        total = counts.total
        if counts.unit == "pass":
            name = f"{working.kernel} {working.backend}"
            total = self._passes.get(working.file, {}).get(name, 0)
        made = Progress(
            working.text, working.done, working.total,
            State(working.text, pace.whole, _part(counts, total), left, pace.so_far(now)),
        )  # fmt: skip
        self._last = made
        return made

    # ---- from start to start

    def _learn(self, pace: JobPace) -> None:
        """Keep the times of a job that is complete."""
        past = self._read()
        for file, key in self._keys.items():
            steps = pace.took.get(file)
            if steps:
                # The newest last: the oldest go first.
                before = past.steps.pop(key, {}).items()
                others = {id: times for id, times in before if id and not self._wanted(id)}
                past.steps[key] = {**others, **steps}
                past.passes[key] = self._passes.get(file, {})
        for key in list(past.steps)[:-_FILES]:
            del past.steps[key]
            past.passes.pop(key, None)
        for backend, (statements, seconds) in pace.compiles.items():
            known = past.compiles.get(backend)
            if known is None or statements * 4 >= known[0]:
                past.compiles[backend] = (statements, seconds)
        if self._launches:
            kernels = [
                sum(s for text, s in steps.items() if not text.startswith(_COMPILING))
                for several in pace.took.values()
                for id, steps in several.items()
                if id
            ]
            past.launch_s = sum(kernels) / len(kernels) if kernels else past.launch_s
        self._past = past
        self._write(past)

    def _file(self) -> Path:
        if self._path is None:
            from platformdirs import user_state_path

            self._path = user_state_path("qd-studio", appauthor=False) / "times.json"
        return self._path

    def _read(self) -> _File:
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            found = msgspec.json.decode(self._file().read_bytes(), type=_File)
            if found.version == _File().version:
                return found
        return _File()

    def _write(self, past: _File) -> None:
        path = self._file()
        new = path.with_name(f"{path.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            new.write_bytes(msgspec.json.encode(past))
            new.replace(path)


_COMPILING: Final = ("compiling ", "asking the caches ")


def _part(counts: Counts, total: int) -> str:
    """``pass 34 of 80``: how far the step is, or ``generating code``."""
    size = f", {counts.statements:,} statements" if counts.statements else ""
    if not counts.done:
        return counts.unit and counts.unit + size
    # More than before: then the number from before says nothing.
    of = f" of {total:,}" if counts.done <= total else ""
    return f"{counts.unit or 'part'} {counts.done:,}{of}{size}"


def _chosen(job: Job, id: str) -> bool:
    """True if a job looks at the kernel of this id."""
    return not job.only or bool({id, id.rpartition(":")[2].partition("@")[0]} & set(job.only))


def _key(job: Job, file: str) -> str:
    """The name of the times of a file: of what is done with it, too, but for options."""
    study = job.study.kind if job.study is not None else ""
    assume = sorted({one.text for one in job.assume})
    about: Mapping[str, Any] = {
        "file": file, "backends": job.backends, "run": job.run, "launch": job.launch,
        "study": study, "assume": assume, "edit": job.edit is not None,
    }  # fmt: skip
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:20]
