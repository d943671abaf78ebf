"""Chooses the GPU tasks whose threads run several neighbouring iterations, and how many.

`choose` finds the steps of the accesses of a straight body along each axis (`strides`). The axis of
the lanes is the one along which most of them are neighbours. A thread runs enough iterations along
it for the narrowest of these accesses to become one of 16 bytes, as long as the copies of the body
have few operations (`_BUDGET`): neither registers nor the time to compile may grow without end.

Left alone, with one iteration at a time: bodies with branches or loops (their accesses are in
different blocks, where LLVM joins nothing, and they are heavy), with calls, prints, assertions or
stacks; arrays that may overlap (a store might change what the next iteration loads); tasks that are
known to be small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ...analysis import bounds_of
from ...ir import Op
from ...ir import codes as C
from ...passes.linear_form import form_of
from .strides import WIDEST, Access, access

if TYPE_CHECKING:
    from .strides import Arrays

__all__ = ["ENOUGH", "Tile", "choose", "weight"]

_MOST_WIDTH: Final = 8
_MOST_BYTES: Final = 32
"""Of one access by all neighbouring iterations of a thread."""
_BUDGET: Final = 512
"""So many simple operations all copies of a body may have."""
_HEAVY: Final = 8
_HEAVY_OPS: Final = frozenset({C.DIV, C.MOD, C.FLOORDIV, C.FLOORMOD})
_FREE: Final = frozenset({C.CONST, C.ARG_ADDR, C.ARG_LOAD, C.LOOP_INDEX, C.ALLOCA})
_EXCLUDED: Final = frozenset({
    C.ASSERT, C.PRINT, C.CALL, C.RAND, C.ARRAY_ALLOCA, C.AD_STACK_ALLOCA, C.CONTINUE,
    C.CLOCK,
})  # fmt: skip
_NEAR_ROWS: Final = 4
_ROWS: Final = 2
"""Rows of a thread, where they share loads."""
_CHUNKS: Final = 4
"""Chunks of a thread that sums up, or whose accesses are narrow: this many loads are under way."""
_LANES: Final = 32
ENOUGH: Final = 1 << 17
"""Threads that fill a large GPU: with fewer, it is better that a thread runs one iteration."""


class Tile(NamedTuple):
    """See the module docstring.

    axis: that of the lanes. row_axis: that of the rows; -1 where they are chunks of ``axis``. lanes
    / down: threads of a block along the two. accesses: those that are aligned, by the id of their
    address.
    """

    axis: int
    row_axis: int
    width: int
    rows: int
    lanes: int
    down: int
    accesses: dict[int, Access]

    @property
    def iterations(self) -> int:
        return self.width * self.rows

    @property
    def across(self) -> int:
        """Iterations of a tile along the axis of the lanes."""
        return self.lanes * self.width * (self.rows if self.row_axis < 0 else 1)

    @property
    def along(self) -> int:
        """Rows of a tile."""
        return self.down * self.rows


def choose(task: Op, state: Arrays, block_dim: int, reduces: bool) -> Tile | None:
    """The tile for a parallel task; None if one iteration at a time for each thread is better."""
    body = task.regions[-1]
    if block_dim % 32 or any(op.regions or op.code in _EXCLUDED for op in body.ops):
        return None
    known = _iterations(task)
    if known is not None and known <= ENOUGH:
        return None
    touching = [op for op in body.ops if _touches(op)]
    if not _apart(touching, state):
        return None
    axes = len(bounds_of(task)) // 2
    order: tuple[int, ...] = task.attr.axes or tuple(range(axes))
    scored = [(_score(task, axis, touching), k) for k, axis in enumerate(order)]
    (score, accesses), k = max(scored, key=lambda pair: (pair[0][0], pair[1]))
    axis, width = order[k], 1
    work = sum(weight(op) for op in body.ops)
    if score > 0:
        sizes = [a.size for a in accesses.values() if a.step]
        width = min(WIDEST // min(sizes), max(_MOST_BYTES // max(sizes), 1), _MOST_WIDTH)
        while width > 1 and width * work > _BUDGET:
            width //= 2
    if axes == 1:
        chunks = _CHUNKS if reduces or width == 1 else 1
        if width == 1:
            accesses = {}
        while chunks > 1 and chunks * width * work > _BUDGET:
            chunks //= 2
        if width * chunks == 1:
            return None
        return Tile(axis, -1, width, chunks, block_dim, 1, accesses)
    if width == 1:
        return None
    row_axis = [a for a in order if a != axis][-1]
    rows = _ROWS if _shares_rows(task, row_axis, touching) else 1
    if rows * width * work > _BUDGET:
        rows = 1
    return Tile(axis, row_axis, width, rows, _LANES, block_dim // _LANES, accesses)


def _touches(op: Op) -> bool:
    return (
        (C.READ[op.code] or C.WRITE[op.code] or C.ATOMIC[op.code])
        and bool(op.args)
        and (op.args[0].code != C.ALLOCA)
    )


def _apart(touching: list[Op], state: Arrays) -> bool:
    """True if loads of an iteration may be made before stores of the previous iteration."""
    arrays: set[int] = set()
    writes = False
    for op in touching:
        pointer = op.args[0]
        while pointer.code in (C.SHIFT_PTR, C.EXTERNAL_PTR):
            pointer = pointer.args[0]
        if pointer.code == C.ARG_ADDR:
            arrays.add(int(pointer.attr[0]))
            writes = writes or not C.READ[op.code]
    return not writes or len(arrays) == 1 or all(state.apart[number] for number in arrays)


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
        found = _row(task, axis, op.args[0]) if op.code == C.GLOBAL_LOAD else None
        if found is not None and 0 < abs(seen.setdefault(*found) - found[1]) <= _NEAR_ROWS:
            return True
    return False


def _row(task: Op, axis: int, pointer: Op) -> tuple[object, int] | None:
    """The row of an address along ``axis``, after the key of all else that it is made of."""
    if pointer.code != C.SHIFT_PTR or pointer.args[0].code != C.ARG_ADDR:
        return None
    offset = pointer.args[1]
    if offset.code != C.LINEARIZE:
        return None
    place: int | None = None
    key: list[object] = [pointer.args[0].attr]
    for index in offset.args[: offset.attr]:
        constant, terms = form_of(index)
        key.append(frozenset((op.id, times) for op, times in terms.items()))
        if any(_counts(op, task, axis) and times == 1 for op, times in terms.items()):
            place = constant
        else:
            key.append(constant)
    return None if place is None else (tuple(key), place)


def _counts(op: Op, task: Op, axis: int) -> bool:
    return op.code == C.LOOP_INDEX and op.args[0] is task and op.attr == axis
