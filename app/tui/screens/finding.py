"""The search over everything: a line to type in, and below it the lines that have the text."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.widgets import Input

from ...core.lines import Line
from ...panels._finding import MOST, Hit, find, hit_lines
from ..widgets.bars import KeyBar, PromptBar, TitleBar
from ..widgets.lines import LineView
from .base import StudioScreen
from .lists import LogScreen

__all__ = ["FindScreen"]


class FindScreen(StudioScreen):
    """See `panels._finding`. Results are found on another thread while the text is typed."""

    KEYS = (("choose", "go there"), ("find", "other text"), ("copy-all", "copy all"),
            ("export", "export"), ("help", "help"), ("back", "back"))  # fmt: skip
    DEFAULT_CSS = """
    FindScreen #hits { height: 1fr; }
    """

    def body(self) -> ComposeResult:
        yield PromptBar("text to find everywhere, enter to choose, esc to leave", self._given,
                        id="wanted")  # fmt: skip
        yield LineView(id="hits")

    def on_mount(self) -> None:
        self.query_one("#wanted", PromptBar).add_class("open")
        self.ask()
        self.query_one(KeyBar).set(self.KEYS)
        self.paint()

    def ask(self) -> None:
        """Go to the line in which the text is typed."""
        self.query_one("#wanted", PromptBar).focus()

    @property
    def _text(self) -> str:
        return self.query_one("#wanted", PromptBar).value

    def paint(self) -> None:
        state, text, hits = self.studio, self._text, self.query_one("#hits", LineView)
        count = ""
        if not text.strip():
            hits.show([Line((("Sources, IR, code, errors and the log are searched.", "dim"),))])
        elif not find.has(state.record, text):
            record = state.record
            state.compute(lambda: find(record, text))
            count = "  searching ..."
        else:
            n = len(find(state.record, text))
            count = f"  {min(n, MOST):,}{'+' if n > MOST else ''} lines"
            none = Line(((f"No line has {text!r}.", "dim"),))
            hits.show(hit_lines(state.record, text) or [none])
            hits.search(text, here=True, typing=True)
        self.query_one(TitleBar).set((("find", "bold"), (count, "")), state.status)

    @on(Input.Changed, "#wanted")
    def _wanted(self) -> None:
        self.paint()
        self.query_one("#hits", LineView).put(0)

    def _given(self, text: str) -> None:
        """To the list; straight to the line if there is but one."""
        found = find(self.studio.record, text) if text.strip() else []
        if len(found) == 1:
            self._go(found[0])
        elif found:
            self.paint()
            self.query_one("#hits", LineView).focus()

    @on(LineView.Chosen, "#hits")
    def _chosen(self, event: LineView.Chosen) -> None:
        at = event.line.key if event.line is not None else None
        if isinstance(at, int):
            self._go(find(self.studio.record, self._text)[at])

    def _go(self, hit: Hit) -> None:
        """Show a hit; this screen is left, and `escape` leads back from there as usual."""
        studio = self.studio
        studio.pop_screen()
        if hit.kernel:
            studio.show_in_kernel(hit.kernel, hit.changes, hit.row)
        else:
            studio.push_screen(LogScreen(hit.row))

    def back(self) -> bool:
        if self.query_one("#wanted", PromptBar).has_focus:
            return False
        self.ask()
        return True
