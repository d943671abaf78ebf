"""stage_shared: tiles of arrays that a GPU would read across their rows go through shared memory.

The threads of a warp run neighbouring iterations of one axis. In ``y[j, i] = x[i, j]`` either the
reads or the writes of neighbours are whole rows apart, and each moves a sector of memory for one
element. Instead, a block runs a tile of 64 by 64 iterations: it copies the tile of ``x`` to shared
memory row by row, and then runs the iterations with the warps along the other axis::

    $2 : offloaded {kind='range_for'} header {     $2 : offloaded {kind='range_for' block_dim=256}
      $4 : bounds <0>, $n, <0>, $m                   $4 : bounds <0>, 256 * the number of tiles
    } body {                                       } body {
      <i32> $5 = loop_index $2 [0]                   <*f32> $20 = array_alloca {shared, 64 * 65}
      <i32> $6 = loop_index $2 [1]                   for the tiles of this block
      <*f32> $8 = external_ptr $x, $5, $6              $30 : range_for ... { $20[...] = x[...] }
      <f32> $9 = global_load $8                        block_sync
      <*f32> $10 = external_ptr $y, $6, $5             $40 : range_for <0>, <16> {
      $11 : global_store $10, $9                         <f32> $9 = global_load $20[...]
    }                                                    ... $11 : global_store $10, $9 }
                                                       block_sync

A row of the tile has 65 elements, so that those of a column are in different banks. Tiles that are
whole are copied with all loads under way at once. The scheme is that of M. Harris, "An efficient
matrix transpose in CUDA C/C++" (NVIDIA, 2013), in larger tiles: on an H200 kernels by hand moved
3,580 GB/s in tiles of 32 by 32, 4,075 in tiles of 64 by 64, a copy 4,221. Tiles of
more than 32 KiB in all are 32 by 32.

A task qualifies if it has two axes and straight code, in which all accesses to arrays that are
contiguous along one axis of the loop are loads of ``x[i, j]`` with exactly the loop's indices at
the last two places, from arrays that the task does not change, and some others, not more, are
contiguous along the other axis: where most accesses are along rows, neighbouring iterations of a
thread (`backends.llvm.tiles`) were 9 % faster. `split_blocked_axes`, which does the like for CPUs,
needs fields in blocks.
"""

from __future__ import annotations

from typing import Final

from ..analysis import needs_blocks
from ..ir import Block, Builder, ForAttr, Func, Op
from ..ir import codes as C
from ..ir.edit import clone_into
from ..types import DataType, i32
from .grid import THREADS, Grid, has_plain_bounds, has_room
from .manager import PassCx
from .product_task import tiles_of
from .registry import register
from .staging import Staging, find_staging

__all__ = ["TILE", "stage_shared"]

TILE: Final = "staged tile"
"""The name of the arrays that this pass makes."""

_LANES: Final = 32
_WARPS: Final = THREADS // _LANES
"""Of a block."""
_SIDES: Final = (64, 32)
"""Iterations of a tile along each axis: the first for which"""
_MOST_BYTES: Final = 32 << 10
"""all tiles have at most this size."""
_STRAIGHT: Final = 256
"""So many operations of a thread's iterations, of a whole tile, are straight code."""
_MOST_ACROSS: Final = 1 << 10
_MOST_DOWN: Final = 1 << 12
"""Tiles of a grid along each axis: their threads can be counted in 31 bits."""


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


def _side(staged: list[Op]) -> int:
    sizes = [load.type.size for load in staged if isinstance(load.type, DataType)]
    return next((n for n in _SIDES if n * (n + 1) * sum(sizes) <= _MOST_BYTES), _SIDES[-1])


class _Tiling(Grid):
    """Makes the new body of one task.

    across / down: tiles of the grid along the two axes. lane / warp: of the thread in its block.
    side: iterations of a tile along each axis.
    """

    def __init__(self, func: Func, task: Op, plan: Staging) -> None:
        self.plan = plan
        self.side: Final = _side(plan.staged)
        super().__init__(func, task, self._threads)
        b = self.b
        self.across, self.down = self._tiles(b, self.lengths)
        thread = b.binary(C.BIT_AND, self.index, b.const(THREADS - 1, i32))
        self.lane = b.binary(C.BIT_AND, thread, b.const(_LANES - 1, i32))
        self.warp = b.binary(C.BIT_SAR, thread, b.const(_LANES.bit_length() - 1, i32))
        self.block = b.binary(C.BIT_SAR, self.index, b.const(THREADS.bit_length() - 1, i32))

    def _tiles(self, b: Builder, lengths: list[Op]) -> tuple[Op, Op]:
        """The tiles of a grid along the lanes' axis, and along the other one."""
        counts: list[Op] = []
        for axis, most in ((self.plan.lanes, _MOST_ACROSS), (1 - self.plan.lanes, _MOST_DOWN)):
            tiles = b.binary(C.MIN, tiles_of(b, lengths[axis], self.side), b.const(most, i32))
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
            tiles.append(
                b.array(load.type, self.side * (self.side + 1), TILE, "shared", clear=False)
            )
        first = b.binary(C.MOD, self.block, self.across)
        down = b.binary(C.DIV, self.block, self.across)
        outer, place = self.tiles(self.lengths[1 - lanes], down, self.down)
        with b.inside(outer):
            inner, other = self.tiles(self.lengths[lanes], first, self.across)
            with b.inside(inner):
                corner = [place, other] if lanes == 1 else [other, place]
                whole = self.whole(corner)
                for work in (self.fill, self.iterate):
                    either = b.if_(whole)
                    for part in (0, 1):
                        with b.inside(either.regions[part]):
                            work(tiles, corner, part == 0)
                    b.emit(C.BLOCK_SYNC)
        self.finish()

    def tiles(self, length: Op, first: Op, step: Op) -> tuple[Block, Op]:
        """A loop over every ``step``-th tile of an axis: its body, the tile's first iteration."""
        b = self.b
        region, at = self.strided(tiles_of(b, length, self.side), first, step)
        with b.inside(region):
            return region, b.binary(C.BIT_SHL, at, b.const(self.side.bit_length() - 1, i32))

    def whole(self, corner: list[Op]) -> Op:
        """1 if all iterations of a tile exist."""
        b, side = self.b, self.b.const(self.side, i32)
        ends = [b.binary(C.ADD, corner[k], side) for k in (0, 1)]
        return b.binary(C.BIT_AND, *[b.binary(C.CMP_LE, ends[k], self.lengths[k]) for k in (0, 1)])

    @property
    def _steps(self) -> int:
        """Iterations of a tile that a thread runs: in rows 8 apart, at columns 32 apart."""
        return self.side * self.side // THREADS

    def cell(self, step: Op, corner: list[Op], lanes: int) -> tuple[Op, Op, list[Op]]:
        """Row and column in the tile of a thread's iteration, and its indices from their begins.

        lanes: the axis that the warp runs along.
        """
        b, row, column = self.b, step, self.lane
        if self.side > _LANES:
            columns = self.side // _LANES
            row = b.binary(C.BIT_SAR, step, b.const(columns.bit_length() - 1, i32))
            column = b.binary(C.BIT_AND, step, b.const(columns - 1, i32))
            column = b.binary(C.MUL, column, b.const(_LANES, i32))
            column = b.binary(C.ADD, column, self.lane)
        row = b.binary(C.ADD, b.binary(C.MUL, row, b.const(_WARPS, i32)), self.warp)
        at = [b.binary(C.ADD, corner[k], column if k == lanes else row) for k in (0, 1)]
        return row, column, at

    def cells(self, corner: list[Op], lanes: int, whole: bool) -> tuple[Block, Op, Op, list[Op]]:
        """A loop over a thread's iterations that exist: its body, row, column and indices."""
        b = self.b
        straight = whole and len(self.old.ops) * self._steps <= _STRAIGHT
        attr = ForAttr(straight=straight)
        loop = b.range_for((b.const(0, i32), b.const(self._steps, i32)), attr)
        region = loop.regions[0]
        with b.inside(region):
            row, column, at = self.cell(b.loop_index(loop, 0), corner, lanes)
            if not whole:
                inside = [b.binary(C.CMP_LT, at[k], self.lengths[k]) for k in (0, 1)]
                region = b.if_(b.binary(C.BIT_AND, *inside)).regions[0]
        with b.inside(region):
            indices = [b.binary(C.ADD, self.begins[k], at[k]) for k in (0, 1)]
        return region, row, column, indices

    def place(self, row: Op, column: Op) -> Op:
        """Of an element in its tile."""
        b = self.b
        return b.binary(C.ADD, b.binary(C.MUL, row, b.const(self.side + 1, i32)), column)

    def fill(self, tiles: list[Op], corner: list[Op], whole: bool) -> None:
        """Copy the tiles, or what exists of them, with warps along their rows."""
        b, axis = self.b, 1 - self.plan.lanes
        region, row, column, indices = self.cells(corner, axis, whole)
        with b.inside(region):
            place = self.place(row, column)
            for tile, load in zip(tiles, self.plan.staged, strict=True):
                pointer = load.args[0]
                base = b.emit(C.ARG_ADDR, (), pointer.args[0].attr, pointer.args[0].type)
                outer = [b.const(int(index.attr), i32) for index in pointer.args[1:-2]]
                at = (*outer, indices[1 - axis], indices[axis])
                value = b.load(b.emit(C.EXTERNAL_PTR, (base, *at), pointer.attr, pointer.type))
                self.func.origins[value.id] = load.id
                b.store(b.element(tile, place), value)

    def iterate(self, tiles: list[Op], corner: list[Op], whole: bool) -> None:
        """The user's iterations, with warps along the other axis."""
        b = self.b
        region, row, column, indices = self.cells(corner, self.plan.lanes, whole)
        mapping = {op: indices[int(op.attr)] for op in self.indices}
        with b.inside(region):
            place = self.place(column, row)
            elements = [b.element(tile, place) for tile in tiles]
        clone_into(self.func, [op for op in self.old.ops if op not in mapping], mapping, region)
        for load, element in zip(self.plan.staged, elements, strict=True):
            mapping[load].args = (element,)
