"""Positions in texts: lines and UTF-8 byte columns of records, and the units that editors count.

A record is of a text that may be older than that of the editor: `LineMap` finds a line of one in
the other.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["LineMap", "Region", "Text"]


class Region(NamedTuple):
    """A part of a file. Lines from 1, columns in UTF-8 bytes from 0, the end exclusive."""

    file: str
    line: int
    col: int
    end_line: int
    end_col: int


class Text:
    """The lines of a text, in an encoding of positions: utf-8, utf-16 or utf-32."""

    def __init__(self, text: str, encoding: str = "utf-16") -> None:
        # The ends of lines that editors and Python count; others, as a form feed, are characters.
        self.lines: Final = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._encoding: Final = encoding

    def units(self, line: int, byte: int) -> int:
        """The column, as the editor counts, of a byte of a line (from 1); within the line."""
        data = self.line(line).encode("utf-8", "surrogatepass")[: max(byte, 0)]
        return self._length(data.decode("utf-8", "ignore"))

    def byte(self, line: int, units: int) -> int:
        """The byte of a line (from 1) at a column of the editor."""
        at = count = 0
        for character in self.line(line):
            if count >= units:
                break
            count += self._length(character)
            at += len(character.encode("utf-8", "surrogatepass"))
        return at

    def end(self, line: int) -> int:
        """The column of the end of a line (from 1), as the editor counts."""
        return self._length(self.line(line))

    def cut(self, region: Region) -> str:
        """The text of a region of one line; empty if it has several."""
        if region.line != region.end_line:
            return ""
        data = self.line(region.line).encode("utf-8", "surrogatepass")
        return data[region.col : region.end_col].decode("utf-8", "ignore")

    def line(self, line: int) -> str:
        """A line (from 1); empty if there is none."""
        return self.lines[line - 1] if 0 < line <= len(self.lines) else ""

    def _length(self, text: str) -> int:
        if self._encoding == "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        if self._encoding == "utf-32":
            return len(text)
        return len(text.encode("utf-16-le", "surrogatepass")) // 2


class LineMap:
    """Lines (from 1) of an old text in a new one; what is between the first and the last change
    has no counterpart, but for its own lines where none was added or removed."""

    def __init__(self, old: list[str], new: list[str]) -> None:
        shorter = min(len(old), len(new))
        first = 0
        while first < shorter and old[first] == new[first]:
            first += 1
        last = 0
        while last < shorter - first and old[-1 - last] == new[-1 - last]:
            last += 1
        self._first = first
        self._old_end, self._new_end = len(old) - last, len(new) - last

    @property
    def same(self) -> bool:
        """True if the texts are equal."""
        return self._first == self._old_end == self._new_end

    def to_new(self, line: int) -> int:
        """The line of the new text; 0 if there is none."""
        return _mapped(line, self._first, self._old_end, self._new_end)

    def to_old(self, line: int) -> int:
        """The line of the old text; 0 if there is none."""
        return _mapped(line, self._first, self._new_end, self._old_end)


def _mapped(line: int, first: int, end: int, other: int) -> int:
    if line <= first:
        return line
    if line > end:
        return line + other - end
    return line if end == other else 0
