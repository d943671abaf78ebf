"""The text that an editor shows about an expression of a kernel: its type, its IR after the first
and after the last pass, and its cost."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ...engine.inspect.record import FileRecord, KernelRecord, Record, Snapshot
from ..core import format as fmt
from ..core.views import costs
from ..core.views.changes import readable_of
from ..core.views.tracks import track_of
from .positions import Region, Text
from .spots import Spot, spots_at

__all__ = ["Hover", "hover_at"]

_TYPE: Final = re.compile(r"\s*<([^>]+)> \$\d+ = ")
_MOST: Final = 12
"""Lines of IR before the rest is counted."""
_WORD: Final = re.compile(r"\w+")


class Hover(NamedTuple):
    """Markdown about a region."""

    region: Region
    text: str


def hover_at(
    record: Record, file: str, line: int, col: int, timed: Mapping[str, KernelRecord]
) -> Hover | None:
    """The hover for a line (from 1) and byte column of a file; None outside of kernels.

    timed: kernels by id as they were when they were last launched.
    """
    found = spots_at(record, file, line, col)
    own = [s for s in found if not s.kernel.primal] or found
    texts = {f.path: Text(f.text) for f in record.files}
    if not own:
        return _parameter(record, file, line, col, texts.get(file))
    parts: list[str] = []
    for spot in own[:3]:
        if len(own) > 1:
            parts.append(f"**{spot.kernel.name}**")
        parts += _about(spot, record.files, texts.get(file))
        parts += _cost(timed.get(spot.kernel.id, spot.kernel), spot)
    if len(own) > 3:
        parts.append(f"and in {fmt.counted(len(own) - 3, 'more kernel')}")
    return Hover(own[0].region, "\n\n".join(parts))


def _about(spot: Spot, files: tuple[FileRecord, ...], text: Text | None) -> Iterator[str]:
    shots = spot.compiled.snapshots
    if not shots:
        return
    kind = _type_of(spot, shots[0])
    code = text.cut(spot.region) if text is not None else ""
    title = f"`{code}`" if code and "`" not in code else f"line {spot.region.line}"
    yield f"{title}: `{kind}`" if kind else title
    first, last = (_lines(spot, shot, files) for shot in (shots[0], shots[-1]))
    if first == last:
        yield "IR, unchanged by all passes\n" + _fenced(first)
        return
    yield "IR before the passes\n" + _fenced(first)
    if last:
        yield f"IR after the passes, for {spot.backend.backend}\n" + _fenced(last)
    else:
        yield _fate(spot, shots[0])


def _type_of(spot: Spot, shot: Snapshot) -> str:
    """The type of the last value of the span: the others are its operands."""
    kind = ""
    for text, loc in zip(shot.lines, shot.locs, strict=True):
        found = _TYPE.match(text) if loc in spot.exact else None
        if found:
            kind = found[1]
    return kind


def _lines(spot: Spot, shot: Snapshot, files: tuple[FileRecord, ...]) -> list[str]:
    """The lines for people that show an op of the spot."""
    shown = readable_of(spot.compiled, shot, files)
    ops = {op for op, loc in zip(shot.ids, shot.locs, strict=True) if op >= 0 and loc in spot.locs}
    lines = sorted({shown.line_of[op] for op in ops if op in shown.line_of})
    out = [shown.lines[i] for i in lines]
    least = min((len(x) - len(x.lstrip()) for x in out), default=0)
    return [x[least:] for x in out]


def _fenced(lines: list[str]) -> str:
    more = len(lines) - _MOST
    shown = lines[:_MOST] if more > 1 else lines
    rest = [f"... {more} more lines"] if more > 1 else []
    return "\n".join(["```", *shown, *rest, "```"])


def _fate(spot: Spot, shot: Snapshot) -> str:
    """The pass that left nothing of the spot, and its reason."""
    ops = [op for op, loc in zip(shot.ids, shot.locs, strict=True) if op >= 0 and loc in spot.exact]
    for op in reversed(ops):
        track = track_of(spot.compiled, op)
        events = [e for e in track.events if e.kind in ("merged", "deleted")] if track else []
        if events:
            end = events[-1]
            how = f" ({end.how})" if end.how else ""
            what = "became another value" if end.kind == "merged" else "was removed"
            return f"It {what} in `{end.pass_name}`{how}."
    return "Nothing is left of it after the passes."


def _cost(kernel: KernelRecord, spot: Spot) -> Iterator[str]:
    """The cost of the line, for the largest workload."""
    backend = kernel.backend(spot.backend.backend)
    cost = costs.cost_of(backend)
    if backend is None or cost is None:
        return
    file, line = spot.region.file, spot.region.line
    for one in costs.line_sums(cost):
        own = next((x for x in one.inner if (x.file, x.line) == (file, line)), None)
        if own is None and (one.file, one.line) == (file, line):
            own = one
        if own is None:
            continue
        runs, bytes, travel, flops = costs.amounts(own)
        time = f"{fmt.duration_us(own.us)}, {own.share:.0%} of the time" if own.us else ""
        limit = f"limited by {own.limited_by}" if own.limited_by else ""
        facts = [
            time, limit, f"runs {runs}" if runs else "", f"asks for {bytes}" if bytes else "",
            f"moves {travel}" if travel else "", f"{flops} operations" if flops else "",
        ]  # fmt: skip
        yield f"Line {line} with {cost.workload}: {', '.join(filter(None, facts))}"
        return


def _parameter(
    record: Record, file: str, line: int, col: int, text: Text | None
) -> Hover | None:  # fmt: skip
    """The hover for the name of a parameter of a kernel, in its signature or its body."""
    if text is None or not 0 < line <= len(text.lines):
        return None
    code = text.lines[line - 1]
    at = len(code.encode("utf-8", "surrogatepass")[:col].decode("utf-8", "ignore"))
    word = next((m for m in _WORD.finditer(code) if m.start() <= at <= m.end()), None)
    if word is None:
        return None
    for kernel in record.kernels:
        if kernel.file != file or not kernel.line <= line <= kernel.end_line or kernel.primal:
            continue
        for param in kernel.params:
            if param.name == word[0]:
                start = len(code[: word.start()].encode("utf-8", "surrogatepass"))
                region = Region(file, line, start, line, start + len(word[0].encode()))
                axes = (
                    f", {param.ndim} axes" if param.ndim > 1 else ", 1 axis" if param.ndim else ""
                )
                kind = f"{param.kind} {param.dtype}".strip()
                return Hover(region, f"`{param.name}`: {kind}{axes}, a parameter of {kernel.name}")
    return None
