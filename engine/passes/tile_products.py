"""tile_products: loops like those of a matrix product run in tiles, on a GPU.

In ``s += a[i, k] * b[k, j]`` each element is loaded by as many threads as there are iterations
that need it. A block of threads instead runs a tile of iterations along both axes. For a few ``k``
at a time it copies to shared memory what the tile reads, and each thread then runs ``8 x 8``
iterations in registers, with 16 loads for 64 products::

    $2 : offloaded {kind='range_for'} header {     $2 : offloaded {kind='range_for' block_dim=256}
      $4 : bounds <0>, $n, <0>, $m                   $4 : bounds <0>, 256 * the number of tiles
    } body {                                       } body {
      <i32> $5 = loop_index $2 [0]                   for the tiles of this block
      <i32> $6 = loop_index $2 [1]                     64 times: <*f32> $60 = alloca
      <*f32> $7 = alloca                               for every 8 values of k
      $12 : range_for <0>, $l body {                     $50[...], $51[...] = a[...], b[...]
        s += a[i, k] * b[k, j]                           block_sync
      }                                                  range_for <0>, <8> {
      c[i, j] = s                                          64 times: s += $50[...] * $51[...] }
    }                                                    block_sync
                                                       64 times: c[i, j] = s

A task qualifies if it has two axes and one loop, whose bounds are the same in all iterations and
whose body is straight; around it there is straight code, or a condition that is the same in all
iterations. The loads in the loop depend on its index and on one of the two axes, at least one on
each. That also holds for distances of all pairs of points. Every iteration still does the same
operations in the same order, so that the results have the same bits.

Tiles at the ends of the axes begin earlier, and run iterations of their neighbours again without
their stores. Few tiles would leave most processors without work: then a second task, which is the
loop as it was, has the iterations, and this one has none. The lengths of the axes decide before
each launch. The scheme is that of V. Volkov and J. Demmel, "Benchmarking GPUs to tune dense linear
algebra" (SC 2008).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Final

from ..ir import ForAttr, Func, Op
from ..ir import codes as C
from ..types import DataType, i32
from .grid import THREADS, has_room
from .manager import PassCx
from .product_nest import stores_array
from .product_task import ProductTask, TileGrid, product_task, tiles_of
from .registry import register
from .stage_shared import TILE

__all__ = ["tile_products"]

_SIDE: Final = 16
"""Threads of a block along each axis."""
_DEPTH: Final = 8
"""Values of the inner loop's index for which shared memory holds what a tile reads."""
_GROUP: Final = 4
"""Neighbouring iterations of a thread along an axis: their loads from a tile are one."""
_FEW: Final = 32, 4
"""With fewer tiles most processors would have none. The second is for loads such as ``b[j, k]``,
where each of neighbouring threads of the loop as it was loads from a row of its own."""
_REGISTERS: Final = 128
"""Of a thread: a processor then holds two blocks, and one computes while the other waits."""
_MOST_STAGED: Final = 2
_MOST_VARIABLES: Final = 4

Key = tuple[Op, int, int]
"""An op, and for which of a thread's iterations along each axis it is; -1 where it is for all."""


@register("tile_products", optional=True, per_task=True)
def tile_products(func: Func, cx: PassCx) -> bool:
    """Run loops like those of a matrix product in tiles, from shared memory and registers."""
    task, plan = cx.task, product_task(func, cx.task)
    if task is None or plan is None:
        return False
    own = _own(plan)
    if not own or not has_room(cx, task):
        return False
    _Products(func, task, plan, own).run()
    side = _SIDE * own
    cx.remark(
        task,
        f"runs in tiles of {side} by {side} iterations, {own} by {own} a thread; "
        f"{len(plan.staged[0] + plan.staged[1])} loads go through shared memory",
    )
    return True


def _own(plan: ProductTask) -> int:
    """Iterations of a thread along each axis; 0 where the task must stay as it is."""
    types = [op.type for loads in plan.staged for op in loads]
    if not all(isinstance(t, DataType) and t.size in (4, 8) for t in types):
        return 0
    fits = all(len(found) <= _MOST_STAGED for found in plan.staged)
    if not fits or not 1 <= plan.variables <= _MOST_VARIABLES:
        return 0
    large = any(isinstance(t, DataType) and t.size == 8 for t in types)
    return _GROUP if large or plan.variables > 1 else 2 * _GROUP


class _Products(TileGrid):
    """Makes the new body of one task.

    own: iterations of a thread along each axis. side: those of a tile. made: the ops of the new
    body. tiles: shared memory for each staged load, and the elements between values of ``k`` in it.
    places: of a thread's iterations in a tile, along each axis.
    """

    def __init__(self, func: Func, task: Op, plan: ProductTask, own: int) -> None:
        self.plan: Final = plan
        self.own: Final = own
        self.side: Final = _SIDE * own
        self.made: dict[Key, Op] = {}
        self.tiles: dict[Op, tuple[Op, int]] = {}
        apart = any(plan.runs_inward(load, 1) for load in plan.staged[1])
        super().__init__(func, task, (self.side, self.side), _FEW[apart])

    def run(self) -> None:
        b = self.b
        for loads, axis in zip(self.plan.staged, (0, 1), strict=True):
            for load in loads:
                assert isinstance(load.type, DataType)
                row = self.side + (_GROUP if self.plan.runs_inward(load, axis) else 0)
                self.tiles[load] = b.array(load.type, _DEPTH * row, TILE, "shared"), row
        enough, tiles = self.grid(b, self.lengths)
        block = b.binary(C.BIT_SAR, self.index, b.const(THREADS.bit_length() - 1, i32))
        self.thread = b.binary(C.BIT_AND, self.index, b.const(THREADS - 1, i32))
        shift = b.const(_SIDE.bit_length() - 1, i32)
        self.places = [
            b.binary(C.BIT_SHL, at, b.const(_GROUP.bit_length() - 1, i32))
            for at in (b.binary(C.BIT_SAR, self.thread, shift),
                       b.binary(C.BIT_AND, self.thread, b.const(_SIDE - 1, i32)))
        ]  # fmt: skip
        counts = [b.binary(C.MUL, enough, tiles_of(b, n, self.side)) for n in self.lengths]
        down = b.binary(C.DIV, block, tiles[1])
        outer, row = self.strided(counts[0], down, tiles[0])
        with b.inside(outer):
            inner, column = self.strided(counts[1], b.binary(C.MOD, block, tiles[1]), tiles[1])
            with b.inside(inner):
                self.tile([row, column])
        self.task.attr = self.task.attr._replace(max_registers=_REGISTERS)
        self.finish()

    def tile(self, tile: list[Op]) -> None:
        """The iterations of one tile."""
        b, plan = self.b, self.plan
        self.made = {}
        side = b.const(self.side, i32)
        begins = [b.binary(C.MUL, at, side) for at in tile]
        self.corner = [
            b.binary(C.MIN, begin, b.binary(C.SUB, length, side))
            for begin, length in zip(begins, self.lengths, strict=True)
        ]
        at = [[b.binary(C.ADD, self.corner[axis], self.place(axis, n)) for n in range(self.own)]
              for axis in (0, 1)]  # fmt: skip
        for op in self.indices:
            for n, place in enumerate(at[int(op.attr)]):
                key = (op, n, -1) if op.attr == 0 else (op, -1, n)
                self.made[key] = b.binary(C.ADD, self.begins[int(op.attr)], place)
        new = [[b.binary(C.CMP_GE, place, begins[axis]) for place in at[axis]] for axis in (0, 1)]
        for op in plan.before:
            if stores_array(op):
                self.apart([op], new)
            else:
                self.copies([op])
        self.inner()
        first = [*map(stores_array, plan.after), True].index(True)
        self.copies(plan.after[:first])
        self.apart(plan.after[first:], new)

    def apart(self, ops: list[Op], new: list[list[Op]]) -> None:
        """The ops for one iteration after the other, without those of a neighbouring tile."""
        b = self.b
        for p, q in product(range(self.own), repeat=2):
            own = b.if_(b.binary(C.BIT_AND, new[0][p], new[1][q]))
            with b.inside(own.regions[0]):
                saved = dict(self.made)
                self.one(ops, p, q)
                self.made = saved

    def place(self, axis: int, n: int) -> Op:
        """The place in the tile of iteration ``n`` of this thread, along an axis."""
        b = self.b
        group, rest = divmod(n, _GROUP)
        return b.binary(C.ADD, self.places[axis], b.const(group * _SIDE * _GROUP + rest, i32))

    def keys(self, op: Op) -> Iterator[tuple[int, int]]:
        """For which iterations of a thread there is an op of its own."""
        n = range(self.own)
        found = self.plan.depends[op]
        return product(n if 0 in found else (-1,), n if 1 in found else (-1,))

    def of(self, op: Op, p: int, q: int) -> Op:
        """The op that replaces another one in an iteration of this thread."""
        made = self.made
        for key in ((op, p, q), (op, p, -1), (op, -1, q), (op, -1, -1)):
            if key in made:
                return made[key]
        return op

    def copy(self, op: Op, p: int, q: int) -> Op:
        args = tuple([self.of(arg, p, q) for arg in op.args])
        new = self.b.emit(op.code, args, op.attr, op.type)
        self.func.origins[new.id] = op.id
        return new

    def one(self, ops: Iterable[Op], p: int, q: int) -> None:
        """Each op, for one iteration of this thread."""
        for op in ops:
            if op.code == C.IF:
                with self.b.inside(self.b.if_(self.of(op.args[0], p, q)).regions[0]):
                    self.one(op.regions[0].ops, p, q)
            else:
                self.made[op, p, q] = self.copy(op, p, q)

    def copies(self, ops: Iterable[Op]) -> None:
        """Each op, for all iterations of this thread."""
        for op in ops:
            if op.code == C.IF:  # the same in all of them
                with self.b.inside(self.b.if_(self.of(op.args[0], -1, -1)).regions[0]):
                    self.copies(op.regions[0].ops)
            elif op not in self.indices:
                for p, q in self.keys(op):
                    self.made[op, p, q] = self.copy(op, p, q)

    def inner(self) -> None:
        """The inner loop for all iterations of this thread, `_DEPTH` values at a time."""
        b, plan = self.b, self.plan
        begin, end = [self.of(bound, -1, -1) for bound in plan.loop.args]
        depth, zero = b.const(_DEPTH, i32), b.const(0, i32)
        count = b.binary(C.MAX, b.binary(C.SUB, end, begin), zero)
        chunks = b.range_for((zero, self.chunks(count)), ForAttr())
        indices = [op for op in plan.loop.regions[0].ops
                   if op.code == C.LOOP_INDEX and op.args[0] is plan.loop]  # fmt: skip
        with b.inside(chunks.regions[0]):
            past = b.binary(C.MUL, b.loop_index(chunks, 0), depth)
            first, last = b.binary(C.ADD, begin, past), b.binary(C.SUB, end, b.const(1, i32))
            for load in self.tiles:
                self.fill(load, indices, first, last)
            b.emit(C.BLOCK_SYNC)
            left = b.binary(C.MIN, b.binary(C.SUB, count, past), depth)
            loop = b.range_for((zero, left), ForAttr())
            with b.inside(loop.regions[0]):
                saved = dict(self.made)
                at = b.loop_index(loop, 0)
                self.made |= {(op, -1, -1): b.binary(C.ADD, first, at) for op in indices}
                self.iterate(at)
                self.made = saved
            b.emit(C.BLOCK_SYNC)

    def chunks(self, count: Op) -> Op:
        b = self.b
        rounded = b.binary(C.ADD, count, b.const(_DEPTH - 1, i32))
        return b.binary(C.BIT_SAR, rounded, b.const(_DEPTH.bit_length() - 1, i32))

    def iterate(self, at: Op) -> None:
        """One value of the inner loop's index, for all iterations of this thread."""
        b, plan = self.b, self.plan
        for op in plan.loop.regions[0].ops:
            if op not in plan.needed or (op, -1, -1) in self.made:
                continue
            if op not in self.tiles:
                self.copies([op])
                continue
            tile, row = self.tiles[op]
            begin = b.binary(C.MUL, at, b.const(row, i32))
            axis = 0 if op in plan.staged[0] else 1
            for p, q in self.keys(op):
                place = b.binary(C.ADD, begin, self.place(axis, p if axis == 0 else q))
                self.made[op, p, q] = b.load(b.element(tile, place))

    def fill(self, load: Op, indices: list[Op], first: Op, last: Op) -> None:
        """Copy what a tile reads for `_DEPTH` values, with the threads along the array's rows."""
        b, plan = self.b, self.plan
        tile, row = self.tiles[load]
        axis = 0 if load in plan.staged[0] else 1
        along = _DEPTH if plan.runs_inward(load, axis) else self.side
        lane = b.binary(C.BIT_AND, self.thread, b.const(along - 1, i32))
        rest = b.binary(C.BIT_SAR, self.thread, b.const(along.bit_length() - 1, i32))
        steps = self.side * _DEPTH // THREADS
        loop = b.range_for((b.const(0, i32), b.const(steps, i32)), ForAttr())
        with b.inside(loop.regions[0]):
            step = b.binary(C.MUL, b.loop_index(loop, 0), b.const(THREADS // along, i32))
            across = b.binary(C.ADD, rest, step)
            deep, place = (lane, across) if along == _DEPTH else (across, lane)
            user = b.binary(C.ADD, self.begins[axis], b.binary(C.ADD, self.corner[axis], place))
            # Beyond the end any element will do: no one reads it from the tile.
            k = b.binary(C.MIN, b.binary(C.ADD, first, deep), last)
            mapping = dict.fromkeys(indices, k)
            mapping |= {op: user for op in self.indices if op.attr == axis}
            value = self.sliced(load, mapping)
            at = b.binary(C.ADD, b.binary(C.MUL, deep, b.const(row, i32)), place)
            b.store(b.element(tile, at), value)

    def sliced(self, op: Op, mapping: dict[Op, Op]) -> Op:
        """A copy of an op and of what it uses, for other indices."""
        if op in mapping:
            return mapping[op]
        if not self.plan.depends.get(op, ()):
            same = self.of(op, -1, -1)
            if same is not op or op not in self.plan.depends:
                return same
        args = tuple([self.sliced(arg, mapping) for arg in op.args])
        new = self.b.emit(op.code, args, op.attr, op.type)
        self.func.origins[new.id] = op.id
        mapping[op] = new
        return new
