"""The knowledge about kernels, by positions of the editor: lines and columns from 0, in its units.

What the worker has compiled may be of an older text than the editor shows: positions are carried
over, and what was in changed lines is left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final, NamedTuple

from ...engine.inspect.record import FileRecord, KernelRecord, Record
from .findings import Finding, findings, fixes
from .hints import hints
from .hovers import hover_at
from .listings import Listings
from .looking import Looker
from .positions import LineMap, Region, Text

__all__ = ["Answers", "Diagnostic", "Fixed", "Range"]

Range = tuple[int, int, int, int]
"""Line and column of the start and of the end."""


_OUTSIDE: Final = (
    "this file is outside of the folders that are open, and is not executed\n"
    "hint: open its folder to see its kernels"
)


class Diagnostic(NamedTuple):
    """An error for an editor. related: files, their ranges, and texts."""

    range: Range
    message: str
    severity: str
    kind: str
    related: tuple[tuple[str, Range, str], ...]


class Fixed(NamedTuple):
    """A change of the text of a range, and the error that it mends, if there is one."""

    title: str
    range: Range
    text: str
    of: Diagnostic | None


class Answers:
    """See the module docstring. encoding: of columns."""

    def __init__(self, looker: Looker, encoding: str) -> None:
        self._looker: Final = looker
        self._encoding: Final = encoding
        self.listings: Final = Listings()

    def diagnostics(self) -> dict[str, list[Diagnostic]]:
        """The errors of the last look by file."""
        out: dict[str, list[Diagnostic]] = {}
        for found in findings(self._looker.record):
            real = os.path.realpath(found.region.file)
            out.setdefault(real, []).append(self._diagnostic(found))
        for document in self._looker.left_out():
            note = Diagnostic((0, 0, 0, 1), _OUTSIDE, "hint", "Outside", ())
            out[os.path.realpath(document.path)] = [note]
        return out

    def fixes(self, path: str, first: int, last: int) -> Iterator[Fixed]:
        """The changes that errors in these lines suggest, and the caches of kernels there."""
        real = os.path.realpath(path)
        record = self._looker.record
        for found in findings(record):
            if os.path.realpath(found.region.file) != real:
                continue
            diagnostic = self._diagnostic(found)
            if diagnostic.range[0] > last or diagnostic.range[2] < first:
                continue
            text = self._recorded(record.files, real)
            if text is None or not self._is_current(real, text):
                continue  # the columns may be others by now
            for fix in fixes(found, text):
                yield Fixed(fix.title, self._range(fix.region), fix.text, diagnostic)
        for known in self._looker.known(path):
            text = self._recorded(known.files, real)
            if text is None or not self._is_current(real, text):
                continue
            for kernel in known.kernels:
                if first <= kernel.line - 1 <= last and os.path.realpath(kernel.file) == real:
                    yield from self._of_caches(kernel, text)

    def hover(self, path: str, line: int, column: int) -> tuple[Range, str] | None:
        """The range and the Markdown for a position."""
        for record, at, text in self._places(path, line):
            col = text.byte(at, column)
            found = hover_at(record, self._named(record, path), at, col, self._looker.timed)
            if found is not None:
                shift = line + 1 - at
                start, left, end, right = self._range(found.region, text)
                return (start + shift, left, end + shift, right), found.text
        return None

    def hints(self, path: str) -> list[tuple[int, int, str, str]]:
        """Line, column, text and tip of each hint, several of a line in one."""
        out: dict[int, tuple[list[str], list[str]]] = {}
        real = os.path.realpath(path)
        now = self._current(real)
        for record in (*self._looker.known(path), self._looker.uncompiled()):
            text = self._recorded(record.files, real)
            if text is None:
                continue
            lines = LineMap(text.lines, now.lines)
            for hint in hints(record, self._looker.timed):
                line = lines.to_new(hint.line)
                if line and os.path.realpath(hint.file) == real:
                    texts, tips = out.setdefault(line, ([], []))
                    if hint.text not in texts:
                        texts.append(hint.text)
                        tips.append(hint.tip)
        return [
            (line - 1, now.end(line), "; ".join(texts), "\n\n---\n\n".join(tips))
            for line, (texts, tips) in sorted(out.items())
        ]

    def definition(self, path: str, line: int, column: int) -> list[tuple[str, Range]]:
        """The listings with the ops of a position; of a line of a listing, its source."""
        source = self.listings.source_of(path, line)
        if source is not None:
            return [(source.file, self._range(source))]
        out: list[tuple[str, Range]] = []
        for record, at, text in self._places(path, line):
            col = text.byte(at, column)
            for place in self.listings.places(record, self._named(record, path), at, col):
                out.append((place.path, (place.line, 0, place.line, 0)))
        return out

    # ---- parts

    def _places(self, path: str, line: int) -> Iterator[tuple[Record, int, Text]]:
        """The records with a file, the line (from 1) that ``line`` (from 0) has in their text, and
        that text."""
        real = os.path.realpath(path)
        now = self._current(real)
        for record in self._looker.known(path):
            text = self._recorded(record.files, real)
            at = LineMap(text.lines, now.lines).to_old(line + 1) if text is not None else 0
            # In a line that has changed, columns are others.
            if text is not None and text.line(at) == now.line(line + 1) != "":
                yield record, at, text

    def _recorded(self, files: tuple[FileRecord, ...], real: str) -> Text | None:
        found = next((f for f in files if os.path.realpath(f.path) == real), None)
        return None if found is None else Text(found.text, self._encoding)

    def _current(self, real: str) -> Text:
        """The text that the editor shows, or that of the last look."""
        document = self._looker.documents.get(real)
        if document is not None:
            return Text(document.text, self._encoding)
        return self._recorded(self._looker.record.files, real) or Text("", self._encoding)

    def _is_current(self, real: str, text: Text) -> bool:
        return self._current(real).lines == text.lines

    def _named(self, record: Record, path: str) -> str:
        """The path of a file as the record has it."""
        real = os.path.realpath(path)
        return next((f.path for f in record.files if os.path.realpath(f.path) == real), path)

    def _range(self, region: Region, text: Text | None = None) -> Range:
        """A region for the editor, in the text that it is of."""
        if text is None:
            real = os.path.realpath(region.file)
            text = self._recorded(self._looker.record.files, real) or self._current(real)
        line, end_line = max(region.line, 1), max(region.end_line, region.line, 1)
        return (
            line - 1, text.units(line, region.col),
            end_line - 1, text.units(end_line, region.end_col),
        )  # fmt: skip

    def _diagnostic(self, found: Finding) -> Diagnostic:
        related = tuple((r.file, self._range(r), text) for r, text in found.related)
        span = self._moved(found.region)
        return Diagnostic(span, found.message, found.severity, found.kind, related)

    def _moved(self, region: Region) -> Range:
        """The range of a region of the last look in the text that the editor shows now."""
        real = os.path.realpath(region.file)
        text = self._recorded(self._looker.record.files, real)
        line, left, end_line, right = self._range(region)
        now = self._current(real)
        if text is None or text.lines == now.lines:
            return line, left, end_line, right
        moved = LineMap(text.lines, now.lines)
        first = moved.to_new(line + 1) or min(line + 1, len(now.lines))
        last = max(first, moved.to_new(end_line + 1) or first)
        return first - 1, min(left, now.end(first)), last - 1, min(right, now.end(last))

    def _of_caches(self, kernel: KernelRecord, text: Text) -> Iterator[Fixed]:
        """Mark a kernel for the fast cache, where the cache suggests that."""
        layers = [x for b in kernel.backends for x in b.caches if x.name == "fastcache"]
        if not any("fastcache=True" in x.advice for x in layers):
            return
        for number in range(kernel.line, min(kernel.end_line, len(text.lines)) + 1):
            code = text.lines[number - 1].rstrip()
            if code.lstrip().startswith("@") and code.endswith(".kernel"):
                end = len(code.encode("utf-8", "surrogatepass"))
                span = self._range(Region(kernel.file, number, end, number, end), text)
                yield Fixed("cache calls: fastcache=True", span, "(fastcache=True)", None)
                return
