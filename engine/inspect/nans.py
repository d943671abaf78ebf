"""The origin of the first NaN or infinity that a captured kernel stores: `find_nans`.

The kernel is compiled for a backend with the option ``debug_nan`` and launched on copies of the
arguments of each case. `runtime.nan_checks` then finds the op; see there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ..runtime.nan_checks import NanFinding, NanStep, find, is_checked, number_text, traced_ir
from .faults import error_record
from .launching import SEED
from .placing import placed
from .record_nans import NanReport, NanRow
from .steps import StepLimit
from .targets import compile_for, target_of

if TYPE_CHECKING:
    from .capture import KernelCapture
    from .launching import Launcher, Round

__all__ = ["find_nans"]


def find_nans(capture: KernelCapture, backend: str = "") -> NanReport:
    """The first NaN or infinity that a compiled capture stores, on the first backend that launches.

    backend: the one to launch on.
    """
    name = backend or next(iter(capture.launchable), "")
    kernel = capture.record.name
    if not name:
        reasons = [b.reason or b.unlaunched for b in capture.backends]
        reasons += [e.message for e in capture.record.errors]
        reason = "; ".join(filter(None, dict.fromkeys(reasons))) or "no backend launches here"
        return NanReport(kernel=kernel, state="unknown", reason=reason)
    blank = NanReport(
        kernel=kernel, state="unknown", backend=name, fast_math=capture.config.fast_math
    )
    last = replace(blank, reason="no arguments")
    launcher = capture.launcher(0.0)
    ran: list[str] = []
    for found in launcher.rounds():
        case = found.case
        try:
            finding = _of_case(capture, launcher, found, name)
        except (Exception, StepLimit) as error:
            reason = f"{case.label}: {error_record(error, 'nan').message}"
            last = replace(blank, reason=reason)
            continue
        if finding is not None:
            return _report(finding, replace(blank, workload=case.label))
        ran.append(case.label)
    return replace(blank, state="none", workload=", ".join(ran)) if ran else last


def _of_case(
    capture: KernelCapture, launcher: Launcher, found: Round, backend: str
) -> NanFinding | None:
    target = target_of(capture.config, backend)
    request = capture.request(backend, tuple(found.spec_keys))
    request = request._replace(config=request.config.replace(debug_nan=True))
    compiled, _ = compile_for(request, target)
    given = launcher.inputs(compiled, found)
    if given.overlap():
        request = request._replace(noalias=False)
        compiled, _ = compile_for(request, target)
        given = launcher.inputs(compiled, found)
    if not is_checked(compiled.executable.meta):
        raise ValueError("graph regions, such as loops of qd.graph.do_while, are not checked")
    place = placed(compiled, given)
    results = launcher.starter(compiled, place, found)()
    place.wait()
    key: int = results[-1]
    if not key:
        return None

    def fresh() -> list[Any]:
        return launcher.inputs(compiled, found).values

    return find(traced_ir(request), fresh, key, SEED)


def _report(found: NanFinding, blank: NanReport) -> NanReport:
    loc = found.loc
    return replace(
        blank, state="found", kind=found.kind, headline=found.headline(), file=loc.file,
        line=loc.line, col=loc.col, end_line=loc.end_line, end_col=loc.end_col, func=loc.func,
        task=found.task, iteration=found.iteration, inputs=tuple(map(_row, found.inputs)),
        steps=tuple(map(_row, found.steps)), stored=found.stored,
        stored_line=found.stored_loc.line, note=found.note,
    )  # fmt: skip


def _row(step: NanStep) -> NanRow:
    return NanRow(
        file=step.loc.file, line=step.loc.line, text=step.text, value=number_text(step.value)
    )
