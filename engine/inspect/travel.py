"""The bytes that travel for what a line touches: whole cache lines, whole sectors.

`access_trace` has the order of accesses. From it follow, for each access, the shares that go past
the caches of a common CPU (32 KiB of 8 ways, then 1 MiB of 16 ways, lines of 64 bytes), and the
sectors of 32 bytes that the 32 threads of a warp of a GPU ask for together, if iterations
``i, i + 1, ...`` of a parallel loop are its threads. These shares times the executions are the
bytes::

    near    between the first cache and the next one; on a GPU what warps ask for
    far     beyond the second cache; on a GPU beyond all caches

The caches of a CPU keep lines by their address, so a walk in steps of a power of two has few of
their places. A line that was written travels back once. What a trace cannot show, as it is too
short for it, is taken from the distinct lines: data that fits a cache is loaded into it once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..named_tuple import NamedTuple
from .access_trace import OFFSET_BITS

if TYPE_CHECKING:
    from ..ir import Op
    from .access_trace import Access, Trace
    from .line_counts import LineAmounts, LineKey

__all__ = ["L1", "L2", "LINE", "SECTOR", "Cache", "Travel", "travels"]

LINE: Final = 64
SECTOR: Final = 32
_WARP: Final = 32
_PAGE: Final = 4096
_NEAR_LINES: Final = 8


class Cache(NamedTuple):
    """A cache that keeps the lines of each of ``sets`` that were used last."""

    sets: int
    ways: int

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.sets * self.ways * LINE


L1: Final = Cache(64, 8)
L2: Final = Cache(1024, 16)


class Travel(NamedTuple):
    """Bytes that travel; see the module docstring. jumps: loads and stores that need another cache
    line more than `_NEAR_LINES` from the one before, by an op on a CPU."""

    near_read: int
    near_written: int
    far_read: int
    far_written: int
    jumps_read: int = 0
    jumps_written: int = 0


class _Shares(NamedTuple):
    """By access: lines for an execution: loaded the first time, again,
    written back, and loaded from far away."""

    first: Any
    again: Any
    back: Any
    jumps: Any


def travels(
    lines: tuple[LineAmounts, ...], trace: Trace, arrays: Sequence[Any],
    sizes: Mapping[int, int], executed: Mapping[Op, int],
) -> tuple[LineAmounts, ...]:  # fmt: skip
    """The lines with what travels for them, where that is known.

    arrays: of the trace. sizes: by parameter, the bytes of the array. executed: by op, how often.
    """
    if not trace.accesses:
        return lines
    out: dict[LineKey, tuple[Travel, Travel]] = {}
    by_key = {line.key: line for line in lines}
    for task, slots in trace.slots(arrays).items():
        out |= _of_task(_Recorded(trace.accesses, slots, sizes), task, executed, by_key)
    return tuple([
        line._replace(host=out[line.key][0], device=out[line.key][1]) if line.key in out else line
        for line in lines
    ])  # fmt: skip


class _Recorded:
    """The accesses of one task in order. access: their numbers from 0; -1: an iteration starts."""

    def __init__(
        self, accesses: tuple[Access, ...], slots: Sequence[tuple[Any, bool]],
        sizes: Mapping[int, int],
    ) -> None:  # fmt: skip
        self.accesses: Final = accesses
        entries = np.concatenate([part for part, _ in slots])
        self.slot: Final = np.repeat(np.arange(len(slots)), [len(part) for part, _ in slots])
        # What comes first in a part whose start was lost finds caches that are empty.
        self.counts: Final = np.concatenate([
            np.arange(len(part)) >= (len(part) // 4 if lost else 0) for part, lost in slots
        ])  # fmt: skip
        self.access: Final = (entries >> OFFSET_BITS) - 1
        starts: dict[int, int] = {}
        end = 0
        for param, size in sorted(sizes.items()):
            starts[param] = end
            end += -(-size // _PAGE) * _PAGE
        start = np.array([starts.get(a.param, 0) for a in accesses] + [0], np.int64)
        each = np.array([a.size for a in accesses] + [0], np.int64)
        offset = entries & ((1 << OFFSET_BITS) - 1)
        self._offset: Final = offset
        self.address: Final = start[self.access] + offset * each[self.access]
        self.written: Final = np.array([a.written for a in accesses] + [False])[self.access]
        self.executions: Final = self._sum(self.counts)

    def _sum(self, which: Any) -> Any:
        """By access, the number of entries."""
        chosen = self.access[which & (self.access >= 0) & self.counts]
        return np.bincount(chosen, minlength=len(self.accesses))

    def through(self, cache: Cache) -> _Shares:
        """The lines that go past a cache, which is empty at the start of each chunk."""
        real = np.flatnonzero(self.access >= 0)
        line = self.address[real] // LINE
        slot = self.slot[real]
        by_set = np.argsort(slot * cache.sets + line % cache.sets, kind="stable")
        mine = (slot << 44 | line)[by_set]
        moves = np.ones(len(mine), bool)
        moves[1:] = mine[1:] != mine[:-1]
        at = np.flatnonzero(moves)
        place = np.arange(len(at))
        by_line = np.argsort(mine[at], kind="stable")
        same = np.zeros(len(at), bool)
        same[1:] = mine[at][by_line][1:] == mine[at][by_line][:-1]
        distance = np.zeros(len(at), np.int64)
        distance[1:] = np.diff(place[by_line])
        first, again = np.zeros(len(self.access), bool), np.zeros(len(self.access), bool)
        entry = real[by_set][at][by_line]
        first[entry[~same]] = True
        again[entry[same & (distance > cache.ways)]] = True
        back = self._back(real, slot << 44 | line, first | again)
        jumps = self._far_apart(real) & (first | again)
        return _Shares(self._sum(first), self._sum(again), self._sum(back), self._sum(jumps))

    def _far_apart(self, real: Any) -> Any:
        """The entries whose cache line is far from that of the same access before."""
        order = real[np.argsort(self.slot[real] * len(self.accesses) + self.access[real],
                                kind="stable")]  # fmt: skip
        out = np.zeros(len(self.access), bool)
        line = self.address[order] // LINE
        out[order[1:]] = np.abs(np.diff(line)) > _NEAR_LINES
        return out

    def _back(self, real: Any, line: Any, loaded: Any) -> Any:
        """The entries that write to a line first after it was loaded."""
        order = real[np.argsort(line, kind="stable")]
        stay = np.cumsum(loaded[order])
        stores = self.written[order]
        _, at = np.unique(stay[stores], return_index=True)
        out = np.zeros(len(self.access), bool)
        out[order[stores][at]] = True
        return out

    def of_warps(self) -> tuple[Any, Any]:
        """By access: sectors that the threads of warps ask for together; bytes of the sectors for
        a byte of their cache lines."""
        starts = self.access < 0
        one = np.cumsum(starts)
        last = np.maximum.accumulate(np.where(starts, np.arange(len(starts)), 0))
        iteration = np.where(starts[last], self._offset[last], 0)
        real = np.flatnonzero(~starts)
        access, sector = self.access[real], self.address[real] // SECTOR
        count = len(self.accesses)
        turn = _rank(one[real] * count + access)
        # Without a parallel loop there is one thread: each execution is a turn of its own.
        warp = self.slot[real] * (int(iteration.max()) + 1) + iteration[real] // _WARP
        order = np.lexsort((sector, turn, warp * count + access))
        new = np.ones(len(order), bool)
        same = [(x[order][1:] == x[order][:-1]) for x in (sector, turn, warp, access)]
        new[1:] = ~(same[0] & same[1] & same[2] & same[3])
        asked = np.zeros(len(self.access), bool)
        asked[real[order[new]]] = True
        parts = [_distinct(access, sector, count), _distinct(access, sector // 2, count)]
        return self._sum(asked), parts[0] * SECTOR / np.maximum(1, parts[1] * LINE)


def _rank(keys: Any) -> Any:
    """For each key, how many equal ones come before it."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    new = np.ones(len(keys), bool)
    new[1:] = ordered[1:] != ordered[:-1]
    first = np.maximum.accumulate(np.where(new, np.arange(len(keys)), 0))
    out = np.empty(len(keys), np.int64)
    out[order] = np.arange(len(keys)) - first
    return out


def _distinct(access: Any, place: Any, count: int) -> Any:
    """By access, the number of distinct places."""
    both = np.unique(access.astype(np.int64) << OFFSET_BITS | place)
    return np.bincount(both >> OFFSET_BITS, minlength=count)


def _of_task(
    found: _Recorded, task: int, executed: Mapping[Op, int], lines: Mapping[LineKey, LineAmounts]
) -> dict[LineKey, tuple[Travel, Travel]]:
    """The bytes that travel for the lines of a task: (on a CPU, on a GPU)."""
    members: dict[LineKey, list[int]] = {}
    for i, access in enumerate(found.accesses):
        if access.key.task == task and executed.get(access.op):
            members.setdefault(access.key, []).append(i)
    moved = [lines[key] for key in members if key in lines]
    memory = sum((x.moved_read or 0) + (x.moved_written or 0) for x in moved)
    shares = [found.through(L1), found.through(L2)]
    asked, dense = found.of_warps()
    scale = [
        executed.get(a.op, 0) / max(1, n)
        for a, n in zip(found.accesses, found.executions.tolist(), strict=True)
    ]
    out: dict[LineKey, tuple[Travel, Travel]] = {}
    for key, several in members.items():
        line = lines.get(key)
        if line is None or not all(found.executions[i] for i in several):
            continue  # the trace no longer has all of its accesses
        most = line.moved_read or 0, line.moved_written or 0
        complete = all(found.executions[i] == executed[found.accesses[i].op] for i in several)
        least = (0, 0) if complete else most
        host = [
            *_past(found.accesses, several, scale, shares[0], most, memory <= L1.size),
            *_past(found.accesses, several, scale, shares[1], most, memory <= L2.size),
        ]
        pairs = zip(host, (*least, *least), strict=True)
        jumps = [0.0, 0.0]
        for i in several:
            written = not found.accesses[i].read
            jumps[written] += scale[i] * shares[0].jumps[i]
        near_read, near_written, far_read, far_written = (max(pair) for pair in pairs)
        far_apart = round(jumps[0]), round(jumps[1])
        out[key] = (
            Travel(near_read, near_written, far_read, far_written, *far_apart),
            _on_device(found.accesses, several, scale, asked, dense, most),
        )
    return out


def _past(
    accesses: Sequence[Access], several: Iterable[int], scale: Sequence[float], shares: _Shares,
    most: tuple[int, int], fits: bool,
) -> tuple[int, int]:  # fmt: skip
    """Bytes that a line's accesses read and write past a cache. fits: it can keep all data."""
    first = again = back = 0.0
    for i in several:
        if accesses[i].read:
            first += scale[i] * shares.first[i]
            again += scale[i] * shares.again[i]
        back += scale[i] * shares.back[i]
    if fits:
        return round(min(LINE * first, most[0]) + LINE * again), round(min(LINE * back, most[1]))
    return round(LINE * (first + again)), round(LINE * back)


def _on_device(
    accesses: Sequence[Access], several: Iterable[int], scale: Sequence[float], asked: Any,
    dense: Any, most: tuple[int, int],
) -> Travel:  # fmt: skip
    """Bytes that travel for a line on a GPU. most: bytes of its distinct cache lines."""
    near, far, dense_most = [0.0, 0.0], [0.0, 0.0], 0.0
    for i in several:
        access = accesses[i]
        bytes = SECTOR * scale[i] * float(asked[i])
        dense_most = max(dense_most, float(dense[i]))
        for written in (False, True):
            if access.written if written else access.read:
                near[written] += bytes
                # The caches keep what neighbours in a row or column use, not what is scattered.
                far[written] += bytes if access.gather else 0.0
    rest = [near[w] - far[w] for w in (0, 1)]
    far = [far[w] + min(rest[w], most[w] * min(1.0, dense_most)) for w in (0, 1)]
    return Travel(round(near[0]), round(near[1]), round(far[0]), round(far[1]))
