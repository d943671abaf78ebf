"""Studies in the worker: what is found out about one kernel on request, and sent as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ...engine.inspect.bisect import bisect_backends
from ...engine.inspect.differentiable import gradient_features, gradient_name
from ...engine.inspect.gradients import GradientCapture
from ...engine.inspect.predicates import command_predicate
from ...engine.inspect.reproducer import reproducer_of
from .protocol import Studied, Study

if TYPE_CHECKING:
    from ...engine.inspect import KernelCapture
    from .channel import JobSteps

__all__ = ["study"]


def study(asked: Study, steps: JobSteps, capture: KernelCapture) -> None:
    """Find out about the kernel of ``capture``, or about its gradient if the job names that, and
    send the answer."""
    capture.compile()
    steps.send_kernel(capture.record, final=False)
    names = {gradient_name(capture.record.id), gradient_name(capture.record.name)}
    if names & set(steps.job.only):
        capture = _gradient(steps, capture) or capture
    answer = _answer(asked, steps, capture)
    steps.send_kernel(capture.record, final=True)
    data = msgspec.json.encode(answer)
    steps.send(Studied(job=steps.job.id, kernel=capture.record.id, answer=data))
    steps.done += 2


def _gradient(steps: JobSteps, capture: KernelCapture) -> KernelCapture | None:
    """The compiled capture of the gradient; None if there is none."""
    keys = gradient_features(capture, make=True)
    if keys is None:
        return None
    gradient = GradientCapture(capture, keys)
    steps.kernel = gradient.record
    steps.send_kernel(capture.record, final=True)
    gradient.compile()
    return gradient


def _answer(asked: Study, steps: JobSteps, capture: KernelCapture) -> Any:
    if asked.kind == "nan":
        from ...engine.inspect.nans import find_nans

        return find_nans(capture, asked.backend)
    if asked.kind == "check-grad":
        from ...engine.inspect.gradient_check import gradient_report

        return gradient_report(capture, asked.backend)
    if asked.kind == "precision":
        from ...engine.inspect.precision import lost_precision

        return lost_precision(capture)
    predicate = command_predicate(asked.predicate) if asked.predicate else None
    if asked.kind == "judge":
        from ...engine.inspect.judging import judge_capture

        budget = steps.job.limits.measure_s
        return judge_capture(capture, asked.backend, predicate, asked.metric, budget)
    if asked.metric:
        from ...engine.inspect.metrics import parse_side
        from ...engine.inspect.regression import bisect_metric

        good = None if asked.good is None else parse_side(asked.good)
        return bisect_metric(capture, asked.backend, asked.metric, good, parse_side(asked.bad))
    find = reproducer_of if asked.kind == "repro" else bisect_backends
    return find(capture, asked.backend, predicate)
