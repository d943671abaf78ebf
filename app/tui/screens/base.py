"""What all screens share: bars, the search line, and which list has the focus."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual import on
from textual.screen import Screen
from textual.widgets import Input

from ..widgets.bars import SearchBar, TitleBar
from ..widgets.lines import LineView

if TYPE_CHECKING:
    from ..app import StudioApp

__all__ = ["StudioScreen"]

LEAST = (60, 16)
"""Columns and rows below which a screen says that it needs more room."""


class StudioScreen(Screen[None]):
    """A screen with a title, one or more line views, a search line and a key bar."""

    DEFAULT_CSS = """
    StudioScreen { layout: vertical; background: $background; }
    """

    @property
    def studio(self) -> StudioApp:
        return cast("StudioApp", self.app)  # pyright: ignore[reportUnknownMemberType]

    def paint(self) -> None:
        """Show the app's state; called when it changes."""

    @property
    def view(self) -> LineView | None:
        """The list that keys act on."""
        if isinstance(self.focused, LineView):
            return self.focused
        found = [v for v in self.query(LineView) if v.display and v.region]
        return found[0] if found else None

    def restyle(self) -> None:
        """Draw all lists anew, after a change of theme."""
        for view in self.query(LineView):
            view.restyle()

    def title_right(self, text: str) -> None:
        """Show what the worker does."""
        for bar in self.query(TitleBar):
            bar.set(right=text)

    # --- search ----------------------------------------------------------------------------

    def open_search(self) -> None:
        """Show the search line; the list searched is the one that had the focus."""
        bars = self.query(SearchBar)
        if bars:
            self._searched = self.view
            bars.first().add_class("open")
            bars.first().focus()

    def close_search(self) -> bool:
        """Hide the search line; False if it was not open."""
        for bar in self.query(SearchBar):
            if bar.has_class("open"):
                bar.remove_class("open")
                target = getattr(self, "_searched", None)
                if isinstance(target, LineView):
                    target.focus()
                return True
        return False

    def clear_search(self) -> bool:
        """Remove marks of a search; False if there are none."""
        view = self.view
        if view is not None and view.needle:
            view.search("")
            return True
        return False

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        target = getattr(self, "_searched", None)
        if isinstance(event.input, SearchBar) and isinstance(target, LineView):
            target.search(event.value, here=True)

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        target = getattr(self, "_searched", None)
        if isinstance(event.input, SearchBar) and isinstance(target, LineView):
            found = target.search(event.value, here=True)
            self.close_search()
            if event.value and not found:
                self.notify(f"{event.value!r} is not here", timeout=2)
