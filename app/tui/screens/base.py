"""The base of all screens: bars, the search line, the focused list, and the too-small notice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events, on
from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Input

from ..tour import TourBar
from ..widgets.bars import KeyBar, PromptBar, TitleBar, TooSmall
from ..widgets.lines import LineView

if TYPE_CHECKING:
    from ..app import StudioApp

__all__ = ["LEAST", "StudioScreen"]

LEAST = (60, 16)
"""Columns and rows below which a screen says that it needs more room."""


class StudioScreen(Screen[None]):
    """A screen with a title, one or more line views, a search line and a key bar.

    KEYS: what the key bar shows, as (command ids, word). scope: of the screen's own commands.
    activity: forms of a text about work that the screen has begun and that ends when it is left;
    empty if there is none. It is shown in place of the worker's activity.
    """

    DEFAULT_CSS = """
    StudioScreen { layout: vertical; layers: base above; background: $background; }
    StudioScreen.small TooSmall { display: block; }
    """
    KEYS: ClassVar[Sequence[tuple[str, str]]] = ()
    scope: ClassVar[str] = ""
    AUTO_FOCUS = None
    activity: Sequence[str] = ()

    def __init__(self) -> None:
        super().__init__()
        self._searched: LineView | None = None

    @property
    def studio(self) -> StudioApp:
        return cast("StudioApp", self.app)  # pyright: ignore[reportUnknownMemberType]

    @property
    def ascii_only(self) -> bool:
        """True if signs are drawn with plain characters."""
        return self.studio.ascii_only

    def compose(self) -> ComposeResult:
        yield TitleBar()
        yield from self.body()
        yield PromptBar("search, enter to go on, esc to leave", self._entered, id="search")
        yield TourBar()
        yield KeyBar()
        yield TooSmall(LEAST)

    def body(self) -> ComposeResult:
        """The widgets between the title and the key bar."""
        raise NotImplementedError

    def on_resize(self, event: events.Resize) -> None:
        size = event.size
        self.set_class(size.width < LEAST[0] or size.height < LEAST[1], "small")

    def on_screen_resume(self) -> None:
        self.studio.tour_moved()

    def paint(self) -> None:
        """Show the app's state; called when it changes."""

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes of this screen's own commands that work now."""
        return (self.scope,)

    @property
    def view(self) -> LineView | None:
        """The list that keys act on."""
        if isinstance(self.focused, LineView):
            return self.focused
        if self._searched is not None and self.query_one("#search").has_class("open"):
            return self._searched
        found = [v for v in self.query(LineView) if v.display and v.region]
        return found[0] if found else None

    def restyle(self) -> None:
        """Redraw all lists, after a change of theme."""
        for view in self.query(LineView):
            view.restyle()

    def title_right(self, forms: Sequence[str]) -> None:
        """Show the worker's current activity."""
        for bar in self.query(TitleBar):
            bar.set(right=forms)

    def back(self) -> bool:
        """One level out within this screen; False at the top."""
        return False

    def cancel(self) -> bool:
        """Give up work that this screen has begun; False if there is none."""
        return False

    # --- search ----------------------------------------------------------------------------

    def open_search(self) -> None:
        """Show the search line; the list searched is the one that had the focus."""
        self._searched = self.view
        self.query_one("#search", PromptBar).ask()

    def close_search(self) -> bool:
        """Hide the search line; False if it was not open."""
        bar = self.query_one("#search", PromptBar)
        if not bar.has_class("open"):
            return False
        bar.remove_class("open")
        if self._searched is not None:
            self._searched.focus()
        return True

    def clear_search(self) -> bool:
        """Remove marks of a search; False if there are none."""
        found = [view for view in self.query(LineView) if view.needle and view.display]
        for view in found:
            view.search("")
        return bool(found)

    @on(Input.Changed, "#search")
    def _typed(self, event: Input.Changed) -> None:
        if self._searched is not None and event.input.has_class("open"):
            self._searched.search(event.value, here=True, typing=True)

    def _entered(self, text: str) -> None:
        if self._searched is not None:
            found = self._searched.search(text, here=True)
            self.close_search()
            if text and not found:
                self.notify(f"{text!r} is not here", timeout=2, markup=False)
