"""The verdict on a kernel as one revision of its file has it: `judge_capture`, for a bisection
between revisions.

A predicate or a metric decides if there is one. Otherwise a result is wrong if a backend differs
from the interpreter, or a check of the author's fails. The results are kept, too: a kernel that all
backends compute alike may still compute something else than an older revision (`difference_of`).
"""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from .agreement import compare
from .bisect import bisect_backends
from .faults import error_record
from .launching import ORACLE
from .metrics import measure
from .record_bisection import Judged
from .steps import StepLimit
from .trials import Predicate, Trials, UnjudgedError, values_of

if TYPE_CHECKING:
    from .capture import KernelCapture

__all__ = ["difference_of", "judge_capture"]

_STATES: Final = {"found": "wrong", "agrees": "right"}
_MOST_BYTES: Final = 64 << 20


def judge_capture(
    capture: KernelCapture, backend: str = "", predicate: Predicate | None = None,
    metric: str = "", budget_s: float = 0.4,
) -> Judged:  # fmt: skip
    """Judge a compiled capture."""
    modules = tuple([
        file for m in list(sys.modules.values()) if (file := getattr(m, "__file__", None))
    ])  # fmt: skip
    try:
        found = _judged(capture, backend, predicate, metric, budget_s)
    except (UnjudgedError, StepLimit) as error:
        found = Judged(state="unknown", reason=str(error))
    except Exception as error:
        found = Judged(state="unknown", reason=error_record(error, "judge").message)
    return msgspec.structs.replace(found, modules=modules)


def _judged(
    capture: KernelCapture, backend: str, predicate: Predicate | None, metric: str, budget_s: float
) -> Judged:
    if predicate is not None:
        said = bisect_backends(capture, backend, predicate)
        text = said.difference or said.observed or said.reason
        return Judged(state=_STATES.get(said.state, "unknown"), reason=text)
    wanted = [b for b in capture.backends if backend in ("", b.backend) and b.backend != ORACLE]
    compiled = [b for b in wanted if b.status == "ok"]
    if not compiled:
        errors = [b.reason for b in wanted] + [e.message for e in capture.record.errors]
        raise UnjudgedError(next(filter(None, errors), "no backend compiles it"))
    if metric == "time":
        return _launched(capture, compiled[0].backend, budget_s)
    if metric:
        name = compiled[0].backend
        return Judged(state="measured", backend=name, value=measure(capture, metric, name))
    return _agreement(capture, backend)


def _launched(capture: KernelCapture, backend: str, budget_s: float) -> Judged:
    capture.launch(budget_s)
    record = next(b for b in capture.backends if b.backend == backend)
    if not record.launches:
        raise UnjudgedError(record.unlaunched or record.reason or "it was not launched")
    last = record.launches[-1]
    return Judged(state="measured", backend=backend, value=last.median_us, launch=last)


def _agreement(capture: KernelCapture, backend: str) -> Judged:
    capture.launch(0.0)
    state, why = "right", ""
    for record in capture.backends:
        said = record.agreement
        if backend not in ("", record.backend) or record.unlaunched or record.status == "absent":
            continue
        if said is not None and said.verdict == "differs":
            why = said.check_message if said.check == "failed" else said.first_difference
            state, why = "wrong", f"{record.backend}: {why}"
            break
        if record.errors and record.backend != ORACLE:
            state, why = "unknown", record.errors[0].message
    return Judged(state=state, reason=why, results=_results(capture))


def _results(capture: KernelCapture) -> bytes:
    """Results of the interpreter with the first case, as an archive of arrays; empty without."""
    launcher = capture.launcher(0.0)
    if not capture.cases:
        return b""
    try:
        found = launcher.round_of(capture.cases[0], True)
        if found is None:
            return b""
        trials = Trials(capture, launcher, found, ORACLE, light=True)
        assert trials.build is not None
        values = values_of(trials.interpret(trials.build.func))
    except Exception:  # it takes too long, or fails: agreement has said so
        return b""
    if sum(array.nbytes for array in values.values()) > _MOST_BYTES:
        return b""
    file = io.BytesIO()
    np.savez_compressed(file, **values)
    return file.getvalue()


def difference_of(good: bytes, other: bytes) -> str:
    """The first difference of results of two revisions in words; empty if they are equal."""
    with np.load(io.BytesIO(good)) as a, np.load(io.BytesIO(other)) as b:
        ours, theirs = dict(b), dict(a)
    if ours.keys() != theirs.keys():
        return f"results are {', '.join(ours)}; they were {', '.join(theirs)}"
    for name, array in theirs.items():
        if ours[name].shape != array.shape:
            return f"{name} has shape {ours[name].shape}; it was {array.shape}"
    names = list(theirs)
    found = compare(names, [ours[n] for n in names], [theirs[n] for n in names])
    return found.first_difference.replace("interpreter", "before it")
