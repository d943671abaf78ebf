"""Counts the ops of both listings that a pass has moved, in the order or to another block.

Ops are known by their ids. Of those in both listings the longest run that keeps its order stays;
the others have moved. An op that keeps its place in the order, but passes the end of a block, has
moved as well. What both listings begin and end with is left out first: most passes change little.
Without what is in one listing alone, most are the same, closing lines included: nothing has moved.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Container, Mapping, Sequence

from ..named_tuple import NamedTuple
from .record import Snapshot

__all__ = ["Middle", "increasing", "middle", "moved"]

_Block = tuple[int, int]
"""The op that a block belongs to, and which of its blocks; -1 for the outermost one."""


class Middle(NamedTuple):
    """Two listings without what both begin and end with, which are ``start`` and ``end`` lines.

    ids, seen: of the old and of the new one, in order and as sets.
    """

    start: int
    end: int
    ids: tuple[tuple[int, ...], tuple[int, ...]]
    seen: tuple[frozenset[int], frozenset[int]]


def middle(old: Snapshot, new: Snapshot) -> Middle:
    """The lines of two listings without their common ends."""
    start, end = _ends_alike(old.ids, new.ids)
    first, second = old.ids[start : len(old.ids) - end], new.ids[start : len(new.ids) - end]
    return Middle(start, end, (first, second), (frozenset(first), frozenset(second)))


def moved(old: Snapshot, new: Snapshot, between: Middle | None = None) -> int:
    """The number of ops of ``new`` that are elsewhere in ``old``. between: their `middle`."""
    start, end, ids, seen = between or middle(old, new)
    in_order = _kept(ids[0], seen[0] - seen[1]) == _kept(ids[1], seen[1] - seen[0])
    if in_order and _closing(old, start, ids[0]) == _closing(new, start, ids[1]):
        return 0
    before = _blocks(old.lines[start : len(old.lines) - end], ids[0])
    after = _blocks(new.lines[start : len(new.lines) - end], ids[1])
    kept = [id for id in after if id in before]
    position = {id: i for i, id in enumerate(before)}
    stay = increasing([position[id] for id in kept])
    return sum([
        i not in stay or _around(id, before, after) != _around(id, after, before)
        for i, id in enumerate(kept)
    ])  # fmt: skip


def _kept(ids: tuple[int, ...], alone: frozenset[int]) -> list[int]:
    """The ops of a listing that are not in it alone."""
    if not alone:
        return list(ids)
    return [id for id in ids if id not in alone]


def _closing(shot: Snapshot, start: int, ids: tuple[int, ...]) -> list[str]:
    """The lines that close blocks, of those that begin at ``start`` and have ``ids``."""
    if -1 not in ids:
        return []
    lines = shot.lines[start : start + len(ids)]
    return [text for text, id in zip(lines, ids, strict=True) if id < 0]


def _ends_alike(old: Sequence[int], new: Sequence[int]) -> tuple[int, int]:
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
