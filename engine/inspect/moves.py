"""Counts the ops of both listings that a pass has moved, in the order or to another block.

Ops are known by their ids. Of those in both listings the longest run that keeps its order stays;
the others have moved. An op that keeps its place in the order, but passes the end of a block, has
moved as well. What both listings begin and end with is left out first: most passes change little.
Without what is in one listing alone, most are the same, closing lines included: nothing has moved.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Container, Mapping, Sequence

from .record import Snapshot

__all__ = ["ends_alike", "increasing", "moved"]

_Block = tuple[int, int]
"""The op that a block belongs to, and which of its blocks; -1 for the outermost one."""


def moved(old: Snapshot, new: Snapshot) -> int:
    """The number of ops of ``new`` that are elsewhere in ``old``."""
    start, end = ends_alike(old.ids, new.ids)
    ids = [x.ids[start : len(x.ids) - end] for x in (old, new)]
    both = frozenset(ids[0]).intersection(ids[1])
    if _kept(ids[0], both) == _kept(ids[1], both):
        closing = [_closing(x, start, one) for x, one in zip((old, new), ids, strict=True)]
        if closing[0] == closing[1]:
            return 0
    sides = [
        (x.lines[start : len(x.lines) - end], one) for x, one in zip((old, new), ids, strict=True)
    ]
    before, after = _blocks(*sides[0]), _blocks(*sides[1])
    kept = [id for id in after if id in before]
    position = {id: i for i, id in enumerate(before)}
    stay = increasing([position[id] for id in kept])
    return sum(
        i not in stay or _around(id, before, after) != _around(id, after, before)
        for i, id in enumerate(kept)
    )


def _kept(ids: tuple[int, ...], both: frozenset[int]) -> tuple[int, ...]:
    """The ops of a listing that are in both."""
    return ids if len(both) == len(ids) else tuple([id for id in ids if id in both])


def _closing(shot: Snapshot, start: int, ids: tuple[int, ...]) -> list[str]:
    """The lines that close blocks, of those that begin at ``start`` and have ``ids``."""
    if -1 not in ids:
        return []
    return [shot.lines[i] for i, id in enumerate(ids, start) if id < 0]


def ends_alike(old: Sequence[int], new: Sequence[int]) -> tuple[int, int]:
    """The numbers of elements that both begin with, and that what is left of both ends with."""
    least = min(len(old), len(new))
    start = _longest(least, lambda n, done: old[done:n] == new[done:n])
    a, b = len(old), len(new)
    end = _longest(
        least - start, lambda n, done: old[a - n : a - done] == new[b - n : b - done]
    )  # fmt: skip
    return start, end


def _longest(most: int, alike: Callable[[int, int], bool]) -> int:
    """The largest number up to ``most`` that is alike. Slices are compared: fast also if long."""
    low, step = 0, most
    while step:
        if low + step <= most and alike(low + step, low):
            low += step
        else:
            step //= 2
    return low


def _around(id: int, blocks: Mapping[int, _Block], others: Container[int]) -> _Block:
    """The innermost block around an op whose owner both listings have: a loop that was added around
    ops, or removed, has not moved them."""
    owner, number = blocks[id]
    while owner >= 0 and owner not in others:
        owner, number = blocks[owner]
    return owner, number


def _blocks(lines: Sequence[str], ids: Sequence[int]) -> dict[int, _Block]:
    """The block that each op is in, in order."""
    out: dict[int, _Block] = {}
    stack: list[_Block] = [(-1, 0)]
    for text, id in zip(lines, ids, strict=False):
        opens = text.endswith("{")
        if id >= 0:
            out[id] = stack[-1]
            if opens:
                stack.append((id, 0))
        elif text.lstrip().startswith("}"):
            owner, number = stack.pop() if len(stack) > 1 else (-1, stack.pop()[1] + 1)
            if opens or not stack:  # another block of the same op, or the end of one from above
                stack.append((owner, number + opens))
        elif opens:
            stack.append((-1, len(out)))
    return out


def increasing(positions: Sequence[int]) -> set[int]:
    """The indices of one longest increasing subsequence."""
    if list(positions) == sorted(positions):  # no two are equal
        return set(range(len(positions)))
    tails: list[int] = []
    tail_at: list[int] = []
    back = [-1] * len(positions)
    for i, value in enumerate(positions):
        at = bisect_left(tails, value)
        if at == len(tails):
            tails.append(value)
            tail_at.append(i)
        else:
            tails[at], tail_at[at] = value, i
        back[i] = tail_at[at - 1] if at else -1
    out: set[int] = set()
    i = tail_at[-1] if tail_at else -1
    while i >= 0:
        out.add(i)
        i = back[i]
    return out
