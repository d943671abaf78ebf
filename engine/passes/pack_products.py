"""pack_products: loops like those of a matrix product run on packed panels, on a CPU.

In ``s += a[i, k] * b[k, j]`` the loop over ``k`` steps through a whole row of ``b`` for each
product, and is not vectorised. Instead, a chunk runs tiles of iterations along both axes. For a few
``k`` at a time it copies to arrays of its own what the tile reads; then it runs the iterations of
a few rows together, for a few ``k``, in a loop over the columns that LLVM vectorises::

    $9 : range_for $b, $e, <0>, $m body {     if there are enough iterations
      <i32> $5 = loop_index $9 [0]              <*f32> $50 = array_alloca  (sums of a tile)
      <i32> $6 = loop_index $9 [1]              <*f32> $51, $52 = array_alloca  (of a, of b)
      <*f32> $7 = alloca                        for tiles of rows and columns
      $12 : range_for <0>, $l body {              $50[...] = 0
        s += a[i, k] * b[k, j]                    for every 32 values of k
      }                                             $51[...], $52[...] = a[...], b[...]
      c[i, j] = s                                   for every 4 rows, for every 4 values of k
    }                                                 for the columns: 16 times
                                                        $50[...] += $51[...] * $52[...]
                                                  c[i, j] = $50[...]
                                              else the loop as it was

The columns may also be those of a loop inside of a parallel loop over rows. `tile_products` does
the like for GPUs. The loop over ``k`` qualifies if its bounds are the same in all iterations and
its body is straight and stores to variables alone. It must load something that depends on its index
and the row, and something that depends on its index and the column. Each element that a task writes
must belong to one iteration, and arrays must not overlap. Every iteration still does the same
operations in the same order, so that the results have the same bits, unless ``fast_math`` allows
LLVM to change them.

Tiles at the ends compute more rows and columns than there are, from copies of the last ones, and
drop what they get. The scheme is that of K. Goto and R. van de Geijn, "Anatomy of high-performance
matrix multiplication" (ACM TOMS 34:3, 2008), with the sums in the first-level cache.
"""

from __future__ import annotations

from itertools import product
from typing import Final

from ..analysis import chunk_loop
from ..ir import Builder, ForAttr, Func, Op
from ..ir import codes as C
from ..ir.edit import clone, clone_into
from ..types import DataType, i32, i64, u1
from .iterations import flat, number_type
from .manager import PassCx
from .product_nest import COLUMN, INNER, OTHER, ROW, Plan, axis_of, nest_of, plan_of
from .registry import register

__all__ = ["PANEL", "pack_products"]

PANEL: Final = "packed panel"
"""The name of the arrays that this pass makes."""

_ROWS: Final = 64
_ROW_BYTES: Final = 1024
"""Of the sums of one row of a tile."""
_DEPTH: Final = 32
"""Values of the inner loop's index for which arrays hold what a tile reads."""
_TOGETHER: Final = 4
"""Rows of one run of the loop over the columns."""
_UNROLLED: Final = 4
"""Values of the inner loop's index in one run of it."""
_LANES: Final = 16
"""The columns of a tile are rounded up to a multiple."""
_LEAST: Final = (4, 8, 4)
"""Fewer rows, columns or values of the inner loop's index are not worth copies."""
_LEAST_PRODUCTS: Final = 1 << 13
"""Nor are fewer of all; a product of 16^2 took 23 us with copies, 15 us without."""
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
    _Packing(func, task, loop, found).run()
    loads = len(found.staged[0] + found.staged[1])
    cx.remark(loop, f"runs {_TOGETHER} rows and {_UNROLLED} values of the inner loop's index "
              f"together; {loads} loads go through packed copies")  # fmt: skip
    return True


class _Packing:
    """Makes the new code of one task.

    width: columns of a tile. begins / lengths: of rows, columns and the inner loop. sums / panels:
    the arrays for variables and staged loads. corner / sizes: of the tile at hand.
    """

    def __init__(self, func: Func, task: Op, loop: Op, plan: Plan) -> None:
        self.func: Final = func
        self.plan: Final = plan
        self.nest: Final = plan.nest
        self.loop: Final = loop
        self.body: Final = task.regions[1]
        self.b: Final = Builder(func, self.body, loop.loc, [])
        sizes = [number_type(op).size for op in (*plan.sums, *plan.staged[0], *plan.staged[1])]
        self.width: Final = _ROW_BYTES // max(4, *sizes)
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
            self.sums = {op: self.array(number_type(op), _ROWS * self.width)
                         for op in self.plan.sums}  # fmt: skip
            self.panels = {
                load: self.array(number_type(load), _DEPTH * (self.width if axis else _ROWS))
                for axis in (ROW, COLUMN)
                for load in self.plan.staged[axis]
            }
            zero = b.const(0, i32)
            counts = [self.divided(self.lengths[axis], side)
                      for axis, side in ((ROW, _ROWS), (COLUMN, self.width))]  # fmt: skip
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
            products = b.binary(C.MUL, products, b.binary(C.MIN, length, b.const(_ROWS, i64)))
            for test, limit in ((C.CMP_GE, least), (C.CMP_LE, _LONGEST)):
                found = b.binary(C.BIT_AND, found, b.binary(test, length, b.const(limit, i64)))
        enough = b.binary(C.CMP_GE, products, b.const(_LEAST_PRODUCTS, i64))
        return b.binary(C.BIT_AND, found, enough)

    def array(self, t: DataType, count: int) -> Op:
        return self.b.array(t, count, PANEL)

    def divided(self, length: Op, side: int) -> Op:
        """The number of parts of that length; the last one may be shorter."""
        b = self.b
        rounded = b.binary(C.ADD, length, b.const(side - 1, i32))
        return b.binary(C.BIT_SAR, rounded, b.const(side.bit_length() - 1, i32))

    def rounded(self, length: Op, side: int) -> Op:
        b = self.b
        return b.binary(C.BIT_SHL, self.divided(length, side), b.const(side.bit_length() - 1, i32))

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
        for axis, side in ((ROW, _ROWS), (COLUMN, self.width)):
            past = b.binary(C.MUL, at[axis], b.const(side, i32))
            self.corner.append(b.binary(C.ADD, self.begins[axis], past))
            left = b.binary(C.SUB, self.lengths[axis], past)
            self.sizes.append(b.binary(C.MIN, left, b.const(side, i32)))
        self.each(self.nest.before, after=False)
        zero = b.const(0, i32)
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

    def part(self, first: Op, count: Op) -> None:
        """Some values of the inner loop's index, for a tile."""
        b = self.b
        zero = b.const(0, i32)
        for axis in (ROW, COLUMN):
            for load in self.plan.staged[axis]:
                self.fill(load, axis, first, count)
        columns = self.rounded(self.sizes[COLUMN], _LANES)
        shift = b.const(_UNROLLED.bit_length() - 1, i32)
        rows = b.range_for((zero, self.divided(self.sizes[ROW], _TOGETHER)), ForAttr())
        with b.inside(rows.regions[0]):
            row = b.binary(C.MUL, b.loop_index(rows, 0), b.const(_TOGETHER, i32))
            groups = b.binary(C.BIT_SAR, count, shift)
            loop = b.range_for((zero, groups), ForAttr())
            with b.inside(loop.regions[0]):
                depth = b.binary(C.BIT_SHL, b.loop_index(loop, 0), shift)
                _Kernel(self, row, depth, first, _UNROLLED).run(columns)
            rest = b.range_for((b.binary(C.BIT_SHL, groups, shift), count), ForAttr())
            with b.inside(rest.regions[0]):
                _Kernel(self, row, b.loop_index(rest, 0), first, 1).run(columns)

    def fill(self, load: Op, axis: int, first: Op, count: Op) -> None:
        """Copy what a tile reads, along the array's rows."""
        b = self.b
        zero = b.const(0, i32)
        last = load.args[0].args[-1]
        inward = INNER in self.plan.depends.get(last, ())
        side = self.rounded(self.sizes[axis], _LANES if axis else _TOGETHER)
        # Rows have their own values of the inner index next to each other, and so has the panel.
        loop = b.range_for((zero, side, zero, count), ForAttr(axes=(0, 1) if inward else (1, 0)))
        with b.inside(loop.regions[0]):
            place, depth = b.loop_index(loop, 0), b.loop_index(loop, 1)
            existing = b.binary(C.MIN, place, b.binary(C.SUB, self.sizes[axis], b.const(1, i32)))
            made = self.indices(axis, b.binary(C.ADD, self.corner[axis], existing))
            made |= self.indices(INNER, b.binary(C.ADD, first, depth))
            value = self.value(load, made)
            outer, inner, length = (depth, place, self.width) if axis else (place, depth, _DEPTH)
            at = b.binary(C.ADD, b.binary(C.MUL, outer, b.const(length, i32)), inner)
            b.store(b.element(self.panels[load], at), value)


class _Kernel:
    """A few rows and values of the inner loop's index, in one loop over the columns of a tile.

    rows / depths: of the tile and of the panels. made: the ops of the inner loop, for a row and a
    value of the index; -1 where it is for all. now: the values of variables, for a row.
    """

    def __init__(self, packing: _Packing, row: Op, depth: Op, first: Op, count: int) -> None:
        b = packing.b
        self.p = packing
        self.b = b
        self.count = count
        self.rows = [self.plus(row, n) for n in range(_TOGETHER)]
        self.depths = [self.plus(depth, n) for n in range(count)]
        self.made: dict[tuple[Op, int, int], Op] = {}
        self.now: dict[tuple[Op, int], Op] = {}
        last = b.binary(C.SUB, packing.sizes[ROW], b.const(1, i32))
        self.common: dict[tuple[int, int], dict[Op, Op]] = {}
        for r, d in product(range(-1, _TOGETHER), range(-1, count)):
            made: dict[Op, Op] = {}
            if r >= 0:
                at = b.binary(C.MIN, self.rows[r], last)
                made |= packing.indices(ROW, b.binary(C.ADD, packing.corner[ROW], at))
            if d >= 0:
                made |= packing.indices(INNER, b.binary(C.ADD, first, self.depths[d]))
            self.common[r, d] = made

    def plus(self, op: Op, n: int) -> Op:
        return self.b.binary(C.ADD, op, self.b.const(n, i32)) if n else op

    def run(self, columns: Op) -> None:
        b, plan = self.b, self.p.plan
        inner = [op for op in plan.nest.inner.regions[0].ops if op in plan.needed]
        panels: dict[tuple[Op, int], Op] = {}
        for op in inner:
            if op in plan.staged[COLUMN]:
                for d, depth in enumerate(self.depths):
                    panels[op, d] = b.binary(C.MUL, depth, b.const(self.p.width, i32))
            elif not plan.depends[op] & {COLUMN, OTHER}:
                self.scalars(op)
        starts = [b.binary(C.MUL, row, b.const(self.p.width, i32)) for row in self.rows]
        loop = b.range_for((b.const(0, i32), columns), ForAttr())
        with b.inside(loop.regions[0]):
            at = b.loop_index(loop, 0)
            places = [b.binary(C.ADD, start, at) for start in starts]
            pointers = {
                (op, r): b.element(array, place)
                for op, array in self.p.sums.items()
                for r, place in enumerate(places)
            }
            self.now = {key: b.load(pointer) for key, pointer in pointers.items()}
            last = b.binary(C.SUB, self.p.sizes[COLUMN], b.const(1, i32))
            column = b.binary(C.ADD, self.p.corner[COLUMN], b.binary(C.MIN, at, last))
            for made in self.common.values():
                made |= self.p.indices(COLUMN, column)
            for (op, d), start in panels.items():
                place = b.binary(C.ADD, start, at)
                self.made[op, -1, d] = b.load(b.element(self.p.panels[op], place))
            for d, r in product(range(self.count), range(_TOGETHER)):
                for op in inner:
                    self.step(op, r, d)
            for key, pointer in pointers.items():
                b.store(pointer, self.now[key])

    def scalars(self, op: Op) -> None:
        """An op that is the same for all columns."""
        depends = self.p.plan.depends[op]
        rows = range(_TOGETHER) if ROW in depends else (-1,)
        for r, d in product(rows, range(self.count) if INNER in depends else (-1,)):
            if op in self.p.plan.staged[ROW]:
                start = self.b.binary(C.MUL, self.rows[r], self.b.const(_DEPTH, i32))
                at = self.b.binary(C.ADD, start, self.depths[d])
                self.made[op, r, d] = self.b.load(self.b.element(self.p.panels[op], at))
            else:
                self.made[op, r, d] = self.copy(op, r, d)

    def step(self, op: Op, r: int, d: int) -> None:
        """One op of an iteration of the inner loop, unless it has been done for several."""
        if op.code == C.ALLOCA:
            self.now[op, r] = self.b.const(0, number_type(op))
        elif op.code == C.LOCAL_LOAD:
            self.made[op, r, d] = self.now[op.args[0], r]
        elif op.code == C.LOCAL_STORE:
            self.now[op.args[0], r] = self.of(op.args[1], r, d)
        elif self.known(op, r, d) is None:
            self.made[op, r, d] = self.copy(op, r, d)

    def known(self, op: Op, r: int, d: int) -> Op | None:
        for key in ((op, r, d), (op, r, -1), (op, -1, d), (op, -1, -1)):
            if key in self.made:
                return self.made[key]
        return None

    def of(self, op: Op, r: int, d: int) -> Op:
        found = self.known(op, r, d)
        return self.p.value(op, self.common[r, d]) if found is None else found

    def copy(self, op: Op, r: int, d: int) -> Op:
        if op in self.common[r, d]:
            return self.common[r, d][op]
        args = tuple([self.of(arg, r, d) for arg in op.args])
        new = self.b.emit(op.code, args, op.attr, op.type)
        self.p.func.origins[new.id] = op.id
        return new
