"""Sections of reports that other distributions add: entry points ``qd_studio.report_sections``.

A section is about the whole record; `Panel.markdown` and `Panel.html` are for the section of a
kernel. One that cannot be imported, or that raises, is replaced by a sentence with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from html import escape as esc
from typing import Any, Final

import msgspec

from ...engine.inspect.record import Record
from ..core.extensions import found_in, text_of
from ..markup import markdown as md
from ..panels._plugins import as_text

__all__ = ["GROUP", "ReportSection", "sections"]

GROUP: Final = "qd_studio.report_sections"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSection:
    """A section below the table of kernels.

    id: that of its entry point. title: its heading. markdown: lines of Markdown, without the
    heading. html: HTML, whose text the section has to escape (`html.escape`); the page runs no
    script of others. json: a value for ``extra.sections`` of the JSON report. Each is optional.
    fault: why the section cannot be used.
    """

    id: str
    title: str
    markdown: Callable[[Record], Iterable[str]] | None = None
    html: Callable[[Record], str] | None = None
    json: Callable[[Record], Any] | None = None
    fault: str = ""

    def as_markdown(self, record: Record) -> list[str]:
        """The section with its heading; empty if it has none."""
        if self.markdown is None:
            return []
        try:
            lines = [as_text(line) for line in self.markdown(record)]
        except Exception as error:  # the code of others, on any record
            lines = [md.text(self._failed(error))]
        return [f"## {md.text(self.title)}", "", *lines, ""]

    def as_html(self, record: Record) -> str:
        """The section with its heading; empty if it has none."""
        if self.html is None:
            return ""
        try:
            body = as_text(self.html(record))
        except Exception as error:  # the code of others, on any record
            body = f'<p class="bad">{esc(self._failed(error))}</p>'
        return f"<section><h2>{esc(self.title)}</h2>{body}</section>"

    def as_json(self, record: Record) -> object:
        """The value for ``extra.sections``; None if there is none."""
        if self.json is None:
            return None
        try:
            return msgspec.to_builtins(self.json(record))
        except Exception as error:  # the code of others, on any record
            return {"fault": self._failed(error)}

    def _failed(self, error: Exception) -> str:
        return f"report section {self.id!r} failed: {text_of(error)}"


@cache
def sections() -> tuple[ReportSection, ...]:
    """The sections that are installed, by name."""
    return tuple(
        _faulty(x.name, x.fault) if x.fault else x.value
        for x in found_in(GROUP, "report section", ReportSection, ())
    )


def _faulty(name: str, fault: str) -> ReportSection:
    return ReportSection(
        id=name, title=name, fault=fault,
        markdown=lambda record: [md.text(fault)],
        html=lambda record: f'<p class="bad">{esc(fault)}</p>',
        json=lambda record: {"fault": fault},
    )  # fmt: skip
