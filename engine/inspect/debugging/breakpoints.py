"""Breakpoints of lines: where they are, and which of them stops at a moment."""

from __future__ import annotations

import operator
import os
import re
from array import array
from bisect import bisect_left
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...named_tuple import NamedTuple
from .machine import Machine
from .user_values import shown
from .values import DebugError, Names

__all__ = ["Breakpoint", "Breakpoints", "Filter", "Stop"]

_HITS: Final[dict[str, Callable[[int, int], bool]]] = {
    "": operator.eq, "=": operator.eq, "==": operator.eq, ">": operator.gt, ">=": operator.ge,
    "<": operator.lt, "<=": operator.le, "%": lambda count, n: not count % n,
}  # fmt: skip


class Stop(NamedTuple):
    """The reason why a motion ended. reason: ``entry``, ``step``, ``breakpoint``, ``data``,
    ``pause``, ``error``, ``start``, ``end``. text: more about it."""

    reason: str
    text: str = ""


class Filter:
    """Says which of the moments that could stop do.

    condition: stops only if it is true. hits: which of the moments that meet the condition stop:
    ``3`` or ``=3`` for the third, ``>3``, ``>=3``, ``<3``, ``<=3``, or ``%3`` for every third;
    empty for all. Moments are counted forward, once each, from when the filter exists. Raises
    DebugError for what is no expression or no number of hits.
    """

    def __init__(self, names: Names, condition: str, hits: str) -> None:
        self._names: Final = names
        self.condition: Final = condition.strip()
        if self.condition:
            names.parsed(condition)
        found = re.fullmatch(r"([<>]?=?|==|%)\s*(\d{1,18})", hits.strip())
        if hits.strip() and (not found or found[1] + found[2].lstrip("0") == "%"):
            raise DebugError(f"{hits!r} is no number of hits: write 3, >3, >=3, <3, <=3 or %3")
        self._hits: Final = (_HITS[found[1]], int(found[2])) if found else None
        # In order, 8 bytes each: a breakpoint may be reached in each of millions of iterations.
        self._counted: Final = array("q")

    def stops(self, time: int, forward: bool) -> str | None:
        """None if this moment does not stop; else a text, which is empty unless the condition has
        failed. time: of the moment, by which it is counted."""
        if self.condition:
            try:
                if not _true(self._names.evaluate(self.condition)):
                    return None
            except DebugError as error:
                return f"the condition failed: {error}"
        if self._hits is None:
            return ""
        at = bisect_left(self._counted, time)
        if at == len(self._counted) or self._counted[at] != time:
            if not forward:
                return None
            self._counted.insert(at, time)
        compare, number = self._hits
        return "" if compare(at + 1, number) else None


class Breakpoint:
    """A place to stop at.

    line: where the user put it. at: the line with code that it is at, 0 for none. filter: which of
    the moments there stop. log: text to report in place of a stop, with ``{expressions}``.
    """

    def __init__(self, file: str, line: int, which: Filter, log: str) -> None:
        self.file: Final = file
        self.line: Final = line
        self.filter: Final = which
        self.log: Final = log
        self.at = 0
        self.pcs: frozenset[int] = frozenset()


class Breakpoints:
    """The breakpoints of a run. starts: the instructions that start a line. log: gets the texts
    of breakpoints that report."""

    def __init__(
        self, machine: Machine, names: Names, starts: frozenset[int],
        log: Callable[[str], object],
    ) -> None:  # fmt: skip
        self._machine: Final = machine
        self._names: Final = names
        self._starts: Final = starts
        self._log: Final = log
        self.all: Final[list[Breakpoint]] = []

    def lines(self, file: str) -> list[int]:
        """The lines of a file that have code."""
        code = self._machine.code
        return sorted({code[pc].loc.line for pc in self._starts if _same(code[pc].loc.file, file)})

    def add(self, found: Breakpoint) -> None:
        """Find the place of a breakpoint, and keep it."""
        found.at = next((n for n in self.lines(found.file) if n >= found.line), 0)
        code = self._machine.code
        found.pcs = frozenset(
            pc for pc in self._starts
            if code[pc].loc.line == found.at and _same(code[pc].loc.file, found.file)
        )  # fmt: skip
        self.all.append(found)

    def pcs(self) -> frozenset[int]:
        """The instructions that one of them may stop at, those of ``breakpoint()`` included."""
        pcs = frozenset(self._machine.flat.breakpoints)
        return pcs.union(*(b.pcs for b in self.all))

    def met(self, forward: bool) -> Stop | None:
        """The stop of a breakpoint at this moment; None if there is none."""
        machine = self._machine
        if machine.pc in machine.flat.breakpoints:
            return Stop("breakpoint", "breakpoint()")
        for each in self.all:
            if machine.pc not in each.pcs:
                continue
            text = each.filter.stops(machine.time, forward)
            if text is None:
                continue
            if text:
                return Stop("breakpoint", f"line {each.at}: {text}")
            if each.log:
                if forward:
                    self._log(self._logged(each.log))
                continue
            return Stop("breakpoint", f"line {each.at}")
        return None

    def _logged(self, text: str) -> str:
        def value(found: re.Match[str]) -> str:
            try:
                return shown(self._names.evaluate(found[1]))
            except DebugError as error:
                return f"<{error}>"

        return re.sub(r"\{([^{}]*)\}", value, text)


def _true(value: Any) -> bool:
    try:
        return bool(np.all(value))
    except (TypeError, ValueError) as error:
        raise DebugError(str(error)) from None


def _same(a: str, b: str) -> bool:
    return a == b or os.path.realpath(a) == os.path.realpath(b)
