"""The history of the values of a source line, as lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ....engine.inspect.record import CompileRecord, FileRecord, KernelRecord, Record, RunName
from ....engine.inspect.tracking import CodePlace, Event, Track, Tracker
from ..format import counted, placed, text_rank, text_title
from ..lines import Line, Span, cell, ir_spans, prose_spans, python_spans, readable_spans
from ..memo import by_identity
from ..state import names_of

__all__ = [
    "Place", "held_op", "line_title", "place_of", "readable_size", "track_lines", "track_of",
    "track_values", "tracks_at",
]  # fmt: skip

_STYLES: Final = {
    "born": "num", "merged": "accent", "deleted": "bad", "rewritten": "warn", "moved": "move",
    "failed": "bad",
}  # fmt: skip
_KIND: Final = 10
_IR_LINE: Final = re.compile(r"(?:<\*?\w+> )?\$\d+ [=:] ")
_WHERE: Final = 38
_NARROW: Final = 22


Values = Mapping[tuple[int, int], str]
"""By the index of a run (-1 for the front end) and an op: its text after that run."""


class Place(NamedTuple):
    """The key of a line: the value it is about, as the op that it began as, and what of it: the
    number of an event, or -1 for its first line; ``code`` for its generated code: a text."""

    op: int
    event: int
    code: str = ""


@by_identity(8)
def _tracker(compiled: CompileRecord) -> Tracker:
    return Tracker(compiled)


@by_identity(16)
def tracks_at(compiled: CompileRecord, line: int, op: int = -1) -> tuple[Track, ...]:
    """The histories of the values of a line (0: of all lines), and of op if it is in none."""
    tracker = _tracker(compiled)
    found = tracker.of_line(line)
    if op >= 0 and not any(op in (t.op, *(e.into for e in t.events)) for t in found):
        alone = track_of(compiled, op)
        found[:0] = [alone] if alone is not None else []
    return tuple(found)


def track_of(compiled: CompileRecord, op: int) -> Track | None:
    """The history of one op; None if no listing has it."""
    try:
        return _tracker(compiled).of_op(op)
    except KeyError:
        return None


def place_of(
    compiled: CompileRecord, found: Sequence[Track], op: int, run: RunName | None
) -> Place:
    """The event that made ``op`` what it is at a run; the first value if it is in none."""
    names = names_of(compiled)
    index = {r.index: i for i, r in enumerate(compiled.runs)}
    at = names.index(run) if run is not None and run in names else len(names)
    for track in found:
        events = [(n, e) for n, e in enumerate(track.events) if op in (e.op, e.into)]
        if track.op == op or events:
            before = [n for n, e in events if index.get(e.run, -1) <= at]
            return Place(track.op, before[-1] if before else events[0][0] if events else -1)
    return Place(found[0].op if found else -1, -1)


def held_op(compiled: CompileRecord, op: int, run: RunName | None) -> int:
    """The op that has the value of ``op`` after a run: the survivor, if it was replaced until then.
    ``op`` itself where the value does not exist."""
    names = names_of(compiled)
    if op < 0 or run not in names:
        return op
    track = track_of(compiled, op)
    if track is None:
        return op
    found = track.held(compiled.runs[names.index(run)].index)
    return found if found >= 0 else op


def line_title(record: Record, kernel: KernelRecord, line: int) -> Line:
    """The source line above its values."""
    text = next((f.text for f in record.files if f.path == kernel.file), "").splitlines()
    shown = text[line - 1].strip() if 0 < line <= len(text) else ""
    return Line(((f"line {line}  ", "title"), *python_spans(shown)), line=line)


def _shown_ops(found: Sequence[Track]) -> Iterator[tuple[int, int]]:
    """The ops whose text is shown, each after a run."""
    for track in found:
        for event in track.events:
            if event.after and event.into >= 0:
                yield event.run, event.into


def _listings(compiled: CompileRecord, found: Sequence[Track]) -> dict[int, list[tuple[int, int]]]:
    """`_shown_ops` by the index of the listing that has them."""
    after = {run.index: run.after for run in compiled.runs} | {-1: 0}
    out: dict[int, list[tuple[int, int]]] = {}
    for run, op in dict.fromkeys(_shown_ops(found)):
        if run in after:
            out.setdefault(after[run], []).append((run, op))
    return out


def readable_size(compiled: CompileRecord, found: Sequence[Track]) -> int:
    """The lines of all listings that `track_values` reads."""
    return sum(len(compiled.snapshots[i].lines) for i in _listings(compiled, found))


@by_identity(16)
def track_values(
    compiled: CompileRecord, found: tuple[Track, ...], files: tuple[FileRecord, ...]
) -> Values:
    """The readable form of the ops in these histories."""
    # Imported with the IR, which the first screen does without.
    from ....engine.inspect.readable import readable_values

    out: dict[tuple[int, int], str] = {}
    for i, places in _listings(compiled, found).items():
        ops = [op for _, op in places]
        texts = readable_values(compiled, compiled.snapshots[i], ops, files)
        out |= {(run, op): texts[op] for run, op in places if op in texts}
    return out


@by_identity(16)
def track_lines(
    found: tuple[Track, ...], ascii_only: bool = False, values: Values | None = None,
    narrow: bool = False,
) -> list[Line]:  # fmt: skip
    """A heading for each value, its events, and its generated code; keyed by `Place`.

    Where a value becomes one that is shown as well, the rest of its history is there. values: the
    readable form; None for the exact one. narrow: without the stages of passes.
    """
    values = values or {}
    own = {track.op for track in found}
    out: list[Line] = []
    for track in found:
        out.append(_heading(track, ascii_only, values))
        for n, event in enumerate(track.events):
            out.append(_event(track, n, event, values, narrow))
            if event.kind == "merged" and event.into in own and event.into != track.op:
                text = f"from here as ${event.into}"
                out.append(_row(track, Place(track.op, n), "", "", "", text, narrow))
                break
        else:
            out += _code(track, narrow)
    loops = dict.fromkeys(r for t in found for r in t.remarks if r.op != t.last)
    if loops:
        out.append(Line((("     LLVM about the loops around them", "head"),), "loops"))
        for n, r in enumerate(loops):
            title = f"LLVM {r.pass_name}"
            out.append(_row(found[0], Place(-1, n), title, "remark", "warn", r.text, narrow))
    return out


def _heading(track: Track, ascii_only: bool, values: Values) -> Line:
    arrow = "->" if ascii_only else "→"
    end = "deleted" if track.last < 0 else f"${track.last}" if track.last != track.op else ""
    spans: list[Span] = [(f"{track.line or '':>4} ", "gutter"), (f"${track.op}", "id")]
    if track.name:
        spans.append((f" {track.name}", "title"))
    if end:
        spans.append((f" {arrow} {end}", "bad" if track.last < 0 else "accent"))
    born = next((e.run for e in track.events if e.into == track.op and e.after), -1)
    known = values.get((born, track.op))
    shown = ir_spans(track.text) if known is None else readable_spans(known)
    return Line((*spans, ("  ", ""), *shown), Place(track.op, -1), known or track.text,
                line=track.line)  # fmt: skip


def _row(
    track: Track, key: Place, where: str, kind: str, style: str, text: str, narrow: bool,
    readable: bool = False,
) -> Line:  # fmt: skip
    code = readable_spans if readable else ir_spans
    spans = (
        ("     ", "gutter"), (cell(where, _NARROW if narrow else _WHERE) + " ", "dim"),
        (cell(kind, _KIND) + " ", style),
        *(code(text) if readable or _IR_LINE.match(text) else prose_spans(text)),
    )  # fmt: skip
    return Line(spans, key, text, line=track.line)


def _event(track: Track, n: int, event: Event, values: Values, narrow: bool) -> Line:
    known = values.get((event.run, event.into))
    text = _text(event, event.after if known is None else known)
    where = event.pass_name if narrow and event.run >= 0 else where_of(event)
    return _row(track, Place(track.op, n), where, event.kind,
                _STYLES.get(event.kind, "dim"), text, narrow, text == known)  # fmt: skip


def where_of(event: Event) -> str:
    """``simplify_I/2 alg_simp``, with the task in brackets."""
    if event.run < 0:
        return "front end"
    return placed(event.stage, event.round, event.pass_name, event.task)


def _text(event: Event, after: str) -> str:
    guess = "" if event.sure else " (as the listings show)"
    if event.kind == "merged":
        how = f", {event.how}" if event.how else ""
        return f"into ${event.into}{how}{guess}: {after}"
    if event.kind in ("born", "rewritten"):
        return f"{event.how}: {after}" if event.how else after
    return event.how + guess


def _code(track: Track, narrow: bool) -> list[Line]:
    end = len(track.events)
    out: list[Line] = []
    for place in sorted(track.code, key=lambda x: text_rank(x.text)):
        title = text_title(place.text)
        key = Place(track.op, end, place.text)
        out.append(_row(track, key, title, "code", "dim", _lines_of(place), narrow))
    for r in track.remarks:
        if r.op == track.last:
            title = f"LLVM {r.pass_name}"
            key = Place(track.op, end)
            out.append(_row(track, key, title, "remark", "warn", r.text, narrow))
    return out


def _lines_of(place: CodePlace) -> str:
    """``lines 12, 40, 41: vectors of 16 and scalar``."""
    if not place.lines:
        return "none of its own: folded into other instructions"
    shown = ", ".join(str(i + 1) for i in place.lines[:6])
    more = f" and {len(place.lines) - 6} more" if len(place.lines) > 6 else ""
    word = counted(len(place.lines), "line").partition(" ")[2]
    widths = [f"vectors of {n}" for n in sorted(place.lanes, reverse=True) if n > 1]
    if widths:
        widths += ["scalar"] if 1 in place.lanes else []
        return f"{word} {shown}{more}: {', '.join(widths)}"
    return f"{word} {shown}{more}"
