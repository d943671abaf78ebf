"""Control-flow graphs of a compile, as lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

from ...engine.inspect.record import BackendRecord, CfgRecord, CompileRecord, KernelRecord, PassRun
from ..core.cfg_layout import CfgRow, layout, to_dot, to_mermaid, to_svg
from ..core.lines import Line, Span, ir_spans
from ..core.memo import by_identity
from ..core.state import run_of
from ..core.views.source_lines import op_lines
from ..markup.html import Page
from ._panel import (
    Asked,
    Changes,
    Look,
    Panel,
    Shown,
    Tab,
    json_of_compiles,
    of_backend,
    text_of_compiles,
)  # fmt: skip

__all__ = ["PANEL", "cfg_lines", "graph_of_run", "title"]

_WIDEST: Final = 110
"""A wider drawing is no easier to read."""


def title(cfg: CfgRecord) -> str:
    """``task 0, simplify_III, before cfg_optimization``."""
    return f"task {cfg.task}, {cfg.stage}, {cfg.when} cfg_optimization"


def graph_of_run(compiled: CompileRecord, run: PassRun | None) -> int | None:
    """The last graph of a run of cfg_optimization; None for other runs."""
    if run is None:
        return None
    found = [i for i, g in enumerate(compiled.cfgs) if g.run == run.index]
    return found[-1] if found else None


@by_identity(16)
def cfg_lines(
    compiled: CompileRecord, index: int, width: int, ascii_only: bool = False
) -> list[Line]:
    """Graph ``index`` drawn in ``width`` columns; nodes that the pass changed are marked in
    the border with ``*``. Keys are op ids, or ("node", id) on borders."""
    if not compiled.cfgs:
        return [Line((("No control-flow graph: cfg_optimization did not run.", "dim"),))]
    cfg = compiled.cfgs[index % len(compiled.cfgs)]
    counterpart = _counterpart(compiled, index % len(compiled.cfgs))
    other = {n.id: n for n in counterpart.nodes} if counterpart else {}
    changed = {
        n.id
        for n in cfg.nodes
        if counterpart is not None and (n.id not in other or other[n.id].lines != n.lines)
    }
    drawing = layout(cfg, max(40, width), max_ops=40, ascii_only=ascii_only)
    lines = op_lines(compiled)
    return [_line(cfg, row, changed, lines) for row in drawing.rows]


def _counterpart(compiled: CompileRecord, index: int) -> CfgRecord | None:
    cfg = compiled.cfgs[index]
    step = 1 if cfg.when == "before" else -1
    at = index + step
    if 0 <= at < len(compiled.cfgs):
        found = compiled.cfgs[at]
        if (found.task, found.stage) == (cfg.task, cfg.stage) and found.when != cfg.when:
            return found
    return None


def _line(cfg: CfgRecord, row: CfgRow, changed: set[int], lines: Mapping[int, int]) -> Line:
    text = row.text
    if row.node < 0:
        return Line(((text, "dim"),))
    node = cfg.nodes[row.node]
    left, box, right = text[: row.start], text[row.start : row.end], text[row.end :]
    spans: list[Span] = [(left, "warn")]
    if row.op >= 0:
        inner = box[1:-1]
        spans += [(box[0], "dim"), *ir_spans(inner), (box[-1], "dim")]
        copy = node.lines[node.ops.index(row.op)].strip()
    else:
        if node.id in changed and len(box) > 3:
            box = box[:-2] + "*" + box[-1]
        spans.append((box, "accent" if node.parallel else "dim"))
        copy = text
    spans.append((right, "dim"))
    key: object = row.op if row.op >= 0 else ("node", node.id)
    return Line(tuple(spans), key, copy, line=lines.get(row.op, 0))


# ---- the panel


def _draw(look: Look) -> Shown:
    compiled = look.compiled
    if compiled is None or not compiled.cfgs:
        text = "No control-flow graph: this kernel was not compiled."
        if compiled is not None:
            text = "No control-flow graph: cfg_optimization did not run."
        return Shown([Line(((text, "dim"),))])
    at, op = look.sel.cfg % len(compiled.cfgs), look.sel.op
    lines = cfg_lines(compiled, at, min(_WIDEST, look.width - 2), look.ascii_only)
    where = f"graph {at + 1} of {len(compiled.cfgs)}  "
    header = Line(((where, "dim"), (title(compiled.cfgs[at]), "title")))
    return Shown(lines, [header], (at, op), op if op != -1 else None, state=_state(look))


def _moved(look: Look, line: Line) -> Changes:
    if not isinstance(line.key, int):
        return {}
    return {"op": line.key, "line": line.line or look.sel.line}


def _step(look: Look, step: int) -> Changes:
    return {"cfg": look.sel.cfg + step}


def _opened(look: Look) -> Changes:
    compiled = look.compiled
    graph = graph_of_run(compiled, run_of(compiled, look.sel)) if compiled is not None else None
    return {} if graph is None else {"cfg": graph}


def _files(look: Look) -> dict[str, Callable[[], str]]:
    """The graph in the formats of other programs."""
    compiled = look.compiled
    if compiled is None or not compiled.cfgs:
        return {}
    graph = compiled.cfgs[look.sel.cfg % len(compiled.cfgs)]
    return {
        ".svg": lambda: to_svg(graph),
        ".dot": lambda: to_dot(graph),
        ".mmd": lambda: to_mermaid(graph),
    }


def _graphs(asked: Asked, compiled: CompileRecord) -> list[tuple[int, CfgRecord]]:
    """The graphs of the pass asked for, with their indices."""
    graphs = list(enumerate(compiled.cfgs))
    if asked.pass_name is None or not graphs:
        return graphs
    runs = {run.index for run in asked.runs(compiled)}
    return [(i, graph) for i, graph in graphs if graph.run in runs]


def _text(asked: Asked, backend: BackendRecord, compiled: CompileRecord) -> list[Line]:
    out: list[Line] = []
    for index, graph in _graphs(asked, compiled):
        out.append(Line(((title(graph), "title"),)))
        out += cfg_lines(compiled, index, asked.width)
    return out or [Line((("no control-flow graph was recorded", ""),))]


def _json(asked: Asked, kernel: KernelRecord, compiled: CompileRecord) -> dict[str, object]:
    """``{"cfgs": [CfgRecord]}``."""
    return {"cfgs": [graph for _, graph in _graphs(asked, compiled)]}


def _html(kernel: KernelRecord, backend: str, compiled: CompileRecord, page: Page) -> str:
    """The graphs of each task, those that an earlier backend has left out."""
    parts: list[str] = []
    for first, second in pairwise((*compiled.cfgs, None)):
        if first is None or first.when != "before":
            continue
        after = second if second is not None and second.when == "after" else None
        body = _figures(first, after)
        if not page.shown_for((first.stage, first.task, body), backend):
            heading = f"Control flow of task {first.task}, {first.stage}"
            parts.append(page.pack.details(heading, body, "graph"))
    return "".join(parts)


def _figures(before: CfgRecord, after: CfgRecord | None) -> str:
    """Both graphs next to each other, or one where they look the same."""
    pictures = {"before": to_svg(before)}
    if after is not None:
        picture = to_svg(after)
        same = picture == pictures["before"]
        pictures = {"before and after": picture} if same else {**pictures, "after": picture}
    figures = "".join(
        f"<figure>{picture}<figcaption>{caption}</figcaption></figure>"
        for caption, picture in pictures.items()
    )
    return f"<div class='cfgs'>{figures}</div>"


_state: Final = of_backend("passes")

PANEL: Final = Panel(
    id="cfg",
    help="The control-flow graph of each task, before and after cfg_optimization.",
    order=30,
    tab=Tab(
        keys=(("previous-pass+next-pass", "graph"), ("definition+use", "def/use"),
              ("export", "export"), ("search", "search")),
        state=_state,
        draw=_draw,
        moved=_moved,
        step=_step,
        opened=_opened,
        files=_files,
        ir=True,
    ),
    text=text_of_compiles(_text),
    json=json_of_compiles(_json),
    html_of_compile=_html,
)  # fmt: skip
