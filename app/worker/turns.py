"""Several looks by one worker, so that launches of a later one are timed in turns with the first's.

    first, second = collect_in_turns([Look("a.py"), Look("b.py")], launch=True)

The first look leaves what is compared with; see `engine.inspect.earlier`. If a worker ends between
two looks, the times are those of two runs. In a sweep the reference is looked at again in every
round.
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec.structs import replace

from ..core.session import Session, labels_of
from .assuming import AssumingClient
from .client import Value
from .events import Event, RecordUpdated
from .once import WorkerError

if TYPE_CHECKING:
    from ...engine.inspect.record import Record

__all__ = ["Look", "collect_in_turns"]

_REFERENCE: Final = "reference"


class Look(NamedTuple):
    """One of several looks. keep: later ones are compared with it; it is compared with none.

    own: fields of `Job` that are its own, such as ``only``. partners: as in `Job`.
    """

    files: Sequence[str | os.PathLike[str]]
    config: Mapping[str, Value]
    backends: Sequence[str] = ()
    keep: bool = False
    partners: Mapping[str, str] = {}
    own: Mapping[str, Any] = {}


class _Client(AssumingClient):
    """Looks at one after the other."""

    def __init__(self, looks: Sequence[Look], on_event: Callable[[Event], object], **settings: Any):
        self._left: Final = list(looks)
        first = self._left.pop(0)
        super().__init__(
            first.files, first.config, first.backends, on_event, **settings, **_fields(first)
        )

    def next_look(self) -> bool:
        """Begin with the next look; False if there is none."""
        if not self._left:
            return False
        look = self._left.pop(0)
        self._ask(lambda: self._turn_to(look))
        return True

    def _turn_to(self, look: Look) -> None:
        paths = tuple(dict.fromkeys(os.path.abspath(file) for file in look.files))
        before = self._session
        self._session = dataclasses.replace(Session.of(paths, before.command), tool=before.tool)
        self._final.clear()
        self._looks = {}
        self.template = replace(
            self.template, files=paths, labels=labels_of(paths), config=dict(look.config),
            backends=tuple(look.backends), **_fields(look),
        )  # fmt: skip
        self._wanted = set(paths)


def _fields(look: Look) -> dict[str, Any]:
    return {
        **look.own,
        "keep": _REFERENCE if look.keep else "",
        "against": "" if look.keep else _REFERENCE,
        "partners": dict(look.partners),
    }


def collect_in_turns(
    looks: Iterable[Look],
    on_event: Callable[[Event], object] = lambda event: None,
    *,
    began: Callable[[int], object] = lambda number: None,
    cancelled: Callable[[], bool] = lambda: False,
    **settings: Any,
) -> list[Record]:
    """The record of each look; of those before ``cancelled``, asked now and then, said so. began:
    called with the number of a look before it.

    settings: those of `collect` that all looks share. WorkerError if no worker can be started.
    """
    several = list(looks)
    found: list[Record] = []
    complete = threading.Event()

    def listen(event: Event) -> None:
        on_event(event)
        if isinstance(event, RecordUpdated) and event.complete:
            found.append(event.record)
            complete.set()

    began(0)
    client = _Client(several, listen, **settings)
    try:
        while client.alive:
            if complete.wait(0.1):
                complete.clear()
                if len(found) == len(several):
                    return found
                began(len(found))
                client.next_look()
            if cancelled():
                return found
    finally:
        client.stop()
    if len(found) == len(several):
        return found
    raise WorkerError(f"the worker cannot be run here: {client.failure}") from client.failure
