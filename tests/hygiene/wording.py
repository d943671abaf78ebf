"""Prose and names of the repository, and the words of `words.toml` that they must not hold.

A *fault* is one line of text: file, line, the words found, and what to write instead.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

LIST = Path(__file__).with_name("words.toml")


@dataclass(frozen=True)
class Pattern:
    """One entry of the list. where: prose, opening (of a docstring) or name."""

    find: re.Pattern[str]
    write: str
    where: str
    bad: tuple[str, ...]
    good: tuple[str, ...]


@dataclass(frozen=True)
class Text:
    """A stretch of prose, and the line of the file that it begins in."""

    line: int
    text: str


@cache
def patterns(where: str) -> tuple[Pattern, ...]:
    entries = tomllib.loads(LIST.read_text(encoding="utf-8"))["avoid"]
    made = [
        Pattern(
            re.compile(_anchored(entry).replace(" ", r"\s+"), re.IGNORECASE),
            entry["write"],
            entry.get("where", "prose"),
            tuple(entry["bad"]),
            tuple(entry.get("good", ())),
        )
        for entry in entries
    ]
    return tuple(pattern for pattern in made if pattern.where == where)


@cache
def _any_of(where: str) -> re.Pattern[str]:
    """All patterns in one: most texts hold none, and one search says so."""
    return re.compile("|".join(f"(?:{p.find.pattern})" for p in patterns(where)), re.IGNORECASE)


def _anchored(entry: dict[str, str]) -> str:
    return r"\A\s*" + entry["find"] if entry.get("where") == "opening" else entry["find"]


def faults(texts: Iterator[Text], where: str = "prose") -> Iterator[tuple[int, str]]:
    """Line and description of each word that `texts` should not hold."""
    for text in texts:
        if not _any_of(where).search(text.text):
            continue
        for pattern in patterns(where):
            for found in pattern.find.finditer(text.text):
                line = text.line + text.text.count("\n", 0, found.start())
                words = " ".join(found[0].split())
                yield line, f"{words!r}: write {pattern.write}"


def without_code(text: str) -> str:
    """`text` with code replaced by dots, line by line, so that positions stay what they are."""
    dots = lambda found: re.sub(r"[^\n]", "·", found[0])  # noqa: E731
    text = re.sub(r"^```.*?^```$", dots, text, flags=re.M | re.S)
    text = re.sub(r"``[^`]+``|`[^`\n]+`", dots, text)
    return re.sub(r"(?<=\])\([^)\s]+\)|<!--.*?-->|^    .*$", dots, text, flags=re.M)


def page(source: str) -> Iterator[Text]:
    """The prose of a Markdown page: no code, no targets of links, no comments."""
    yield Text(1, without_code(source))


@lru_cache(maxsize=1)
def nodes(source: str) -> list[ast.AST]:
    """All nodes of a module. Walking costs most of the time, so the last module is kept."""
    return list(ast.walk(ast.parse(source)))


def docstrings(source: str) -> Iterator[Text]:
    """The docstrings of modules, classes and functions, and those below attributes."""
    for node in nodes(source):
        body = getattr(node, "body", None)
        for child in body if isinstance(body, list) else ():
            value = child.value if isinstance(child, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield Text(child.lineno, re.sub(r"``[^`]+``|`[^`\n]+`", "·", value.value))


def messages(source: str) -> Iterator[Text]:
    """String literals of three words or more that are no docstrings: messages, hints, help, log
    lines, and the texts of tables. Those of generated code are among them and hold no English."""
    skipped: set[int] = set()
    for node in nodes(source):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
    for node in nodes(source):
        if isinstance(node, ast.JoinedStr):
            parts = [p.value if isinstance(p, ast.Constant) else "·" for p in node.values]
            text = "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = "" if id(node) in skipped else node.value
        else:
            continue
        if len(text.split()) >= 3:
            yield Text(node.lineno, re.sub(r"`[^`\n]+`", "·", text))


def comments(source: str) -> Iterator[Text]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(token.start[0], token.string.lstrip("#"))


def names(source: str) -> Iterator[Text]:
    """The identifiers that a module defines: classes, functions, parameters, variables."""
    for node in nodes(source):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield Text(node.lineno, _split(node.name))
        elif isinstance(node, ast.arg):
            yield Text(node.lineno, _split(node.arg))
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield Text(node.lineno, _split(node.id if isinstance(node, ast.Name) else node.attr))


def _split(name: str) -> str:
    """The words of an identifier: `synthetic` stays whole too, for patterns of two words."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_")
    return f"{words} {words.replace('_', ' ')}"
