"""A second worker that answers one question about a kernel, next to the one that follows saves."""

from __future__ import annotations

from collections.abc import Callable

from .client import WorkerClient
from .events import Event
from .protocol import Study

__all__ = ["start_study"]


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
