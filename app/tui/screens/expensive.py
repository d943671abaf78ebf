"""The most expensive source lines of a recorded application.

Another process counts them: what it compiles and launches cannot harm the studio, and it is ended
when the screen is left.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast

import msgspec

from ....engine.inspect.application.model import ExpensiveLines
from ...core.lines import Line
from ...core.views.applications import expensive_table
from ...core.visible import visible_line
from .files import PlacesScreen

if TYPE_CHECKING:
    from ..application import ApplicationApp

__all__ = ["ExpensiveScreen"]

_MOST: Final = 20


class ExpensiveScreen(PlacesScreen):
    """A table of lines; a line opens its file."""

    heading = "most expensive lines"

    def __init__(self) -> None:
        super().__init__()
        self._process: subprocess.Popen[str] | None = None
        self._doing = "starting"
        self._left = False

    def on_mount(self) -> None:
        super().on_mount()
        if self._app_of.expensive is None:
            threading.Thread(target=self._count, name="expensive-lines", daemon=True).start()

    def on_unmount(self) -> None:
        self._left = True
        if self._process is not None:
            self._process.kill()

    @property
    def _app_of(self) -> ApplicationApp:
        return cast("ApplicationApp", self.studio)

    def content(self) -> tuple[Sequence[Line], list[Line]]:
        found = self._app_of.expensive
        if found is None:
            return [Line(((visible_line(self._doing), "pending"),))], []
        return expensive_table(found), []

    def _count(self) -> None:
        """Run the process to its end; on a thread."""
        command = [sys.executable, "-m", "qd_studio.app.cli", "replay", *self.studio.files,
                   "--lines", str(_MOST), "--json"]  # fmt: skip
        with tempfile.TemporaryFile("w+b") as out:
            with subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True
            ) as process:
                self._process = process
                if self._left:
                    process.kill()
                for text in process.stderr or ():
                    self._say(text.strip())
                status = process.wait()
            out.seek(0)
            data = out.read()
        if self._left:
            return
        try:
            found = msgspec.json.decode(data, type=ExpensiveLines)
        except msgspec.MsgspecError:
            self._say(f"the lines were not counted (exit code {status}): {self._doing}")
        else:
            self._app_of.expensive = found
            self._say("")

    def _say(self, text: str) -> None:
        self._doing = text
        if self._left:
            return
        with suppress(RuntimeError):  # the studio has ended meanwhile
            self.app.call_from_thread(self.paint)  # pyright: ignore[reportUnknownMemberType]
