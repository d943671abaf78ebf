"""Counts the ops of both listings that a pass has moved, in the order or to another block.

Ops are known by their ids. Of those in both listings the longest run that keeps its order stays;
the others have moved. An op that keeps its place in the order, but passes the end of a block, has
moved as well. What both listings begin and end with is left out first: most passes change little.
Without what is in one listing alone, most are the same, closing lines included: nothing has moved.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from itertools import compress, count, filterfalse, repeat

from ..named_tuple import NamedTuple
from .record import Snapshot

__all__ = ["Middle", "increasing", "middle", "moved"]

_Block = tuple[int, int]
"""The op that a block belongs to, and which of its blocks; -1 for the outermost one."""


class Middle(NamedTuple):
    """Two listings without what both begin and end with, which are ``start`` and ``end`` lines.

    ids, seen, alone: of the old and of the new one, in order, as sets, and without the other's.
    """

    start: int
    end: int
    ids: tuple[tuple[int, ...], tuple[int, ...]]
    seen: tuple[frozenset[int], frozenset[int]]
    alone: tuple[frozenset[int], frozenset[int]]


def middle(old: Snapshot, new: Snapshot) -> Middle:
    """The lines of two listings without their common ends."""
    start, end = _ends_alike(old.ids, new.ids)
    first, second = old.ids[start : len(old.ids) - end], new.ids[start : len(new.ids) - end]
    was, now = frozenset(first), frozenset(second)
    return Middle(start, end, (first, second), (was, now), (was - now, now - was))


def moved(old: Snapshot, new: Snapshot, between: Middle | None = None) -> int:
    """The number of ops of ``new`` that are elsewhere in ``old``. between: their `middle`."""
    start, end, ids, _, alone = between or middle(old, new)
    in_order = _kept(ids[0], alone[0]) == _kept(ids[1], alone[1])
    if in_order and _closing(old, start, ids[0]) == _closing(new, start, ids[1]):
        return 0
    before = _blocks(old.lines[start : len(old.lines) - end], ids[0])
    after = _blocks(new.lines[start : len(new.lines) - end], ids[1])
    kept = list(filter(before.__contains__, after))
    # The owner of a block that has kept its place is in both.
    blocks = zip(map(before.__getitem__, kept), map(after.__getitem__, kept), strict=True)
    elsewhere = 0
    if not in_order:
        position = dict(zip(before, count(), strict=False))
        positions = list(map(position.__getitem__, kept))
        if positions != sorted(positions):
            stay = increasing(positions)
            elsewhere = len(kept) - len(stay)
            blocks = compress(blocks, map(stay.__contains__, count()))
    return elsewhere + sum([
        times for (one, two), times in Counter(blocks).items()
        if one != two and _around(one, before, after) != _around(two, after, before)
    ])  # fmt: skip


def _kept(ids: tuple[int, ...], alone: frozenset[int]) -> list[int]:
    """The ops of a listing that are not in it alone."""
    if not alone:
        return list(ids)
    return list(filterfalse(alone.__contains__, ids))


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


def _around(block: _Block, blocks: Mapping[int, _Block], others: Container[int]) -> _Block:
    """The innermost block, ``block`` or around it, whose owner both listings have: a loop that was
    added around ops, or removed, did not move them."""
    owner, number = block
    while owner >= 0 and owner not in others:
        owner, number = blocks[owner]
    return owner, number


def _blocks(lines: Sequence[str], ids: Sequence[int]) -> dict[int, _Block]:
    """The block that each op is in, in order."""
    out: dict[int, _Block] = {}
    stack: list[_Block] = [(-1, 0)]
    begin = 0
    limits = [i for i, text in enumerate(lines) if text[-1] == "{" or ids[i] < 0]
    for i in limits:
        out.update(zip(ids[begin:i], repeat(stack[-1])))
        begin = i + 1
        text, id = lines[i], ids[i]
        opens = text.endswith("{")
        if id >= 0:
            out[id] = stack[-1]
            stack.append((id, 0))
        elif text.lstrip().startswith("}"):
            owner, number = stack.pop() if len(stack) > 1 else (-1, stack.pop()[1] + 1)
            if opens or not stack:  # another block of the same op, or the end of one from above
                stack.append((owner, number + opens))
        elif opens:
            stack.append((-1, len(out)))
    out.update(zip(ids[begin:], repeat(stack[-1])))
    return out


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
