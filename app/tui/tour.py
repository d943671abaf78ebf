"""The tour through the studio: a few lines above the key bar that say what to do next.

`core.tour` has the steps. The first start ever offers the tour, on the user's own file; ``qd-studio
tour`` starts it on a file of its own, which it can also change.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from textual.widgets import Static

from ..core.tour import OFFER, STEPS, Where
from .kept import keep, kept

if TYPE_CHECKING:
    from .app import StudioApp

__all__ = ["Tour", "TourBar", "first_start"]


class Tour:
    """The place of a user in the tour. change: changes the file of the tour, if it has one."""

    def __init__(self, offered: bool = False, change: Callable[[], None] | None = None) -> None:
        self.step = -1 if offered else 0
        self._change = change
        self._changed = False
        self._began: Where | None = None

    def text(self, key: Callable[[str], str]) -> str:
        """The text of the step; empty at the end. key: the key of a command."""
        if self.step >= len(STEPS):
            return ""
        text = OFFER if self.step < 0 else STEPS[self.step].text
        if self.step >= 0:
            more = "skips this step"
            if STEPS[self.step].edits and self._change is not None and not self._changed:
                more = "changes a line of it for you"
            ends = self.step == len(STEPS) - 1
            what = "" if ends else f" ({{tour-next}} {more}, {{tour-end}} ends the tour)"
            text = f"{self.step + 1}/{len(STEPS)}  {text}{what}"
        return re.sub(r"\{([a-z-]+)\}", lambda found: f"`{key(found[1])}`", text)

    def moved(self, now: Where) -> None:
        """Go on if the user has done the step."""
        if not 0 <= self.step < len(STEPS):
            return
        if self._began is None:
            self._began = now
        if STEPS[self.step].done(self._began, now):
            self._go(now)

    def next(self, now: Where) -> None:
        """Skip the step; or do it, if the tour can."""
        edits = 0 <= self.step < len(STEPS) and STEPS[self.step].edits
        if edits and self._change is not None and not self._changed:
            self._changed = True
            self._change()
        else:
            self._go(now)

    def _go(self, now: Where) -> None:
        self.step += 1
        self._began = now

    def end(self) -> None:
        """Show nothing more."""
        self.step = len(STEPS)


class TourBar(Static):
    """Hidden unless there is a tour."""

    DEFAULT_CSS = """
    TourBar {
        display: none; height: auto; max-height: 4; padding: 0 1;
        background: $boost; color: $foreground;
    }
    TourBar.on { display: block; }
    """

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self._text = ""

    def paint(self) -> None:
        """Show the app's tour."""
        app = cast("StudioApp", self.app)  # pyright: ignore[reportUnknownMemberType]
        text = app.tour.text(app.key_name) if app.tour is not None else ""
        if text != self._text:
            self._text = text
            self.set_class(bool(text), "on")
            self.update(text)


def first_start() -> bool:
    """True once: when the studio has not been started before, as far as is known.

    If that cannot be kept, the answer is no, so that the offer is not made at every start.
    """
    return not kept().get("tour") and keep(tour=True)
