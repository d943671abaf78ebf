"""The user's selection and how it is shown; changed by pure functions.

The record itself comes from the worker and is replaced whole; the selection survives it: a
kernel is selected by id, a pass run by stage, round, task and name, an op by its id, a source
line by number. `settle` moves what no longer exists to the nearest thing that does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...engine.inspect.record import (
    BackendRecord,
    CompileRecord,
    KernelRecord,
    PassRun,
    Record,
    RunName,
)
from .format import waited
from .memo import by_identity
from .metrics import kernel_metrics

__all__ = [
    "History", "Selection", "backend_of", "compiled_of", "kernel_of", "name_of", "names_of",
    "remember", "run_of", "settle", "step_run",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Selection:
    """The user's position, the same on every tab.

    run: the selected pass run; None for the first that changed something. op, line: held across
    passes and tabs, -1 and 0 for none. artefact: its number in the list. layer: of the
    caches, with its backend (``cpu offline``); empty for the most informative one. stack: of
    the adstacks (``0.2``); empty for the one that takes most. readable: IR is in that form. graph:
    the form of control flow, one of `panels.cfg.FORMS`. page: the line of Explain below which the
    documentation of its pass is open.
    """

    kernel: str = ""
    backend: str = ""
    tab: str = "source"
    run: RunName | None = None
    op: int = -1
    line: int = 0
    artefact: int = 0
    layer: str = ""
    stack: str = ""
    split: bool = False
    fold_noops: bool = True
    whole: bool = False
    readable: bool = False
    page: str = ""
    graph: str = "drawing"


@dataclass(frozen=True, slots=True)
class History:
    """Figures of the last saves, for sparklines: statements by kernel, medians by launch (us).

    Keys of ``launches``: (kernel id, "backend workload"). seen: the kernels counted last, so that
    one which a save did not touch is not counted again.
    """

    statements: Mapping[str, tuple[float, ...]] = field(
        default_factory=dict[str, "tuple[float, ...]"]
    )
    launches: Mapping[tuple[str, str], tuple[float, ...]] = field(
        default_factory=dict[tuple[str, str], "tuple[float, ...]"]
    )
    seen: Mapping[str, KernelRecord] = field(default_factory=dict[str, KernelRecord], compare=False)


_KEPT = 40


def remember(history: History, record: Record) -> History:
    """``history`` with the figures of a finished look added; stale kernels add nothing."""
    statements = dict(history.statements)
    launches = dict(history.launches)
    for kernel in record.kernels:
        if kernel.stale or history.seen.get(kernel.id) is kernel:
            continue
        found = kernel_metrics(kernel).get("ir.statements")
        if found is not None and isinstance(found.value, int):
            past = statements.get(kernel.id, ())
            statements[kernel.id] = (*past, float(found.value))[-_KEPT:]
        for backend in kernel.backends:
            for launch in backend.launches if "launches" not in backend.earlier else ():
                key = (kernel.id, f"{backend.backend} {launch.workload}")
                launches[key] = (*launches.get(key, ()), waited(launch))[-_KEPT:]
    return History(statements, launches, {k.id: k for k in record.kernels})


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


@by_identity(16)
def names_of(compiled: CompileRecord) -> tuple[RunName, ...]:
    """The name of every run, by its index."""
    seen: Counter[tuple[str, int, int | None, str]] = Counter()
    out: list[RunName] = []
    for run in compiled.runs:
        name = (run.stage, run.round, run.task, run.name)
        out.append((*name, seen[name]))
        seen[name] += 1
    return tuple(out)


def name_of(compiled: CompileRecord, run: PassRun) -> RunName:
    """The name by which ``run`` is found again in another compile."""
    return names_of(compiled)[_place(compiled, run)]


def _place(compiled: CompileRecord, run: PassRun) -> int:
    """The position of ``run`` in the list of runs: its index, unless some runs were left out."""
    at = run.index
    if at < len(compiled.runs) and compiled.runs[at].index == at:
        return at
    return next(i for i, r in enumerate(compiled.runs) if r.index == run.index)


def run_of(compiled: CompileRecord | None, sel: Selection) -> PassRun | None:
    """The selected run; if there is none such, the first that failed, else the first that had an
    effect, else the first that was skipped, else the first of all."""
    if compiled is None or not compiled.runs:
        return None
    if sel.run is not None and sel.run in names_of(compiled):
        return compiled.runs[names_of(compiled).index(sel.run)]
    for states in (("failed",), ("changed",), ("skipped",)):
        found = next((r for r in compiled.runs if r.state in states), None)
        if found is not None:
            return found
    return compiled.runs[0]


def step_run(compiled: CompileRecord, sel: Selection, step: int) -> Selection:
    """The next (1) or previous (-1) run that is shown: with an effect, or any if none are folded.

    At either end the selection stays.
    """
    here = run_of(compiled, sel)
    if here is None:
        return sel
    at = _place(compiled, here)
    places = range(at + 1, len(compiled.runs)) if step > 0 else range(at - 1, -1, -1)
    for i in places:
        run = compiled.runs[i]
        if run.state != "noop" or not sel.fold_noops:
            return replace(sel, run=names_of(compiled)[i])
    return replace(sel, run=names_of(compiled)[at])


def settle(record: Record, sel: Selection) -> Selection:
    """``sel`` with what the record no longer has replaced by the nearest that it has."""
    kernels: Sequence[KernelRecord] = record.kernels
    if kernels and not any(k.id == sel.kernel for k in kernels):
        name = sel.kernel.rpartition(":")[2]
        same = next((k for k in kernels if k.name == name), kernels[0])
        sel = replace(sel, kernel=same.id, op=-1)
    kernel = kernel_of(record, sel)
    if kernel is not None and sel.backend and kernel.backend(sel.backend) is None:
        sel = replace(sel, backend="")
    compiled = compiled_of(record, sel)
    if sel.run is not None and compiled is not None and compiled.runs:
        names = names_of(compiled)
        if sel.run not in names:
            sel = replace(sel, run=_nearest(compiled, names, sel.run))
    return sel


def _nearest(compiled: CompileRecord, names: tuple[RunName, ...], lost: RunName) -> RunName | None:
    """The same pass elsewhere in the stage, else the first run of the stage with an effect."""
    there = [i for i, name in enumerate(names) if name[0] == lost[0]]
    same = [i for i in there if names[i][3] == lost[3]]
    changed = [i for i in there if compiled.runs[i].state == "changed"]
    found = same or changed
    return names[found[-1] if same else found[0]] if found else None
