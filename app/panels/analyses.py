"""The results of analyses of other distributions (`core.analyses`): numbers and remarks.

The panel is a tab only where an analysis is installed.
"""

from __future__ import annotations

from typing import Final

from ...engine.inspect.record import BackendRecord, CompileRecord, KernelRecord
from ..core.analyses import Analysis, AnalysisRemark, Result, analyses, result_of
from ..core.lines import Line
from ..markup import markdown as md
from ..markup.html import Page, td
from ..markup.html import table as html_table
from ._panel import (
    Asked,
    Look,
    Panel,
    Shown,
    Tab,
    compiles,
    json_of_compiles,
    of_backend,
    text_of_compiles,
)

__all__ = ["PANEL"]

_NONE: Final = "No package with an analysis is installed; see docs/plugins.md."


def _results(
    kernel: KernelRecord, backend: BackendRecord, compiled: CompileRecord
) -> list[tuple[Analysis, Result]]:
    return [(a, result_of(a, kernel, backend, compiled)) for a in analyses()]


def _place(kernel: KernelRecord, remark: AnalysisRemark) -> str:
    return f"{kernel.file}:{remark.line}: " if remark.line else ""


def _lines(kernel: KernelRecord, backend: BackendRecord, compiled: CompileRecord) -> list[Line]:
    """The analyses one below the other: numbers with their meaning, then remarks."""
    out: list[Line] = []
    for analysis, found in _results(kernel, backend, compiled):
        out.append(Line(((analysis.id, "head"), (f"  {analysis.help}", "dim"))))
        if found.fault:
            out.append(Line(((f"  {found.fault}", "bad"),)))
        width = max((len(name) for name in found.numbers), default=0)
        for name, value in found.numbers.items():
            meaning = analysis.numbers.get(name, "")
            spans = (
                (f"  {name:<{width}}  ", ""),
                (f"{value:>10,g}", "num"),
                (f"  {meaning}", "dim"),
            )
            out.append(Line(spans, (analysis.id, name), f"{name}\t{value:g}"))
        for remark in found.remarks:
            place = f"{remark.line:>5} " if remark.line else "      "
            out.append(Line(((place, "gutter"), (remark.text, "")), line=remark.line))
    return out or [Line(((_NONE, "dim"),))]


def _draw(look: Look) -> Shown:
    backend, compiled = look.backend, look.compiled
    if backend is None or compiled is None:
        return Shown([Line((("not compiled", "dim"),))])
    return Shown(_lines(look.kernel, backend, compiled))


def _text(asked: Asked, backend: BackendRecord, compiled: CompileRecord) -> list[Line]:
    kernel = next(k for k in asked.record.kernels if any(b is backend for b in k.backends))
    return _lines(kernel, backend, compiled)


def _json(asked: Asked, kernel: KernelRecord, compiled: CompileRecord) -> dict[str, object]:
    """``{"analyses": {ID: {"numbers": {NAME: VALUE}, "remarks": [...], "fault": TEXT}}}``."""
    backend = next(b for b, c in compiles(kernel) if c is compiled)
    found = _results(kernel, backend, compiled)
    return {
        "analyses": {
            a.id: {
                "numbers": dict(r.numbers),
                "remarks": [remark._asdict() for remark in r.remarks],
                "fault": r.fault,
            }
            for a, r in found
        }
    }


def _rows(kernel: KernelRecord) -> list[tuple[str, str, str, str]]:
    """(backend, analysis, number or place, value or text)."""
    rows: list[tuple[str, str, str, str]] = []
    for backend, compiled in compiles(kernel):
        for analysis, found in _results(kernel, backend, compiled):
            head = (backend.backend, analysis.id)
            if found.fault:
                rows.append((*head, "fault", found.fault))
            rows += [(*head, name, f"{value:,g}") for name, value in found.numbers.items()]
            rows += [(*head, "remark", f"{_place(kernel, r)}{r.text}") for r in found.remarks]
    return rows


_HEADS: Final = ("backend", "analysis", "what", "value")


def _markdown(kernel: KernelRecord) -> list[str]:
    rows = _rows(kernel)
    if not rows:
        return []
    return ["### Analyses", "", *md.table(_HEADS, [[md.text(x) for x in row] for row in rows])]


def _html(kernel: KernelRecord, page: Page) -> str:
    rows = _rows(kernel)
    if not rows:
        return ""
    return f"<h3>Analyses</h3>{html_table(_HEADS, [[td(x) for x in row] for row in rows])}"


PANEL: Final = Panel(
    id="analyses",
    help="The numbers and remarks of analyses that other packages add.",
    order=87,
    tab=Tab(draw=_draw, state=of_backend("passes")) if analyses() else None,
    text=text_of_compiles(_text),
    json=json_of_compiles(_json),
    markdown={75: _markdown},
    html={75: _html},
)
