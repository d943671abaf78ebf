"""One complete look at some files, without following them: what reports need."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...engine.inspect.record import Record
from .assuming import AssumingClient
from .client import Value
from .events import Event, RecordUpdated

__all__ = ["CancelledError", "WorkerError", "collect"]


class CancelledError(RuntimeError):
    """The look was given up before it was complete."""


class WorkerError(RuntimeError):
    """There is no result at all: the environment lets no worker process run."""


def collect(
    files: Iterable[str | os.PathLike[str]],
    config: Mapping[str, Value] | None = None,
    backends: Iterable[str] = (),
    on_event: Callable[[Event], object] = lambda event: None,
    *,
    cancelled: threading.Event | None = None,
    **settings: Any,
) -> Record:
    """One complete look at ``files``, for reports: start a worker, wait, stop it.

    KeyboardInterrupt stops the worker, too; so does ``cancelled``, set by another thread: then
    CancelledError is raised. settings: as for `AssumingClient`. WorkerError if no worker can be
    started.
    """
    complete = threading.Event()
    last: list[Record] = []

    def listen(event: Event) -> None:
        on_event(event)
        if isinstance(event, RecordUpdated) and event.complete:
            last[:] = [event.record]
            complete.set()

    client = AssumingClient(files, config, backends, listen, **settings)
    try:
        while not complete.wait(0.2) and client.alive:
            if cancelled is not None and cancelled.is_set():
                raise CancelledError
    finally:
        client.stop()
    if not last:
        raise WorkerError(f"the worker cannot be run here: {client.failure}") from client.failure
    return last[0]
