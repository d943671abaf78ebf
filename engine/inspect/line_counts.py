"""Sums what a launch with counters has counted by source line: see `counting`.

Every op of the finished IR belongs to a line of the kernel: that of its source location or, of
inlined code, that of the call. An op is executed as often as its segment. From that follow
instructions, operations, and bytes that are asked for. Which elements a line touches is known from
the marks of its accesses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..ir import Op, base_of
from ..ir import codes as C
from ..named_tuple import NamedTuple
from ..types import PointerType
from .dependences import Dependences, latency

if TYPE_CHECKING:
    from .counting import Mark, Segment
    from .travel import Travel

__all__ = [
    "CACHE_LINE", "LineAmounts", "LineKey", "Touched", "cost", "is_flop", "line_amounts",
    "line_key", "lines_touched",
]  # fmt: skip

CACHE_LINE: Final = 64

_OF_OPERAND: Final = frozenset(
    {C.ATOMIC_ADD, C.ATOMIC_MUL, C.ATOMIC_MIN, C.ATOMIC_MAX, C.AD_STACK_ACC_ADJOINT}
)
_REAL: Final = _OF_OPERAND | {
    code
    for code in range(C.COUNT)
    if C.MATH[code] or (C.BINARY[code] and not C.COMPARE[code] and not C.BITWISE[code])
}
"""Operations that count if their operands are floats."""

_NO_CODE: Final = frozenset(
    {C.CONST, C.ALLOCA, C.ARRAY_ALLOCA, C.ARG_LOAD, C.ARG_ADDR, C.GLOBAL_TMP, C.CALL_ARG,
     C.LOOP_INDEX, C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, C.LOCAL_LOAD, C.LOCAL_STORE, C.CAST_BITS,
     C.BOUNDS, C.CONTINUE, C.RETURN, C.LAUNCH_SEED}
)  # fmt: skip
"""Ops that are values in registers or immediate operands on a CPU, or the frame of code."""
_ADDRESS: Final = frozenset({C.SHIFT_PTR, C.LINEARIZE, C.EXTERNAL_PTR})
_COSTS: Final = {
    C.DIV: 8, C.TRUEDIV: 8, C.FLOORDIV: 10, C.MOD: 12, C.FLOORMOD: 14, C.SQRT: 8, C.RSQRT: 10,
    C.INV: 8, C.POW: 40, C.ATAN2: 40, C.TANH: 30, C.EXP: 15, C.LOG: 18, C.SIN: 20, C.COS: 20,
    C.TAN: 30, C.ASIN: 25, C.ACOS: 25, C.RAND: 20, C.CALL: 5, C.PRINT: 1000,
}  # fmt: skip
"""Operations that cost more than an addition: in additions, on a common CPU."""


class LineKey(NamedTuple):
    """A line of a kernel in one task.

    task: -1 for none. file, line: in the kernel; empty and 0 if an op has no location. inner_file,
    inner_line: of the function that was inlined there; equal to file and line if none was.
    """

    task: int
    file: str
    line: int
    inner_file: str
    inner_line: int


class LineAmounts(NamedTuple):
    """The amounts of one line in one launch.

    runs: how often its most frequent op was executed. cycles: the cost of its operations, in
    additions. loads, stores, atomics: of arrays and fields; load_bytes, store_bytes: the bytes that
    they ask for. read_bytes, written_bytes: of distinct elements; None if not known. moved_read,
    moved_written: bytes of the cache lines with these, what several lines of a task touch divided
    among them. chases, gathers: loads that wait for another load (see `dependences`). chain: cycles
    of the longest chain of dependent operations in the task that belong to this line. updates: by
    array, atomic operations and the distinct elements that they update; empty if not known.
    """

    key: LineKey
    runs: int
    instructions: int
    flops: int
    cycles: int
    loads: int
    stores: int
    atomics: int
    load_bytes: int
    store_bytes: int
    read_bytes: int | None
    written_bytes: int | None
    moved_read: int | None
    moved_written: int | None
    gathers: int
    chases: int
    chain: int
    wide: int
    """Operations on numbers of 64 bits among ``flops``."""
    host: Travel | None = None
    """Bytes that travel through the caches of a CPU; None if not known."""
    device: Travel | None = None
    """The same of a GPU."""
    updates: tuple[tuple[int, int], ...] = ()


class Touched(NamedTuple):
    """bytes: of distinct elements in the launch. memory: of their cache lines. read, written,
    moved_read, moved_written: of `LineAmounts`, by line. elements: distinct ones that are written,
    by line and parameter."""

    bytes: int
    memory: int
    read: Mapping[LineKey, int]
    written: Mapping[LineKey, int]
    moved_read: Mapping[LineKey, int]
    moved_written: Mapping[LineKey, int]
    elements: Mapping[tuple[LineKey, int], int] = {}


def line_key(op: Op, task: int) -> LineKey:
    """The line that an op belongs to."""
    root = op.loc.root
    return LineKey(task, root.file, root.line, op.loc.file, op.loc.line)


def is_flop(op: Op) -> int:
    """1 if the op is an operation on floats that counts."""
    if op.code not in _REAL:
        return 0
    if op.code in _OF_OPERAND:
        pointee = op.args[0].type
        return int(isinstance(pointee, PointerType) and pointee.elem.is_real)
    return int(op.type.is_real)


def cost(op: Op) -> int:
    """The cost of executing an op once, without what it waits for, in additions."""
    if op.code in _NO_CODE or op.code in _ADDRESS or op.regions:
        return 0
    if C.ATOMIC[op.code]:
        return 20
    return _COSTS.get(op.code, 1)


# ---- elements


def lines_touched(marks: Sequence[Mark], marked: Sequence[Any]) -> Touched:
    """Sum up marked elements."""
    total = 0
    sums = tuple[dict[LineKey, int], ...]([{}, {}, {}, {}])
    updated: dict[tuple[LineKey, int], int] = {}
    groups: dict[tuple[int, bool], list[int]] = {}
    unions: dict[int, tuple[int, Any]] = {}
    for i, mark in enumerate(marks):
        groups.setdefault((mark.param, mark.written), []).append(i)
    for (_, written), several in groups.items():
        size = marks[several[0]].size
        union = _union([marked[i] for i in several])
        total += size * int(np.count_nonzero(union))
        param = marks[several[0]].param
        either = unions.get(param)
        unions[param] = size, union if either is None else either[1] | union
        by_task: dict[int, list[int]] = {}
        for i in several:
            key = marks[i].key
            if key is not None:
                by_task.setdefault(key.task, []).append(i)
        for members in by_task.values():
            lines = [_cache_lines(marked[i], size) for i in members]
            together = sum(lines)
            if len(members) > 1:
                together = _cache_lines(_union([marked[i] for i in members]), size)
            share = together / sum(lines) if sum(lines) else 0.0
            for i, n in zip(members, lines, strict=True):
                key = marks[i].key
                assert key is not None
                elements, moved = sums[written], sums[2 + written]
                count = int(np.count_nonzero(marked[i]))
                if written:
                    updated[key, marks[i].param] = count
                elements[key] = elements.get(key, 0) + size * count
                moved[key] = moved.get(key, 0) + round(n * share * CACHE_LINE)
    memory = sum(CACHE_LINE * _cache_lines(union, size) for size, union in unions.values())
    return Touched(total, memory, *sums, elements=updated)


def _union(several: Sequence[Any]) -> Any:
    out = several[0]
    for one in several[1:]:
        out = out | one
    return out


def _cache_lines(marked: Any, size: int) -> int:
    """The number of cache lines with a marked element."""
    each = max(1, CACHE_LINE // max(1, size))
    whole = len(marked) // each * each
    count = int(np.count_nonzero(marked[:whole].reshape(-1, each).any(axis=1)))
    return count + int(marked[whole:].any())


# ---- lines


def line_amounts(
    segments: Iterable[Segment],
    runs: Sequence[int],
    touched: Touched,
    known: bool,
    found: Dependences,
) -> tuple[LineAmounts, ...]:
    """The amounts of all lines with an op that was executed. known: the marks are complete."""
    sums: dict[LineKey, _Sums] = {}
    chains: dict[tuple[int, int], dict[LineKey, int]] = {}
    for segment, n in zip(segments, runs, strict=False):
        if not n:
            continue
        for op in segment.ops:
            key = line_key(op, segment.task)
            mine = sums.get(key)
            if mine is None:
                mine = sums[key] = _Sums()
            mine.add(op, n, found)
            number = found.chains.get(op)
            if number is not None:
                parts = chains.setdefault((segment.task, number), {})
                parts[key] = parts.get(key, 0) + n * latency(op)
    longest: dict[int, dict[LineKey, int]] = {}
    for (task, _), parts in chains.items():
        if sum(parts.values()) > sum(longest.get(task, {}).values()):
            longest[task] = parts
    known = known and (bool(touched.read or touched.written) or not touched.bytes)
    out: list[LineAmounts] = []
    for key, mine in sums.items():
        if mine.instructions:
            chain = longest.get(key.task, {}).get(key, 0)
            out.append(mine.amounts(key, touched if known else None, chain))
    return tuple(sorted(out, key=lambda one: one.key))


class _Sums:
    """The sums of one line."""

    def __init__(self) -> None:
        self.runs = self.instructions = self.flops = self.wide = self.cycles = 0
        self.loads = self.stores = self.atomics = self.load_bytes = self.store_bytes = 0
        self.gathers = self.chases = 0
        self.updates: dict[int, int] = {}

    def add(self, op: Op, n: int, found: Dependences) -> None:
        """Add ``n`` executions of an op."""
        if op.code in _NO_CODE:
            return
        self.runs = max(self.runs, n)
        self.instructions += n
        self.cycles += n * cost(op)
        if is_flop(op):
            self.flops += n
            self.wide += n * (_size(op) == 8)
        if op.code in (C.GLOBAL_LOAD, C.GLOBAL_STORE) or C.ATOMIC[op.code]:
            self._access(op, n, found)

    def _access(self, op: Op, n: int, found: Dependences) -> None:
        pointer = op.args[0]
        pointer = base_of(pointer)
        if pointer.code in (C.GLOBAL_TMP, C.ALLOCA, C.ARRAY_ALLOCA):
            return
        if C.ATOMIC[op.code] and pointer.code == C.ARG_ADDR:
            param = int(pointer.attr[0])
            self.updates[param] = self.updates.get(param, 0) + n
        size = _size(op)
        if op.code != C.GLOBAL_STORE:
            self.loads += n
            self.load_bytes += n * size
        if op.code != C.GLOBAL_LOAD:
            self.stores += n
            self.store_bytes += n * size
        self.atomics += n * C.ATOMIC[op.code]
        self.gathers += n * (op in found.gathers)
        self.chases += n * (op in found.chases)

    def amounts(self, key: LineKey, touched: Touched | None, chain: int) -> LineAmounts:
        """touched: None if the elements are not known."""
        return LineAmounts(
            key=key, runs=self.runs, instructions=self.instructions, flops=self.flops,
            cycles=self.cycles, loads=self.loads, stores=self.stores, atomics=self.atomics,
            load_bytes=self.load_bytes, store_bytes=self.store_bytes,
            read_bytes=None if touched is None else touched.read.get(key, 0),
            written_bytes=None if touched is None else touched.written.get(key, 0),
            moved_read=None if touched is None else touched.moved_read.get(key, 0),
            moved_written=None if touched is None else touched.moved_written.get(key, 0),
            gathers=self.gathers, chases=self.chases, chain=chain, wide=self.wide,
            updates=() if touched is None else tuple(
                (n, touched.elements.get((key, param), 0)) for param, n in self.updates.items()
            ),
        )  # fmt: skip


def _size(op: Op) -> int:
    """Bytes of the number that an op works on."""
    if op.code in (C.GLOBAL_LOAD, C.GLOBAL_STORE) or C.ATOMIC[op.code]:
        pointee = op.args[0].type
        return pointee.elem.size if isinstance(pointee, PointerType) else 0
    return int(getattr(op.type, "size", 0))
