"""Tiles of a matrix product whose sums are fragments: the part of `tensor_products` that writes IR.

`Fragments` copies to shared memory what the steps of a tile read, some steps ahead, lets warps
multiply it, and does the rest of each iteration from the sums.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..ir import ForAttr, Func, Op
from ..ir import codes as C
from ..ir.attrs import FragmentAttr
from ..ir.edit import clone_into
from ..named_tuple import NamedTuple
from ..types import f16, f32, i32, i64, u64
from .product_sum import ProductSum, row_layout
from .product_task import ProductTask, TileGrid, tiles_of
from .stage_shared import TILE

__all__ = ["Fragments", "Shape"]

FRAGMENT: Final = (16, 8)
"""Iterations of a fragment of sums along each axis."""
K: Final = 16
"""Values of the inner loop's index in a fragment."""
_COPIED: Final = 8
"""Elements of an asynchronous copy."""
_PAD: Final = 8
"""Elements after each row of a tile, so that those of a column are in different banks."""
LANES: Final = 32


class Shape(NamedTuple):
    """The work of a block of warps, or of warpgroups.

    warps: of the block along each axis. fragments: of sums of a warp along each axis, the second a
    multiple of 4. depth: values of the inner loop's index for which a buffer of shared memory holds
    what a tile reads, an even number of fragments. stages: such buffers. few: so many tiles are
    enough. group: rows of tiles of neighbouring blocks.
    """

    warps: tuple[int, int] = (2, 2)
    fragments: tuple[int, int] = (4, 8)
    depth: int = 64
    stages: int = 2
    few: int = 1
    group: int = 8

    @property
    def threads(self) -> int:
        """Of a block."""
        return LANES * self.warps[0] * self.warps[1]

    @property
    def warp(self) -> tuple[int, int]:
        """Iterations of a warp along each axis."""
        return self.fragments[0] * FRAGMENT[0], self.fragments[1] * FRAGMENT[1]

    @property
    def sides(self) -> tuple[int, int]:
        """Iterations of a tile along each axis."""
        return self.warps[0] * self.warp[0], self.warps[1] * self.warp[1]


class Fragments(TileGrid):
    """Makes the new body of one task.

    buffers: shared memory for the elements of each load, all stages. staging: that of each warp for
    the sums of an iteration. fragments: of this thread, two sets: one is loaded while the
    other is multiplied. sums: of this thread. place: of the warp's iterations in the tile.
    """

    def __init__(
        self, func: Func, task: Op, plan: ProductTask, found: ProductSum, shape: Shape
    ) -> None:
        self.plan: Final = plan
        self.sum: Final = found
        self.shape: Final = shape
        self.ahead = shape.stages - 1
        super().__init__(func, task, shape.sides, shape.few, shape.threads)
        layouts = [row_layout(func, plan, load, axis) for axis, load in enumerate(found.loads)]
        self.layouts: Final = [layout for layout in layouts if layout is not None]
        self.inward: Final = [layout.inward for layout in self.layouts]
        self.inner: Final = [
            op for op in plan.loop.regions[0].ops
            if op.code == C.LOOP_INDEX and op.args[0] is plan.loop
        ]  # fmt: skip

    # Arithmetic

    def const(self, value: int) -> Op:
        return self.b.const(value, i32)

    def add(self, a: Op, b: Op | int) -> Op:
        return self.b.binary(C.ADD, a, self.const(b) if isinstance(b, int) else b)

    def times(self, a: Op, count: int) -> Op:
        return self.b.binary(C.MUL, a, self.const(count))

    def split(self, a: Op, count: int) -> tuple[Op, Op]:
        """Quotient and remainder by a power of two."""
        high = self.b.binary(C.BIT_SAR, a, self.const(count.bit_length() - 1))
        return high, self.b.binary(C.BIT_AND, a, self.const(count - 1))

    # Tiles

    def run(self) -> None:
        b, shape = self.b, self.shape
        self.buffers = [
            b.array(f16, shape.stages * self.buffer(axis), TILE, "shared", clear=False)
            for axis in (0, 1)
        ]
        self.pitch = 4 * FRAGMENT[1] + 4
        size = FRAGMENT[0] * self.pitch
        self.staging = b.array(f32, self.threads // LANES * size, TILE, "shared", clear=False)
        self.arrays()
        enough, tiles = self.grid(b, self.lengths)
        block, self.thread = self.split(self.index, self.threads)
        self.warp, self.lane = self.split(self.thread, LANES)
        self.staged = self.times(self.warp, size)
        self.place = [
            self.times(at, side)
            for at, side in zip(self.split(self.warp, shape.warps[1]), shape.warp, strict=True)
        ]
        first = self.first(block, tiles)
        counts = [
            b.binary(C.MUL, enough, tiles_of(b, n, side))
            for n, side in zip(self.lengths, self.sides, strict=True)
        ]
        outer, row = self.strided(counts[0], first[0], tiles[0])
        with b.inside(outer):
            inner, column = self.strided(counts[1], first[1], tiles[1])
            with b.inside(inner):
                self.tile([row, column])
        self.finish()

    def arrays(self) -> None:
        """Arrays of each iteration's own."""
        self.fragments = [
            [self.b.array(f16, n * each, "fragments", clear=False)
             for n, each in zip(self.shape.fragments, (8, 4), strict=True)]
            for _ in range(2)
        ]  # fmt: skip

    def buffer(self, axis: int) -> int:
        """Elements of one stage for the load of an axis."""
        rows, columns = self.extents(axis)
        return rows * (columns + _PAD)

    def spot(self, axis: int, row: Op, column: Op) -> Op:
        """The place of an element in a stage."""
        return self.add(self.times(row, self.extents(axis)[1] + _PAD), column)

    def extents(self, axis: int) -> tuple[int, int]:
        """Rows and columns, as they are in memory, of what a tile reads in one step."""
        side, depth = self.sides[axis], self.shape.depth
        return (side, depth) if self.inward[axis] else (depth, side)

    def first(self, block: Op, tiles: list[Op]) -> list[Op]:
        """The first tile of a block: down the rows of a group, then to the next column."""
        b, group = self.b, self.const(self.shape.group)
        wide = b.binary(C.MUL, group, tiles[1])
        above = b.binary(C.MUL, b.binary(C.DIV, block, wide), group)
        rest = b.binary(C.MOD, block, wide)
        rows = b.binary(C.MIN, group, b.binary(C.SUB, tiles[0], above))
        return [self.add(above, b.binary(C.MOD, rest, rows)), b.binary(C.DIV, rest, rows)]

    def tile(self, tile: list[Op]) -> None:
        """The iterations of one tile."""
        b, shape = self.b, self.shape
        fresh = [self.times(at, side) for at, side in zip(tile, self.sides, strict=True)]
        self.corner = [
            b.binary(C.MIN, begin, b.binary(C.SUB, length, self.const(side)))
            for begin, length, side in zip(fresh, self.lengths, self.sides, strict=True)
        ]
        self.sums = b.array(f32, 4 * shape.fragments[0] * shape.fragments[1], "sums")
        zero = self.const(0)
        self.begin, self.end = [self.sliced(bound, {}) for bound in self.plan.loop.args]
        self.strides = [self.stride(axis) for axis in (0, 1)]
        count = b.binary(C.MAX, b.binary(C.SUB, self.end, self.begin), zero)
        steps = tiles_of(b, count, shape.depth)
        whole = self.split(count, shape.depth)[0]
        whole = b.select(self.aligned(), whole, zero)
        self.multiply(steps, whole)
        self.afterwards(fresh)
        b.emit(C.BLOCK_SYNC)

    def extent(self, load: Op, axis: int) -> Op:
        """Of the array of a load along one of its axes."""
        number = int(load.args[0].args[0].attr[0])
        layout = self.func.params[number].layout
        if layout is not None:
            return self.const(layout.shape[axis])
        return self.b.emit(C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, (), (axis, number), i32)

    def aligned(self) -> Op:
        """True if all rows that this tile reads begin at multiples of 16 bytes."""
        b = self.b
        addresses: list[Op] = []
        rests: list[Op] = []
        for axis, load in enumerate(self.sum.loads):
            last = len(load.args[0].args) - 2
            if last:  # else there is one row
                extent = self.extent(load, last)
                rests.append(b.binary(C.BIT_AND, extent, self.const(_COPIED - 1)))
            first = self.pointer(axis, self.add(self.begins[axis], self.corner[axis]), self.begin)
            addresses.append(b.emit(C.ADDRESS, (first,), None, u64))
        address = b.binary(C.BIT_AND, b.binary(C.BIT_OR, *addresses), b.const(15, u64))
        found = b.binary(C.CMP_EQ, address, b.const(0, u64))
        for rest in rests:
            found = b.binary(C.BIT_AND, found, b.binary(C.CMP_EQ, rest, self.const(0)))
        return found

    def stride(self, axis: int) -> Op:
        """Elements from what one step reads to what the next one reads, as i64."""
        b, layout, load = self.b, self.layouts[axis], self.sum.loads[axis]
        found = b.const(layout.factor * self.shape.depth, i64)
        for inner in range(layout.axis + 1, len(load.args[0].args) - 1):
            found = b.binary(C.MUL, found, b.cast(self.extent(load, inner), i64))
        return found

    # Copies to shared memory

    def sliced(self, op: Op, mapping: dict[Op, Op]) -> Op:
        """A copy of an op and of what it uses, for other indices."""
        if op in mapping or op.code == C.LOOP_INDEX:
            return mapping[op]
        args = tuple([self.sliced(arg, mapping) for arg in op.args])
        new = self.b.emit(op.code, args, op.attr, op.type)
        self.func.origins[new.id] = op.id
        mapping[op] = new
        return new

    def pointer(self, axis: int, index: Op, k: Op) -> Op:
        """The address of the element that a load reads for an index of its axis and one of k."""
        mapping = dict.fromkeys(self.inner, k)
        mapping |= {op: index for op in self.indices if op.attr == axis}
        return self.sliced(self.sum.loads[axis].args[0], mapping)

    def source(self, axis: int, row: Op, column: Op, step: Op | None) -> tuple[Op, Op]:
        """The indices of the element at a place of a buffer: of the axis, and of k.

        step: the one that the buffer is for; None for the first.
        """
        deep, wide = (column, row) if self.inward[axis] else (row, column)
        k = self.add(self.begin, deep)
        if step is not None:
            k = self.add(k, self.times(step, self.shape.depth))
        return self.add(self.add(self.begins[axis], self.corner[axis]), wide), k

    def slot(self, axis: int, number: Op) -> Op:
        """The place of a stage in the buffer of an axis."""
        return self.times(number, self.buffer(axis))

    def fill(self, step: Op, stage: Op) -> None:
        """Start to copy what a step reads: it is all there, and aligned."""
        b = self.b
        for axis in (0, 1):
            rows, columns = self.extents(axis)
            chunks = columns // _COPIED
            base = self.slot(axis, stage)
            skip = b.binary(C.MUL, b.cast(step, i64), self.strides[axis])
            row, column = self.split(self.thread, chunks)
            column = self.times(column, _COPIED)
            for n in range(rows * chunks // self.threads):
                down = self.add(row, n * (self.threads // chunks))
                # What does not change from step to step is an address by itself.
                source = self.pointer(axis, *self.source(axis, down, column, None))
                at = self.spot(axis, down, column)
                to = b.element(self.buffers[axis], self.add(base, at))
                b.emit(C.ASYNC_COPY, (to, source, skip), _COPIED)

    def fill_slowly(self, step: Op, stage: Op) -> None:
        """Copy what a step reads one element at a time, with zeros beyond the end."""
        b = self.b
        last = self.add(self.end, -1)
        for axis, load in enumerate(self.sum.loads):
            rows, columns = self.extents(axis)
            base = self.slot(axis, stage)
            times = self.const(rows * columns // self.threads)
            loop = b.range_for((self.const(0), times), ForAttr())
            with b.inside(loop.regions[0]):
                number = self.add(self.times(b.loop_index(loop, 0), self.threads), self.thread)
                row, column = self.split(number, columns)
                index, k = self.source(axis, row, column, step)
                value = b.load(self.pointer(axis, index, b.binary(C.MIN, k, last)))
                self.func.origins[value.id] = load.id
                value = b.select(b.binary(C.CMP_LE, k, last), value, b.const(0.0, f16))
                at = self.spot(axis, row, column)
                b.store(b.element(self.buffers[axis], self.add(base, at)), value)

    # Products

    def multiply(self, steps: Op, whole: Op) -> None:
        """Add all products to the sums. whole: so many steps, the first ones, copy all at once."""
        b, ahead = self.b, self.ahead
        loop = b.range_for((self.const(0), self.const(ahead)), ForAttr())
        with b.inside(loop.regions[0]):
            step = b.loop_index(loop, 0)
            quick = b.if_(b.binary(C.CMP_LT, step, whole))
            with b.inside(quick.regions[0]):
                self.fill(step, step)
            with b.inside(quick.regions[1]):
                some = b.if_(b.binary(C.CMP_LT, step, steps))
                with b.inside(some.regions[0]):
                    self.fill_slowly(step, step)
            b.emit(C.ASYNC_GROUP)
        self.prepare()
        quick = b.binary(C.MAX, self.add(whole, -ahead), self.const(0))
        loop = b.range_for((self.const(0), quick), ForAttr())
        with b.inside(loop.regions[0]):
            self.step(b.loop_index(loop, 0), self.fill)
        loop = b.range_for((quick, steps), ForAttr())
        with b.inside(loop.regions[0]):
            self.step(b.loop_index(loop, 0), self.fill_rest(steps))
        self.ended()

    def ended(self) -> None:
        """Wait for the last step."""

    def prepare(self) -> None:
        """Let the first step begin."""
        self.b.emit(C.ASYNC_WAIT, (), self.ahead - 1)
        self.b.emit(C.BLOCK_SYNC)
        self.load(0, self.const(0), 0)

    def fill_rest(self, steps: Op) -> Callable[[Op, Op], None]:
        def fill(step: Op, stage: Op) -> None:
            some = self.b.if_(self.b.binary(C.CMP_LT, step, steps))
            with self.b.inside(some.regions[0]):
                self.fill_slowly(step, stage)

        return fill

    def step(self, step: Op, fill: Callable[[Op, Op], None]) -> None:
        """Multiply what one step has copied, and start to copy for a later one."""
        b, shape = self.b, self.shape
        stages = self.const(shape.stages)
        here = b.binary(C.MOD, step, stages)
        parts = shape.depth // K
        for part in range(parts):
            # Loads come before what hides their latency: the code generator keeps their order.
            if part < parts - 1:
                self.load((part + 1) % 2, here, part + 1)
            else:
                b.emit(C.ASYNC_WAIT, (), self.ahead - 1)
                b.emit(C.BLOCK_SYNC)
                self.load(0, b.binary(C.MOD, self.add(step, 1), stages), 0)
            if part == 0:
                ahead = self.add(step, self.ahead)
                fill(ahead, b.binary(C.MOD, ahead, stages))
                b.emit(C.ASYNC_GROUP)
            rows, columns = shape.fragments
            attr = FragmentAttr(rows=rows, columns=columns)
            b.emit(C.FRAGMENT_MMA, (self.sums, *self.fragments[part % 2]), attr)

    def load(self, held: int, stage: Op, part: int) -> None:
        """Load the fragments of one part of a step."""
        b, fragments = self.b, self.shape.fragments
        for axis in (0, 1):
            pitch = self.extents(axis)[1] + _PAD
            inward = self.inward[axis]
            at = self.place[axis]
            at = self.add(self.times(at, pitch), part * K) if inward else (
                self.add(at, part * K * pitch))  # fmt: skip
            source = b.element(self.buffers[axis], self.add(self.slot(axis, stage), at))
            count = {"rows": fragments[0]} if axis == 0 else {"columns": fragments[1]}
            attr = FragmentAttr("ab"[axis], pitch=pitch, inward=inward, **count)
            to = self.fragments[held][axis]
            b.emit(C.FRAGMENT_LOAD, (to, source, self.thread), attr)

    # The rest of each iteration

    def afterwards(self, fresh: list[Op]) -> None:
        """All that iterations do besides, from their sums, without those of neighbouring tiles.

        fresh: the first iteration along each axis that no other tile runs.
        """
        b, (rows, columns) = self.b, self.shape.fragments
        for m in range(rows):
            for n in range(0, columns, 4):
                first = self.const(4 * (m * columns + n))
                to = b.element(self.staging, self.staged)
                attr = FragmentAttr(columns=4, pitch=self.pitch)
                source = b.element(self.sums, first)
                b.emit(C.FRAGMENT_STORE, (to, source, self.thread), attr)
                b.emit(C.SUBGROUP_SYNC)
                self.iterate(m * FRAGMENT[0], n * FRAGMENT[1], fresh)
                b.emit(C.SUBGROUP_SYNC)

    def iterate(self, down: int, right: int, fresh: list[Op]) -> None:
        """The rest of 16 by 32 iterations of this warp, which begin at a place of its own."""
        b = self.b
        corner = [
            self.add(self.add(corner, place), offset)
            for corner, place, offset in zip(self.corner, self.place, (down, right), strict=True)
        ]
        column = self.add(corner[1], self.lane)
        skipped = b.binary(C.MAX, b.binary(C.SUB, fresh[0], corner[0]), self.const(0))
        new = b.if_(b.binary(C.CMP_GE, column, fresh[1]))
        with b.inside(new.regions[0]):
            loop = b.range_for((skipped, self.const(FRAGMENT[0])), ForAttr())
            with b.inside(loop.regions[0]):
                row = b.loop_index(loop, 0)
                at = self.add(self.add(self.times(row, self.pitch), self.lane), self.staged)
                value = b.load(b.element(self.staging, at))
                self.rest([self.add(corner[0], row), column], value)

    def rest(self, at: list[Op], value: Op) -> None:
        """The rest of one iteration, whose products have this sum."""
        b, plan, found = self.b, self.plan, self.sum
        mapping = {op: self.add(self.begins[int(op.attr)], at[int(op.attr)]) for op in self.indices}
        self.copies(plan.before, mapping)
        variable = mapping[found.variable]
        b.store(variable, b.binary(found.code, b.load(variable), value))
        self.copies(plan.after, mapping)

    def copies(self, ops: list[Op], mapping: dict[Op, Op]) -> None:
        clone_into(self.func, [op for op in ops if op not in self.indices], mapping, self.b.block)
        for old, new in mapping.items():
            self.func.origins.setdefault(new.id, old.id)
