"""Short texts at the ends of lines: the time and limit of each loop, adstacks, caches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ...engine.inspect.record import BackendRecord, KernelRecord, Record
from ..core import format as fmt
from ..core.views import adstacks, costs
from .spots import compiled_backend

__all__ = ["Hint", "hints"]


class Hint(NamedTuple):
    """A text at the end of a line (from 1) of a file; tip: more about it."""

    file: str
    line: int
    text: str
    tip: str


def hints(record: Record, timed: Mapping[str, KernelRecord]) -> list[Hint]:
    """The hints of all kernels. timed: kernels by id as they were when they were last launched."""
    out: list[Hint] = []
    for kernel in record.kernels:
        backend = compiled_backend(kernel)
        if backend is None:
            missing = [w.reason for w in kernel.workloads if w.origin == "none"]
            if missing and not kernel.primal:
                tip = f"not compiled, so errors in it are not found: {missing[0]}"
                out.append(Hint(kernel.file, kernel.line, "no arguments", tip))
            continue
        launched = backend
        if not backend.costs and kernel.id in timed:
            launched = timed[kernel.id].backend(backend.backend) or backend
        out += _loops(kernel, backend, launched)
        if not kernel.primal:
            out += _of_adstacks(record, kernel, backend, timed)
            out += _of_caches(kernel, backend)
    return out


def _loops(kernel: KernelRecord, backend: BackendRecord, launched: BackendRecord) -> Iterator[Hint]:
    cost, compiled = costs.cost_of(launched), backend.compile
    if cost is None or compiled is None:
        return
    old = launched is not backend or "launches" in backend.earlier
    for task in cost.tasks:
        if task.us is None or not 0 <= task.task < len(compiled.tasks):
            continue
        loc = compiled.tasks[task.task].loc
        if not 0 <= loc < len(compiled.locs):
            continue
        time = f"{fmt.duration_us(task.us)}{' estimated' if task.timed == 'estimated' else ''}"
        limit = task.limited_by if task.limited_by not in ("", "unknown") else ""
        what = "gradient " if kernel.primal else ""
        text = f"{what}{time}{f', limited by {limit}' if limit else ''}{' earlier' if old else ''}"
        of = f"task {task.task} of {kernel.name} on {backend.backend} with {cost.workload}"
        why = task.because or ("" if limit else "the limit is not known")
        tip = "\n\n".join(filter(None, (of, why, "before the last change" if old else "")))
        yield Hint(compiled.locs[loc].file, compiled.locs[loc].line, text, tip)


def _of_adstacks(
    record: Record, kernel: KernelRecord, backend: BackendRecord, timed: Mapping[str, KernelRecord]
) -> Iterator[Hint]:
    """The number of adstacks of the gradient, and their bytes, which only a launch needs."""
    shown = adstacks.shown_of(record, kernel, backend.backend) if kernel.gradient else None
    if shown is None or not adstacks.stacks_of(shown.autodiff):
        return
    auto, old = shown.autodiff, ""
    launched = timed.get(shown.kernel.id)
    if not auto.sized and launched is not None:
        before = launched.backend(backend.backend)
        if before is not None and before.autodiff is not None and before.autodiff.sized:
            auto, old = before.autodiff, " earlier"
    count = fmt.counted(len(adstacks.stacks_of(auto)), "adstack")
    text = f"{count}, {fmt.size(auto.bytes)}{old}" if auto.sized else count
    yield Hint(kernel.file, kernel.line, text, adstacks.summary(auto))


def _of_caches(kernel: KernelRecord, backend: BackendRecord) -> Iterator[Hint]:
    """The answer of the caches to a program that starts now."""
    layers = [x for x in backend.caches if x.state not in ("not_applicable", "bypass", "off")]
    if layers:
        best = next((x for x in layers if x.state == "hit"), layers[0])
        tips = [
            f"{x.name}: {x.state}{f', {x.reason}' if x.reason else ''}"
            f"{f'; {x.advice}' if x.advice else ''}"
            for x in backend.caches
            if x.state not in ("not_applicable", "bypass")
        ]
        text = f"cache {best.state}" + (f" ({best.name})" if best.state == "hit" else "")
        yield Hint(kernel.file, kernel.line, text, "\n\n".join(tips))
