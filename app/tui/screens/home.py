"""The matrix of kernels and backends, with what is known of the one under the cursor."""

from __future__ import annotations

import os

from textual import on
from textual.app import ComposeResult

from ...core.format import error_text
from ...core.lines import Line
from ...core.panels.home import absent_lines, detail, matrix
from ..commands import bindings
from ..widgets.bars import KeyBar, SearchBar, TitleBar
from ..widgets.lines import LineView
from .base import StudioScreen

__all__ = ["HomeScreen"]


class HomeScreen(StudioScreen):
    """See the module docstring."""

    BINDINGS = bindings("home")
    DEFAULT_CSS = """
    HomeScreen #matrix { height: 1fr; min-height: 4; }
    HomeScreen #detail { height: auto; max-height: 45%; border-top: solid $panel; }
    """

    def compose(self) -> ComposeResult:
        yield TitleBar()
        yield LineView(id="matrix")
        yield LineView(id="detail")
        yield SearchBar()
        yield KeyBar(("list", "home"))

    def on_mount(self) -> None:
        self.query_one("#matrix", LineView).focus()
        self.paint()

    def on_resize(self) -> None:
        self.paint()

    def on_screen_resume(self) -> None:
        self.paint()

    def paint(self) -> None:
        state = self.studio
        record = state.record
        names = " ".join(os.path.basename(f) for f in state.files)
        self.query_one(TitleBar).set(left=f"qd-studio  {names}", right=state.progress)
        view = self.query_one("#matrix", LineView)
        if record.kernels:
            head, lines = matrix(
                record, view.size.width or 80, state.history.statements, state.ascii_only
            )
            below = [Line(()), *absent_lines(record), *self._problems()]
            view.show([*lines, *below], head, state.sel.kernel or None)
        else:
            view.show(self._problems() or self._empty())
        self._paint_detail()

    def _problems(self) -> list[Line]:
        out: list[Line] = []
        for error in self.studio.record.errors:
            out.append(Line(()))
            out += [Line(((t, "bad" if i == 0 else ""),), None, t)
                    for i, t in enumerate(error_text(error).splitlines())]  # fmt: skip
        return out

    def _empty(self) -> list[Line]:
        if not self.studio.complete:
            return [Line((("Waiting for the worker to import the file ...", "dim"),))]
        text = "No kernels here yet. Mark a function with @qd.kernel and save the file."
        return [Line(((text, ""),)), Line((("Press ? for help, q to leave.", "dim"),))]

    def _paint_detail(self) -> None:
        view = self.query_one("#detail", LineView)
        line = self.query_one("#matrix", LineView).current
        key = line.key if line is not None else None
        kernel = next((k for k in self.studio.record.kernels if k.id == key), None)
        lines = detail(kernel, self.studio.ascii_only) if kernel is not None else []
        view.display = bool(lines)
        view.show(lines)

    @on(LineView.Moved, "#matrix")
    def _moved(self, event: LineView.Moved) -> None:
        if event.line is not None and isinstance(event.line.key, str):
            self.studio.select(kernel=event.line.key)
        self._paint_detail()

    @on(LineView.Chosen, "#matrix")
    def _chosen(self, event: LineView.Chosen) -> None:
        if event.line is not None and isinstance(event.line.key, str):
            self.studio.open_kernel(event.line.key)
