"""The folder that an agent works in: its files, and looks at them that are still current."""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final

from ...engine.inspect.record import Record
from ..core.failing import failing
from ..opening import NotOpenedError, expanded
from ..revisions import split
from ..worker.events import Event, Failed, Progress
from ..worker.once import CancelledError, WorkerError, collect
from ..worker.protocol import Limits, Opening
from .answers import ToolError

__all__ = ["Call", "Project"]

_KEPT: Final = 8


class Call:
    """A call in work. heard: receives the progress in words. cancelled: set to give it up."""

    def __init__(self, heard: Callable[[str], object] = lambda text: None) -> None:
        self.heard: Final = heard
        self.cancelled: Final = threading.Event()


class Project:
    """See the module docstring. root: the folder; nothing outside of it is opened.

    One call works at a time, so that no launch is timed while another one runs.
    """

    def __init__(self, root: str, time_limit: float | None = None) -> None:
        self.root: Final = os.path.realpath(root)
        self.limits: Final = Limits(
            import_s=time_limit, run_s=time_limit, compile_s=time_limit, launch_s=time_limit
        ) if time_limit else None  # fmt: skip
        self.busy: Final = threading.Lock()
        self._looks: OrderedDict[Hashable, Record] = OrderedDict()

    def path(self, name: str) -> str:
        """The real path of a file or folder of the project. ToolError for any other."""
        path = os.path.realpath(os.path.join(self.root, name or "."))
        if path != self.root and not path.startswith(os.path.join(self.root, "")):
            raise ToolError(
                f"{name} is outside of the project {self.root}",
                "name a file in the project, or start qd-studio mcp in another folder",
            )
        if not os.path.exists(path):
            raise ToolError(
                f"there is no file {name} in {self.root}", "call kernels without a file"
            )
        return path

    def side(self, name: str) -> tuple[str, str]:
        """(path, revision) of FILE@REVISION."""
        path, revision = split(os.path.join(self.root, name))
        return (os.path.realpath(path), revision) if revision else (self.path(name), "")

    def shown(self, path: str) -> str:
        """A path as the agent names it: relative to the project if it is in it."""
        inner = os.path.relpath(os.path.realpath(path), self.root)
        return path if inner.startswith(os.pardir) else inner

    def look(
        self,
        call: Call,
        name: str,
        config: dict[str, Any],
        backends: tuple[str, ...],
        *,
        again: bool = False,
        **settings: Any,
    ) -> Record:
        """The record of a file or folder; an earlier one if no file of it has changed since.

        again: look in any case. settings: of `collect`.
        """
        try:
            files = expanded([self.path(name)])
        except NotOpenedError as error:
            raise ToolError(str(error), "name a file or folder with kernels") from None
        key = (
            tuple(files), backends, tuple(sorted(config.items())), tuple(sorted(settings.items())),
        )  # fmt: skip
        with self.busy:
            known = self._looks.pop(key, None)
            if known is not None and not again and _is_current(known):
                self._looks[key] = known
                return known
            record = self._collect(call, files, config, backends, settings)
            if not failing(record):
                self._looks[key] = record
                while len(self._looks) > _KEPT:
                    self._looks.popitem(last=False)
        return record

    def _collect(
        self, call: Call, files: list[str], config: dict[str, Any], backends: tuple[str, ...],
        settings: dict[str, Any],
    ) -> Record:  # fmt: skip
        def heard(event: Event) -> None:
            if isinstance(event, Progress):
                call.heard(event.forms[0])
            elif isinstance(event, Failed):
                call.heard(event.error.message)

        try:
            return collect(
                files, config, backends, heard, limits=self.limits, opening=Opening(),
                command=("qd-studio", "mcp"), cancelled=call.cancelled, **settings,
            )  # fmt: skip
        except CancelledError:
            raise ToolError("the call was cancelled", kind="cancelled") from None
        except WorkerError as error:
            raise ToolError(str(error), "run qd-studio doctor", "environment") from None


def _is_current(record: Record) -> bool:
    """True if every file that the record was made from is as it was."""
    for file in record.files:
        try:
            with open(file.path, "rb") as stream:
                if hashlib.sha256(stream.read()).hexdigest() != file.sha256:
                    return False
        except OSError:
            return False
    return bool(record.files)
