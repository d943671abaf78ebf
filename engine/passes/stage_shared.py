"""stage_shared: tiles of arrays that a GPU would read across their rows go through shared memory.

The threads of a warp run neighbouring iterations of one axis. In ``y[j, i] = x[i, j]`` either the
reads or the writes of neighbours are whole rows apart, and each moves a sector of memory for one
element. Instead, a block runs a tile of 32 by 32 iterations: it copies the tile of ``x`` to shared
memory row by row, and then runs the iterations with the warps along the other axis::

    $2 : offloaded {kind='range_for'} header {     $2 : offloaded {kind='range_for' block_dim=256}
      $4 : bounds <0>, $n, <0>, $m                   $4 : bounds <0>, 256 * the number of tiles
    } body {                                       } body {
      <i32> $5 = loop_index $2 [0]                   <*f32> $20 = array_alloca {shared, 32 * 33}
      <i32> $6 = loop_index $2 [1]                   for the tiles of this block
      <*f32> $8 = external_ptr $x, $5, $6              $30 : range_for ... { $20[...] = x[...] }
      <f32> $9 = global_load $8                        block_sync
      <*f32> $10 = external_ptr $y, $6, $5             $40 : range_for <0>, <4> {
      $11 : global_store $10, $9                         <f32> $9 = global_load $20[...]
    }                                                    ... $11 : global_store $10, $9 }
                                                       block_sync

A row of the tile has 33 elements, so that those of a column are in different banks. The scheme is
that of M. Harris, "An efficient matrix transpose in CUDA C/C++" (NVIDIA, 2013).

A task qualifies if it has two axes and straight code, in which all accesses to arrays that are
contiguous along one axis of the loop are loads of ``x[i, j]`` with exactly the loop's indices at
the last two places, from arrays that the task does not change, and some others, not more, are
contiguous along the other axis: where most accesses are along rows, neighbouring iterations of a
thread (`backends.llvm.tiles`) were 9 % faster. `split_blocked_axes`, which does the like for CPUs,
needs fields in blocks.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..analysis import needs_blocks
from ..ir import Block, Builder, ForAttr, Func, Op, replace_uses, set_block
from ..ir import codes as C
from ..types import DataType, i32, row_major
from .grid import THREADS, Grid, has_plain_bounds, has_room, is_plain
from .linear_form import form_of
from .manager import PassCx
from .product_task import tiles_of
from .registry import register

__all__ = ["TILE", "Staging", "contiguous_axis", "find_staging", "is_element", "stage_shared"]

TILE: Final = "staged tile"
"""The name of the arrays that this pass makes."""

_SIDE: Final = 32
"""Iterations of a tile along each axis: a warp's threads."""
_ROWS: Final = THREADS // _SIDE
"""Warps of a block: each runs 4 rows of the tile."""
_MOST_ACROSS: Final = 1 << 10
_MOST_DOWN: Final = 1 << 12
"""Tiles of a grid along each axis: their threads can be counted in 31 bits."""
_MOST_STAGED: Final = 2
_MOST_OPS: Final = 96


class Staging(NamedTuple):
    """lanes: the axis of the loop that a warp runs along. staged: the loads of the other axis."""

    lanes: int
    staged: list[Op]


@register("stage_shared", optional=True, per_task=True)
def stage_shared(func: Func, cx: PassCx) -> bool:
    """Copy tiles of arrays that are read across their rows to the shared memory of blocks."""
    task = cx.task
    if task is None or task.attr.kind != "range_for" or task.attr.block_dim:
        return False
    body, header = task.regions[1], task.regions[0]
    if len(header.ops[-1].args) != 4 or task.attr.axes not in (None, (0, 1), (1, 0)):
        return False
    if not has_plain_bounds(task) or needs_blocks(body):
        return False
    found = find_staging(func, task, balanced=True)
    if found is None or not has_room(cx, task):
        return False
    _Tiling(func, task, found).run()
    cx.remark(task, f"{len(found.staged)} loads go through tiles in shared memory")
    return True


def find_staging(func: Func, loop: Op, balanced: bool = False) -> Staging | None:
    """The loads to stage; None if there are none, or if other accesses would be across rows.

    loop: a task, or the loop over the iterations of a chunk of one. balanced: not if more accesses
    are along rows.
    """
    ops = loop.regions[-1].ops
    if len(ops) > _MOST_OPS or any(
        op.regions or op.code == C.CONTINUE or not is_plain(op) for op in ops
    ):
        return None
    along: dict[int, list[Op]] = {0: [], 1: []}
    written: set[int] = set()
    for op in ops:
        if not (C.READ[op.code] or C.WRITE[op.code] or C.ATOMIC[op.code]) or not op.args:
            continue
        pointer = op.args[0]
        if pointer.code == C.ALLOCA:
            continue
        if pointer.code != C.EXTERNAL_PTR or pointer.args[0].code != C.ARG_ADDR:
            return None
        if op.code != C.GLOBAL_LOAD:
            written.add(int(pointer.args[0].attr[0]))
        axis = contiguous_axis(func, loop, pointer)
        if axis >= 0:
            along[axis].append(op)
    for lanes in (1, 0):
        staged, others = along[1 - lanes], along[lanes]
        if not others or not 0 < len(staged) <= _MOST_STAGED:
            continue
        if balanced and len(others) > len(staged):
            continue
        if all(_can_be_staged(func, loop, op, written, 1 - lanes) for op in staged):
            return Staging(lanes, staged)
    return None


def contiguous_axis(func: Func, loop: Op, pointer: Op) -> int:
    """The axis of the loop along which an address moves by one element; -1 for none."""
    number, grad = pointer.args[0].attr
    p = func.params[int(number)]
    if grad or p.element_shape or p.ndim < 1 or pointer.attr != "unsafe":
        return -1
    if p.axes is not None or (
        p.layout is not None and p.layout != row_major(p.layout.shape, p.layout.origin)
    ):
        return -1
    terms = form_of(pointer.args[-1]).terms
    for axis in (0, 1):
        steps = [factor for op, factor in terms.items() if _is_index(op, loop, axis)]
        if steps == [1] and not any(_is_index(op, loop, 1 - axis) for op in terms):
            return axis
    return -1


def _is_index(op: Op, loop: Op, axis: int) -> bool:
    return op.code == C.LOOP_INDEX and op.args[0] is loop and op.attr == axis


def _can_be_staged(func: Func, loop: Op, op: Op, written: set[int], axis: int) -> bool:
    """True for a load of ``x[..., i, j]`` of the loop's indices, of an array that keeps its values.

    axis: that of the last index.
    """
    if op.code != C.GLOBAL_LOAD or not isinstance(op.type, DataType):
        return False
    pointer = op.args[0]
    number = int(pointer.args[0].attr[0])
    if number in written or (written and not func.noalias):
        return False
    return is_element(loop, pointer, axis)


def is_element(loop: Op, pointer: Op, axis: int) -> bool:
    """True for the address of ``x[..., i, j]`` of the loop's indices; axis: that of the last."""
    indices = pointer.args[1:]
    if len(indices) < 2:
        return False
    *outer, row, column = indices
    exact = _is_index(row, loop, 1 - axis) and _is_index(column, loop, axis)
    return exact and all(index.code == C.CONST for index in outer)


class _Tiling(Grid):
    """Makes the new body of one task.

    across / down: tiles of the grid along the two axes. lane / warp: of the thread in its block.
    """

    def __init__(self, func: Func, task: Op, plan: Staging) -> None:
        self.plan = plan
        super().__init__(func, task, self._threads)
        b = self.b
        self.across, self.down = self._tiles(b, self.lengths)
        thread = b.binary(C.BIT_AND, self.index, b.const(THREADS - 1, i32))
        self.lane = b.binary(C.BIT_AND, thread, b.const(_SIDE - 1, i32))
        self.warp = b.binary(C.BIT_SAR, thread, b.const(_SIDE.bit_length() - 1, i32))
        self.block = b.binary(C.BIT_SAR, self.index, b.const(THREADS.bit_length() - 1, i32))

    def _tiles(self, b: Builder, lengths: list[Op]) -> tuple[Op, Op]:
        """The tiles of a grid along the lanes' axis, and along the other one."""
        counts: list[Op] = []
        for axis, most in ((self.plan.lanes, _MOST_ACROSS), (1 - self.plan.lanes, _MOST_DOWN)):
            tiles = b.binary(C.MIN, tiles_of(b, lengths[axis], _SIDE), b.const(most, i32))
            counts.append(b.binary(C.MAX, tiles, b.const(1, i32)))
        return counts[0], counts[1]

    def _threads(self, b: Builder, lengths: list[Op]) -> Op:
        across, down = self._tiles(b, lengths)
        return b.binary(C.MUL, b.binary(C.MUL, across, down), b.const(THREADS, i32))

    def run(self) -> None:
        b, lanes = self.b, self.plan.lanes
        tiles: list[Op] = []
        for load in self.plan.staged:
            assert isinstance(load.type, DataType)
            tiles.append(b.array(load.type, _SIDE * (_SIDE + 1), TILE, "shared"))
        first = b.binary(C.MOD, self.block, self.across)
        down = b.binary(C.DIV, self.block, self.across)
        outer, place = self.tiles(self.lengths[1 - lanes], down, self.down)
        with b.inside(outer):
            inner, other = self.tiles(self.lengths[lanes], first, self.across)
            with b.inside(inner):
                corner = [place, other] if lanes == 1 else [other, place]
                self.fill(tiles, corner)
                b.emit(C.BLOCK_SYNC)
                self.iterate(tiles, corner)
                b.emit(C.BLOCK_SYNC)
        self.finish()

    def tiles(self, length: Op, first: Op, step: Op) -> tuple[Block, Op]:
        """A loop over every ``step``-th tile of an axis: its body, the tile's first iteration."""
        b = self.b
        region, at = self.strided(tiles_of(b, length, _SIDE), first, step)
        with b.inside(region):
            return region, b.binary(C.BIT_SHL, at, b.const(_SIDE.bit_length() - 1, i32))

    def rows(self, corner: list[Op], lanes: int) -> tuple[Block, Op, list[Op]]:
        """A loop over the rows of this thread's warp, for the iterations that exist.

        Returns its body, the row, and the indices. lanes: the axis that the warp runs along.
        """
        b = self.b
        loop = b.range_for((b.const(0, i32), b.const(_SIDE // _ROWS, i32)), ForAttr())
        with b.inside(loop.regions[0]):
            row = b.binary(C.MUL, b.loop_index(loop, 0), b.const(_ROWS, i32))
            row = b.binary(C.ADD, row, self.warp)
            at = [b.binary(C.ADD, corner[k], self.lane if k == lanes else row) for k in (0, 1)]
            inside = [b.binary(C.CMP_LT, at[k], self.lengths[k]) for k in (0, 1)]
            some = b.if_(b.binary(C.BIT_AND, *inside))
        with b.inside(some.regions[0]):
            indices = [b.binary(C.ADD, self.begins[k], at[k]) for k in (0, 1)]
        return some.regions[0], row, indices

    def fill(self, tiles: list[Op], corner: list[Op]) -> None:
        """Copy the tiles, with warps along their rows."""
        b = self.b
        region, row, indices = self.rows(corner, 1 - self.plan.lanes)
        with b.inside(region):
            place = b.binary(C.MUL, row, b.const(_SIDE + 1, i32))
            place = b.binary(C.ADD, place, self.lane)
            for tile, load in zip(tiles, self.plan.staged, strict=True):
                pointer = load.args[0]
                base = b.emit(C.ARG_ADDR, (), pointer.args[0].attr, pointer.args[0].type)
                outer = [b.const(int(index.attr), i32) for index in pointer.args[1:-2]]
                axis = 1 - self.plan.lanes
                at = (*outer, indices[1 - axis], indices[axis])
                found = b.load(b.emit(C.EXTERNAL_PTR, (base, *at), pointer.attr, pointer.type))
                self.func.origins[found.id] = load.id
                b.store(b.element(tile, place), found)

    def iterate(self, tiles: list[Op], corner: list[Op]) -> None:
        """The user's iterations, with warps along the other axis."""
        b = self.b
        region, row, indices = self.rows(corner, self.plan.lanes)
        with b.inside(region):
            place = b.binary(C.MUL, self.lane, b.const(_SIDE + 1, i32))
            place = b.binary(C.ADD, place, row)
            for tile, load in zip(tiles, self.plan.staged, strict=True):
                load.args = (b.element(tile, place),)
        uses = {op: indices[int(op.attr)] for op in self.indices}
        region.ops += [op for op in self.old.ops if op not in uses]
        set_block(region.ops, region)
        replace_uses(region, uses)
