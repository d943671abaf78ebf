"""Studies in the worker: what is found out about one kernel on request, and sent as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ...engine.inspect.bisect import bisect_backends
from ...engine.inspect.predicates import command_predicate
from ...engine.inspect.reproducer import reproducer_of
from .protocol import Studied, Study

if TYPE_CHECKING:
    from ...engine.inspect import KernelCapture
    from .channel import JobSteps

__all__ = ["study"]


def study(asked: Study, steps: JobSteps, capture: KernelCapture) -> None:
    """Find out about the kernel of ``capture`` and send the answer."""
    capture.compile()
    steps.send_kernel(capture.record, final=False)
    predicate = command_predicate(asked.predicate) if asked.predicate else None
    find = reproducer_of if asked.kind == "repro" else bisect_backends
    answer = find(capture, asked.backend, predicate)
    steps.send_kernel(capture.record, final=True)
    data = msgspec.json.encode(answer)
    steps.send(Studied(job=steps.job.id, kernel=capture.record.id, answer=data))
    steps.done += 2
