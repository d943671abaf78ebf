"""Reports: a record written as JSON, Markdown or one self-contained HTML file.

``write(record, path)`` chooses by suffix. Every format renders from the record and nothing else;
findings of rules, if any, come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...engine.inspect import store
from ...engine.inspect.record import Record
from ..core.rules import Finding
from ..core.visible import visible, visible_json

__all__ = ["SUFFIXES", "render", "to_html", "to_json", "to_markdown", "write"]

SUFFIXES = (".json", ".md", ".html")


def to_json(record: Record, findings: Sequence[Finding] = ()) -> str:
    """The record as it is saved, JSON in one line; findings go to ``extra.gates``."""
    import msgspec

    if findings:
        found = [finding._asdict() for finding in findings]
        record = msgspec.structs.replace(record, extra={**record.extra, "gates": found})
    return visible_json(store.dumps(record).decode())


def to_markdown(record: Record, findings: Sequence[Finding] = ()) -> str:
    """The record as Markdown that CI job summaries take as it is."""
    from .markdown import render as render_markdown

    return visible(render_markdown(record, findings))


def to_html(record: Record, findings: Sequence[Finding] = ()) -> str:
    """The record as one HTML file without references to anything outside it."""
    from .html import render as render_html

    return visible(render_html(record, findings))


def render(record: Record, suffix: str, findings: Sequence[Finding] = ()) -> str:
    """The report in the format of ``suffix``; ValueError for a suffix that is none of SUFFIXES."""
    formats = {".json": to_json, ".md": to_markdown, ".html": to_html}
    if suffix not in formats:
        raise ValueError(f"unknown report format {suffix!r}; use one of {', '.join(SUFFIXES)}")
    return formats[suffix](record, findings)


def write(record: Record, path: str | Path, findings: Sequence[Finding] = ()) -> None:
    """Write the report to ``path``, whole or not at all."""
    path = Path(path)
    text = render(record, path.suffix, findings)
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
