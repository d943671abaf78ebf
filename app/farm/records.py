"""Divides a report into jobs, and makes one record of their results.

A file is one job for the backends that launch, whose times are compared with each other, and one
for each backend that only generates code. The record is that of a look at all files in one process,
but for the fields in `record.VOLATILE` and the command line.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ...engine import inspect
from ...engine.inspect.record import (
    BackendRecord,
    ErrorRecord,
    KernelRecord,
    LogLine,
    Record,
    ToolInfo,
)
from ..core.session import FileState, Session, labels_of
from .executors import Spec
from .jobs import FarmJob, Outcome, digests, encoded, variables, work
from .running import TRIES, JobRun

__all__ = ["collect", "job_error", "jobs_of", "merged", "outcomes", "plan"]

# Those that launch where there is a device; a worker may have one that this machine lacks.
_LAUNCHING: Final = ("cpu", "interp", "opencl", "cuda")


def plan(files: Iterable[str], settings: dict[str, Any]) -> list[FarmJob]:
    """The jobs of a report, in the order of the record. settings: of `options.settings`."""
    groups = _groups(settings["backends"])
    return [
        replace(job, backends=backends) for job in jobs_of(files, settings) for backends in groups
    ]


def jobs_of(files: Iterable[str], settings: dict[str, Any]) -> list[FarmJob]:
    """A job for each file, on all backends."""
    paths = tuple(dict.fromkeys(os.path.abspath(file) for file in files))
    labels = labels_of(paths)
    known, surroundings = digests(paths), variables(os.environ)
    return [
        FarmJob(
            file=path, backends=tuple(settings["backends"]),
            kernels=tuple(settings.get("only", ())), configs=(settings["config"],),
            run=settings["run"], limits=settings["limits"], opening=settings["opening"],
            study=settings.get("study"), labels=labels,
            digests={path: known[path]} if path in known else {},
            variables=surroundings, folder=os.getcwd(),
        )
        for path in paths
    ]  # fmt: skip


def _groups(backends: Sequence[str]) -> list[tuple[str, ...]]:
    """The backends of each job; the first group has the launches."""
    others = [name for name in backends if name not in _LAUNCHING]
    plain = [name for name in others if ":" not in name]
    alone = {info.name for info in inspect.backends(plain) if info.only}
    alone.update(name for name in others if ":" in name)
    first = tuple(name for name in backends if name not in alone)
    groups = [first] if first or not backends else []
    return groups + [(name,) for name in backends if name in alone]


def collect(
    files: Sequence[str],
    command: tuple[str, ...],
    spec: Spec,
    talk: Callable[[str], object],
    progress: Callable[[str, int, int], object],
    finished: Callable[[Record], object],
    settings: dict[str, Any],
) -> Record:
    """The record of all files; see `outcomes`. finished: called with the record of each file.

    FarmError if the farm cannot be used.
    """
    began = time.monotonic()
    jobs = plan(files, settings)
    found: dict[int, Outcome] = {}
    by_file: dict[str, list[int]] = {}
    for index, job in enumerate(jobs):
        by_file.setdefault(job.file, []).append(index)

    def kept(index: int, outcome: Outcome) -> None:
        found[index] = outcome
        mine = by_file[jobs[index].file]
        if all(i in found for i in mine):
            several = [(jobs[i], found[i]) for i in mine]
            finished(merged(several, command, settings["backends"]))

    every = outcomes(jobs, spec, talk, progress, kept)
    elapsed_ms = round((time.monotonic() - began) * 1e3, 3)
    several = list(zip(jobs, every, strict=True))
    return merged(several, command, settings["backends"], elapsed_ms)


def outcomes(
    jobs: Sequence[FarmJob],
    spec: Spec,
    talk: Callable[[str], object],
    progress: Callable[[str, int, int], object],
    kept: Callable[[int, Outcome], object] = lambda index, outcome: None,
) -> list[Outcome]:
    """The results of jobs, in their order. talk: called with each loss. progress: called with the
    state in words and the numbers of finished and of all jobs. kept: called with the index and the
    outcome of each job when it has come.

    FarmError if the farm cannot be used.
    """
    out: dict[int, Outcome] = {}

    def keep(index: int, outcome: Outcome) -> None:
        out[index] = outcome
        kept(index, outcome)

    def lost(index: int, reason: str, given_up: bool) -> None:
        if given_up:
            why = f"lost {TRIES} times with its worker, the last time: {reason}"
            keep(index, Outcome(error=why))
        else:
            talk(f"{jobs[index].title}: lost with its worker ({reason}); it runs again")

    JobRun(
        work, [(x,) for x in encoded(jobs)], spec.open,
        lambda index, answer: keep(index, msgspec.msgpack.decode(answer, type=Outcome)),
        lost,
        lambda count, running: progress(f"{running} jobs on {spec.text}", count, len(jobs)),
    ).run()  # fmt: skip
    return [out[index] for index in range(len(jobs))]


def merged(
    results: Sequence[tuple[FarmJob, Outcome]],
    command: tuple[str, ...],
    backends: Sequence[str],
    elapsed_ms: float = 0.0,
) -> Record:
    """One record of the results of jobs, in the order of the jobs."""
    by_file: dict[str, list[tuple[FarmJob, Outcome]]] = {}
    for job, outcome in results:
        by_file.setdefault(job.file, []).append((job, outcome))
    session = Session.of(by_file, command)
    states: list[FileState] = []
    log: list[LogLine] = []
    for path, several in by_file.items():
        states.append(_state(path, several, backends))
        log += _log([r for _, outcome in several for r in outcome.records])
    records = [r for _, outcome in results for r in outcome.records]
    # As in one process: the options of the last file that was loaded.
    config = next((r.config for r in reversed(records) if r.config), ())
    tool = records[0].tool if records else ToolInfo()
    session = _with(session, states=tuple(states), tool=tool, config=config, log=tuple(log))
    record = session.record(datetime.now(UTC).isoformat(timespec="seconds"), elapsed_ms)
    machines = {o.host: r.tool for _, o in results for r in o.records[:1] if r.tool != tool}
    if machines:
        others = {host: msgspec.to_builtins(found) for host, found in sorted(machines.items())}
        record = replace(record, extra={"other_machines": others})
    return record


def _with(session: Session, **fields: Any) -> Session:
    from dataclasses import replace as changed

    return changed(session, **fields)


def _state(
    path: str, several: Sequence[tuple[FarmJob, Outcome]], backends: Sequence[str]
) -> FileState:
    """One file: its kernels with the backends of all jobs."""
    records = [outcome.records[0] for _, outcome in several if outcome.records]
    errors: list[ErrorRecord] = []
    files = next((r.files for r in records if r.files), ())
    kernels = _kernels(records, backends)
    for record in records:
        errors += [error for error in record.errors if error not in errors]
    for job, outcome in several:
        if outcome.error:
            error = job_error(job, outcome.error)
            errors.append(error)
            kernels = [_without(kernel, job, error, backends) for kernel in kernels]
    return FileState(path, files, tuple(kernels), tuple(errors))


def job_error(job: FarmJob, why: str) -> ErrorRecord:
    """The error of a job without a result."""
    message = f"no result for {job.title}: {why}"
    backend = job.backends[0] if len(job.backends) == 1 else ""
    return ErrorRecord(
        kind="FarmError", message=message, stage="worker", file=job.file, backend=backend,
        rendered=f'File "{job.file}":\n{message}',
    )  # fmt: skip


def _kernels(records: Sequence[Record], backends: Sequence[str]) -> list[KernelRecord]:
    out: dict[str, KernelRecord] = {}
    for record in records:
        before = ""
        for kernel in record.kernels:
            known = out.get(kernel.id)
            if known is not None:
                out[kernel.id] = _joined(known, kernel, backends)
            else:
                out = _inserted(out, before, kernel)
            before = kernel.id
    return list(out.values())


def _inserted(
    kernels: dict[str, KernelRecord], before: str, new: KernelRecord
) -> dict[str, KernelRecord]:
    """A kernel that earlier jobs lack, after the one that it follows."""
    out: dict[str, KernelRecord] = {} if before else {new.id: new}
    for id, kernel in kernels.items():
        out[id] = kernel
        if id == before:
            out[new.id] = new
    return out


def _joined(one: KernelRecord, other: KernelRecord, backends: Sequence[str]) -> KernelRecord:
    errors = [*one.errors, *(error for error in other.errors if error not in one.errors)]
    return replace(
        one,
        backends=_ordered([*one.backends, *other.backends], backends),
        errors=tuple(errors),
        gradient=one.gradient or other.gradient,
        stale=one.stale or other.stale,
    )


def _ordered(found: Sequence[BackendRecord], names: Sequence[str]) -> tuple[BackendRecord, ...]:
    rank = {name: place for place, name in enumerate(names)}
    return tuple(sorted(found, key=lambda b: rank.get(b.backend, len(rank))))


def _without(
    kernel: KernelRecord, job: FarmJob, error: ErrorRecord, names: Sequence[str]
) -> KernelRecord:
    """A kernel that lacks the backends of a job."""
    there = {b.backend for b in kernel.backends}
    missing = [
        BackendRecord(backend=name, status="error", reason=error.message, errors=(error,))
        for name in job.backends
        if name not in there
    ]
    return replace(kernel, backends=_ordered([*kernel.backends, *missing], names))


def _log(records: Sequence[Record]) -> list[LogLine]:
    """The output of one file: each job imports it, and prints the same again."""
    out: list[LogLine] = []
    for record in records:
        out += [line for line in record.log if line not in out] if out else record.log
    return out
