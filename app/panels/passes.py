"""The list of pass runs. What a run changed is drawn by `changes`."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape as esc
from typing import Final

from ...engine.inspect.diff import DiffRow, fold, intraline
from ...engine.inspect.record import BackendRecord, CompileRecord, KernelRecord, PassRun, Snapshot
from ..core import format as fmt
from ..core.lines import Line, Span, cell, text_of
from ..core.memo import by_identity
from ..core.state import names_of
from ..core.views import changes
from ..core.views.misc import remark_lines
from ..core.views.source_lines import user_lines
from ..markup import markdown as md
from ..markup.html import Page, diff_row, inner
from ..markup.plots import timeline
from ._panel import (
    Asked,
    Panel,
    Tab,
    compiles,
    json_of_compiles,
    of_backend,
    text_of_compiles,
)  # fmt: skip

__all__ = ["PANEL", "list_lines", "run_title"]

_LEAST_NAME = 12


@by_identity(24)
def list_lines(
    compiled: CompileRecord, *, fold_noops: bool = True, ascii_only: bool = False, width: int = 0
) -> list[Line]:
    """One line a run, keyed by its name; neighbouring runs without effect folded into one.

    A stage's name is on a line of its own where the stage begins. width: columns to fit in; times,
    then parts of names are omitted to fit; 0 for as many as needed.
    """
    out: list[Line] = []
    stage: str | None = None
    quiet: list[int] = []
    names = names_of(compiled)

    def flush() -> None:
        if quiet:
            n = len(quiet)
            text = f"{'':7}{fmt.GLYPHS['noop'][ascii_only]} {n} without effect"
            hidden = "\n".join(fmt.pass_label(compiled.runs[i]) for i in quiet)
            out.append(Line(((text, "dim"),), ("noops", *names[quiet[0]]), folded=hidden))
            quiet.clear()

    for i, run in enumerate(compiled.runs):
        if run.stage != stage:
            flush()
            stage = run.stage
            out.append(Line(((stage, "head"),), ("stage", *names[i])))
        if run.state == "noop" and fold_noops and not run.remarks:
            quiet.append(i)
            continue
        flush()
        out.append(_run_line(run, names[i], ascii_only, width))
    flush()
    return out


def _run_line(run: PassRun, key: object, ascii_only: bool, width: int) -> Line:
    style = {"changed": "accent", "failed": "bad"}.get(run.state, "dim")
    round = f"r{run.round}" if run.round else ""
    task = f"t{run.task}" if run.task is not None else ""
    timed = not width or width >= 62
    room = 34 if not width else min(34, max(_LEAST_NAME, width - 23 - (8 if timed else 0)))
    spans: tuple[Span, ...] = (
        (f"{round:>3} {task:<2} ", "dim"),
        (fmt.GLYPHS[run.state][ascii_only] + " ", style),
        (cell(run.name, room), "" if run.state != "noop" else "dim"),
        (fmt.changed_ops(run).rjust(11) + " ", "num" if run.state == "changed" else "dim"),
        ("! " if run.remarks else "  ", "warn"),
        (fmt.duration_us(run.us).rjust(8) if timed else "", "dim"),
    )
    return Line(spans, key, fmt.pass_label(run))


def run_title(run: PassRun, ascii_only: bool = False) -> Line:
    """The run above its diff: place, counts, time."""
    style = {"changed": "accent", "failed": "bad"}.get(run.state, "dim")
    counts = fmt.changed_ops(run) or ("no effect" if run.state == "noop" else "")
    return Line(
        (
            (fmt.GLYPHS[run.state][ascii_only] + " ", style),
            (run.name, "title"),
            (f"  {fmt.run_place(run)}", "dim"),
            (f"  {counts}", "num"),
            (f"  {fmt.duration_us(run.us)}", "dim"),
        )
    )


# ---- the panel


def _text(asked: Asked, backend: BackendRecord, compiled: CompileRecord) -> list[Line]:
    if asked.pass_name is None:
        return list_lines(compiled)
    out: list[Line] = []
    for run in asked.runs(compiled):
        task = "" if run.task is None else f", task {run.task}"
        round = f", round {run.round}" if run.round else ""
        head = f"-- {run.name} in {run.stage}{round}{task}: {run.state}"
        out += [
            Line(((head, "title"),)),
            *remark_lines(run),
            *_diff(compiled, run, asked.readable_files),
        ]
    return out


def _diff(compiled: CompileRecord, run: PassRun, files: changes.Files | None) -> Sequence[Line]:
    """The lines that a run changed, with context; none if it changed nothing."""
    if run.before == run.after:
        return []
    if files is not None and changes.unseen(compiled, run, files):
        return [Line(((changes.UNSEEN, "dim"),))]
    return changes.run_lines(compiled, run, 0, False, -1, files)


def _json(asked: Asked, kernel: KernelRecord, compiled: CompileRecord) -> dict[str, object]:
    """``{"runs": [PassRun], "diffs": {run index: [lines]}}``; diffs only of a pass asked for."""
    runs = asked.runs(compiled)
    chosen = runs if asked.pass_name is not None else []
    diffs = {
        str(run.index): [
            text_of(line).rstrip() for line in _diff(compiled, run, asked.readable_files)
        ]
        for run in chosen
        if run.before != run.after
    }
    return {"runs": runs, "diffs": diffs}


def _markdown(kernel: KernelRecord) -> list[str]:
    compiled = next((c for _, c in compiles(kernel)), None)
    if compiled is None:
        return []
    changed = [r for r in compiled.runs if r.state != "noop"]
    rows = [
        [str(r.index), r.stage, str(r.round or ""), "" if r.task is None else str(r.task), r.name,
         f"+{r.added} -{r.removed} ~{r.rewritten} >{r.moved}", fmt.duration_us(r.us)]
        for r in changed
    ]  # fmt: skip
    table = md.table(["#", "stage", "round", "task", "pass", "ops", "time"], rows)
    return [
        f"{len(compiled.runs)} pass runs, {len(changed)} changed the IR, "
        f"{fmt.duration_us(sum(r.us for r in compiled.runs))} in all.",
        "",
        *md.folded("Passes that changed the IR", table),
    ]


def _html(kernel: KernelRecord, backend: str, compiled: CompileRecord, page: Page) -> str:
    """The timeline, and the diff of each run that changed the IR: once, if several backends have
    the same."""
    if not compiled.runs:
        return ""
    changed = [r for r in compiled.runs if r.state == "changed" and r.before != r.after]
    quiet = len(compiled.runs) - len(changed)
    parts = [
        f"<p>{len(compiled.runs)} pass runs; {len(changed)} changed the IR, {quiet} did not.</p>",
        page.pack.later(timeline(compiled.runs), "timeline"),
    ]
    again: dict[str, int] = {}
    for run in changed:
        title, body = _html_of_run(run, compiled)
        where = page.shown_for((run.stage, run.name, run.task, body), backend)
        if where:
            again[where] = again.get(where, 0) + 1
        else:
            parts.append(page.pack.details(title, body, "diff"))
    parts += [
        f'<p class="facts">{esc(fmt.counted(n, "run"))} of these did what is shown for '
        f"{esc(where)}.</p>"
        for where, n in again.items()
    ]
    return "".join(parts)


def _html_of_run(run: PassRun, compiled: CompileRecord) -> tuple[str, str]:
    """(one line about the run, the difference that it made)."""
    found = changes.pass_diff(compiled, run)
    old, new = compiled.snapshots[run.before], compiled.snapshots[run.after]
    rows = _diff_rows(old, new, compiled, found.rows)
    body = f'<table class="diff"><tbody>{rows}</tbody></table>'
    if run.remarks:
        items = "".join(f"<li>{esc(r.text)}</li>" for r in run.remarks)
        body += f'<ul class="remarks">{items}</ul>'
    title = f"{run.index}. {fmt.pass_label(run)}  {found.summary()}  {fmt.duration_us(run.us)}"
    return title, body


_SIGN = {"same": " ", "added": "+", "removed": "-", "moved": ">"}


def _diff_rows(
    old: Snapshot, new: Snapshot, compiled: CompileRecord, rows: Sequence[DiffRow]
) -> str:
    out: list[str] = []
    lines = user_lines(compiled)
    for hunk in fold(rows):
        if hunk.folded:
            n = hunk.end - hunk.start
            out.append(f"<tr class=fold><td><td><td>… {n} unchanged lines")
            continue
        for row in rows[hunk.start : hunk.end]:
            before = old.lines[row.old] if row.old >= 0 else ""
            after = new.lines[row.new] if row.new >= 0 else ""
            loc = new.locs[row.new] if row.new >= 0 else old.locs[row.old]
            line = str(lines[loc] or "") if loc >= 0 else ""
            if row.kind in ("changed", "replaced"):
                a, b = intraline(before, after)
                out.append(diff_row("removed", "-", line, _marked(before, a)))
                out.append(diff_row("added", "+", line, _marked(after, b)))
            else:
                text = inner(after if row.new >= 0 else before)
                if row.kind == "moved":
                    text += f" <em>moved from line {row.old + 1}</em>"
                out.append(diff_row(row.kind, _SIGN[row.kind], line, text))
    return "".join(out)


def _marked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    out: list[str] = []
    at = 0
    for start, end in spans:
        out.append(f"{inner(text[at:start])}<mark>{inner(text[start:end])}</mark>")
        at = end
    return "".join(out) + inner(text[at:])


PANEL: Final = Panel(
    id="passes",
    help="Every run of a pass, and the diff of what it changed.",
    order=20,
    tab=Tab(
        keys=(("previous-pass+next-pass", "pass"), ("pane", "pane"),
              ("previous-hunk+next-hunk", "change"), ("split", "split"), ("whole", "all"),
              ("form", "form"),
              ("noops", "no-ops")),
        state=of_backend("passes"),
        pane="qd_studio.app.tui.widgets.passes:PassesPane",
    ),
    text=text_of_compiles(_text),
    json=json_of_compiles(_json),
    markdown={30: _markdown},
    html_of_compile=_html,
)  # fmt: skip
