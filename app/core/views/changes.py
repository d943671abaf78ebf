"""Listings of IR, exact or readable, and what a pass changed in one: split or unified.

Changes are by the identity of ops; in the readable form, of those that have a line of their own.

The gutter holds the user's line numbers, in the diff, too. Lines are built when they are looked
at: opening the diff of a listing of 100,000 lines costs the diff itself, not its drawing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ....engine.inspect.diff import Diff, DiffRow, diff_listings, diff_pass, fold, intraline
from ....engine.inspect.record import CompileRecord, FileRecord, PassRun, Snapshot
from ..lines import LazyLines, Line, Span, cell, ir_spans, mark_spans, readable_spans
from ..memo import by_identity
from .source_lines import gutter, user_lines

if TYPE_CHECKING:
    from ....engine.inspect.readable import Readable

__all__ = [
    "UNSEEN", "DiffLines", "Files", "diff_lines", "diff_size", "listing_lines", "pass_diff",
    "readable_of",
    "run_lines", "unseen",
]  # fmt: skip

Files = tuple[FileRecord, ...]

UNSEEN: Final = "The readable form is as before; the exact form shows the change."
_MOVED_ROOM = 32
_SIGNS = {"same": "  ", "added": "+ ", "removed": "- ", "moved": "> "}
_ROWS = {"added": "add", "removed": "del", "moved": "move", "same": ""}


@by_identity(24)
def readable_of(
    compiled: CompileRecord, snapshot: Snapshot, files: Files, renamed: Snapshot | None = None
) -> Readable:
    """The readable form of a listing. renamed: with other numbers of ops, as in `readable_ir`."""
    # Imported with the IR, which the first screen does without.
    from ....engine.inspect.readable import readable_ir

    return readable_ir(compiled, snapshot, files, renamed)


def shown_op(compiled: CompileRecord, run: PassRun, files: Files | None, op: int) -> int:
    """The op whose line shows ``op``, in the readable form another one if it is part of that."""
    if files is None:
        return op
    for number in (run.after, run.before):
        found = readable_of(compiled, compiled.snapshots[number], files)
        if op in found.line_of:
            return found.ids[found.line_of[op]]
    return op


def _spans(listing: Snapshot | Readable, text: str) -> tuple[Span, ...]:
    return ir_spans(text) if isinstance(listing, Snapshot) else readable_spans(text)


def _types(listing: Snapshot | Readable, i: int) -> tuple[Span, ...]:
    """The gutter of types, which the readable form has."""
    return () if isinstance(listing, Snapshot) else ((f"{listing.types[i]:>4} ", "type"),)


def listing_lines(compiled: CompileRecord, snapshot: Snapshot | Readable) -> Sequence[Line]:
    """A whole listing with the user's line numbers in its gutter."""
    lines = user_lines(compiled)
    texts, ids, locs = snapshot.lines, snapshot.ids, snapshot.locs

    def build(i: int) -> Line:
        line = lines[locs[i]] if locs[i] >= 0 else 0
        key = ids[i] if ids[i] >= 0 else None
        spans = (gutter(line), *_types(snapshot, i), *_spans(snapshot, texts[i]))
        return Line(spans, key, texts[i], line=line)

    keys = [op if op >= 0 else None for op in ids]
    return LazyLines(keys, build, texts.__getitem__, 10 + max(map(len, texts), default=0))


@by_identity(24)
def pass_diff(compiled: CompileRecord, run: PassRun) -> Diff:
    """The changes that ``run`` made, by op identity."""
    return diff_pass(compiled, run)


def diff_size(compiled: CompileRecord, run: PassRun) -> int:
    """Lines that a diff of the run has to look at; 0 if it changed nothing."""
    if run.before == run.after:
        return 0
    return len(compiled.snapshots[run.before].lines) + len(compiled.snapshots[run.after].lines)


@by_identity(24)
def _readable_diff(compiled: CompileRecord, run: PassRun, files: Files) -> Diff:
    old, new = (
        readable_of(compiled, compiled.snapshots[i], files) for i in (run.before, run.after)
    )
    return diff_listings(old, new, {int(op): origin for op, origin in compiled.origins.items()})


def unseen(compiled: CompileRecord, run: PassRun, files: Files) -> bool:
    """True if a run changed the IR, and not its readable form."""
    return run.before != run.after and _readable_diff(compiled, run, files).empty


@by_identity(24)
def run_lines(
    compiled: CompileRecord, run: PassRun, width: int, whole: bool, anchor: int,
    files: Files | None = None,
) -> Sequence[Line]:  # fmt: skip
    """The diff of ``run``; the whole listing if it changed nothing.

    width: of each of two columns, 0 for one. whole: show unchanged lines, too. anchor: an op that
    is not to be folded away, -1 for none. files: those of the record, for the readable form; None
    for the exact one.
    """
    shots = [compiled.snapshots[i] for i in (run.before, run.after)]
    old, new = shots if files is None else [readable_of(compiled, x, files) for x in shots]
    if run.before == run.after:
        return listing_lines(compiled, new)
    found = pass_diff(compiled, run) if files is None else _readable_diff(compiled, run, files)
    if not isinstance(new, Snapshot) and anchor in new.line_of:
        anchor = new.ids[new.line_of[anchor]]
    context = None if whole else 3
    return diff_lines(compiled, old, new, found, width=width, context=context, anchor=anchor)


class DiffLines(LazyLines):
    """Lines of a diff. hunks: indices at which a run of changed lines begins."""

    hunks: Sequence[int] = ()


class _Plan:
    """The rows that a diff shows, one entry a line: (row, part), or (start, -1) and end for a fold.

    part: 0 for the old side of a changed row or the whole of any other, 1 for the new side.
    """

    def __init__(self, found: Diff, split: bool, context: int | None, anchor: int) -> None:
        self.rows: list[int] = []
        self.parts = bytearray()
        self.keys: list[object] = []
        self.ends: dict[int, int] = {}
        self.hunks: list[int] = []
        rows = found.rows
        keep = next((i for i, r in enumerate(rows) if r.op == anchor), -1) if anchor >= 0 else -1
        inside = False
        shown, part, keyed = self.rows, self.parts.append, self.keys.append
        groups = fold(rows, context if context is not None else len(rows), keep)
        for group in groups:
            if group.folded:
                self.ends[len(self.rows)] = group.end
                self._add(group.start, 2, ("fold", rows[group.start].op))
                inside = False
                continue
            for i in range(group.start, group.end):
                kind, _, _, op = rows[i]
                if kind == "same":
                    inside = False
                elif not inside:
                    inside = True
                    self.hunks.append(len(self.rows))
                key = op if op >= 0 else None
                shown.append(i)
                part(0)
                keyed(key)
                if not split and (kind == "changed" or kind == "replaced"):
                    shown.append(i)
                    part(1)
                    keyed(key)

    def _add(self, row: int, part: int, key: object) -> None:
        self.rows.append(row)
        self.parts.append(part)
        self.keys.append(key)


def diff_lines(
    compiled: CompileRecord,
    old: Snapshot | Readable,
    new: Snapshot | Readable,
    found: Diff,
    *,
    width: int = 0,
    context: int | None = 3,
    anchor: int = -1,
) -> Sequence[Line]:
    """The diff as lines: split in two columns of ``width`` if that is not 0, else unified.

    context None shows everything; the op ``anchor`` is shown with context in any case.
    """
    if found.empty:
        return listing_lines(compiled, new)
    plan = _Plan(found, bool(width), context, anchor)
    draw = _Drawing(compiled, old, new, width)
    rows, parts = plan.rows, plan.parts

    def build(i: int) -> Line:
        if parts[i] == 2:
            n = plan.ends[i] - rows[i]
            return Line(((f"     ⋯ {n} unchanged lines", "dim"),), plan.keys[i], folded=text(i))
        row = found.rows[rows[i]]
        return draw.split(row) if width else draw.unified(row, parts[i])

    def text(i: int) -> str:
        row = found.rows[rows[i]]
        if parts[i] == 2:
            return "\n".join(draw.text(found.rows[k], 0) for k in range(rows[i], plan.ends[i]))
        if width:
            return draw.text(row, 0) + "\n" + draw.text(row, 1)
        return draw.text(row, parts[i] if row.old >= 0 else 1)

    widest = max(max(map(len, old.lines), default=0), max(map(len, new.lines), default=0))
    total = 12 + widest + (width + 1 if width else _MOVED_ROOM if found.moved else 0)
    out = DiffLines(plan.keys, build, text, total)
    out.hunks = plan.hunks
    return out


class _Drawing:
    """Rows of one diff as lines."""

    def __init__(
        self,
        compiled: CompileRecord,
        old: Snapshot | Readable,
        new: Snapshot | Readable,
        width: int,
    ) -> None:
        self._lines = user_lines(compiled)
        self._old = old
        self._new = new
        self._width = width

    def text(self, row: DiffRow, part: int) -> str:
        """The row's text on the old (0) or new (1) side, empty if it has none there."""
        if part:
            return self._new.lines[row.new] if row.new >= 0 else ""
        return self._old.lines[row.old] if row.old >= 0 else ""

    def line(self, row: DiffRow) -> int:
        """The user's line."""
        loc = self._new.locs[row.new] if row.new >= 0 else self._old.locs[row.old]
        return self._lines[loc] if loc >= 0 else 0

    def types(self, row: DiffRow, part: int) -> tuple[Span, ...]:
        """The gutter of types for one side; the other side's if the row is not on it."""
        if (part and row.new >= 0) or row.old < 0:
            return _types(self._new, row.new)
        return _types(self._old, row.old)

    def spans(self, text: str) -> tuple[Span, ...]:
        return _spans(self._new, text)

    def unified(self, row: DiffRow, part: int) -> Line:
        before, after = self.text(row, 0), self.text(row, 1)
        line = self.line(row)
        key = row.op if row.op >= 0 else None
        if row.kind in ("changed", "replaced"):
            marks = intraline(before, after)[part]
            sign, style, text = (("- ", "del", before), ("+ ", "add", after))[part]
            spans = mark_spans(self.spans(text), marks, f"{style}-mark")
            types = self.types(row, part)
            return Line((gutter(line), *types, (sign, style), *spans), key, text, style, line)
        text = after if row.new >= 0 else before
        style = _ROWS[row.kind]
        types = self.types(row, 1)
        spans = (gutter(line), *types, (_SIGNS[row.kind], style), *self.spans(text))
        if row.kind == "moved":
            spans = (*spans, (f"   moved from line {row.old + 1}", "dim"))
        return Line(spans, key, text, style, line)

    def split(self, row: DiffRow) -> Line:
        before, after = self.text(row, 0), self.text(row, 1)
        line = self.line(row)
        a: Sequence[tuple[int, int]] = ()
        b: Sequence[tuple[int, int]] = ()
        left_sign = right_sign = "  "
        left_style = right_style = ""
        if row.kind in ("changed", "replaced"):
            a, b = intraline(before, after)
            left_sign, right_sign, left_style, right_style = "- ", "+ ", "del", "add"
        elif row.kind == "added":
            right_sign, right_style = "+ ", "add"
        elif row.kind == "removed":
            left_sign, left_style = "- ", "del"
        elif row.kind == "moved":
            right_sign, right_style = "> ", "move"
        left = mark_spans(self.spans(before), a, "del-mark")
        if row.kind == "moved":
            left = ((f"moved from line {row.old + 1}", "dim"),)
        room = self._width - 2
        right = (*mark_spans(self.spans(after), b, "add-mark"), (" " * (room - len(after)), ""))
        spans = (
            gutter(line),
            *_tinted(((left_sign, ""), *_fit(left, room)), left_style),
            ("│", "dim"),
            *_tinted(((right_sign, ""), *right), right_style),
        )
        return Line(spans, row.op if row.op >= 0 else None, after or before, line=line)


def _tinted(spans: Sequence[Span], style: str) -> tuple[Span, ...]:
    """``spans`` on the ground of a row style: two names joined by a space, the ground first."""
    if not style:
        return tuple(spans)
    return tuple((text, own if own.endswith("-mark") else f"{style} {own}".rstrip())
                 for text, own in spans)  # fmt: skip


def _fit(spans: Sequence[Span], width: int) -> tuple[Span, ...]:
    """``spans`` cut or padded to ``width`` columns."""
    out: list[Span] = []
    left = width
    for text, style in spans:
        if len(text) >= left:
            out.append((cell(text, left) if len(text) > left else text, style))
            return tuple(out)
        out.append((text, style))
        left -= len(text)
    out.append((" " * left, ""))
    return tuple(out)
