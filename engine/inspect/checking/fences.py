"""Accesses that fences and atomic updates order: data that one iteration passes to another.

    x[i] = v                          ordered before the read of x[i] below, if that
    qd.simt.grid.mem_fence()          update comes later than this one
    qd.atomic_add(count[0], 1)

    if qd.atomic_add(count[0], 1) == n - 1: ... x[i]

The order of the updates is that of the launch. In another order there may be a race that this one
does not have.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

__all__ = ["Fences"]


class _Updates:
    """The atomic updates of one element that have a fence before them. count: of all; by: for each
    party, the number and the time of the fence of each."""

    def __init__(self) -> None:
        self.count = 0
        self.by: Final[dict[Hashable, list[tuple[int, int]]]] = {}


class Fences:
    """Of one parallel loop. A party is an iteration, or a block of them: its barriers pass on what
    one of its iterations has seen."""

    def __init__(self) -> None:
        self._fenced: Final[dict[Hashable, int]] = {}
        self._updates: Final[dict[Hashable, _Updates]] = {}
        self._seen: Final[dict[Hashable, dict[Hashable, int]]] = {}
        """For each party and element, the number of the updates before its own."""

    def fence(self, party: Hashable, time: int) -> None:
        """A party passes a fence for the whole grid."""
        self._fenced[party] = time

    def update(self, party: Hashable, element: Hashable) -> None:
        """A party updates an element atomically."""
        updates = self._updates.get(element)
        if updates is None:
            updates = self._updates[element] = _Updates()
        self._seen.setdefault(party, {})[element] = updates.count
        fenced = self._fenced.get(party)
        if fenced is not None:
            updates.by.setdefault(party, []).append((updates.count, fenced))
            updates.count += 1

    def ordered(self, before: Hashable, time: int, party: Hashable) -> bool:
        """True if what ``before`` did at a time is before what ``party`` does now."""
        return before != party and any(
            number < count and fenced >= time
            for element, count in self._seen.get(party, {}).items()
            for number, fenced in self._updates[element].by.get(before, ())
        )
