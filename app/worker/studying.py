"""A second worker that answers one question about a kernel, next to the one that follows saves."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from .client import WorkerClient
from .events import Event, Failed, Studied
from .protocol import Study

if TYPE_CHECKING:
    from ...engine.inspect.record_bisection import Judged

__all__ = ["judge_file", "start_study"]


def start_study(
    client: WorkerClient, kernel: str, study: Study, on_event: Callable[[Event], object]
) -> WorkerClient:
    """Start a worker with the settings of ``client``; stopping it cancels the study.

    kernel: its id.
    """
    job = client.template
    return WorkerClient(
        job.files, job.config, job.backends, on_event,
        run=job.run, only=(kernel,), limits=job.limits,
        opening=job.opening, study=study,
    )  # fmt: skip


def judge_file(
    client: WorkerClient, path: str, kernel: str, study: Study,
    on_event: Callable[[Event], object], cancelled: threading.Event,
) -> Judged:  # fmt: skip
    """The verdict on a kernel of a file, by a worker of its own with the settings of ``client``.

    kernel: its name. study: of the kind ``judge``. CancelledError once ``cancelled`` is set.
    """
    import msgspec

    from ...engine.inspect.record_bisection import Judged
    from .once import collect

    job = client.template
    answers: list[bytes] = []
    faults: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, Studied):
            answers.append(event.answer)
        elif isinstance(event, Failed):
            faults.append(event.error.message.strip().partition("\n")[0])
        on_event(event)

    collect(
        [path], job.config, job.backends, listen, run=job.run, limits=job.limits,
        opening=job.opening, only=[kernel], study=study, cancelled=cancelled,
    )  # fmt: skip
    if len(answers) != 1:
        why = faults[0] if faults else f"it has no kernel {kernel}"
        return Judged(state="unknown", reason=why)
    return msgspec.json.decode(answers[0], type=Judged)
