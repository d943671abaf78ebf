"""One complete look at some files, without following them: what reports need."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ...engine.inspect.record import Record
from .assuming import AssumingClient
from .client import Value
from .events import Event, RecordUpdated
from .protocol import Assume, Limits, Opening, Study

if TYPE_CHECKING:
    from ...engine.inspect.edit_file import IrEdit

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
    run: bool = False,
    launch: bool = True,
    only: Iterable[str] = (),
    limits: Limits | None = None,
    opening: Opening | None = None,
    command: Iterable[str] = (),
    peaks: bool = False,
    assume: Iterable[Assume] = (),
    edit: IrEdit | None = None,
    study: Study | None = None,
    cancelled: threading.Event | None = None,
    **more: Any,
) -> Record:
    """One complete look at ``files``, for reports: start a worker, wait, stop it.

    KeyboardInterrupt stops the worker, too; so does ``cancelled``, set by another thread: then
    CancelledError is raised. more: as for `WorkerClient`. WorkerError if no worker can be started.
    """
    complete = threading.Event()
    last: list[Record] = []

    def listen(event: Event) -> None:
        on_event(event)
        if isinstance(event, RecordUpdated) and event.complete:
            last[:] = [event.record]
            complete.set()

    client = AssumingClient(
        files, config, backends, listen,
        run=run, launch=launch, only=only, limits=limits, opening=opening, command=command,
        peaks=peaks,
        assume=assume,
        edit=edit,
        study=study,
        **more,
    )  # fmt: skip
    try:
        while not complete.wait(0.2) and client.alive:
            if cancelled is not None and cancelled.is_set():
                raise CancelledError
    finally:
        client.stop()
    if not last:
        raise WorkerError(f"the worker cannot be run here: {client.failure}") from client.failure
    return last[0]
