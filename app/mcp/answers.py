"""Answers of the tools: a part of a list that fits, where to go on, and errors with their place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, cast

from ...engine.inspect.record import ErrorRecord
from ..core import format as fmt
from ..core.visible import visible

__all__ = ["LIMIT", "MOST", "ToolError", "answer", "error_of", "failed"]

LIMIT: Final = 100
"""Lines or items of an answer, if the caller does not say."""
MOST: Final = 1000
_CHARACTERS: Final = 24_000
_LONGEST_LINE: Final = 1_000
_LONGEST_TEXT: Final = 400
_LONGEST_LIST: Final = 20


class ToolError(Exception):
    """Ends a call with an error. errors: what failed in the user's files."""

    def __init__(
        self, message: str, hint: str = "", kind: str = "usage", errors: Sequence[ErrorRecord] = ()
    ) -> None:
        super().__init__(message)
        self.hint: Final = hint
        self.kind: Final = kind
        self.errors: Final = tuple(errors)


def answer(
    found: Sequence[Any], start: int, limit: int, narrow: str, **facts: Any
) -> dict[str, Any]:
    """A part of ``found`` from ``start`` on, of ``limit`` entries at most, and of a bounded size.

    found: lines of text, or objects. narrow: which arguments make the list shorter. facts: other
    members of the answer.
    """
    lines = all(isinstance(entry, str) for entry in found)
    part: list[Any] = []
    room, cut = _CHARACTERS - len(json.dumps(facts, ensure_ascii=False)), 0
    for entry in found[start : start + limit]:
        shown, was_cut = _line(entry) if isinstance(entry, str) else _within(entry, room)
        size = len(json.dumps(shown, ensure_ascii=False))
        if part and size > room:
            break
        room -= size
        cut += was_cut
        part.append(shown)
    end = start + len(part)
    left = end < len(found)
    more: list[str] = []
    if left:
        more.append(f"call again with start={end}, or narrow it down: {narrow}")
    if cut:
        more.append(f"too long and shortened: {fmt.counted(cut, 'item')}; narrow it down: {narrow}")
    return {
        **facts,
        "lines" if lines and found else "items": part,
        "start": start,
        "total": len(found),
        "truncated": left or bool(cut),
        "next_start": end if left else None,
        "more": "; ".join(more),
    }


def _line(text: str) -> tuple[str, bool]:
    """(a line of bounded length, True if it was cut)."""
    text = visible(text)
    over = len(text) - _LONGEST_LINE
    return (f"{text[:_LONGEST_LINE]} [+{over} characters]", True) if over > 0 else (text, False)


def _within(entry: Any, room: int) -> tuple[Any, bool]:
    """(an object that fits, True if something of it was left out)."""
    if len(json.dumps(entry, ensure_ascii=False)) <= room:
        return entry, False
    return _shortened(entry), True


def _shortened(value: Any) -> Any:
    """Long texts and lists within an object, each with a note of what was left out."""
    if isinstance(value, str):
        over = len(value) - _LONGEST_TEXT
        return f"{value[:_LONGEST_TEXT]} [+{over} characters]" if over > 0 else value
    if isinstance(value, list | tuple):
        entries = cast("Sequence[Any]", value)
        out = [_shortened(entry) for entry in entries[:_LONGEST_LIST]]
        over = len(entries) - _LONGEST_LIST
        return [*out, f"[+{over} entries]"] if over > 0 else out
    if isinstance(value, dict):
        return {k: _shortened(v) for k, v in cast("dict[str, Any]", value).items()}
    return value


def error_of(error: ErrorRecord) -> dict[str, Any]:
    """An error of the user's file: place, source line with the caret below it, and what to do."""
    return {
        "kind": error.kind,
        "message": error.message[:1000],
        "stage": error.stage,
        "pass": error.pass_name,
        "kernel": error.kernel,
        "backend": error.backend,
        "file": error.file,
        "line": error.line,
        "column": _column(error),
        "caret": _caret(error),
        "hint": error.hint,
        "text": fmt.error_text(error)[:1500],
    }


def _column(error: ErrorRecord) -> int:
    """The first column in characters, from 1; 0 if the line is not known."""
    if not error.line:
        return 0
    return len(error.source.encode()[: error.col].decode(errors="replace")) + 1


def _caret(error: ErrorRecord) -> str:
    """The source line and carets below its span; empty if it is not known."""
    if not error.source or not error.line:
        return ""
    source = error.source.encode()
    end = error.end_col if error.end_line in (0, error.line) else len(source)
    before = source[: error.col].decode(errors="replace")
    span = source[error.col : max(end, error.col + 1)].decode(errors="replace")
    blank = "".join("\t" if c == "\t" else " " for c in before)
    return f"{error.source}\n{blank}{'^' * max(1, len(span))}"[:600]


def failed(error: ToolError) -> dict[str, Any]:
    """The answer of a call that failed."""
    return {
        "error": {"kind": error.kind, "message": str(error)[:4000], "hint": error.hint},
        "errors": [error_of(one) for one in error.errors[:10]],
        "truncated": len(error.errors) > 10,
    }
