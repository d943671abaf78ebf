"""Counts the ops of both listings that a pass has moved, in the order or to another block.

Ops are known by their ids. Of those in both listings the longest run that keeps its order stays;
the others have moved. An op that keeps its place in the order, but passes the end of a block, has
moved as well. Without what is in one listing alone, most listings are the same, closing lines
included: nothing has moved. Else what both begin and end with is left out: most passes change
little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ..named_tuple import NamedTuple
from .increasing import increasing
from .listings import Part, whole

__all__ = ["Differences", "differences", "moved"]

_Block = tuple[int, int]
"""The op that a block belongs to, and which of its blocks; -1 for the outermost one."""


class Differences(NamedTuple):
    """The ops that are in one of two listings alone, and that are elsewhere in the new one: how
    many. both: by the id of an op, 1 if it is in both; as long as there are such ids, or longer."""

    added: int
    removed: int
    moved: int
    both: bytes


def differences(old: Sequence[Part], new: Sequence[Part]) -> Differences | None:
    """Compare the ops of two listings, each given by its parts; parts that have not changed may
    be left out of both. None if an op has gone from one part to another: then the listings have to
    be given whole."""
    (was, was_in), (now, now_in) = _numbered(old), _numbered(new)
    # The last element, at -1, is that of lines on which no op begins.
    size = max(was.max(initial=-1), now.max(initial=-1)) + 2
    in_old, in_new = np.full(size, -1), np.full(size, -1)
    in_old[was], in_new[now] = was_in, now_in
    both = (in_old >= 0) & (in_new >= 0)
    if (both & (in_old != in_new))[:-1].any():
        return None
    in_order = np.array_equal(was[both[was]], now[both[now]])
    still = in_order and _closing(old) == _closing(new)
    added, removed = ((found >= 0) & ~both for found in (in_new, in_old))
    return Differences(
        int(added[:-1].sum()), int(removed[:-1].sum()),
        0 if still else moved(whole(old), whole(new)), both.tobytes(),
    )  # fmt: skip


def _numbered(parts: Sequence[Part]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The ids of all lines, and the part that each is in."""
    ids = chain.from_iterable([part.ids for part in parts])
    numbers = np.repeat(np.arange(len(parts)), [len(part.ids) for part in parts])
    return np.fromiter(ids, np.int64, len(numbers)), numbers


def moved(old: Part, new: Part) -> int:
    """The number of ops of ``new`` that are elsewhere in ``old``: two whole listings."""
    start, end = _ends_alike(old.ids, new.ids)
    numbers: dict[_Block, int] = {}
    size = max(max(old.ids, default=-1), max(new.ids, default=-1)) + 2
    first, before = _blocks(old, start, end, numbers, size)
    second, after = _blocks(new, start, end, numbers, size)
    blocks = list(numbers)
    kept = second[before[second] >= 0]
    place = np.zeros(size, np.int64)
    place[first] = np.arange(len(first))
    positions = place[kept]
    elsewhere = 0
    if (positions[1:] < positions[:-1]).any():
        stay = increasing(positions.tolist())
        elsewhere = len(kept) - len(stay)
        kept = kept[np.fromiter(map(stay.__contains__, range(len(kept))), np.bool_, len(kept))]
    # The owner of a block that has kept its place is in both.
    others = kept[before[kept] != after[kept]]
    pairs = zip(before[others].tolist(), after[others].tolist(), strict=True)
    return elsewhere + sum([
        times for (one, two), times in Counter(pairs).items()
        if _around(one, blocks, before, after) != _around(two, blocks, after, before)
    ])  # fmt: skip


def _closing(parts: Sequence[Part]) -> list[str]:
    """The texts of the lines on which no op begins."""
    return [text for part in parts for _, text in part.ends]


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


def _around(
    number: int, blocks: Sequence[_Block], around: NDArray[np.int64], others: NDArray[np.int64]
) -> _Block:
    """The innermost block, that of ``number`` or around it, whose owner both listings have: a loop
    that was added around ops, or removed, did not move them. around, others: the numbers of the
    blocks that the ops of both are in."""
    owner, region = blocks[number]
    while owner >= 0 and others[owner] < 0:
        owner, region = blocks[int(around[owner])]
    return owner, region


def _blocks(
    listing: Part, start: int, end: int, numbers: dict[_Block, int], size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The ids of the ops of a listing without its first and last lines, in order, and by id the
    number of the block that each is in; -1 for others. numbers: of all blocks so far."""
    stop = len(listing.ids) - end
    ids = listing.ids[start:stop]
    limits = [(line, "") for line in listing.opens if start <= line < stop]
    limits += [limit for limit in listing.ends if start <= limit[0] < stop]
    limits.sort()
    stack: list[_Block] = [(-1, 0)]
    begin, others = start, 0
    inside: list[int] = []
    lengths: list[int] = []
    for line, text in limits:
        inside.append(numbers.setdefault(stack[-1], len(numbers)))
        lengths.append(line + 1 - begin)
        begin = line + 1
        if not text:  # an op
            stack.append((listing.ids[line], 0))
            continue
        opens = text.endswith("{")
        if text.lstrip().startswith("}"):
            owner, number = stack.pop() if len(stack) > 1 else (-1, stack.pop()[1] + 1)
            if opens or not stack:  # another block of the same op, or the end of one from above
                stack.append((owner, number + opens))
        elif opens:
            stack.append((-1, line - start - others))
        others += 1
    inside.append(numbers.setdefault(stack[-1], len(numbers)))
    lengths.append(stop - begin)
    found = np.fromiter(ids, np.int64, len(ids))
    out = np.full(size, -1)
    out[found] = np.repeat(inside, lengths)
    out[-1] = -1
    return found[found >= 0], out
