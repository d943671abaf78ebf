"""Text for terminals and locales that cannot show every character.

Panels draw with box lines, check marks and bars. Where the locale is not UTF-8 each of them has a
plain counterpart: of one column in the studio (`narrowed`), so that nothing moves, and readable in
text that is printed (`spelled`). The environment says which locale it is: Python itself turns to
UTF-8 in the locale C, whatever the terminal shows.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Final

__all__ = ["escaped", "narrowed", "plain_locale", "spelled"]

_ALIKE: Final = {
    "─━═╌╴╶╸╺▔▁⎯‾‒–—−": "-", "│┃║▏▎▍▌▐╎": "|", "┌┐└┘├┤┬┴┼╭╮╰╯╔╗╚╝╠╣╦╩╬╞╡┏┓┗┛": "+",
    "▂▃": "_", "▄▅▆": "=", "▇█▉▊▋": "#", "░▒▓": "%", "…⋯·•∙": ".", "→►▶›▸▹": ">", "←◄◀‹◂": "<",
    "▲↑△": "^", "▼↓▽": "v", "±≈∼": "~", "×": "x", "÷": "/", "●◆■": "*", "○◇□": "o", "◌": "~",
    "◔": ":", "✓✔": "v", "✗✘": "x", "≠": "!", "≤": "<", "≥": ">", "‘’‚": "'", "“”„": '"', "µμ": "u",
    "\u00a0\u2009\u202f": " ", "³": "3", "²": "2", "¹": "1", "°": "d", "∞": "8", "⏎": "/",
}  # fmt: skip
_NARROW: Final = {ord(c): plain for several, plain in _ALIKE.items() for c in several}
_SPELLED: Final = _NARROW | {
    ord(c): text
    for c, text in {
        "✓": "ok", "≠": "!=", "≤": "<=", "≥": ">=", "→": "->", "←": "<-", "±": "+-", "…": "...",
        "≈": "~=", "∞": "inf", "—": "--",
    }.items()
}  # fmt: skip
_PLAIN: Final = frozenset({"c", "posix"})


def plain_locale(environment: Mapping[str, str], encoding: str | None) -> bool:
    """True if only ASCII should be drawn.

    encoding: of the stream that is drawn on, which decides where the environment names no locale.
    """
    if "PYTHONIOENCODING" not in environment:
        names = [environment.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG")]
        # Python sets LC_CTYPE to this itself, in the locale C and where LANG is not installed.
        if names[1] == "C.UTF-8" and names[2]:
            names[1] = ""
        chosen = next((name for name in names if name), "").lower()
        locale, _, codeset = chosen.partition(".")
        codeset = codeset.partition("@")[0].replace("-", "")
        if locale in _PLAIN and not codeset:
            return True
        if codeset:
            return codeset != "utf8"
    return not (encoding or "").lower().replace("-", "").startswith("utf")


def narrowed(text: str) -> str:
    """``text`` in ASCII, each character in as many columns as before."""
    if text.isascii():
        return text
    return "".join(c if c.isascii() else _one(c) for c in text.translate(_NARROW))


def spelled(text: str) -> str:
    """``text`` in ASCII, to be read; columns may move."""
    if text.isascii():
        return text
    return "".join(c if c.isascii() else _one(c) for c in text.translate(_SPELLED))


def escaped(text: str) -> str:
    """JSON ``text`` in ASCII, with nothing lost."""
    units = text.encode("utf-16-be", "surrogatepass")
    if len(units) == 2 * len(text) and text.isascii():
        return text
    numbers = [int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2)]
    return "".join(chr(n) if n < 128 else f"\\u{n:04x}" for n in numbers)


def _one(character: str) -> str:
    """An accent is left out; what has no like is a question mark in each of its columns."""
    if unicodedata.combining(character):
        return ""
    base = unicodedata.normalize("NFD", character)[0]
    if base.isascii():
        return base
    return "??" if unicodedata.east_asian_width(character) in "WF" else "?"
