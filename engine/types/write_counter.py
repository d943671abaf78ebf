"""How often the memory of an array or field has changed, for those who keep what they read there.

A writer sets `WriteCounter.touched` after it has written; a reader asks for the number *before*
it reads, and keeps it with what it read. As long as the number is the same, so is the memory. The
number is counted when somebody asks: a write that nobody watches costs the store of a flag.

Numbers are given once in a process: two arrays, or two states of one, never have the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Final

__all__ = ["WriteCounter"]

_next: Final[Callable[[], int]] = itertools.count(1).__next__


class WriteCounter:
    """Of one array or field. See the module docstring.

    touched: written since `count` was asked for last. untracked: somebody holds a view
    of the memory, and may write to it unseen.
    """

    __slots__ = ("_number", "touched", "untracked")

    def __init__(self) -> None:
        self.touched = False
        self.untracked = False
        self._number = _next()

    @property
    def count(self) -> int | None:
        """A number that is another one after each write; None if writes may go unseen."""
        if self.touched:
            self.touched = False  # first: a write from here on counts again
            self._number = _next()
        return None if self.untracked else self._number
