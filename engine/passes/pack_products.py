"""pack_products: loops like those of a matrix product run on packed panels, on a CPU.

In ``s += a[i, k] * b[k, j]`` the loop over ``k`` steps through a whole row of ``b`` for each
product, and is not vectorised. Instead, a chunk runs tiles of iterations along both axes. For 128
values of ``k`` at a time it copies to arrays of its own what the tile reads; then it runs the loop
over ``k`` for a few rows and columns, whose sums are in registers all the while::

    $9 : range_for $b, $e, <0>, $m body {     if there are enough iterations
      <i32> $5 = loop_index $9 [0]              <*f32> $50 = array_alloca  (sums of a tile)
      <i32> $6 = loop_index $9 [1]              <*f32> $51, $52 = array_alloca  (of a, of b)
      <*f32> $7 = alloca                        for tiles of rows and columns
      $12 : range_for <0>, $l body {              $50[...] = 0
        s += a[i, k] * b[k, j]                    for every 128 values of k
      }                                             $51[...], $52[...] = a[...], b[...]
      c[i, j] = s                                   for every 16 columns, for every 6 rows
    }                                                 $53, $54, ... = array_alloca (sums of rows)
                                                      $53[...], $54[...], ... = $50[...]
                                                      for the values of k
                                                        for the columns  {straight}
                                                          $53[...] += $51[...] * $52[...]
                                                          $54[...] += ...
                                                      $50[...] = $53[...], $54[...], ...
                                                  c[i, j] = $50[...]
                                              else the loop as it was

Each straight loop is one operation of LLVM on vectors, and so LLVM keeps the small arrays in
registers. A `WIDE_CPU` has 8 rows of 32 columns (of f32) there.

The columns may also be those of a loop inside of a parallel loop over rows. `tile_products` does
the like for GPUs. The loop over ``k`` qualifies if its bounds are the same in all iterations and
its body is straight and stores to variables alone. It must load something that depends on its index
and the row, and something that depends on its index and the column. Each element that a task writes
must belong to one iteration, and arrays must not overlap. Every iteration still does the same
operations in the same order, so that the results have the same bits, unless ``fast_math`` allows
LLVM to change them.

Tiles at the ends compute more rows and columns than there are, from copies of the last ones, and
drop what they get. Copies that turn rows into columns are loops with a `move`, as those of
`tile_iterations`. The scheme is that of K. Goto and R. van de Geijn, "Anatomy of high-performance
matrix multiplication" (ACM TOMS 34:3, 2008).
"""

from __future__ import annotations

from itertools import product
from typing import Final

from ..analysis import chunk_loop
from ..ir import Builder, ForAttr, Func, Op
from ..ir import codes as C
from ..ir.edit import clone, clone_into
from ..named_tuple import NamedTuple
from ..pipeline_kind import PipelineKind
from ..types import DataType, i32, i64, u1
from .iterations import flat, number_type
from .manager import PassCx
from .product_nest import COLUMN, INNER, OTHER, ROW, Plan, axis_of, has_rows, nest_of, plan_of
from .registry import register

__all__ = ["PANEL", "pack_products"]

PANEL: Final = "packed panel"
"""The name of the arrays that this pass makes."""

_DEPTH: Final = 128
"""Values of the inner loop's index for which arrays hold what a tile reads."""
_PITCH: Final = _DEPTH + 16
"""Elements from one row of a panel to the next: rows begin in different sets of a cache."""
_ROW_BYTES: Final = 1024
"""Of the sums of one row of a tile."""


class Shape(NamedTuple):
    """The iterations that one run of the inner loop is for: their sums are in registers.

    rows: of them, for one sum. bytes: of the sums of one row. tile: rows of a tile.
    """

    rows: int
    bytes: int
    tile: int


_SHAPE: Final = Shape(6, 64, 132)
"""12 of 16 registers of 32 bytes have sums, or 24 of 32 registers of 16 bytes."""
_WIDE: Final = Shape(8, 128, 128)
"""16 of 32 registers of 64 bytes have sums, which is what two units with a latency of 4 need."""
_LEAST: Final = (4, 8, 4)
"""Fewer rows, columns or values of the inner loop's index are not worth copies."""
_LEAST_PRODUCTS: Final = 1 << 13
"""Nor are fewer of all; a product of 16^2 took 23 us with copies, 15 us without."""
_MANY: Final = 64
"""No axis counts for more of them."""
_LONGEST: Final = 1 << 30


@register("pack_products", optional=True, per_task=True)
def pack_products(func: Func, cx: PassCx) -> bool:
    """Run loops like those of a matrix product on packed copies of what they read."""
    task, loop = cx.task, chunk_loop(cx.task)
    nest = None if loop is None else nest_of(loop)
    if task is None or loop is None or nest is None:
        return False
    found = plan_of(func, nest)
    if found is None:
        return False
    if isinstance(found, str):
        cx.remark(loop, f"not packed, although it is like a matrix product: {found}")
        return False
    shape = _WIDE if cx.kind is PipelineKind.WIDE_CPU else _SHAPE
    packing = _Packing(func, task, loop, found, shape)
    packing.run()
    loads = len(found.staged[0] + found.staged[1])
    cx.remark(loop, f"runs {packing.together} rows and {packing.lanes} columns together; "
              f"{loads} loads go through packed copies")  # fmt: skip
    return True


class _Packing:
    """Makes the new code of one task.

    sides: rows and columns of a tile. together / lanes: rows and columns of one run of the inner
    loop. begins / lengths: of rows, columns and the inner loop. sums / panels: the arrays for
    variables and staged loads. corner / sizes: of the tile at hand.
    """

    def __init__(self, func: Func, task: Op, loop: Op, plan: Plan, shape: Shape) -> None:
        self.func: Final = func
        self.plan: Final = plan
        self.nest: Final = plan.nest
        self.loop: Final = loop
        self.body: Final = task.regions[1]
        self.b: Final = Builder(func, self.body, loop.loc, [])
        sizes = [number_type(op).size for op in (*plan.sums, *plan.staged[0], *plan.staged[1])]
        size = max(4, *sizes)
        several = len(plan.sums) > 1
        self.together: Final = shape.rows // len(plan.sums)
        self.lanes: Final = shape.bytes // size
        # Threads have stacks of a few megabytes, systems other than Linux of half a one.
        self.sides: Final = (shape.tile // 2 if several else shape.tile, _ROW_BYTES // size)
        self.width: Final = self.sides[COLUMN]
        self.own: Final = {*self.nest.around, *self.nest.before, *self.nest.inner.regions[0].ops}

    def run(self) -> None:
        b = self.b
        bounds: list[Op] = []
        common: dict[Op, Op] = {}
        for axis in range(3):
            bounds += [self.value(bound, common) for bound in self.nest.bounds(axis)]
        ends = [b.cast(bound, i64) for bound in bounds]
        lengths = [b.binary(C.SUB, ends[at + 1], ends[at]) for at in (0, 2, 4)]
        choice = b.if_(self.enough(lengths))
        clone_into(self.func, [self.loop], {}, choice.regions[1])
        self.begins = bounds[::2]
        with b.inside(choice.regions[0]):
            self.lengths = [b.cast(length, i32) for length in lengths]
            rows = self.sides[ROW]
            self.sums = {op: self.array(number_type(op), rows * self.width)
                         for op in self.plan.sums}  # fmt: skip
            self.panels = {
                load: self.array(number_type(load), _DEPTH * self.width if axis else _PITCH * rows)
                for axis in (ROW, COLUMN)
                for load in self.plan.staged[axis]
            }
            zero = b.const(0, i32)
            counts = [self.divided(self.lengths[axis], self.sides[axis]) for axis in (ROW, COLUMN)]
            tiles = b.range_for((zero, counts[0], zero, counts[1]), ForAttr())
            with b.inside(tiles.regions[0]):
                self.tile([b.loop_index(tiles, axis) for axis in (0, 1)])
        at = self.body.ops.index(self.loop)
        self.body.ops[at : at + 1] = b.ops

    def enough(self, lengths: list[Op]) -> Op:
        """True if a chunk has enough to do, and can be counted in 32 bits."""
        b = self.b
        products = b.const(1, i64)
        found = b.const(True, u1)
        for length, least in zip(lengths, _LEAST, strict=True):
            products = b.binary(C.MUL, products, b.binary(C.MIN, length, b.const(_MANY, i64)))
            for test, limit in ((C.CMP_GE, least), (C.CMP_LE, _LONGEST)):
                found = b.binary(C.BIT_AND, found, b.binary(test, length, b.const(limit, i64)))
        enough = b.binary(C.CMP_GE, products, b.const(_LEAST_PRODUCTS, i64))
        return b.binary(C.BIT_AND, found, enough)

    def array(self, t: DataType, count: int) -> Op:
        return self.b.array(t, count, PANEL, clear=False)

    def divided(self, length: Op, side: int) -> Op:
        """The number of parts of that length; the last one may be shorter."""
        b = self.b
        rounded = b.binary(C.ADD, length, b.const(side - 1, i32))
        return b.binary(C.DIV, rounded, b.const(side, i32))

    def rounded(self, length: Op, side: int) -> Op:
        return self.b.binary(C.MUL, self.divided(length, side), self.b.const(side, i32))

    def value(self, op: Op, made: dict[Op, Op]) -> Op:
        """A copy of an op and of what it uses, with what ``made`` has in place of some of them."""
        if op in made:
            return made[op]
        axis = axis_of(self.nest, op)
        if axis >= 0:
            raise AssertionError("the caller knows the indices that an op depends on")
        if op not in self.own:
            return op
        args = tuple([self.value(arg, made) for arg in op.args])
        new = self.b.emit(op.code, args, op.attr, op.type)
        self.func.origins[new.id] = op.id
        made[op] = new
        return new

    def indices(self, axis: int, index: Op) -> dict[Op, Op]:
        """``index`` for all ops that are the index of an axis."""
        nest = self.nest
        ops = [*nest.around, *flat(nest.before), *nest.inner.regions[0].ops, *flat(nest.after)]
        return {op: index for op in ops if axis_of(nest, op) == axis}

    def tile(self, at: list[Op]) -> None:
        """The iterations of one tile."""
        b = self.b
        self.corner: list[Op] = []
        self.sizes: list[Op] = []
        for axis, side in enumerate(self.sides):
            past = b.binary(C.MUL, at[axis], b.const(side, i32))
            self.corner.append(b.binary(C.ADD, self.begins[axis], past))
            left = b.binary(C.SUB, self.lengths[axis], past)
            self.sizes.append(b.binary(C.MIN, left, b.const(side, i32)))
        zero = b.const(0, i32)
        self.clear()
        self.each(self.nest.before, after=False)
        parts = b.range_for((zero, self.divided(self.lengths[INNER], _DEPTH)), ForAttr())
        with b.inside(parts.regions[0]):
            past = b.binary(C.MUL, b.loop_index(parts, 0), b.const(_DEPTH, i32))
            left = b.binary(C.SUB, self.lengths[INNER], past)
            self.part(
                b.binary(C.ADD, self.begins[INNER], past),
                b.binary(C.MIN, left, b.const(_DEPTH, i32)),
            )
        self.each(self.nest.after, after=True)

    def each(self, ops: list[Op], after: bool) -> None:
        """Ops before or after the inner loop, for all iterations of a tile."""
        b, nest, depends = self.b, self.nest, self.plan.depends
        zero = b.const(0, i32)
        loop = b.range_for((zero, self.sizes[0], zero, self.sizes[1]), ForAttr())
        with b.inside(loop.regions[0]):
            at = [b.loop_index(loop, axis) for axis in (0, 1)]
            made: dict[Op, Op] = {}
            for axis in (ROW, COLUMN):
                made |= self.indices(axis, b.binary(C.ADD, self.corner[axis], at[axis]))
            place = b.binary(C.ADD, b.binary(C.MUL, at[0], b.const(self.width, i32)), at[1])
            if after:
                for op, array in self.sums.items():
                    made[op] = b.alloca(number_type(op))
                    b.store(made[op], b.load(b.element(array, place)))
                known = [op for op in nest.before if OTHER not in depends[op]]
                self.copies([*nest.around, *known], made)
            else:
                self.copies(nest.around, made)
            self.copies(ops, made)
            if not after:
                for op, array in self.sums.items():
                    b.store(b.element(array, place), b.load(made[op]))

    def copies(self, ops: list[Op], made: dict[Op, Op]) -> None:
        b = self.b
        for op in ops:
            if op not in made:
                new = clone(self.func, op, made, b.block)
                self.func.origins[new.id] = op.id
                b.ops.append(new)

    def clear(self) -> None:
        """Set the sums of a tile to 0: those of iterations that do not exist, too."""
        b = self.b
        zero = b.const(0, i32)
        rows = self.rounded(self.sizes[ROW], self.together)
        columns = self.rounded(self.sizes[COLUMN], self.lanes)
        loop = b.range_for((zero, rows, zero, columns), ForAttr())
        with b.inside(loop.regions[0]):
            row = b.binary(C.MUL, b.loop_index(loop, 0), b.const(self.width, i32))
            place = b.binary(C.ADD, row, b.loop_index(loop, 1))
            for op, array in self.sums.items():
                b.store(b.element(array, place), b.const(0, number_type(op)))

    def part(self, first: Op, count: Op) -> None:
        """Some values of the inner loop's index, for a tile."""
        b = self.b
        zero = b.const(0, i32)
        for axis in (ROW, COLUMN):
            for load in self.plan.staged[axis]:
                self.fill(load, axis, first, count)
        groups = [self.divided(self.sizes[ROW], self.together),
                  self.divided(self.sizes[COLUMN], self.lanes)]  # fmt: skip
        # Columns outside: what a run reads of their panels stays in the first-level cache.
        runs = b.range_for((zero, groups[ROW], zero, groups[COLUMN]), ForAttr(axes=(1, 0)))
        with b.inside(runs.regions[0]):
            row = b.binary(C.MUL, b.loop_index(runs, 0), b.const(self.together, i32))
            column = b.binary(C.MUL, b.loop_index(runs, 1), b.const(self.lanes, i32))
            _Run(self, row, column, first).emit(count)

    def fill(self, load: Op, axis: int, first: Op, count: Op) -> None:
        """Copy what the rows or columns of a tile read, along the array's rows.

        Where copies of the last one would be in the middle of such a row, the last group of rows
        or columns, which may have fewer than the others, has a loop of its own.
        """
        b = self.b
        side = self.lanes if axis else self.together
        groups = b.const(0, i32), self.divided(self.sizes[axis], side)
        inward = INNER in self.plan.depends.get(load.args[0].args[-1], ())
        turned = inward == (axis == COLUMN) and has_rows(
            self.func, self.plan, load, INNER if inward else axis
        )
        attr = ForAttr(axes=(0, 1) if inward else (1, 0))
        if inward and not turned:
            self.copy_groups(load, axis, groups, attr, True, first, count)
            return
        whole = b.binary(C.DIV, self.sizes[axis], b.const(side, i32))
        moved = attr._replace(independent=True, move="transposed") if turned else attr
        self.copy_groups(load, axis, (groups[0], whole), moved, False, first, count)
        cold = attr._replace(cold=True)
        self.copy_groups(load, axis, (whole, groups[1]), cold, True, first, count)

    def copy_groups(
        self, load: Op, axis: int, groups: tuple[Op, Op], attr: ForAttr, clamped: bool, first: Op,
        count: Op,
    ) -> None:  # fmt: skip
        """Copy what some groups of rows or columns read. clamped: copies of the last one follow."""
        b = self.b
        zero, side = b.const(0, i32), b.const(self.lanes if axis else self.together, i32)
        if axis == ROW:
            ends = [b.binary(C.MUL, end, side) for end in groups]
            loop = b.range_for((*ends, zero, count), attr)
            with b.inside(loop.regions[0]):
                row, depth = b.loop_index(loop, 0), b.loop_index(loop, 1)
                at = b.binary(C.ADD, b.binary(C.MUL, row, b.const(_PITCH, i32)), depth)
                self.copy_element(load, axis, row, first, depth, clamped, at)
            return
        panels = b.range_for(groups, ForAttr(cold=attr.cold))
        with b.inside(panels.regions[0]):
            start = b.binary(C.MUL, b.loop_index(panels, 0), side)
            loop = b.range_for((zero, side, zero, count), attr)
            with b.inside(loop.regions[0]):
                lane, depth = b.loop_index(loop, 0), b.loop_index(loop, 1)
                at = b.binary(C.MUL, start, b.const(_DEPTH, i32))
                at = b.binary(C.ADD, b.binary(C.ADD, at, b.binary(C.MUL, depth, side)), lane)
                column = b.binary(C.ADD, start, lane)
                self.copy_element(load, axis, column, first, depth, clamped, at)

    def copy_element(
        self, load: Op, axis: int, place: Op, first: Op, depth: Op, clamped: bool, at: Op
    ) -> None:
        b = self.b
        if clamped:
            place = b.binary(C.MIN, place, b.binary(C.SUB, self.sizes[axis], b.const(1, i32)))
        made = self.indices(axis, b.binary(C.ADD, self.corner[axis], place))
        made |= self.indices(INNER, b.binary(C.ADD, first, depth))
        value = self.value(load, made)
        b.store(b.element(self.panels[load], at), value)


class _Run:
    """Some values of the inner loop's index, for a few rows and columns.

    The sums of each row are an array that LLVM makes a vector of, in registers. made: the ops of
    the inner loop, for a row; -1 where it is for all. now: the values of variables, for a row.
    common: indices, for a row.
    """

    def __init__(self, packing: _Packing, row: Op, column: Op, first: Op) -> None:
        b = packing.b
        self.p: Final = packing
        self.b: Final = b
        self.row: Final = row
        self.column: Final = column
        self.first: Final = first
        self.rows: Final = range(packing.together)
        self.made: dict[tuple[Op, int], Op] = {}
        self.now: dict[tuple[Op, int], Op] = {}
        last = b.binary(C.SUB, packing.sizes[ROW], b.const(1, i32))
        self.common: dict[int, dict[Op, Op]] = {-1: {}}
        for r in self.rows:
            at = b.binary(C.MIN, self.plus(row, r), last)
            self.common[r] = packing.indices(ROW, b.binary(C.ADD, packing.corner[ROW], at))

    def plus(self, op: Op, n: int) -> Op:
        return self.b.binary(C.ADD, op, self.b.const(n, i32)) if n else op

    def emit(self, count: Op) -> None:
        b, p = self.b, self.p
        own = {(op, r): p.array(number_type(op), p.lanes) for op in p.sums for r in self.rows}
        self.moved(own, inward=True)
        loop = b.range_for((b.const(0, i32), count), ForAttr())
        with b.inside(loop.regions[0]):
            self.depth(b.loop_index(loop, 0), own)
        self.moved(own, inward=False)

    def lanes(self) -> Op:
        """A loop over the columns that is to be one vector instruction for each of its ops."""
        b = self.b
        bounds = b.const(0, i32), b.const(self.p.lanes, i32)
        return b.range_for(bounds, ForAttr(straight=True))

    def moved(self, own: dict[tuple[Op, int], Op], inward: bool) -> None:
        """Copy sums from the tile to those of the rows, or back."""
        b, p = self.b, self.p
        start = b.binary(C.ADD, b.binary(C.MUL, self.row, b.const(p.width, i32)), self.column)
        loop = self.lanes()
        with b.inside(loop.regions[0]):
            at = b.loop_index(loop, 0)
            for (op, r), array in own.items():
                place = b.binary(C.ADD, self.plus(start, r * p.width), at)
                mine, tile = b.element(array, at), b.element(p.sums[op], place)
                if inward:
                    b.store(mine, b.load(tile))
                else:
                    b.store(tile, b.load(mine))

    def depth(self, depth: Op, own: dict[tuple[Op, int], Op]) -> None:
        """One value of the inner loop's index."""
        b, p, plan = self.b, self.p, self.p.plan
        index = b.binary(C.ADD, self.first, depth)
        for made in self.common.values():
            made |= p.indices(INNER, index)
        inner = [op for op in plan.nest.inner.regions[0].ops if op in plan.needed]
        row = b.binary(C.ADD, b.binary(C.MUL, self.row, b.const(_PITCH, i32)), depth)
        for op in inner:
            if op not in plan.staged[COLUMN] and not plan.depends[op] & {COLUMN, OTHER}:
                self.scalar(op, row)
        # A panel has `_DEPTH` rows of these columns.
        column = b.binary(C.MUL, self.column, b.const(_DEPTH, i32))
        column = b.binary(C.ADD, column, b.binary(C.MUL, depth, b.const(p.lanes, i32)))
        loop = self.lanes()
        with b.inside(loop.regions[0]):
            at = b.loop_index(loop, 0)
            pointers = {key: b.element(array, at) for key, array in own.items()}
            self.now = {key: b.load(pointer) for key, pointer in pointers.items()}
            last = b.binary(C.SUB, p.sizes[COLUMN], b.const(1, i32))
            existing = b.binary(C.MIN, b.binary(C.ADD, self.column, at), last)
            for made in self.common.values():
                made |= p.indices(COLUMN, b.binary(C.ADD, p.corner[COLUMN], existing))
            for op in plan.staged[COLUMN]:
                place = b.binary(C.ADD, column, at)
                self.made[op, -1] = b.load(b.element(p.panels[op], place))
            for r, op in product(self.rows, inner):
                self.step(op, r)
            for key, pointer in pointers.items():
                b.store(pointer, self.now[key])

    def scalar(self, op: Op, row: Op) -> None:
        """An op that is the same for all columns. row: of the panels."""
        for r in self.rows if ROW in self.p.plan.depends[op] else (-1,):
            if op in self.p.plan.staged[ROW]:
                at = self.plus(row, r * _PITCH)
                self.made[op, r] = self.b.load(self.b.element(self.p.panels[op], at))
            else:
                self.made[op, r] = self.copy(op, r)

    def step(self, op: Op, r: int) -> None:
        """One op of an iteration of the inner loop, unless it has been done for several."""
        if op.code == C.ALLOCA:
            self.now[op, r] = self.b.const(0, number_type(op))
        elif op.code == C.LOCAL_LOAD:
            self.made[op, r] = self.now[op.args[0], r]
        elif op.code == C.LOCAL_STORE:
            self.now[op.args[0], r] = self.of(op.args[1], r)
        elif self.known(op, r) is None:
            shared = -1 if self.p.plan.depends[op] <= {COLUMN, INNER} else r
            self.made[op, shared] = self.copy(op, shared)

    def known(self, op: Op, r: int) -> Op | None:
        return self.made.get((op, r)) or self.made.get((op, -1))

    def of(self, op: Op, r: int) -> Op:
        found = self.known(op, r)
        return self.p.value(op, self.common[r]) if found is None else found

    def copy(self, op: Op, r: int) -> Op:
        if op in self.common[r]:
            return self.common[r][op]
        args = tuple([self.of(arg, r) for arg in op.args])
        new = self.b.emit(op.code, args, op.attr, op.type)
        self.p.func.origins[new.id] = op.id
        return new
