"""Labels to jump to: letters at the visible lines of all lists of a screen; typing them goes there.

With up to 26 lines a label is one letter, else two. Any other key leaves, and does nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .widgets.lines import LineView

__all__ = ["Labels"]

_LETTERS: Final = "asdfghjklqwertyuiopzxcvbnm"


class Labels:
    """The labels of a screen while they are shown."""

    def __init__(self, views: Sequence[LineView]) -> None:
        places = [
            (view, at) for view in views if view.can_focus for at in view.seen
            if any(text for text, _ in view.lines[at].spans)
        ]  # fmt: skip
        n = len(_LETTERS)
        pairs = [a + b for a in _LETTERS for b in _LETTERS]
        names = list(_LETTERS) if len(places) <= n else pairs
        self._places = dict(zip(names, places, strict=False))
        self._typed = ""
        self._show()

    def _show(self) -> None:
        """Put what is left of each label that is still possible on its line."""
        shown: dict[LineView, dict[int, str]] = {}
        for name, (view, at) in self._places.items():
            labels = shown.setdefault(view, {})
            if name.startswith(self._typed):
                labels[at] = name[len(self._typed) :]
        for view, labels in shown.items():
            view.label(labels)

    def type(self, character: str | None) -> bool:
        """Take a key; True if more are needed."""
        self._typed += character or " "
        found = self._places.get(self._typed)
        more = found is None and any(name.startswith(self._typed) for name in self._places)
        if more:
            self._show()
            return True
        for view, _ in self._places.values():
            view.label({})
        if found is not None:
            view, at = found
            view.focus()
            view.move(at)
        return False
