"""The origin of the first NaN or infinity that a captured kernel stores: `find_nans`.

The kernel is compiled for a backend with the option ``debug_nan`` and launched on copies of the
arguments of each case. `runtime.nan_checks` then finds the op; see there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    name = backend or next(
        (b.backend for b in capture.backends if b.status == "ok" and not b.unlaunched), ""
    )
    kernel = capture.record.name
    if not name:
        reasons = [b.reason or b.unlaunched for b in capture.backends]
        reasons += [e.message for e in capture.record.errors]
        reason = "; ".join(filter(None, dict.fromkeys(reasons))) or "no backend launches here"
        return NanReport(kernel=kernel, state="unknown", reason=reason)
    fast = capture.config.fast_math
    last = NanReport(
        kernel=kernel, state="unknown", backend=name, reason="no arguments", fast_math=fast
    )
    launcher = capture.launcher(0.0)
    ran: list[str] = []
    for index, case in enumerate(capture.cases):
        found = launcher.round_of(case, index == 0)
        if found is None:
            continue
        try:
            finding = _of_case(capture, launcher, found, name)
        except (Exception, StepLimit) as error:
            reason = f"{case.label}: {error_record(error, 'nan').message}"
            last = NanReport(
                kernel=kernel, state="unknown", backend=name, reason=reason, fast_math=fast
            )
            continue
        if finding is not None:
            return _report(finding, kernel, name, case.label, fast)
        ran.append(case.label)
    if ran:
        return NanReport(
            kernel=kernel, state="none", backend=name, workload=", ".join(ran), fast_math=fast
        )
    return last


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


def _report(
    found: NanFinding, kernel: str, backend: str, workload: str, fast_math: bool
) -> NanReport:
    loc = found.loc
    return NanReport(
        kernel=kernel, state="found", backend=backend, workload=workload, fast_math=fast_math,
        kind=found.kind, headline=found.headline(), file=loc.file, line=loc.line, col=loc.col,
        end_line=loc.end_line, end_col=loc.end_col, func=loc.func, task=found.task,
        iteration=found.iteration, inputs=tuple(map(_row, found.inputs)),
        steps=tuple(map(_row, found.steps)), stored=found.stored,
        stored_line=found.stored_loc.line, note=found.note,
    )  # fmt: skip


def _row(step: NanStep) -> NanRow:
    return NanRow(
        file=step.loc.file, line=step.loc.line, text=step.text, value=number_text(step.value)
    )
