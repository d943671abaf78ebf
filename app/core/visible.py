"""Safe forms of text that may hold any character, for outputs where some characters have effects.

Docstrings, messages, names of files and kernels, and saved sessions may hold any text. An escape
character steers a terminal, a carriage return hides what came before it, an override of the writing
direction shows code in another order than it runs, and half of a surrogate pair cannot be encoded
at all. All text that leaves the studio passes through one of these functions.
"""

from __future__ import annotations

import json
import re
from typing import Final

__all__ = ["json_text", "visible", "visible_json", "visible_line"]

# Controls, what has no width, separators of lines, marks of direction, halves of surrogate pairs.
_INVISIBLE: Final = (
    r"\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    r"\U000e0000-\U000e007f"
)
_IN_LINE: Final = re.compile(rf"[\x00-\x1f\x7f-\x9f{_INVISIBLE}]")
_IN_TEXT: Final = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{_INVISIBLE}]")


def visible_line(text: str) -> str:
    """``text`` as one line that can be drawn; as many characters as before.

    A control character becomes its picture (U+241B for escape), all others U+FFFD.
    """
    return text if text.isprintable() else _IN_LINE.sub(_picture, text)


def visible(text: str) -> str:
    """`visible_line` of each line of ``text``, which may have tabs in it."""
    return _IN_TEXT.sub(_picture, text)


def json_text(value: object) -> str:
    """A value as JSON with indentation, and no such character in it."""
    return visible_json(json.dumps(value, indent=1, ensure_ascii=False)) + "\n"


def visible_json(text: str) -> str:
    """JSON that means the same as ``text`` and has no such character in it."""
    return _IN_TEXT.sub(_escaped, text)


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(0x2400 + code) if code < 32 else "\u2421" if code == 127 else "\ufffd"


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
