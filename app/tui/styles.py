"""Colours of line styles, for dark, light and terminal-colour themes.

Additions are blue and removals orange, which people who confuse red and green can distinguish;
whatever a colour says is also said by a sign or glyph. In terminal colours (the ``ansi-*``
themes, used without colour too) marks are bold or underlined and the cursor is reversed.
"""

from __future__ import annotations

from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

from ..core.charset import narrowed
from .palettes import CURSORS, PALETTES

__all__ = ["COUNTERPARTS", "SUCCESSORS", "AsciiFilter", "cursor_style", "search_style", "styles"]

COUNTERPARTS: Final = {
    "textual-dark": "textual-light", "textual-light": "textual-dark",
    "ansi-dark": "ansi-light", "ansi-light": "ansi-dark",
    "high-contrast": "high-contrast-light", "high-contrast-light": "high-contrast",
    "safe": "safe-light", "safe-light": "safe",
}  # fmt: skip
"""The light or dark counterpart of a theme."""
SUCCESSORS: Final = {
    "textual-dark": "high-contrast", "high-contrast": "safe", "safe": "textual-dark",
    "textual-light": "high-contrast-light", "high-contrast-light": "safe-light",
    "safe-light": "textual-light",
}  # fmt: skip
"""The next theme, as light or dark as this one."""

_DARK: Final = {
    "dim": "#8b949e", "title": "bold #e6edf3", "head": "bold #9fb3c8", "num": "#e6edf3",
    "ok": "#56d4bc", "bad": "bold #ff8f73", "warn": "#e3b341", "accent": "#79c0ff",
    "add": "on #0f2a4a", "del": "on #43270f", "move": "on #2c2149",
    "add-mark": "bold on #1f5694", "del-mark": "bold on #8a4a12",
    "op": "#d2a8ff", "type": "#7ee0c8", "id": "#a5d6ff", "const": "#f2cc60", "str": "#f2cc60",
    "kw": "#ff9bce", "comment": "#8b949e", "gutter": "#6e7681",
    "heat1": "#4b7bb5", "heat2": "#e3b341", "heat3": "#ff8f50",
    "pending": "italic #8b949e", "stale": "italic #b59a5b",
}  # fmt: skip
_LIGHT: Final = {
    "dim": "#656d76", "title": "bold #1f2328", "head": "bold #44546a", "num": "#1f2328",
    "ok": "#0b6e5f", "bad": "bold #b3340a", "warn": "#8a5a00", "accent": "#0550ae",
    "add": "on #ddf0ff", "del": "on #ffe9d6", "move": "on #efe3ff",
    "add-mark": "bold on #9fd0ff", "del-mark": "bold on #ffc58f",
    "op": "#6f42c1", "type": "#0b6e5f", "id": "#0550ae", "const": "#8a5a00", "str": "#8a5a00",
    "kw": "#a6266e", "comment": "#656d76", "gutter": "#8c959f",
    "heat1": "#5b8dc9", "heat2": "#b58400", "heat3": "#c2410c",
    "pending": "italic #656d76", "stale": "italic #7d5a1e",
}  # fmt: skip
_ANSI: Final = {
    "dim": "dim", "title": "bold", "head": "bold", "num": "", "ok": "cyan",
    "bad": "bold red", "warn": "yellow", "accent": "blue", "add": "bold blue", "del": "yellow",
    "move": "magenta", "add-mark": "bold underline blue", "del-mark": "underline yellow",
    "op": "magenta", "type": "cyan", "id": "blue", "const": "yellow", "str": "yellow",
    "kw": "magenta", "comment": "dim", "gutter": "dim", "heat1": "blue", "heat2": "yellow",
    "heat3": "bold red", "pending": "italic dim", "stale": "italic yellow",
}  # fmt: skip


def styles(theme: str, dark: bool) -> dict[str, Style]:
    """Style objects by name for the theme called ``theme``."""
    usual = _ANSI if theme.startswith("ansi") else _DARK if dark else _LIGHT
    chosen = PALETTES.get(theme, usual)
    return {"": Style(), **{name: Style.parse(text or "none") for name, text in chosen.items()}}


def cursor_style(theme: str, dark: bool, focused: bool) -> Style:
    """The style that is laid over the line under the cursor."""
    if theme.startswith("ansi"):
        return Style(reverse=True) if focused else Style(underline=True)
    if theme in CURSORS:
        return Style.parse(CURSORS[theme][0 if focused else 1])
    if dark:
        return Style(bgcolor="#2b3b55" if focused else "#21262d")
    return Style(bgcolor="#cfe0f5" if focused else "#eaeef2")


def search_style(theme: str, dark: bool) -> Style:
    """The style that is laid over a match of the search."""
    if theme.startswith("ansi"):
        return Style(reverse=True, bold=True)
    return Style(color="#000000", bgcolor="#f2cc60", bold=True)


class AsciiFilter(LineFilter):
    """The last step of drawing where the terminal shows only ASCII: also borders, scroll bars,
    toasts and what users print."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment if segment.text.isascii() else segment._replace(text=narrowed(segment.text))
            for segment in segments
        ]
