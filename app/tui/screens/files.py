"""A file of a recorded program on the screen."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on

from ....engine.inspect.application.model import Frame
from ...core.lines import Line
from ...core.visible import visible_line
from ..widgets.lines import LineView
from .lists import ListScreen

__all__ = ["FileScreen", "PlacesScreen"]


class FileScreen(ListScreen):
    """A file of the program as it is now, the cursor on a line of it."""

    def __init__(self, frame: Frame) -> None:
        super().__init__()
        self._frame = frame
        self.heading = visible_line(f"{frame.file}:{frame.line}")

    def content(self) -> tuple[Sequence[Line], list[Line]]:
        frame = self._frame
        try:
            with open(frame.file, encoding="utf-8", errors="replace") as file:
                texts = file.read().splitlines()
        except OSError as error:
            why = f"{frame.file} cannot be read any more: {error.strerror}"
            return [Line(((visible_line(why), "warn"),)), Line(((frame.text, ""),))], []
        then = "" if frame.text in ("", _at(texts, frame.line)) else (
            f"the file has changed; line {frame.line} was: {frame.text}"
        )  # fmt: skip
        head = [Line(((visible_line(then), "warn"),))] if then else []
        lines = [
            Line(((f"{n:>5} ", "gutter"), (visible_line(text), "")), n, text,
                 row="heat2" if n == frame.line else "")
            for n, text in enumerate(texts, 1)
        ]  # fmt: skip
        return lines, head

    def paint(self) -> None:
        super().paint()
        view = self.query_one("#list", LineView)
        view.show(view.lines, view.header, self._frame.line)


class PlacesScreen(ListScreen):
    """A list whose lines stand for lines of files: their keys are frames. Choosing one shows its
    file."""

    KEYS = (("choose", "show the file"), *ListScreen.KEYS)

    @on(LineView.Chosen, "#list")
    def _chosen(self, event: LineView.Chosen) -> None:
        if event.line is not None and isinstance(event.line.key, Frame):
            self.studio.push_screen(FileScreen(event.line.key))


def _at(texts: Sequence[str], line: int) -> str:
    return texts[line - 1].strip()[:200] if 0 < line <= len(texts) else ""
