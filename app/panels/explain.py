"""Remarks of passes and of LLVM by source line, with advice: why the code is as it is."""

from __future__ import annotations

from typing import Final

from ...engine.inspect.record import BackendRecord, CompileRecord, KernelRecord
from ..core.format import counted
from ..core.lines import Line
from ..core.views.explained import explained, explained_lines
from ..markup import markdown as md
from ._panel import (
    Asked,
    Changes,
    Look,
    Panel,
    Shown,
    Tab,
    compiles,
    json_of_compiles,
    of_backend,
    text_of_compiles,
    to_line,
    to_source,
)  # fmt: skip

__all__ = ["PANEL"]

_NOTHING: Final = "No pass remarked on anything here."


def _draw(look: Look) -> Shown:
    compiled = look.compiled
    if compiled is None:
        return Shown([Line((("This kernel has not been compiled.", "dim"),))])
    chosen = look.sel.line if look.sel.whole else 0
    found = explained(compiled, chosen)
    missed = sum(one.kind == "missed" and not one.later for one in found)
    where = f"line {chosen} only" if chosen else "all lines"
    header = Line(((f"{counted(missed, 'missed optimisation')}  ", "title"), (where, "dim")))
    name = look.backend.backend if look.backend is not None else ""
    lines = explained_lines(look.record, look.kernel, found, look.width, look.sel.page, name)
    line = look.sel.line
    return Shown(
        lines or [Line(((_NOTHING, "dim"),))],
        [header],
        (look.kernel.id, line, chosen),
        line or None,
    )


def _chosen(look: Look, line: Line) -> Changes:
    """Open or close the documentation of the pass; from a source line to the source."""
    if not isinstance(line.key, str):
        return to_source(look, line)
    return {"tab": "explain", "page": "" if look.sel.page == line.key else line.key}


def _text(asked: Asked, backend: BackendRecord, compiled: CompileRecord) -> list[Line]:
    found = explained(compiled, asked.line)
    if asked.pass_name is not None:
        found = tuple(one for one in found if one.pass_name == asked.pass_name)
    kernel = next(k for k in asked.record.kernels if backend in k.backends)
    lines = explained_lines(
        asked.record, kernel, found, asked.width, backend=backend.backend
    )  # fmt: skip
    return lines or [Line(((_NOTHING, ""),))]


def _json(asked: Asked, kernel: KernelRecord, compiled: CompileRecord) -> dict[str, object]:
    """``{"explanations": [Explanation]}``, as `engine.inspect.explanations` returns them."""
    return {"explanations": explained(compiled, asked.line)}


def _markdown(kernel: KernelRecord) -> list[str]:
    """The missed optimisations by line, folded."""
    compiled = next((c for _, c in compiles(kernel)), None)
    found = explained(compiled) if compiled is not None else ()
    missed = [one for one in found if one.kind == "missed" and not one.later]
    if not missed:
        return []
    rows = [[str(one.line or ""), one.pass_name, md.text(one.text), md.text(one.advice)]
            for one in missed]  # fmt: skip
    table = md.table(["line", "pass", "remark", "advice"], rows)
    return md.folded(counted(len(missed), "missed optimisation"), table)


PANEL: Final = Panel(
    id="explain",
    help="Why something was not hoisted, forwarded or vectorised: remarks by source line.",
    order=85,
    tab=Tab(
        keys=(("choose", "its pass"), ("what-if", "what if"), ("whole", "this line"),
              ("backend", "backend"), ("search", "search")),
        state=of_backend("passes"),
        draw=_draw,
        moved=to_line,
        chosen=_chosen,
        flips=("whole",),
    ),
    text=text_of_compiles(_text),
    json=json_of_compiles(_json),
    markdown={50: _markdown},
)  # fmt: skip
