"""The IR of kernels as files that an editor can open, and the places in them of a source span.

A file has one listing: the IR before the first pass, or after one that changed it, in the form for
people. Files are written when they are asked for and removed by `Listings.close`.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from typing import Final, NamedTuple

from ...engine.inspect.readable import Readable
from ...engine.inspect.record import LocRecord, Record, Snapshot
from ..core.views.changes import readable_of
from .positions import Region
from .spots import Spot, spots_at

__all__ = ["Listings", "Place"]

_MOST: Final = 24
"""Places of one definition: the first and the last ones."""


class Place(NamedTuple):
    """A line (from 0) of a file with a listing."""

    path: str
    line: int


class Listings:
    """See the module docstring."""

    def __init__(self) -> None:
        self._folder = ""
        self._sources: dict[str, tuple[LocRecord | None, ...]] = {}

    def places(self, record: Record, file: str, line: int, col: int) -> list[Place]:
        """The places of the ops at a line (from 1) and byte column: before the passes, and after
        each pass that changed them."""
        out: list[Place] = []
        for spot in spots_at(record, file, line, col):
            out += self._of_spot(record, spot)
        return out if len(out) <= _MOST else out[: _MOST // 2] + out[-_MOST // 2 :]

    def source_of(self, path: str, line: int) -> Region | None:
        """The source span of a line (from 0) of a listing; None for other files and lines."""
        sources = self._sources.get(path, ())
        loc = sources[line] if 0 <= line < len(sources) else None
        if loc is None:
            return None
        return Region(loc.file, loc.line, loc.col, loc.end_line or loc.line, loc.end_col)

    def close(self) -> None:
        """Remove the files."""
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = ""
        self._sources.clear()

    def _of_spot(self, record: Record, spot: Spot) -> list[Place]:
        compiled = spot.compiled
        if not compiled.snapshots:
            return []
        steps = [(0, "before the passes")]
        for run in compiled.runs:
            if run.state == "changed" and run.after != steps[-1][0]:
                steps.append((run.after, f"{run.stage} {run.name}"))
        out: list[Place] = []
        before: list[str] = []
        known: list[str] = []
        for order, (index, name) in enumerate(steps):
            shot = compiled.snapshots[index]
            texts = zip(shot.lines, shot.locs, strict=True)
            own = [text.strip() for text, loc in texts if loc in spot.locs]
            if own and own != before:
                shown = readable_of(compiled, shot, record.files)
                lines = _shown_lines(spot, shot, shown)
                if lines == known:
                    continue
                known = lines
                title = f"{spot.kernel.name}.{spot.backend.backend}.{order:02d} {name}"
                path = self._written(title, shown.lines)
                locs = compiled.locs
                self._sources[path] = tuple(locs[i] if i >= 0 else None for i in shown.locs)
                out.append(Place(path, _line_of(spot, shot, shown)))
            before = own
        return out

    def _written(self, title: str, lines: tuple[str, ...]) -> str:
        if not self._folder:
            self._folder = os.path.realpath(tempfile.mkdtemp(prefix="qd-studio-ir-"))
        path = os.path.join(self._folder, re.sub(r"[^\w.\- ]", "_", title) + ".qdir")
        text = "\n".join(lines) + "\n"
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        return path


def _shown_lines(spot: Spot, shot: Snapshot, shown: Readable) -> list[str]:
    """The texts of the lines with the ops of a spot."""
    pairs = zip(shot.ids, shot.locs, strict=True)
    own = {shown.line_of[op] for op, loc in pairs if loc in spot.locs and op in shown.line_of}
    return [shown.lines[i].strip() for i in sorted(own)]


def _line_of(spot: Spot, shot: Snapshot, shown: Readable) -> int:
    """The line of the last op of the span itself; the first of its parts if it has none."""
    found = [
        (shown.line_of[op], loc)
        for op, loc in zip(shot.ids, shot.locs, strict=True)
        if loc in spot.locs and op in shown.line_of
    ]
    exact = [line for line, loc in found if loc in spot.exact]
    return max(exact) if exact else min((line for line, _ in found), default=0)
