"""The studio's own themes: of high contrast, and safe for people who confuse red and green.

In the first pair every text has a contrast of at least 7 on every ground that it is drawn on (WCAG
level AAA). In the second pair colours with a meaning are blue, orange, yellow and grey: they stay
different from each other for people who see no red or no green. Tests measure both.
"""

from __future__ import annotations

from typing import Final

from textual.theme import Theme

__all__ = ["CURSORS", "PALETTES", "THEMES"]

PALETTES: Final = {
    "high-contrast": {
        "dim": "#d0d0d0", "title": "bold #ffffff", "head": "bold #ffffff", "num": "#ffffff",
        "ok": "#66e0ff", "bad": "bold #ffb347", "warn": "#ffff66", "accent": "#80d4ff",
        "add": "on #00264d", "del": "on #452200", "move": "on #2e0059",
        "add-mark": "bold underline on #002b57", "del-mark": "bold underline on #4a2500",
        "op": "#e5ccff", "type": "#99ffe6", "id": "#cce6ff", "const": "#ffe680",
        "str": "#ffe680", "kw": "#ffccee", "comment": "#d0d0d0", "gutter": "#d0d0d0",
        "heat1": "#99ccff", "heat2": "#ffff66", "heat3": "#ffb347",
        "pending": "italic #d0d0d0", "stale": "italic #ffe680",
    },
    "high-contrast-light": {
        "dim": "#303030", "title": "bold #000000", "head": "bold #000000", "num": "#000000",
        "ok": "#003f66", "bad": "bold #702800", "warn": "#4d3a00", "accent": "#00357a",
        "add": "on #d6ebff", "del": "on #ffe8cc", "move": "on #eee0ff",
        "add-mark": "bold underline on #b8dcff", "del-mark": "bold underline on #ffd9a6",
        "op": "#451a85", "type": "#00423d", "id": "#00357a", "const": "#4d3500",
        "str": "#4d3500", "kw": "#6b0d48", "comment": "#303030", "gutter": "#303030",
        "heat1": "#00357a", "heat2": "#4d3a00", "heat3": "#702800",
        "pending": "italic #303030", "stale": "italic #4d3500",
    },
    "safe": {
        "dim": "#9aa3ad", "title": "bold #e6edf3", "head": "bold #a9bdd2", "num": "#e6edf3",
        "ok": "#56b4e9", "bad": "bold #ff8c26", "warn": "#f7ec8a", "accent": "#8ecbff",
        "add": "on #0b2f5c", "del": "on #4d2c08", "move": "on #3b3b3b",
        "add-mark": "bold on #14539a", "del-mark": "bold on #7d430c",
        "op": "#c9c3ff", "type": "#a9d6f5", "id": "#c4dcf5", "const": "#f2cc60",
        "str": "#f2cc60", "kw": "#ffc58a", "comment": "#9aa3ad", "gutter": "#9aa3ad",
        "heat1": "#4f9bd9", "heat2": "#f7ec8a", "heat3": "#ff8c26",
        "pending": "italic #9aa3ad", "stale": "italic #cdb26a",
    },
    "safe-light": {
        "dim": "#57606a", "title": "bold #1f2328", "head": "bold #44546a", "num": "#1f2328",
        "ok": "#004f9e", "bad": "bold #5c1f00", "warn": "#806400", "accent": "#0550ae",
        "add": "on #d3e9ff", "del": "on #ffe4c2", "move": "on #e3e3e3",
        "add-mark": "bold on #a8d4ff", "del-mark": "bold on #ffcb8f",
        "op": "#4b3fa8", "type": "#1d4f7a", "id": "#0550ae", "const": "#6b4a00",
        "str": "#6b4a00", "kw": "#7d3f00", "comment": "#57606a", "gutter": "#57606a",
        "heat1": "#2068b0", "heat2": "#806400", "heat3": "#5c1f00",
        "pending": "italic #57606a", "stale": "italic #6b5416",
    },
}  # fmt: skip
"""Styles by name for each theme."""

CURSORS: Final = {
    "high-contrast": ("bold #000000 on #ffffff", "underline"),
    "high-contrast-light": ("bold #ffffff on #000000", "underline"),
    "safe": ("on #23344f", "on #21262d"),
    "safe-light": ("on #dbe8f7", "on #eaeef2"),
}
"""The line under the cursor, in the list that has the focus and in others."""


def _theme(name: str, text: str, ground: str, panel: str) -> Theme:
    dark = not name.endswith("light")
    style = PALETTES[name]
    colors = {key: style[key].rpartition(" ")[2] for key in ("ok", "bad", "warn", "accent")}
    return Theme(
        name=name, dark=dark, foreground=text, background=ground, surface=panel, panel=panel,
        primary=colors["accent"], secondary=colors["accent"], accent=colors["accent"],
        success=colors["ok"], warning=colors["warn"], error=colors["bad"],
    )  # fmt: skip


THEMES: Final = (
    _theme("high-contrast", "#ffffff", "#000000", "#101010"),
    _theme("high-contrast-light", "#000000", "#ffffff", "#f4f4f4"),
    _theme("safe", "#e0e0e0", "#121212", "#242f38"),
    _theme("safe-light", "#1f2328", "#ffffff", "#f4f6f8"),
)
