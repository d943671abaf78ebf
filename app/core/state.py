"""What the person has selected and how it is shown; changed by pure functions.

The record itself comes from the worker and is replaced whole; the selection survives it: a
kernel is selected by id, a pass run by stage, round, task and name, an op by its id, a source
line by number. `settle` moves what no longer exists to the nearest thing that does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...engine.inspect.record import BackendRecord, CompileRecord, KernelRecord, PassRun, Record
from .metrics import kernel_metrics

__all__ = [
    "TABS",
    "History",
    "RunName",
    "Selection",
    "backend_of",
    "compiled_of",
    "kernel_of",
    "name_of",
    "remember",
    "run_of",
    "settle",
    "step_run",
]

TABS = ("source", "passes", "cfg", "launch", "code", "caches")

RunName = tuple[str, int, int | None, str]
"""Stage, round, task and pass of a run; the n-th of the same name counts as the n-th."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Where the person is, the same on every tab.

    run: the selected pass run; None for the first that changed something. op, line: held across
    passes and tabs, -1 and 0 for none. artefact, cfg: numbers within their lists.
    """

    kernel: str = ""
    backend: str = ""
    tab: str = "source"
    run: RunName | None = None
    op: int = -1
    line: int = 0
    artefact: int = 0
    cfg: int = 0
    split: bool = False
    fold_noops: bool = True
    whole: bool = False


@dataclass(frozen=True, slots=True)
class History:
    """Figures of the last saves, for sparklines: statements by kernel, medians by launch (us).

    Keys of ``launches``: (kernel id, "backend workload").
    """

    statements: Mapping[str, tuple[float, ...]] = field(
        default_factory=dict[str, "tuple[float, ...]"]
    )
    launches: Mapping[tuple[str, str], tuple[float, ...]] = field(
        default_factory=dict[tuple[str, str], "tuple[float, ...]"]
    )


_KEPT = 40


def remember(history: History, record: Record) -> History:
    """``history`` with the figures of a finished look added; stale kernels add nothing."""
    statements = dict(history.statements)
    launches = dict(history.launches)
    for kernel in record.kernels:
        if kernel.stale:
            continue
        found = kernel_metrics(kernel).get("ir.statements")
        if found is not None and isinstance(found.value, int):
            past = statements.get(kernel.id, ())
            statements[kernel.id] = (*past, float(found.value))[-_KEPT:]
        for backend in kernel.backends:
            for launch in backend.launches:
                key = (kernel.id, f"{backend.backend} {launch.workload}")
                launches[key] = (*launches.get(key, ()), launch.median_us)[-_KEPT:]
    return History(statements, launches)


def kernel_of(record: Record, sel: Selection) -> KernelRecord | None:
    """The selected kernel."""
    return next((k for k in record.kernels if k.id == sel.kernel), None)


def backend_of(record: Record, sel: Selection) -> BackendRecord | None:
    """The selected backend of the selected kernel; if it has none, the first that compiled."""
    kernel = kernel_of(record, sel)
    if kernel is None:
        return None
    named = kernel.backend(sel.backend) if sel.backend else None
    if named is not None:
        return named
    return next((b for b in kernel.backends if b.compile is not None), None)


def compiled_of(record: Record, sel: Selection) -> CompileRecord | None:
    """The compile that the tabs show."""
    backend = backend_of(record, sel)
    return backend.compile if backend is not None else None


def name_of(run: PassRun) -> RunName:
    return (run.stage, run.round, run.task, run.name)


def run_of(compiled: CompileRecord | None, sel: Selection) -> PassRun | None:
    """The selected run, or the first one with an effect."""
    if compiled is None or not compiled.runs:
        return None
    if sel.run is not None:
        for run in compiled.runs:
            if name_of(run) == sel.run:
                return run
    return next((r for r in compiled.runs if r.state in ("changed", "failed")), compiled.runs[0])


def step_run(compiled: CompileRecord, sel: Selection, step: int) -> Selection:
    """The next (1) or previous (-1) run with an effect; every run if none are folded."""
    here = run_of(compiled, sel)
    shown = [r for r in compiled.runs if r.state != "noop" or r.remarks or not sel.fold_noops]
    if here is None or not shown:
        return sel
    if step > 0:
        found = next((r for r in shown if r.index > here.index), shown[-1])
    else:
        found = next((r for r in reversed(shown) if r.index < here.index), shown[0])
    return replace(sel, run=name_of(found))


def settle(record: Record, sel: Selection) -> Selection:
    """``sel`` with what the record no longer has replaced."""
    kernels: Sequence[KernelRecord] = record.kernels
    if kernels and not any(k.id == sel.kernel for k in kernels):
        name = sel.kernel.rpartition(":")[2]
        same = next((k for k in kernels if k.name == name), kernels[0])
        sel = replace(sel, kernel=same.id, op=-1)
    kernel = kernel_of(record, sel)
    if kernel is not None and sel.backend and kernel.backend(sel.backend) is None:
        sel = replace(sel, backend="")
    compiled = compiled_of(record, sel)
    run = sel.run
    runs = compiled.runs if compiled is not None else ()
    if run is not None and runs and not any(name_of(r) == run for r in runs):
        near = [r for r in runs if r.stage == run[0] and r.state == "changed"]
        sel = replace(sel, run=name_of(near[0]) if near else None)
    return sel
