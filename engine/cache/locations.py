"""Source locations, relative to the functions that contain them.

A cache entry must fit a kernel that has moved in its file, or is in another file. So a location is
kept as the index of its function among those that the compile read (the kernel's own first, then
each that it called, in the order of first use) and a line relative to the start of that function.
`RelativeLocations` converts locations to that form; `Located` converts them back, for the functions
at their present locations.

A location in none of these functions is kept unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..ir import Loc, get_loc
from ..named_tuple import NamedTuple

__all__ = ["Function", "Located", "RelativeLocations", "functions_of"]


class Function(NamedTuple):
    """A function whose source a compile has read. line, end: first and last line in its file."""

    name: str
    file: str
    line: int
    end: int


def functions_of(decls: Iterable[Any]) -> tuple[Function, ...]:
    """The `Function` of each declaration."""
    return tuple([Function(d.qualname, d.file, d.line, d.end_line) for d in decls])


class RelativeLocations:
    """Locations by index. table: their rows, plain data for JSON.

    A row is (function, line, column, end line, end column, name, row of the caller or -1), lines
    counted from the function's first; function -1 is none, and the file comes last then.
    """

    def __init__(self, functions: Sequence[Function]) -> None:
        self._functions = functions
        self._numbers: dict[Loc, int] = {}
        self.table: list[list[Any]] = []

    def number(self, loc: Loc) -> int:
        """The row of ``loc``, made now if it is new."""
        found = self._numbers.get(loc)
        if found is None:
            parent = -1 if loc.parent is None else self.number(loc.parent)
            row = self._row(loc, parent)
            found = self._numbers[loc] = len(self.table)
            self.table.append(row)
        return found

    def _row(self, loc: Loc, parent: int) -> list[Any]:
        for k, function in enumerate(self._functions):
            first = function.line
            if loc.file == function.file and first <= loc.line <= function.end:
                line, end = loc.line - first, loc.end_line - first
                return [k, line, loc.col, end, loc.end_col, loc.func, parent]
        return [-1, loc.line, loc.col, loc.end_line, loc.end_col, loc.func, parent, loc.file]


class Located:
    """The locations of a table of `RelativeLocations`, in these functions.

    IndexError, TypeError or ValueError for a table that was made for other functions.
    """

    def __init__(self, table: Iterable[Sequence[Any]], functions: Sequence[Function]) -> None:
        self._locs: list[Loc] = []
        for number, row in enumerate(table):
            k: int
            line: int
            end: int
            parent: int
            k, line, col, end, end_col, func, parent = row[:7]
            if not -1 <= parent < number or k < -1:
                raise ValueError("a place that is called from nowhere")
            file, first = (str(row[7]), 0) if k < 0 else functions[k][1:3]
            caller = None if parent < 0 else self._locs[parent]
            self._locs.append(get_loc(file, first + line, col, first + end, end_col, func, caller))

    def __getitem__(self, number: int) -> Loc:
        if number < 0:
            raise IndexError(number)
        return self._locs[number]
