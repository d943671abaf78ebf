"""The histories of the values of a source line, from pass to pass down to machine code."""

from __future__ import annotations

from typing import Final

from ...engine.inspect.record import BackendRecord, CompileRecord, KernelRecord
from ..core.lines import Line
from ..core.state import names_of
from ..core.views.source_lines import user_lines
from ..core.views.tracks import (
    Place,
    line_title,
    place_of,
    readable_size,
    track_lines,
    track_of,
    track_values,
    tracks_at,
)
from ._panel import (
    Asked,
    Changes,
    Job,
    Look,
    Panel,
    Shown,
    Tab,
    json_of_compiles,
    of_backend,
    text_of_compiles,
)  # fmt: skip
from .code import artefacts_of

__all__ = ["PANEL"]


def _line(look: Look, compiled: CompileRecord) -> int:
    """The selected line, or the first of the kernel that IR is from."""
    if look.sel.line:
        return look.sel.line
    lines = user_lines(compiled)
    locs = compiled.snapshots[0].locs
    return next((n for n in (lines[loc] for loc in locs if loc >= 0) if n > look.kernel.line), 0)


_WIDE: Final = 110
"""Columns of a screen on which events name the stage of their pass."""
_AT_ONCE: Final = 20_000
"""Lines of listings up to which the readable form is made before the next paint."""


def _job(look: Look) -> Job | None:
    compiled = look.compiled
    if compiled is None or not compiled.snapshots or not look.sel.readable:
        return None
    found = tracks_at(compiled, _line(look, compiled), look.sel.op if look.sel.line else -1)
    size, asked = readable_size(compiled, found), (compiled, found, look.record.files)
    if size <= _AT_ONCE or track_values.has(*asked):
        return None
    return f"Reading {size:,} lines ...", lambda: track_values(*asked)


def _draw(look: Look) -> Shown:
    compiled = look.compiled
    if compiled is None or not compiled.snapshots:
        return Shown([Line((("This kernel has not been compiled.", "dim"),))])
    line = _line(look, compiled)
    found = tracks_at(compiled, line, look.sel.op if look.sel.line else -1)
    at = place_of(compiled, found, look.sel.op, look.sel.run)
    values = track_values(compiled, found, look.record.files) if look.sel.readable else None
    lines = track_lines(found, look.ascii_only, values, look.columns < _WIDE)
    if not lines:
        lines = [Line(((f"No IR comes from line {line}.", "dim"),))]
    header = [line_title(look.record, look.kernel, line)]
    return Shown(lines, header, (look.kernel.id, line, look.sel.op, look.sel.run), at)


def _at(look: Look, place: Place) -> Changes:
    """The selection at an event: its run, and the op that has the value then."""
    compiled = look.compiled
    if compiled is None:
        return {}
    track = track_of(compiled, place.op)
    if track is None:
        return {}
    changes = {"line": track.line} if track.line else {}
    events = track.events[: place.event + 1] or track.events[:1]
    if not events:
        return changes
    last = events[-1]
    run = next((i for i, r in enumerate(compiled.runs) if r.index == last.run), 0)
    op = last.into if last.into >= 0 else last.op
    names = names_of(compiled)
    return {**changes, "op": op, "run": names[run] if names else None}


def _moved(look: Look, line: Line) -> Changes:
    return _at(look, line.key) if isinstance(line.key, Place) else {}


def _step(look: Look, step: int) -> Changes:
    """The next or previous event of the selected value."""
    compiled = look.compiled
    if compiled is None:
        return {}
    found = tracks_at(compiled, _line(look, compiled), look.sel.op if look.sel.line else -1)
    place = place_of(compiled, found, look.sel.op, look.sel.run)
    track = next((t for t in found if t.op == place.op), None)
    if track is None:
        return {}
    last = len(track.events) - 1
    event = min(max(place.event + step, 0), last)
    return _at(look, Place(place.op, event))


def _chosen(look: Look, line: Line) -> Changes:
    """From an event to the diff of its pass, from code to its text."""
    if not isinstance(line.key, Place):
        return {}
    names = artefacts_of(look.backend)
    if line.key.code in names:
        return {"tab": "code", "artefact": names.index(line.key.code), "line": line.line}
    return {**_at(look, line.key), "tab": "passes"}


def _text(asked: Asked, backend: BackendRecord, compiled: CompileRecord) -> list[Line]:
    found = tracks_at(compiled, asked.line)
    if not found:
        where = f"line {asked.line}" if asked.line else "any line"
        return [Line(((f"no IR comes from {where}", ""),))]
    files = asked.readable_files
    values = None if files is None else track_values(compiled, found, files)
    return track_lines(found, False, values)


def _json(asked: Asked, kernel: KernelRecord, compiled: CompileRecord) -> dict[str, object]:
    """``{"tracks": [Track]}``, as `engine.inspect.tracks` returns them."""
    return {"tracks": tracks_at(compiled, asked.line)}


PANEL: Final = Panel(
    id="track",
    help="The history of the values of a source line, through all passes to machine code.",
    order=80,
    tab=Tab(
        keys=(("previous-pass+next-pass", "event"), ("choose", "its diff"), ("backend", "backend"),
              ("form", "form"), ("search", "search")),
        state=of_backend("passes"),
        draw=_draw,
        job=_job,
        flips=("readable",),
        moved=_moved,
        step=_step,
        chosen=_chosen,
    ),
    text=text_of_compiles(_text),
    json=json_of_compiles(_json),
)  # fmt: skip
