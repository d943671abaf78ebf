"""HTML of the report: cells, tables, rows of diffs, and what the sections of a kernel share."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from html import escape as esc

from ...engine.inspect.record import KernelRecord, Record
from ..core.lines import Line
from .packed import Pack

__all__ = ["Page", "anchor", "diff_row", "inner", "lines_html", "table", "td"]


def anchor(kernel: KernelRecord) -> str:
    """The fragment that links to the section of a kernel."""
    return esc("k-" + "".join(c if c.isalnum() else "-" for c in kernel.id), quote=True)


class Page:
    """The state that the sections of one kernel share.

    pack: stores the listings and drawings. anchor: the prefix of the kernel's own fragments.
    record: what the kernel is a part of.
    """

    def __init__(self, kernel: KernelRecord, pack: Pack, record: Record | None = None) -> None:
        self.anchor = anchor(kernel)
        self.pack = pack
        self.record = record or Record(kernels=(kernel,))
        self._shown: dict[Hashable, str] = {}

    def shown_for(self, thing: Hashable, backend: str) -> str:
        """The earlier backend that ``thing`` was shown for, since most passes do the same for
        several; empty if it is new, and then it is shown for ``backend``."""
        found = self._shown.get(thing, "")
        if not found:
            self._shown[thing] = backend
        return found


def td(text: str, kind: str | None = None) -> str:
    """A cell with ``text`` escaped; kind: its class."""
    return f"<td>{esc(text)}</td>" if kind is None else f'<td class="{kind}">{esc(text)}</td>'


def table(heads: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """A table that scrolls sideways. rows: cells as HTML, see `td`; no heads: a table without."""
    head = "".join(f"<th>{esc(text)}</th>" for text in heads)
    head = f"<thead><tr>{head}</tr></thead>" if heads else ""
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f'<div class="wide"><table>{head}<tbody>{body}</tbody></table></div>'


def lines_html(lines: Iterable[Line]) -> str:
    """Lines of a panel as preformatted text; styles become classes (``s-heat1``)."""
    rows = "\n".join(
        "".join(
            f"<span class=s-{style}>{inner(text)}</span>" if style else inner(text)
            for text, style in line.spans
        )
        for line in lines
    )
    return f'<pre class="lines">{rows}</pre>'


def diff_row(kind: str, sign: str, line: str, html: str) -> str:
    """A row of a diff; end tags are omitted, since reports have many rows."""
    css = "" if kind == "same" else f" class=d-{kind}"
    return f"<tr{css}><td>{line}<td>{esc(sign)}<td>{html}"


def inner(text: str) -> str:
    """Escaped for between tags, where quotes mean nothing."""
    return esc(text, quote=False)
