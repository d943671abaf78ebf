"""Control-flow graphs of a compile, as lines."""

from __future__ import annotations

from collections.abc import Mapping

from ....engine.inspect.record import CfgRecord, CompileRecord, PassRun
from ..cfg_layout import CfgRow, layout
from ..lines import Line, Span, ir_spans
from ..memo import by_identity
from .places import op_lines

__all__ = ["cfg_lines", "graph_of_run", "title"]


def title(cfg: CfgRecord) -> str:
    """``task 0, simplify_III, before cfg_optimization``."""
    return f"task {cfg.task}, {cfg.stage}, {cfg.when} cfg_optimization"


def graph_of_run(compiled: CompileRecord, run: PassRun | None) -> int | None:
    """The graph that a run of cfg_optimization left behind; None for other runs."""
    if run is None:
        return None
    found = [i for i, g in enumerate(compiled.cfgs) if g.run == run.index]
    return found[-1] if found else None


@by_identity(16)
def cfg_lines(
    compiled: CompileRecord, index: int, width: int, ascii_only: bool = False
) -> list[Line]:
    """Graph ``index`` drawn in ``width`` columns; nodes that its twin lacks or has otherwise are
    marked in the border: ``*`` changed. Keys are op ids, or ("node", id) on borders."""
    if not compiled.cfgs:
        return [Line((("No control-flow graph: cfg_optimization did not run.", "dim"),))]
    cfg = compiled.cfgs[index % len(compiled.cfgs)]
    twin = _twin(compiled, index % len(compiled.cfgs))
    other = {n.id: n for n in twin.nodes} if twin else {}
    changed = {
        n.id
        for n in cfg.nodes
        if twin is not None and (n.id not in other or other[n.id].lines != n.lines)
    }
    drawing = layout(cfg, max(40, width), max_ops=40, ascii_only=ascii_only)
    lines = op_lines(compiled)
    return [_line(cfg, row, changed, lines) for row in drawing.rows]


def _twin(compiled: CompileRecord, index: int) -> CfgRecord | None:
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
