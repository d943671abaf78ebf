"""Reports: a record written as JSON, Markdown, JUnit XML, annotations or one self-contained HTML
file.

``write(record, path)`` chooses by suffix. Every format renders from the record, the findings of
rules, and the comparison with a baseline, and nothing else; findings come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...engine.inspect.compare import Comparison
from ...engine.inspect.record import Record
from ..core.rules import Finding
from ..core.visible import visible, visible_json

__all__ = ["SUFFIXES", "render", "write"]

SUFFIXES = (".json", ".md", ".html", ".xml", ".annotations", ".sarif")


def _json(record: Record, findings: Sequence[Finding], comparison: Comparison | None) -> str:
    """The record as it is saved, JSON in one line; findings go to ``extra.gates``, the comparison
    to ``extra.baseline``, what sections of other distributions add to ``extra.sections``."""
    import msgspec

    from ...engine.inspect import store
    from .sections import sections

    extra = dict(record.extra)
    if findings:
        extra["gates"] = [
            {**f._asdict(), "places": [place._asdict() for place in f.places]} for f in findings
        ]
    if comparison is not None:
        extra["baseline"] = msgspec.to_builtins(comparison)
    added = {s.id: found for s in sections() if (found := s.as_json(record)) is not None}
    if added:
        extra["sections"] = added
    if extra != record.extra:
        record = msgspec.structs.replace(record, extra=extra)
    return visible_json(store.dumps(record).decode())


def render(
    record: Record,
    suffix: str,
    findings: Sequence[Finding] = (),
    comparison: Comparison | None = None,
) -> str:
    """The report in the format of ``suffix``; ValueError for a suffix that is none of SUFFIXES.

    Markdown is what CI job summaries take as it is; HTML refers to nothing outside the file.
    comparison: with a baseline, which is its first side.
    """
    if suffix in (".annotations", ".sarif"):
        from .annotations import commands, sarif

        return (sarif if suffix == ".sarif" else commands)(record, findings)
    if suffix == ".json":
        return _json(record, findings, comparison)
    if suffix not in SUFFIXES:
        raise ValueError(f"unknown report format {suffix!r}; use one of {', '.join(SUFFIXES)}")
    if suffix == ".md":
        from .markdown import render as made
    elif suffix == ".html":
        from .html import render as made
    else:
        from .junit import render as made
    return visible(made(record, findings, comparison))


def write(
    record: Record,
    path: str | Path,
    findings: Sequence[Finding] = (),
    comparison: Comparison | None = None,
    suffix: str = "",
) -> None:
    """Write the report to ``path``, whole or not at all. suffix: of the format, if not its own."""
    path = Path(path)
    text = render(record, suffix or path.suffix, findings, comparison)
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8", errors="replace")
    part.replace(path)
