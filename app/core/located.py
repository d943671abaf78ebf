"""Metrics that are counted for a rule, with the statements that they count.

    task.2.loads@cfg_optimization       statements of task 2 after the last run of a pass
    task.*.loads                        ... of each task, in the finished kernel
    task.cpu.2.loads@licm@simplify_I    ... for a backend, after the pass in a stage
    ir.atomics@offload, ir.op.sqrt      ... of the whole kernel; of ops of one name
    ID.NUMBER, ID.remarks               of an analysis of another distribution (`analyses`)

Numbers of tasks start at 0. A count that breaks a rule is reported with its statements and their
source lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ...engine.inspect.ir_counts import (
    NoTaskError,
    Statement,
    UncountedError,
    is_kind,
    kinds_text,
    listing_after,
    statements,
    task_count,
)
from ...engine.inspect.record import BackendRecord, CompileRecord, KernelRecord
from . import format as fmt
from .analyses import REMARKS, Analysis, analyses, result_of
from .metrics import Metric, UnknownMetric, check_backend

__all__ = ["Counted", "Place", "check", "counted", "expanded", "is_counted", "places_of"]

EVERY: Final = "*"


class Place(NamedTuple):
    """A statement, or a remark, that counts. file, line: of the source; empty and 0 if unknown."""

    text: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}" if self.line else self.text


class Counted(NamedTuple):
    """A value with its places; metric None: there is none, for the reason ``why``. foreign: the
    metric does not concern the kernel."""

    metric: Metric | None
    why: str = ""
    places: Sequence[Place] = ()
    foreign: bool = False


class _Name(NamedTuple):
    backend: str
    task: int | str | None
    kind: str
    pass_name: str
    stage: str


def is_counted(name: str) -> bool:
    """True if a name is one of these metrics."""
    if name.startswith(("task.", "ir.op.")) or (name.startswith("ir.") and "@" in name):
        return True
    return any(a.id == name.partition(".")[0] for a in analyses())


def check(name: str) -> None:
    """Raise UnknownMetric if no record can have the metric."""
    found = _analysis(name)
    if found is None:
        _read(name)
        return
    if found.fault:
        raise UnknownMetric(found.fault)
    last = name.rpartition(".")[2]
    if "." not in name or last not in (*found.numbers, REMARKS):
        known = ", ".join(f"{found.id}.{x}" for x in (*found.numbers, REMARKS))
        raise UnknownMetric(f"there is no metric {name!r}; there are {known}")


def _analysis(name: str) -> Analysis | None:
    return next((a for a in analyses() if a.id == name.partition(".")[0]), None)


def _read(name: str) -> _Name:
    where, *after = name.split("@")
    if len(after) > 2 or not all(after):
        raise UnknownMetric(f"{name}: write METRIC@PASS or METRIC@PASS@STAGE")
    pass_name, stage = (*after, "", "")[:2]
    family, *parts = where.split(".")
    task: int | str | None = None
    backend = ""
    if family == "task":
        at = next((i for i, x in enumerate(parts) if x == EVERY or x.isdecimal()), -1)
        if at < 0:
            raise UnknownMetric(
                f"{name}: write task.N.KIND with the number of a task, or task.*.KIND for each"
            )
        backend, task = ".".join(parts[:at]), parts[at]
        task = task if task == EVERY else int(task)
        parts = parts[at + 1 :]
        if backend:
            check_backend(name, backend)
    kind = ".".join(parts)
    if not is_kind(kind):
        raise UnknownMetric(f"there is no metric {name!r}: {kind!r} is none of {kinds_text()}")
    return _Name(backend, task, kind, pass_name, stage)


def expanded(name: str, kernel: KernelRecord) -> list[str]:
    """The metrics that a name stands for: one a task for ``task.*``."""
    if not name.startswith("task.") or f".{EVERY}." not in name:
        return [name]
    wanted = _read(name)
    try:
        _, compiled = _compiled(kernel, wanted.backend)
        shot = listing_after(compiled, wanted.pass_name, wanted.stage)
    except UncountedError:
        return [name.replace(f".{EVERY}.", ".0.", 1)]  # which says why it has no value
    tasks = range(max(1, task_count(shot)))
    return [name.replace(f".{EVERY}.", f".{i}.", 1) for i in tasks]


def counted(kernel: KernelRecord, name: str) -> Counted:
    """The value of a metric for a kernel."""
    analysis = _analysis(name)
    try:
        if analysis is not None:
            return _of_analysis(kernel, analysis, name)
        wanted = _read(name)
        _, compiled = _compiled(kernel, wanted.backend)
        task = wanted.task if isinstance(wanted.task, int) else None
        shot = listing_after(compiled, wanted.pass_name, wanted.stage, task)
        found = statements(compiled, shot, wanted.kind, task)
    except NoTaskError as error:
        return Counted(None, str(error), foreign=True)
    except UncountedError as error:
        return Counted(None, str(error), foreign=bool(kernel.primal) and not _any(kernel))
    return Counted(Metric(len(found)), "", [_place(x) for x in found])


def _any(kernel: KernelRecord) -> bool:
    return any(b.compile is not None for b in kernel.backends)


def _place(found: Statement) -> Place:
    called = f" (called at {found.called})" if found.called else ""
    return Place(f"{found.text}{called}", found.file, found.line)


def _of_analysis(kernel: KernelRecord, analysis: Analysis, name: str) -> Counted:
    rest, _, last = name.rpartition(".")
    backend, compiled = _compiled(kernel, rest.partition(".")[2])
    found = result_of(analysis, kernel, backend, compiled)
    if found.fault:
        return Counted(None, found.fault)
    places = [Place(r.text, kernel.file if r.line else "", r.line) for r in found.remarks]
    if last == REMARKS:
        return Counted(Metric(len(places)), "", places)
    if last not in found.numbers:
        return Counted(None, f"{analysis.id} finds no {last} here")
    return Counted(Metric(found.numbers[last]), "", places)


def _compiled(kernel: KernelRecord, backend: str) -> tuple[BackendRecord, CompileRecord]:
    """The compile that a metric is about: of a backend, else of the first that compiled."""
    for each in kernel.backends:
        if backend in ("", each.backend) and each.compile is not None:
            return each, each.compile
    named = kernel.backend(backend) if backend else None
    if backend and named is None:
        raise UncountedError(f"was not compiled for {backend}; add --backend {backend}")
    texts = [fmt.backend_reason(kernel, b) for b in ([named] if named else kernel.backends)]
    why = next((fmt.first_line(text) for text in texts if text), "no backend compiled it")
    raise UncountedError(f"has no compile: {why}")


def places_of(kernel: KernelRecord, name: str) -> Sequence[Place]:
    """The statements that a metric of the finished kernel counts; empty where it counts none."""
    if not is_counted(name):
        kind = name.removeprefix("ir.")
        if not name.startswith("ir.") or kind == "statements" or not is_kind(kind):
            return ()
        name = f"ir.{kind}"
        try:
            _, compiled = _compiled(kernel, "")
            found = statements(compiled, listing_after(compiled), kind)
        except UncountedError:
            return ()
        return [_place(x) for x in found]
    return counted(kernel, name).places
