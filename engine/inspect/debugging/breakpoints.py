"""Breakpoints of lines: where they are, and which of them stops at a moment."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from .machine import Machine
from .user_values import shown
from .values import DebugError, Names

__all__ = ["Breakpoint", "Breakpoints", "Stop"]


class Stop(NamedTuple):
    """The reason why a motion ended. reason: ``entry``, ``step``, ``breakpoint``, ``data``,
    ``pause``, ``error``, ``start``, ``end``. text: more about it."""

    reason: str
    text: str = ""


class Breakpoint:
    """A place to stop at.

    line: where the user put it. at: the line with code that it is at, 0 for none. condition: stops
    only if it is true. hits: stops from this time on that it is reached, 0 for always; the times
    that were passed since it exists count, forward only once. log: text to report in place of a
    stop, with ``{expressions}``.
    """

    def __init__(self, file: str, line: int, condition: str, hits: int, log: str) -> None:
        self.file: Final = file
        self.line: Final = line
        self.condition: Final = condition
        self.hits: Final = hits
        self.log: Final = log
        self.at = 0
        self.pcs: frozenset[int] = frozenset()
        self.seen: Final[dict[int, int]] = {}
        """By moment, which time it was that the breakpoint was reached."""


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
        """Find the place of a breakpoint, and keep it. Raises DebugError for a condition that is
        no expression."""
        if found.condition.strip():
            self._names.parsed(found.condition)
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
            if each.condition.strip():
                try:
                    if not _true(self._names.evaluate(each.condition)):
                        continue
                except DebugError as error:
                    return Stop("breakpoint", f"the condition of line {each.at} failed: {error}")
            if forward and machine.time not in each.seen:
                each.seen[machine.time] = len(each.seen) + 1
            if each.hits and each.seen.get(machine.time, 0) < each.hits:
                continue
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
