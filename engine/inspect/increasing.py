"""The longest increasing subsequence: what stays where the rest of a list has moved."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

__all__ = ["increasing"]


def increasing(positions: Sequence[int]) -> set[int]:
    """The indices of one longest increasing subsequence."""
    if list(positions) == sorted(positions):  # no two are equal
        return set(range(len(positions)))
    tails: list[int] = []
    tail_at: list[int] = []
    back: list[int] = []
    last = last_at = -1
    for i, value in enumerate(positions):
        if value > last:
            back.append(last_at)
            tails.append(value)
            tail_at.append(i)
            last, last_at = value, i
            continue
        at = bisect_left(tails, value)
        back.append(tail_at[at - 1] if at else -1)
        tails[at], tail_at[at] = value, i
        last, last_at = tails[-1], tail_at[-1]
    out: list[int] = []
    while last_at >= 0:
        out.append(last_at)
        last_at = back[last_at]
    return set(out)
