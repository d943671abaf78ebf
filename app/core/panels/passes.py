"""The list of pass runs and the diff that a run made."""

from __future__ import annotations

from collections.abc import Sequence

from ....engine.inspect.record import CompileRecord, PassRun, Snapshot
from .. import format as fmt
from ..diff import Diff, DiffRow, Lines, diff, fold, intraline
from ..lines import Line, Span, cell, ir_spans, mark_spans

__all__ = ["diff_lines", "hunks", "list_lines", "listing_lines", "pass_diff", "user_line"]


def list_lines(
    compiled: CompileRecord, *, fold_noops: bool = True, ascii_only: bool = False
) -> list[Line]:
    """One line a run, keyed by its index; neighbouring runs without effect folded into one.

    A stage's name stands on a line of its own where the stage begins.
    """
    out: list[Line] = []
    stage: str | None = None
    quiet: list[PassRun] = []

    def flush() -> None:
        if quiet:
            n = len(quiet)
            text = f"    {fmt.GLYPHS['noop'][ascii_only]} {n} without effect"
            out.append(Line(((text, "dim"),), ("noops", quiet[0].index)))
            quiet.clear()

    for run in compiled.runs:
        if run.stage != stage:
            flush()
            stage = run.stage
            out.append(Line(((stage, "head"),), ("stage", run.index)))
        if run.state == "noop" and fold_noops and not run.remarks:
            quiet.append(run)
            continue
        flush()
        out.append(_run_line(run, ascii_only))
    flush()
    return out


def _run_line(run: PassRun, ascii_only: bool) -> Line:
    style = {"changed": "accent", "failed": "bad"}.get(run.state, "dim")
    counts = "".join(
        f"{sign}{n} " for sign, n in (("+", run.added), ("-", run.removed), ("~", run.rewritten))
        if n
    )  # fmt: skip
    where = (f"{run.round}" if run.round else "") + (
        f"[{run.task}]" if run.task is not None else ""
    )
    name_style = "" if run.state != "noop" else "dim"
    spans: tuple[Span, ...] = (
        (f"{where:>4} ", "dim"),
        (fmt.GLYPHS[run.state][ascii_only] + " ", style),
        (cell(run.name, 34), name_style),
        (counts.strip().rjust(10) + " ", "num" if run.state == "changed" else "dim"),
        (fmt.duration_us(run.us).rjust(8), "dim"),
        (" !" if run.remarks else "", "warn"),
    )
    return Line(spans, run.index, fmt.pass_label(run))


def pass_diff(compiled: CompileRecord, run: PassRun) -> Diff:
    """What ``run`` changed, by op identity."""
    origins = {int(k): v for k, v in compiled.origins.items()}
    old, new = compiled.snapshots[run.before], compiled.snapshots[run.after]
    return diff(_lines(old), _lines(new), origins)


def _lines(snapshot: Snapshot) -> Lines:
    return Lines(snapshot.lines, snapshot.ids, snapshot.locs)


def user_line(compiled: CompileRecord, index: int) -> int:
    """The line of the kernel that a location belongs to (that of the outermost call); 0: none."""
    if index < 0:
        return 0
    loc = compiled.locs[index]
    while loc.parent >= 0:
        loc = compiled.locs[loc.parent]
    return loc.line


def _gutter(compiled: CompileRecord, index: int) -> Span:
    line = user_line(compiled, index)
    return (f"{line or '':>4} ", "gutter")


def listing_lines(compiled: CompileRecord, snapshot: Snapshot) -> list[Line]:
    """A whole listing with the user's line numbers in its gutter."""
    return [
        Line((_gutter(compiled, loc), *ir_spans(text)), op if op >= 0 else None, text)
        for text, op, loc in zip(snapshot.lines, snapshot.ids, snapshot.locs, strict=True)
    ]


def diff_lines(
    compiled: CompileRecord,
    old: Snapshot,
    new: Snapshot,
    found: Diff,
    *,
    width: int = 0,
    context: int | None = 3,
) -> list[Line]:
    """The diff as lines: split in two columns of ``width`` if that is not 0, else unified.

    context None shows everything.
    """
    if found.empty:
        head = Line((("0 changes", "dim"),))
        return [head, *listing_lines(compiled, new)]
    out: list[Line] = []
    groups = fold(found.rows, context if context is not None else len(found.rows))
    for group in groups:
        if group.folded:
            n = group.end - group.start
            out.append(Line(((f"     ⋯ {n} unchanged lines", "dim"),), ("fold", group.start)))
            continue
        for row in found.rows[group.start : group.end]:
            out += (_split if width else _unified)(compiled, old, new, row, width)
    return out


_SIGNS = {"same": "  ", "added": "+ ", "removed": "- ", "moved": "> "}
_ROWS = {"added": "add", "removed": "del", "moved": "move", "same": ""}


def _unified(
    compiled: CompileRecord, old: Snapshot, new: Snapshot, row: DiffRow, width: int
) -> list[Line]:
    before = old.lines[row.old] if row.old >= 0 else ""
    after = new.lines[row.new] if row.new >= 0 else ""
    gutter = _gutter(compiled, new.locs[row.new] if row.new >= 0 else old.locs[row.old])
    key = row.op if row.op >= 0 else None
    if row.kind in ("changed", "replaced"):
        a, b = intraline(before, after)
        return [
            Line((gutter, ("- ", "del"), *mark_spans(ir_spans(before), a, "del-mark")), key,
                 before, "del"),
            Line((gutter, ("+ ", "add"), *mark_spans(ir_spans(after), b, "add-mark")), key, after,
                 "add"),
        ]  # fmt: skip
    text = after if row.new >= 0 else before
    style = _ROWS[row.kind]
    spans: tuple[Span, ...] = (gutter, (_SIGNS[row.kind], style), *ir_spans(text))
    if row.kind == "moved":
        spans = (*spans, (f"   moved from line {row.old + 1}", "dim"))
    return [Line(spans, key, text, style)]


def _split(
    compiled: CompileRecord, old: Snapshot, new: Snapshot, row: DiffRow, width: int
) -> list[Line]:
    before = old.lines[row.old] if row.old >= 0 else ""
    after = new.lines[row.new] if row.new >= 0 else ""
    gutter = _gutter(compiled, new.locs[row.new] if row.new >= 0 else old.locs[row.old])
    a: Sequence[tuple[int, int]] = ()
    b: Sequence[tuple[int, int]] = ()
    left_sign, right_sign = "  ", "  "
    left_style = right_style = ""
    if row.kind in ("changed", "replaced"):
        a, b = intraline(before, after)
        left_sign, right_sign, left_style, right_style = "- ", "+ ", "del", "add"
    elif row.kind == "added":
        right_sign, right_style = "+ ", "add"
    elif row.kind == "removed":
        left_sign, left_style = "- ", "del"
    elif row.kind == "moved":
        before, right_sign, right_style = f"line {row.old + 1}", "> ", "move"
    left = _fit(mark_spans(ir_spans(before), a, "del-mark"), width - 2)
    if row.kind == "moved":
        left = _fit(((before, "dim"),), width - 2)
    right = mark_spans(ir_spans(after), b, "add-mark")
    spans = (
        gutter,
        (left_sign, left_style),
        *left,
        ("│", "dim"),
        (right_sign, right_style),
        *right,
    )
    return [Line(spans, row.op if row.op >= 0 else None, after or before)]


def _fit(spans: Sequence[Span], width: int) -> tuple[Span, ...]:
    """``spans`` cut or padded to ``width`` columns."""
    out: list[Span] = []
    left = width
    for text, style in spans:
        if len(text) >= left:
            out.append((cell(text, left), style))
            return tuple(out)
        out.append((text, style))
        left -= len(text)
    out.append((" " * left, ""))
    return tuple(out)


def hunks(lines: Sequence[Line]) -> list[int]:
    """Indices at which a run of changed lines begins, for jumping."""
    out: list[int] = []
    inside = False
    for i, line in enumerate(lines):
        sign = line.spans[1][0] if len(line.spans) > 1 else ""
        changed = bool(line.row) or sign in ("+ ", "- ", "> ") or _right_changed(line)
        if changed and not inside:
            out.append(i)
        inside = changed
    return out


def _right_changed(line: Line) -> bool:
    return any(t == "+ " or t == "> " for t, s in line.spans if s in ("add", "move"))
