"""A record as parts of a page, a part a panel: those of the HTML report."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape as esc
from typing import Final, NamedTuple

from ...engine.inspect.record import KernelRecord, Record
from ..core import format as fmt
from ..core.lines import plain
from ..core.views.errors import error_lines, errors_of
from ..core.views.home import detail
from ..core.visible import visible
from ..markup.html import Page, lines_html
from ..markup.packed import Pack
from ..panels import panels

__all__ = ["OVERVIEW", "Section", "sections", "summary"]

OVERVIEW: Final = "overview"
_LARGEST: Final = 4_000_000


class Section(NamedTuple):
    """backend: empty for what is about all of them. panel: its id, or `OVERVIEW`."""

    kernel: str
    backend: str
    panel: str
    html: str


class _Unpacked(Pack):
    """Leaves every part where it belongs: a widget is sent compressed as a whole."""

    def details(self, title: str, body: str, kind: str) -> str:
        return f"<details><summary>{esc(title)}</summary>{visible(body)}</details>"

    def later(self, body: str, kind: str) -> str:
        return visible(body)


def sections(record: Record) -> list[Section]:
    """All sections, by kernel; those of a panel follow each other."""
    out: list[Section] = []
    for kernel in record.kernels:
        out.append(Section(kernel.id, "", OVERVIEW, _overview(record, kernel)))
        out += (part for part in _of_panels(record, kernel) if part.html)
    return [part if len(part.html) <= _LARGEST else _too_large(part) for part in out]


def _too_large(part: Section) -> Section:
    text = (
        f"{part.panel}: {fmt.size(len(part.html))}, too much for a notebook; save the cell as a "
        f"file and run: qd-studio show FILE --panel {part.panel}"
    )
    return part._replace(html=f'<p class="bad">{esc(text)}</p>')


def _overview(record: Record, kernel: KernelRecord) -> str:
    errors = errors_of(record, kernel)
    parts = [lines_html(detail(kernel))]
    if errors:
        parts.append(lines_html(error_lines(errors)))
    return visible("".join(parts))


def _of_panels(record: Record, kernel: KernelRecord) -> Iterator[Section]:
    for panel in panels():
        # A page of its own for each: no part refers to another one that is not in view.
        for _, make in sorted(panel.html.items()):
            html = make(kernel, Page(kernel, _Unpacked("w"), record))
            yield Section(kernel.id, "", panel.id, html)
        if panel.html_of_compile is None:
            continue
        for backend in kernel.backends:
            if backend.compile is not None:
                page = Page(kernel, _Unpacked("w"), record)
                html = panel.html_of_compile(kernel, backend.backend, backend.compile, page)
                yield Section(kernel.id, backend.backend, panel.id, html)


def summary(record: Record) -> str:
    """The record in a few lines of text, for where nothing else can be shown."""
    if not record.kernels:
        return "this cell defines no kernels"
    out: list[str] = []
    for kernel in record.kernels:
        out.append(plain(detail(kernel)))
        errors = errors_of(record, kernel)
        if errors:
            out.append(plain(error_lines(errors)))
    return "".join(out).rstrip("\n")
