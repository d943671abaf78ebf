"""The control flow of a compile before and after each pass, as lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import msgspec

from ...engine.inspect.graphs import (
    GraphDiff,
    GraphError,
    graphs_of,
    live_graphs,
    live_graphs_of,
    pass_graphs,
)
from ...engine.inspect.record import (
    BackendRecord,
    CfgRecord,
    CompileRecord,
    FileRecord,
    KernelRecord,
    PassRun,
)
from ..core.cfg_export import to_dot, to_mermaid, to_svg
from ..core.cfg_layout import GraphRow, draw, outline, overview
from ..core.lines import Line, Span, ir_spans, readable_spans
from ..core.memo import by_identity
from ..core.state import name_of, run_of, step_run
from ..core.views.changes import readable_of, shown_op
from ..core.views.source_lines import op_lines
from ..markup.html import Page
from ._panel import (
    Asked,
    Block,
    Changes,
    Look,
    Panel,
    Shown,
    Tab,
    compiles,
    json_of_compiles,
    of_backend,
    text_of_compiles,
)  # fmt: skip

__all__ = [
    "FORMS", "PANEL", "drawn", "graph_run", "graphs", "is_ready", "known", "no_graph", "run_title",
]  # fmt: skip

FORMS: Final = ("drawing", "overview", "outline")
_WIDEST: Final = 110
"""A wider drawing is no easier to read."""
_OWN: Final = "cfg_optimization"
"""The pass that works on the graph."""
_EXPORTS: Final = {"svg": to_svg, "dot": to_dot, "mermaid": to_mermaid}

_listed: Final = by_identity(8)(graphs_of)
_live: Final = by_identity(8)(live_graphs_of)


@by_identity(16)
def graphs(compiled: CompileRecord, run: PassRun) -> tuple[GraphDiff, ...]:
    """The graphs that a run changed, or those that it ran on; see `pass_graphs`."""
    return pass_graphs(compiled, run, _listed, _live)


def graph_run(compiled: CompileRecord, selected: PassRun | None = None) -> PassRun | None:
    """The run whose graphs are shown: the selected one, else the first of cfg_optimization with an
    effect, else the last with one, else the last."""
    if selected is not None or not compiled.runs:
        return selected
    changed = [r for r in compiled.runs if r.state == "changed"]
    own = [r for r in changed if r.name == _OWN]
    return (own or changed[-1:] or compiled.runs[-1:])[0]


def run_title(run: PassRun) -> str:
    """``cfg_optimization (simplify_III, task 0)``."""
    parts = [run.stage] if run.stage else []
    parts += [f"round {run.round}"] if run.round > 1 else []
    parts += [f"task {run.task}"] if run.task is not None else []
    return f"{run.name} ({', '.join(parts)})" if parts else run.name


@by_identity(16)
def _readable(
    compiled: CompileRecord, run: PassRun, files: tuple[FileRecord, ...]
) -> tuple[GraphDiff, ...]:
    """`graphs` in the readable form of IR."""
    from ...engine.inspect.readable_graphs import readable_graphs

    old, new = (
        readable_of(compiled, compiled.snapshots[i], files) for i in (run.before, run.after)
    )
    return readable_graphs(graphs(compiled, run), old, new, compiled.origins)


def is_ready(compiled: CompileRecord, run: PassRun, files: tuple[FileRecord, ...] | None) -> bool:
    """True if the graphs of a run are made already."""
    return graphs.has(compiled, run) and (files is None or _readable.has(compiled, run, files))


@by_identity(16)
def drawn(
    compiled: CompileRecord, run: PassRun, width: int, form: str, whole: bool, ascii_only: bool,
    files: tuple[FileRecord, ...] | None = None,
) -> list[Line]:  # fmt: skip
    """The graphs of a run. form: one of `FORMS`. whole: fold nothing. files: those of the record,
    for the readable form of IR; None for one operation a line.

    Keys are op ids, ("node", graph, block) on borders, ("fold", op) on folded operations.
    """
    lines = op_lines(compiled)
    out: list[Line] = []
    try:
        found = graphs(compiled, run) if files is None else _readable(compiled, run, files)
    except GraphError as error:
        return [Line(((f"No control-flow graph: {error}.", "bad"),))]
    for number, graph in enumerate(found):
        if form == "overview":
            rows = overview(graph, width, lines, ascii_only=ascii_only)
        elif form == "outline":
            rows = outline(graph, lines)
        else:
            rows = draw(graph, width, whole=whole, ascii_only=ascii_only)
        out += [Line(())] if number else []
        head = ((graph.name, "title"), (f": {graph.summary()}", ""))
        out.append(Line(head, ("graph", number)))
        spans = ir_spans if files is None else readable_spans
        out += [_line(graph, number, row, lines, spans) for row in rows]
    return out


_STYLES: Final = {
    "added": "add", "removed": "del", "before": "del", "changed": "add", "moved": "move",
    "left": "del",
}  # fmt: skip


def _line(
    graph: GraphDiff, number: int, row: GraphRow, lines: Mapping[int, int],
    highlight: Callable[[str], tuple[Span, ...]],
) -> Line:  # fmt: skip
    key: object = row.op if row.op >= 0 else None
    if row.op < 0 and row.block >= 0:
        key = ("node", number, row.block)
    line, style = lines.get(row.op, 0), _STYLES.get(row.kind, "")
    if row.kind == "fold":
        key = ("fold", row.op)
    if row.op < 0 or row.kind == "fold":
        state = graph.blocks[row.block].state if row.block >= 0 else "same"
        body = {"same": "dim", "changed": "warn"}.get(state, style or _STYLES.get(state, ""))
        body = "accent" if state == "same" and row.block >= 0 and _parallel(graph, row) else body
        spans: list[Span] = [(row.left, "warn"), (row.body, body), (row.right, "dim")]
        return Line(tuple(spans), key, row.text, folded=row.folded)
    if not row.left:  # of the outline
        return Line(((row.body, style),), key, row.text.strip(" +-~><"), line=line)
    inner = row.body[1:-1]
    spans = [(row.left, "warn"), (row.body[:1], "dim"), (inner[:3], style),
             *((text, f"{style} {own}".strip()) for text, own in highlight(inner[3:])),
             (row.body[-1:], "dim"), (row.right, "dim")]  # fmt: skip
    return Line(tuple(spans), key, inner[3:].strip(), line=line)


def _parallel(graph: GraphDiff, row: GraphRow) -> bool:
    return row.kind == "border" and graph.blocks[row.block].parallel


# ---- the tab


def no_graph(look: Look) -> Shown:
    """The lines of a tab without a graph."""
    text = "No control-flow graph: this kernel was not compiled."
    if look.compiled is not None:
        text = "No control-flow graph: no pass ran."
    return Shown([Line(((text, "dim"),))])


def shown_run(look: Look) -> PassRun | None:
    """The run whose graphs the tab shows."""
    compiled = look.compiled
    if compiled is None or not compiled.snapshots:
        return None
    return graph_run(compiled, run_of(compiled, look.sel) if look.sel.run is not None else None)


def request(
    look: Look, run: PassRun
) -> tuple[CompileRecord, PassRun, int, str, bool, bool, tuple[FileRecord, ...] | None]:
    """The arguments of `drawn` for the tab."""
    assert look.compiled is not None
    width = min(_WIDEST, look.width - 2)
    return (look.compiled, run, width, look.sel.graph, look.sel.whole, look.ascii_only,
            look.record.files if look.sel.readable else None)  # fmt: skip


def header(look: Look, run: PassRun) -> Line:
    """``cfg_optimization (simplify_III, task 0), before and after``."""
    folded = "" if look.sel.whole or look.sel.graph != "drawing" else "; unchanged parts are folded"
    return Line(((run_title(run), "title"), (f", before and after{folded}", "dim")))


def _draw(look: Look) -> Shown:
    run = shown_run(look)
    if run is None:
        return no_graph(look)
    op = look.sel.op
    at = (run.index, look.sel.graph, look.sel.whole, op, look.sel.readable)
    asked = request(look, run)
    key = shown_op(asked[0], run, asked[-1], op) if op != -1 else None
    return Shown(drawn(*asked), [header(look, run)], at, key, state=_state(look))


def _moved(look: Look, line: Line) -> Changes:
    if not isinstance(line.key, int):
        return {}
    return {"op": line.key, "line": line.line or look.sel.line}


def _step(look: Look, step: int) -> Changes:
    compiled, run = look.compiled, shown_run(look)
    if compiled is None or run is None:
        return {}
    here = replace(look.sel, run=name_of(compiled, run))
    return {"run": step_run(compiled, here, step).run}


def _files(look: Look) -> dict[str, Callable[[], str]]:
    """The graphs in the formats of other programs."""
    compiled, run = look.compiled, shown_run(look)
    if compiled is None or run is None:
        return {}
    found = known(compiled, run)
    return {
        ".svg": partial(to_svg, found),
        ".dot": partial(to_dot, found),
        ".mmd": partial(to_mermaid, found),
    }


# ---- show and reports


def _runs(asked: Asked, compiled: CompileRecord) -> list[PassRun]:
    """The runs of the pass asked for that had an effect, or the last; without one, those
    of cfg_optimization, else the last of all, which shows the finished IR."""
    if not compiled.snapshots:
        return []
    if asked.pass_name is None:
        own = [r for r in compiled.runs if r.name == _OWN and r.state == "changed"]
        return own or list(compiled.runs[-1:])
    runs = asked.runs(compiled)
    return [r for r in runs if r.state == "changed"] or runs[-1:]


def known(compiled: CompileRecord, run: PassRun) -> tuple[GraphDiff, ...]:
    """`graphs`; none if the IR cannot be read."""
    try:
        return graphs(compiled, run)
    except GraphError:
        return ()


def _own(compiled: CompileRecord, run: PassRun) -> list[tuple[CfgRecord, CfgRecord]]:
    """`live_graphs`; none if the IR cannot be read."""
    try:
        return live_graphs(compiled, run, _live)
    except GraphError:
        return []


def _text(asked: Asked) -> Iterable[Block]:
    export = _EXPORTS.get(asked.form)
    if export is None:
        return text_of_compiles(_lines)(asked)
    text = export(tuple(_named(asked)))
    return [("", [Line(((line, ""),)) for line in text.splitlines()])]


def _named(asked: Asked) -> Iterator[GraphDiff]:
    """All graphs asked for, each named by its kernel, backend and pass."""
    for kernel in asked.kernels():
        for backend, compiled in compiles(kernel):
            for run in _runs(asked, compiled):
                for graph in known(compiled, run):
                    name = f"{kernel.name} on {backend.backend}, {graph.name}, {run_title(run)}"
                    yield msgspec.structs.replace(graph, name=name)


def _lines(asked: Asked, backend: BackendRecord, compiled: CompileRecord) -> list[Line]:
    out: list[Line] = []
    form = asked.form if asked.form in FORMS else FORMS[0]
    for run in _runs(asked, compiled):
        out.append(Line(((run_title(run), "title"),)))
        out += drawn(compiled, run, asked.width, form, asked.form == "whole", False,
                     asked.readable_files)  # fmt: skip
    return out or [Line((("no control-flow graph was recorded", ""),))]


def _json(asked: Asked, kernel: KernelRecord, compiled: CompileRecord) -> dict[str, object]:
    """``{"cfgs": [CfgRecord], "graphs": [{"run": index, "graphs": [GraphDiff]}]}``."""
    runs = _runs(asked, compiled)
    of = compiled.runs if asked.pass_name is None else runs
    cfgs = compiled.cfgs if asked.pass_name is None else ()  # of an earlier version
    cfgs = cfgs or [graph for run in of for pair in _own(compiled, run) for graph in pair]
    found = [{"run": run.index, "graphs": known(compiled, run)} for run in runs]
    return {"cfgs": cfgs, "graphs": found}


def _html(kernel: KernelRecord, backend: str, compiled: CompileRecord, page: Page) -> str:
    """The graphs of each run of cfg_optimization, those that an earlier backend has left out."""
    parts: list[str] = []
    for run in compiled.runs:
        if run.name != _OWN or run.state == "skipped":
            continue
        for graph in known(compiled, run):
            body = _figure(graph)
            if not page.shown_for((run.stage, graph.name, body), backend):
                heading = f"Control flow of {graph.name}, {run.stage}"
                parts.append(page.pack.details(heading, body, "graph"))
    return "".join(parts)


def _figure(graph: GraphDiff) -> str:
    caption = f"before and after: {graph.summary()}"
    figure = f"<figure>{to_svg([graph])}<figcaption>{caption}</figcaption></figure>"
    return f"<div class='cfgs'>{figure}</div>"


_state: Final = of_backend("passes")

PANEL: Final = Panel(
    id="cfg",
    help="The control-flow graph of each task before and after a pass, in one drawing.",
    order=30,
    tab=Tab(
        keys=(("previous-pass+next-pass", "pass"), ("graph-form", "form"), ("whole", "fold"),
              ("form", "readable"), ("definition+use", "def/use"), ("export", "export"),
              ("search", "search")),
        state=_state,
        draw=_draw,
        pane="qd_studio.app.tui.widgets.graphs:GraphPane",
        moved=_moved,
        step=_step,
        files=_files,
        ir=True,
        flips=("readable",),
    ),
    text=_text,
    json=json_of_compiles(_json),
    html_of_compile=_html,
)  # fmt: skip
