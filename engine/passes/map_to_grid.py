"""map_to_grid: the threads of a GPU's block, and the iterations that each of them runs.

A *tile* is the set of iterations that a block runs in one step of the grid. Where it is cheap, each
thread has several neighbouring ones, so that accesses to neighbours become one of 16 bytes and what
two iterations load is loaded once. Backends print what is decided here (`backends.llvm.tiles`)::

    $2 : offloaded {kind='range_for'}      $2 : offloaded {kind='range_for' block_dim=256
                                                           tile=(2, ((1, 2), (8, 4), (32, 4)), 1)}

Threads are numbered along axis 2 first. A block has 32 threads along it, 8 along axis 1 and 1 along
axis 0; each runs 4 neighbours along axis 2, 4 along axis 1 and 2 along axis 0.

`_choose` finds the steps of the accesses of a straight body along each axis (`strides`). The axis
of the lanes is the one along which most of them are neighbours; a thread runs as many iterations
along it as make its narrowest access one of 16 bytes. With only one axis, a thread that sums up, or
whose accesses are narrow, runs several *chunks* of it: so many loads are under way. With more, it
has rows along those axes whose neighbours load the same elements. That is what bounds a stencil in
space: on an H100, with one plane a thread, the 7-point stencil of 512^3 moved 3.05 GB through a
level-2 cache that was busy for 93 % of the time, though memory moved 1.07; in tiles of 2 planes by
32 rows it goes at 0.89 of the rate of a copy, before at 0.8, and that of 27 points at 0.87, before
at 0.43. All copies of the body may have few operations (`_BUDGET`, `_SHARING_BUDGET`): registers
and the time to compile must not grow without end.

It leaves alone bodies with branches or loops (their accesses are in different blocks, where LLVM
joins nothing, and they are heavy), with calls, prints, assertions or stacks; arrays that may
overlap (a store might change what the next iteration loads); tasks that are known to be small. The
option ``gpu_tile`` asks for other numbers of iterations.
"""

from __future__ import annotations

import math
from typing import Final

from ..analysis import bounds_of, cell_loop, is_index, needs_blocks
from ..errors import QuadrantsCompilationError
from ..ir import Block, Func, Op, base_of, walk
from ..ir import codes as C
from ..named_tuple import NamedTuple
from .grid import block_dim_of
from .linear_form import form_of
from .manager import PassCx
from .registry import register
from .strides import WIDEST, Access, access, apart

__all__ = ["ENOUGH", "Tile", "accesses_of", "map_to_grid", "tile_of", "weight"]

_MOST_WIDTH: Final = 8
_MOST_BYTES: Final = 32
"""Of one access by all neighbouring iterations of a thread."""
_BUDGET: Final = 256
"""So many simple operations, without those of addresses, all copies of a body may have,"""
_SHARING_BUDGET: Final = 2048
"""and so many where copies share loads."""
_STREAMING: Final = 4
"""With at most so many operations for each byte that it moves, memory bounds a body,"""
_STREAMING_BUDGET: Final = 768
"""and two copies may have this many. With several axes they are"""
_STREAMING_ROWS: Final = (2,)
"""rows: incomplete groups of neighbours would cost long bodies more. On an H200 a step of a D3Q19
lattice, which loads and stores 19 floats, runs at 0.74 of the rate of a copy with two rows, at 0.68
with two neighbours, and at 0.53 with one iteration a thread."""
_HEAVY: Final = 8
_HEAVY_OPS: Final = frozenset({C.DIV, C.MOD, C.FLOORDIV, C.FLOORMOD})
_FREE: Final = frozenset({C.CONST, C.ARG_ADDR, C.ARG_LOAD, C.LOOP_INDEX, C.ALLOCA})
_ADDRESSES: Final = frozenset({C.LINEARIZE, C.SHIFT_PTR})
_SUMS: Final = frozenset({C.ADD, C.SUB, C.MUL, C.BIT_SHL})
_EXCLUDED: Final = frozenset({
    C.ASSERT, C.PRINT, C.CALL, C.RAND, C.ARRAY_ALLOCA, C.AD_STACK_ALLOCA, C.CONTINUE,
    C.CLOCK,
})  # fmt: skip
_NEAR_ROWS: Final = 4
_ROWS: Final = 2
"""Rows of a thread, where they share loads,"""
_SPACE: Final = (4, 2)
"""and where they do along two axes: along the near one, and along the far one;"""
_STAR: Final = (2, 4)
"""the same where loads are of a cross alone, as in a stencil of 7 points (4 % faster)."""
_MOST_FORCED: Final = 16
_CHUNKS: Final = 4
"""Chunks of a thread that sums up, or whose accesses are narrow: this many loads are under way."""
_LANES: Final = 32
ENOUGH: Final = 1 << 17
"""Threads that fill a large GPU: with fewer, it is better that a thread runs one iteration."""


class Tile(NamedTuple):
    """The iterations that a block runs in one step of the grid, as `TaskAttr.tile` has them.

    lanes: the axis along which threads are numbered first. shape: for each axis the threads along
    it, and the iterations of each, which are neighbours. chunks: so many times a thread runs its
    iterations along ``lanes``, as far apart as the threads along it reach.
    """

    lanes: int
    shape: tuple[tuple[int, int], ...]
    chunks: int = 1

    @property
    def width(self) -> int:
        """Neighbouring iterations of a thread along the axis of the lanes."""
        return self.shape[self.lanes][1]

    @property
    def block_dim(self) -> int:
        return math.prod([threads for threads, _ in self.shape])

    @property
    def iterations(self) -> int:
        """Of a thread."""
        return self.chunks * math.prod([count for _, count in self.shape])

    def size(self, axis: int) -> int:
        """Iterations of a tile along an axis."""
        threads, count = self.shape[axis]
        return threads * count * (self.chunks if axis == self.lanes else 1)


def tile_of(task: Op) -> Tile | None:
    """The tile that `map_to_grid` has chosen for a task; None for one iteration at a time."""
    return Tile(*task.attr.tile) if task.attr.tile else None


@register("map_to_grid", optional=True, per_task=True)
def map_to_grid(func: Func, cx: PassCx) -> bool:
    """Choose the threads of a GPU's block, and the iterations of each."""
    task, config = cx.task, cx.config
    if task is None or not config.opt_level or (loop := cell_loop(task)) is None:
        return False
    body, reduces = task.regions[1], task.attr.unit == "thread"
    if (needs_blocks(body) and not reduces) or _has_stacks(body):
        return False
    before = task.attr
    loops = any(C.LOOP[op.code] for op in walk(loop.regions[-1]))
    threads = block_dim_of(task, config, few=not loops)
    found = _choose(func, loop, threads, reduces, _forced(config.gpu_tile, task))
    if isinstance(found, Tile):
        task.attr = task.attr._replace(tile=tuple(found))
        cx.remark(task, _remark(found, threads))
    else:
        cx.remark(task, f"a thread runs one iteration at a time: {found}")
    if threads != config.default_gpu_block_dim:
        task.attr = task.attr._replace(block_dim=threads)
    return task.attr != before


def _remark(tile: Tile, threads: int) -> str:
    size = " by ".join([str(tile.size(axis)) for axis in range(len(tile.shape))])
    each = " by ".join([str(count) for _, count in tile.shape])
    chunks = f", {tile.chunks} times" if tile.chunks > 1 else ""
    return f"a block of {threads} threads runs {size} iterations, each thread {each}{chunks}"


def _forced(text: str, task: Op) -> tuple[int, ...]:
    """The numbers of the option ``gpu_tile``; QuadrantsCompilationError for what it cannot be."""
    parts = text.lower().split("x") if text else []
    if not all(part.isdecimal() and 0 < int(part) <= _MOST_FORCED for part in parts) or (
        parts and int(parts[0]) not in (1, 2, 4, 8)
    ):
        raise QuadrantsCompilationError.from_loc(
            f"the option gpu_tile={text!r} is no tile: write the neighbouring iterations of a "
            "thread along each axis, from the fastest, such as 4x2x4; the first is 1, 2, 4 or 8, "
            f"the others up to {_MOST_FORCED}",
            task.loc,
        )
    return tuple([int(part) for part in parts])


def _has_stacks(body: Block) -> bool:
    return any(op.code == C.AD_STACK_ALLOCA for op in walk(body))


def _choose(
    func: Func, loop: Op, threads: int, reduces: bool, forced: tuple[int, ...]
) -> Tile | str:
    """The tile for a parallel loop, or why one iteration at a time for each thread is better."""
    body = loop.regions[-1]
    if threads % _LANES:
        return f"the block has {threads} threads"
    other = next((op for op in body.ops if op.regions or op.code in _EXCLUDED), None)
    if other is not None:
        return f"there is {other.name} in it"
    known = _iterations(loop)
    if known is not None and known <= ENOUGH and not forced:
        return f"there are {known:,} in all"
    touching = [op for op in body.ops if _touches(op)]
    if not _apart(touching, apart(func)):
        return "a store may change what the next one loads"
    axes = len(bounds_of(loop)) // 2
    order: tuple[int, ...] = loop.attr.axes or tuple(range(axes))
    scored = [(_score(loop, axis, touching), k) for k, axis in enumerate(order)]
    (score, accesses), k = max(scored, key=lambda pair: (pair[0][0], pair[1]))
    lanes, width, work, rows = order[k], 1, _work(body), forced[1:]
    if score > 0:
        sizes = [a.size for a in accesses.values() if a.step]
        width = min(WIDEST // min(sizes), max(_MOST_BYTES // max(sizes), 1), _MOST_WIDTH)
        streams = width > 1 and work <= min(_STREAMING * sum(sizes), _STREAMING_BUDGET // 2)
        while width > 1 + streams and width * work > _BUDGET:
            width //= 2
        if width * work > _BUDGET and axes > 1 and not forced:
            width, rows = 1, _STREAMING_ROWS
    width = forced[0] if forced else width
    if axes == 1:
        chunks = _CHUNKS if reduces or width == 1 else 1
        while chunks > 1 and chunks * width * work > _BUDGET:
            chunks //= 2
        if width * chunks == 1:
            return "it is long, or its accesses are no neighbours of each other"
        return Tile(lanes, ((threads, width),), chunks)
    if width == 1 and not (rows or forced):
        return "it is long, or its accesses are no neighbours of each other"
    others = [axis for axis in reversed(order) if axis != lanes]
    rows = rows or _rows(loop, others, touching, width * work)
    shape = [(1, 1)] * axes
    for axis, count in zip(others, rows, strict=False):
        shape[axis] = (1, count)
    shape[lanes] = (_LANES, width)
    shape[others[0]] = (threads // _LANES, shape[others[0]][1])
    return Tile(lanes, tuple(shape))


def _rows(loop: Op, others: list[int], touching: list[Op], work: int) -> tuple[int, ...]:
    """The rows of a thread along the other axes, from the fastest. work: of one row."""
    near = _shares_rows(loop, others[0], touching)
    far = len(others) > 1 and _shares_rows(loop, others[1], touching)
    best = (_ROWS if near else 1, _ROWS if far else 1)
    if near and far:
        best = _SPACE if _is_box(loop, others[:2], touching) else _STAR
    for rows in (best, (_ROWS if near else 1, 1)):
        if math.prod(rows) * work <= _SHARING_BUDGET:
            return rows
    return ()


def accesses_of(loop: Op, axis: int) -> dict[int, Access]:
    """The accesses of a loop whose steps along ``axis`` are known, by the id of their address."""
    body = loop.regions[-1]
    return _score(loop, axis, [op for op in body.ops if _touches(op)])[1]


def _touches(op: Op) -> bool:
    return (
        (C.READ[op.code] or C.WRITE[op.code] or C.ATOMIC[op.code])
        and bool(op.args)
        and (op.args[0].code != C.ALLOCA)
    )


def _apart(touching: list[Op], alone: list[bool]) -> bool:
    """True if loads of an iteration may be made before stores of the previous iteration."""
    arrays: set[int] = set()
    writes = False
    for op in touching:
        pointer = op.args[0]
        pointer = base_of(pointer)
        if pointer.code == C.ARG_ADDR:
            arrays.add(int(pointer.attr[0]))
            writes = writes or not C.READ[op.code]
    return not writes or len(arrays) == 1 or all(alone[number] for number in arrays)


def _work(body: Block) -> int:
    """The weight of a body, without the arithmetic that only addresses need."""
    found = 0
    needed: set[Op] = set()
    for op in reversed(body.ops):
        if op.code in _ADDRESSES or (op.code in _SUMS and op not in needed):
            continue
        found += weight(op)
        needed.update(op.args)
    return found


def weight(op: Op) -> int:
    """The weight of an op in simple operations."""
    code = op.code
    if C.MATH[code] or C.ATOMIC[code] or code in _HEAVY_OPS:
        return _HEAVY
    return int(code not in _FREE)


def _iterations(task: Op) -> int | None:
    """The number of the task's iterations; None if it is not known."""
    bounds = bounds_of(task)
    count = 1
    for begin, end in zip(bounds[::2], bounds[1::2], strict=True):
        if begin.code != C.CONST or end.code != C.CONST:
            return None
        count *= max(0, int(end.attr) - int(begin.attr))
    return count


def _score(task: Op, axis: int, touching: list[Op]) -> tuple[int, dict[int, Access]]:
    """The score of vector access along ``axis``, and the accesses that have known steps."""
    found: dict[int, Access] = {}
    places: dict[tuple[object, int], set[int]] = {}
    score = 0
    for op in touching:
        pointer = op.args[0]
        seen = access(task, axis, pointer) if not C.ATOMIC[op.code] else None
        if seen is None:
            score -= 1
            continue
        found[pointer.id] = seen
        if seen.even is not None and seen.step > 0:
            places.setdefault((seen.base.attr, seen.step), set()).add(seen.place % seen.step)
            score += 2 if seen.step == 1 else 1
        elif seen.step:
            score -= 1
    for (_, step), filled in places.items():
        if len(filled) < step:
            score -= 4  # elements between are left out
    return (score, found) if places else (0, found)


def _shares_rows(task: Op, axis: int, touching: list[Op]) -> bool:
    """True if iterations that are neighbours along ``axis`` load the same elements."""
    seen: dict[object, int] = {}
    for op in touching:
        found = _row(task, [axis], op.args[0]) if op.code == C.GLOBAL_LOAD else None
        if found and 0 < abs(seen.setdefault(found[0], found[1][0]) - found[1][0]) <= _NEAR_ROWS:
            return True
    return False


def _is_box(task: Op, axes: list[int], touching: list[Op]) -> bool:
    """True if loads go to most places around an iteration along two axes, not to a cross alone."""
    places: dict[object, set[tuple[int, ...]]] = {}
    for op in touching:
        found = _row(task, axes, op.args[0]) if op.code == C.GLOBAL_LOAD else None
        if found:
            places.setdefault(found[0], set()).add(tuple(found[1]))
    return any(
        len(some) > sum(len(set(along)) for along in zip(*some, strict=True))
        for some in places.values()
    )


def _row(task: Op, axes: list[int], pointer: Op) -> tuple[object, list[int]] | None:
    """The rows of an address along ``axes``, after the key of all else that it is made of."""
    if pointer.code != C.SHIFT_PTR or pointer.args[0].code != C.ARG_ADDR:
        return None
    offset = pointer.args[1]
    if offset.code != C.LINEARIZE:
        return None
    places: dict[int, int] = {}
    key: list[object] = [pointer.args[0].attr]
    for index in offset.args[: offset.attr]:
        constant, terms = form_of(index)
        key.append(frozenset((op.id, times) for op, times in terms.items()))
        mine = [
            axis
            for axis in axes
            if any(is_index(op, task, axis) and times == 1 for op, times in terms.items())
        ]
        if mine:
            places[mine[0]] = constant
        else:
            key.append(constant)
    return (tuple(key), [places[axis] for axis in axes]) if len(places) == len(axes) else None
