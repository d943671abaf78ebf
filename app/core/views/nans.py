"""The origin of a NaN, and the precision by line, as lines: for ``qd-studio nan``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from ....engine.inspect.record_nans import LinePrecision, NanReport, NanRow
from ..lines import Line, Span
from .source_lines import source_at

__all__ = ["nan_lines"]


def nan_lines(found: NanReport, texts: Mapping[str, str] | None = None) -> Iterator[Line]:
    """The op that made it, on the source, and the values around. texts: of files, by path."""
    texts = texts or {}
    name = found.kernel + (f" on {found.backend}" if found.backend else "")
    style = {"found": "bad", "none": "ok"}.get(found.state, "warn")
    word = {
        "found": found.headline,
        "none": "stores no NaN and no infinity",
        "unknown": "unknown",
        "measured": "precision lost by line",
    }
    yield Line(((f"{name}: ", "title"), (word[found.state], style)))
    if found.state == "found":
        yield from _caret(found, texts)
    facts = [
        ("reason", found.reason),
        ("where", _where(found) if found.state == "found" else ""),
        ("stored to", f"{found.stored}, line {found.stored_line}" if found.stored else ""),
        ("note", found.note),
        ("with", found.workload),
        ("compiled", f"with fast_math={found.fast_math}, as without checks"
         if found.state in ("found", "none") else ""),
    ]  # fmt: skip
    for label, text in facts:
        if text:
            yield Line(((f"  {label:<11}", "dim"), (text, "")))
    rows = [("from", row) for row in found.inputs]
    rows += [("here" if i == 0 else "then", row) for i, row in enumerate(found.steps)]
    for word_of_row, row in rows:
        yield _row(word_of_row, row, texts)
    if found.precision:
        yield from _table(found.precision, texts)


def _where(found: NanReport) -> str:
    text = f"task {found.task}"
    if found.iteration:
        text += f", iteration {', '.join(map(str, found.iteration))}"
    return text


def _caret(found: NanReport, texts: Mapping[str, str]) -> Iterator[Line]:
    text = source_at(texts, found.file, found.line)
    where = f"  {os.path.basename(found.file)}:{found.line}  "
    yield Line(((where, "accent"), (text.strip(), "")), line=found.line)
    indent = len(text) - len(text.lstrip())
    end = found.end_col if found.end_line in (0, found.line) else len(text)
    if text and end > found.col:
        pad = " " * (len(where) + found.col - indent)
        yield Line(((pad, ""), ("^" * (end - found.col), "bad")))


def _row(word: str, row: NanRow, texts: Mapping[str, str]) -> Line:
    style = "bad" if word == "here" else ""
    value = row.value if row.text != row.value else ""
    spans: list[Span] = [
        (f"  {word:<5}", "dim"),
        (f"{os.path.basename(row.file)}:{row.line:<5}", "accent"),
        (f"{row.text} = {value}" if value else row.text, style),
        (f"   {source_at(texts, row.file, row.line).strip()}", "dim"),
    ]
    return Line(tuple(spans), line=row.line)


def _table(rows: tuple[LinePrecision, ...], texts: Mapping[str, str]) -> Iterator[Line]:
    head = f"  {'line':>5}  {'ulps':>9}  {'own':>9}  {'bits':>5}"
    head += f"  {'in place of':>16}  {'it is':>16}"
    yield Line(((head, "dim"),))
    for row in rows:
        figures = f"{row.ulps:>9.3g}  {row.made:>9.3g}  {row.bits:>5.1f}"
        values = f"{row.exact:>16.9g}  {row.value:>16.9g}"
        at = f"[{', '.join(map(str, row.iteration))}]" if row.iteration else ""
        yield Line((
            (f"  {row.line:>5}  ", "accent"), (f"{figures}  {values}", ""),
            (f"  {row.op} {row.dtype}{at}", ""),
            (f"  {source_at(texts, row.file, row.line).strip()}", "dim"),
        ), line=row.line)  # fmt: skip
