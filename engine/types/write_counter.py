"""Counts changes of the memory of an array or field, for code that keeps what it read there.

A writer sets `WriteCounter.touched` after it has written; a reader asks for the number *before*
it reads, and keeps it with what it read. As long as the number is the same, so is the memory. The
number is counted when a reader asks: a write that no reader watches costs the store of a flag.

A process uses each number once: two arrays, or two states of one, never have the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Final

__all__ = ["WriteCounter"]

_next: Final[Callable[[], int]] = itertools.count(1).__next__


class WriteCounter:
    """The write counter of one array or field. See the module docstring.

    touched: written since `count` was asked for last. untracked: code that sets no flag holds a
    view of the memory, and may write to it unseen.
    """

    __slots__ = ("_number", "touched", "untracked")

    def __init__(self) -> None:
        self.touched = False
        self.untracked = False
        self._number = _next()

    @property
    def count(self) -> int | None:
        """A number that changes with each write; None if writes may go unseen."""
        if self.touched:
            self.touched = False  # first: a write from here on counts again
            self._number = _next()
        return None if self.untracked else self._number
