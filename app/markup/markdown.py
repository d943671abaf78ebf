"""Markdown that holds text of users: whatever the text is, it stays text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["code", "fenced", "folded", "table", "text"]


def text(text: str) -> str:
    """User text made harmless in a table cell or a paragraph."""
    for char in "\\`*_{}[]<>#|":
        text = text.replace(char, "\\" + char)
    return " ".join(text.split())


def code(text: str) -> str:
    """User text as inline code; it may contain backticks."""
    text = " ".join(text.split())
    fence = "`"
    while fence in text:
        fence += "`"
    return f"{fence} {text} {fence}" if "`" in text else f"{fence}{text}{fence}"


def fenced(text: str, language: str = "text") -> list[str]:
    """A code block, with a fence that ``text`` does not contain."""
    fence = "```"
    while fence in text:
        fence += "`"
    return [f"{fence}{language}", text, fence]


def folded(title: str, body: Iterable[str]) -> list[str]:
    """``body`` below a title that opens it; followed by an empty line."""
    return [f"<details><summary>{title}</summary>", "", *body, "</details>", ""]


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table, followed by an empty line. Cells are Markdown already."""
    out = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    out += ["| " + " | ".join(row) + " |" for row in rows]
    return [*out, ""]
