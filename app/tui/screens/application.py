"""The kernels of a recorded application, and all about one of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from textual import events, on
from textual.app import ComposeResult
from textual.widgets import Input

from ...core.lines import Line
from ...core.views import applications as views
from ...core.visible import visible_line
from ..commands import bindings
from ..widgets.bars import KeyBar, PromptBar, TitleBar
from ..widgets.lines import LineView
from .base import StudioScreen
from .files import PlacesScreen

if TYPE_CHECKING:
    from ..application import ApplicationApp

__all__ = ["ApplicationScreen", "RecordedKernelScreen"]


class ApplicationScreen(StudioScreen):
    """A table of all kernels, with the calls of the one under the cursor."""

    BINDINGS = bindings("application")
    DEFAULT_CSS = """
    ApplicationScreen #about { height: 3; border-bottom: solid $panel-lighten-2; }
    ApplicationScreen #kernels { height: 1fr; min-height: 11; }
    ApplicationScreen #detail { height: auto; max-height: 25%; border-top: solid $panel-lighten-2; }
    """
    KEYS = (
        ("choose", "open"), ("expensive", "lines"), ("search", "filter"), ("sort-next", "sort"),
        ("sort-turn", "turn"),
        ("export", "export"), ("palette", "commands"), ("help", "help"), ("quit", "quit"),
    )  # fmt: skip
    scope = "application"

    def __init__(self) -> None:
        super().__init__()
        self._column = 0
        self._turned = False
        self._words = ""

    @property
    def _about(self) -> views.Application:
        return cast("ApplicationApp", self.studio).about

    def body(self) -> ComposeResult:
        yield LineView(id="about", idle_cursor=False)
        yield LineView(id="kernels")
        yield LineView(id="detail", idle_cursor=False)

    def on_mount(self) -> None:
        self._rows = views.rows_of(self._about)
        self.query_one("#about", LineView).show(views.about_lines(self._about, self._rows))
        self.query_one("#kernels", LineView).focus()
        self.query_one(KeyBar).set(self.KEYS)
        self.paint()

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.paint()

    def paint(self) -> None:
        state = self.studio
        names = " ".join(os.path.basename(f) for f in state.files)
        rows = views.shown(self._rows, self._column, self._turned, self._words)
        found = f"{len(rows)} of {len(self._rows)} with {self._words!r}" if self._words else ""
        left = (("qd-studio", "bold"), ("  ", ""), (names, ""))
        self.query_one(TitleBar).set(left, visible_line(found))
        head, lines = views.kernel_table(rows, self._column, self._turned, self.ascii_only)
        if not lines:
            text = "No kernel has that in its name, place or cache state." if self._words else (
                "The program has compiled no kernels."
            )  # fmt: skip
            lines = [Line(((text, "dim"),))]
        self.query_one("#kernels", LineView).show(lines, [head])
        self._paint_detail()

    def _paint_detail(self) -> None:
        line = self.query_one("#kernels", LineView).current
        view = self.query_one("#detail", LineView)
        lines: list[Line] = []
        if line is not None and isinstance(line.key, int):
            lines = list(views.call_lines(self._about.kernels[line.key], 2, 2))
        view.display = bool(lines)
        view.show(lines)

    # --- sorting ---------------------------------------------------------------------------

    def action_sort(self, step: int) -> None:
        """Sort by the next column."""
        self._column = (self._column + step) % len(views.COLUMNS)
        self._turned = False
        self._top()

    def action_turn(self) -> None:
        """Sort in the opposite order."""
        self._turned = not self._turned
        self._top()

    def _top(self) -> None:
        self.paint()
        self.query_one("#kernels", LineView).put(0)
        self._paint_detail()

    def action_expensive(self) -> None:
        """Show the most expensive lines."""
        from .expensive import ExpensiveScreen

        self.studio.push_screen(ExpensiveScreen())

    # --- filter ----------------------------------------------------------------------------

    def open_search(self) -> None:
        placeholder = "words in kernel, place or cache; enter keeps the filter, esc removes it"
        self.query_one("#search", PromptBar).ask(self._words, placeholder)

    def close_search(self) -> bool:
        left = self.query_one("#search", PromptBar).leave(self.query_one("#kernels", LineView))
        if left:
            self._filter("")
        return left

    def clear_search(self) -> bool:
        had = bool(self._words)
        self._filter("")
        return had

    def _filter(self, words: str) -> None:
        if words != self._words:
            self._words = words
            self._top()

    @on(Input.Changed, "#search")
    def _filtered(self, event: Input.Changed) -> None:
        event.prevent_default()
        if event.input.has_class("open"):
            self._filter(event.value)

    def _entered(self, text: str) -> None:
        self.query_one("#search", PromptBar).leave(self.query_one("#kernels", LineView))
        self._filter(text)

    # --- one kernel ------------------------------------------------------------------------

    @on(LineView.Moved, "#kernels")
    def _moved(self) -> None:
        self._paint_detail()

    @on(LineView.Chosen, "#kernels")
    def _chosen(self, event: LineView.Chosen) -> None:
        if event.line is not None and isinstance(event.line.key, int):
            self.studio.push_screen(RecordedKernelScreen(self._about, event.line.key))


class RecordedKernelScreen(PlacesScreen):
    """All about one kernel of an application. A line that stands for a line of a file opens it."""

    def __init__(self, about: views.Application, number: int) -> None:
        super().__init__()
        self._about = about
        self._kernel = about.kernels[number]
        self.heading = visible_line(self._kernel.qualname)

    def content(self) -> tuple[Sequence[Line], list[Line]]:
        return views.kernel_lines(self._about, self._kernel), []
