"""Key maps of a user: a TOML file that assigns other keys to commands.

    # keymap.toml, in the folder that the help screen names
    next-pass = "ctrl+n"
    previous-pass = ["ctrl+u", "["]

The left side is the id of a command (the help screen shows them), the right side one key or a list
of keys, as Textual names them (``ctrl+n``, ``f5``, ``space``) or as the character that is typed.
``keymap = "vim"`` (or ``"emacs"``) starts from that key map. ``keep-saves = 100`` is the number of
saves that are kept for comparisons. An entry that cannot be used is
ignored and reported; the report of an unknown id names the nearest one. Pure: the caller reads the
file.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, cast

__all__ = ["CHOICE", "KEEP_SAVES", "KEYMAPS", "LEAST_SAVES", "KeyMap", "keymap_of"]

CHOICE: Final = "keymap"
"""The entry of a file that names one of `KEYMAPS`."""
KEEP_SAVES: Final = "keep-saves"
"""The entry of a file with the number of saves to keep."""
LEAST_SAVES: Final = 2
"""The newest save, and one to compare it with."""
KEYMAPS: Final[Mapping[str, Mapping[str, str]]] = {
    "default": {},
    "vim": {
        "page-up": "pageup,ctrl+b,ctrl+u", "page-down": "pagedown,ctrl+f,ctrl+d",
        "left": "left,h,circumflex_accent", "right": "right,l,dollar_sign",
        "back": "escape,ctrl+o", "palette": "colon,ctrl+p",
        "definition": "d,ctrl+right_square_bracket", "use": "D,asterisk",
    },
    "emacs": {
        "line-up": "up,ctrl+p", "line-down": "down,ctrl+n", "page-up": "pageup,alt+v",
        "page-down": "pagedown,ctrl+v,space", "left": "left,ctrl+b", "right": "right,ctrl+f",
        "search": "ctrl+s,slash", "search-next": "n,alt+s", "search-previous": "N,ctrl+r",
        "copy": "alt+w,y", "palette": "alt+x,colon", "back": "escape,ctrl+g", "pane": "w,alt+o",
    },
}  # fmt: skip
"""Key maps by name: command id -> keys, where they differ from the usual ones.

With alt only letters: many terminals send ``alt+<`` as escape and then ``<``.
"""


class KeyMap(NamedTuple):
    """keys: command id -> keys separated by commas. problems: a line each, for the user. saves: how
    many to keep; 0 if the file does not say."""

    keys: dict[str, str]
    problems: tuple[str, ...]
    saves: int = 0


_CHARACTERS: Final = {
    "?": "question_mark", "/": "slash", ":": "colon", "[": "left_square_bracket",
    "]": "right_square_bracket", "{": "left_curly_bracket", "}": "right_curly_bracket",
    "<": "less_than_sign", ">": "greater_than_sign", ".": "full_stop", ",": "comma",
    ";": "semicolon", "-": "minus", "+": "plus", "=": "equals_sign", "*": "asterisk",
    "!": "exclamation_mark", "@": "at", "#": "number_sign", "$": "dollar_sign",
    "%": "percent_sign", "^": "circumflex_accent", "&": "ampersand", "(": "left_parenthesis",
    ")": "right_parenthesis", "_": "underscore", "|": "vertical_line", "\\": "backslash",
    "'": "apostrophe", '"': "quotation_mark", "`": "grave_accent", "~": "tilde", " ": "space",
    "esc": "escape", "pgup": "pageup", "pgdn": "pagedown", "return": "enter",
}  # fmt: skip
_KEY: Final = re.compile(r"(?:(?:ctrl|shift|alt|super)\+)*(?:[a-z][a-z0-9_]*|[A-Za-z0-9])")


def keymap_of(
    values: Mapping[str, Any], scopes: Mapping[str, tuple[str, str]], base: str | None = None
) -> KeyMap:
    """The key map in a parsed file. ``scopes``: command id -> (scope, its usual keys).

    base: one of `KEYMAPS`, which has precedence over the one that the file names.

    Commands of the scope ``everywhere`` clash with all others, those of other scopes with their
    own scope and with ``list``.
    """
    chosen = base or values.get(CHOICE, "default")
    problems: list[str] = []
    if not isinstance(chosen, str) or chosen not in KEYMAPS:
        problems.append(f"keymap: {chosen!r} is not one of {', '.join(KEYMAPS)}")
        chosen = "default"
    keys = dict(KEYMAPS[chosen])
    for id, value in values.items():
        if id in (CHOICE, KEEP_SAVES):
            continue
        if id not in scopes:
            near = difflib.get_close_matches(id, scopes, 1, 0.0)
            problems.append(f"unknown command {id!r}; the nearest is {near[0]!r}")
            continue
        wanted = cast("list[object]", value) if isinstance(value, list) else [value]
        named: list[str] = []
        for key in wanted:
            name = _CHARACTERS.get(key, key) if isinstance(key, str) else ""
            if not _KEY.fullmatch(name):
                problems.append(f"{id}: {key!r} is not a key")
            else:
                named.append(name)
        if named:
            keys[id] = ",".join(named)
    problems += _clashes(keys, scopes)
    saves = values.get(KEEP_SAVES, 0)
    if KEEP_SAVES in values and (type(saves) is not int or saves < LEAST_SAVES):
        problems.append(f"{KEEP_SAVES}: {saves!r} is not a number of {LEAST_SAVES} or more")
        saves = 0
    return KeyMap(keys, tuple(problems), saves)


def _clashes(keys: Mapping[str, str], scopes: Mapping[str, tuple[str, str]]) -> Iterable[str]:
    """Pairs of commands, one of them remapped, that share a key where both work."""
    owners: dict[str, list[str]] = {}
    for id, (_, usual) in scopes.items():
        for key in keys.get(id, usual).split(","):
            owners.setdefault(key, []).append(id)
    for key, ids in owners.items():
        for i, first in enumerate(ids):
            for second in ids[i + 1 :]:
                if (first in keys or second in keys) and _meet(scopes[first][0], scopes[second][0]):
                    yield f"{key} means both {first} and {second}"


def _meet(one: str, other: str) -> bool:
    """True if keys of two scopes can be live at the same time."""
    return one == other or bool({one, other} & {"everywhere", "list"})
