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
from typing import Final, NamedTuple

from ..analysis import needs_blocks
from ..ir import Builder, ForAttr, Func, Op
from ..ir import codes as C
from ..ir.edit import clone
from ..types import DataType, i32
from .grid import THREADS, Grid, has_plain_bounds, is_plain
from .linear_form import form_of
from .manager import PassCx
from .registry import register
from .stage_shared import TILE

__all__ = ["tile_products"]

_SIDE: Final = 16
"""Threads of a block along each axis."""
_DEPTH: Final = 8
"""Values of the inner loop's index for which shared memory holds what a tile reads."""
_GROUP: Final = 4
"""Neighbouring iterations of a thread along an axis: their loads from a tile are one."""
_FEW: Final = 32
"""With fewer tiles most processors would have none."""
_MOST_TILES: Final = 1 << 10
"""Of a grid along each axis: their threads can be counted in 31 bits."""
_REGISTERS: Final = 128
"""Of a thread: a processor then holds two blocks, and one computes while the other waits."""
_MOST_OPS: Final = 40
_MOST_STAGED: Final = 2
_INNER, _OTHER = 2, 3
"""A value may depend on these besides the two axes: the inner loop's index; what may change."""
_UNKNOWN: Final = frozenset({0, 1, _INNER, _OTHER})

Key = tuple[Op, int, int]
"""An op, and for which of a thread's iterations along each axis it is; -1 where it is for all."""


class _Plan(NamedTuple):
    """loop: the inner one. before / after: ops around it. depends: what each op depends on.

    staged: loads of the inner loop for each axis. needed: ops of it whose values are used.
    own: iterations of a thread along each axis.
    """

    loop: Op
    before: list[Op]
    after: list[Op]
    depends: dict[Op, frozenset[int]]
    staged: tuple[list[Op], list[Op]]
    needed: set[Op]
    own: int


@register("tile_products", optional=True, per_task=True)
def tile_products(func: Func, cx: PassCx) -> bool:
    """Run loops like those of a matrix product in tiles, from shared memory and registers."""
    task = cx.task
    if task is None or task.attr.kind != "range_for" or task.attr.block_dim:
        return False
    if len(task.regions[0].ops[-1].args) != 4 or task.attr.axes not in (None, (0, 1)):
        return False
    plan = _plan(func, task)
    if plan is None or not has_plain_bounds(task) or needs_blocks(task.regions[1]):
        return False
    _Products(func, task, plan).run()
    side = _SIDE * plan.own
    cx.remark(
        task,
        f"runs in tiles of {side} by {side} iterations, {plan.own} by {plan.own} a thread; "
        f"{len(plan.staged[0] + plan.staged[1])} loads go through shared memory",
    )
    return True


def _plan(func: Func, task: Op) -> _Plan | None:
    body = task.regions[1]
    loops = [op for op in body.ops if op.regions and op.code != C.IF]
    if len(loops) != 1 or loops[0].code != C.RANGE_FOR or len(loops[0].args) != 2:
        return None
    loop = loops[0]
    inner = loop.regions[0].ops
    at = body.ops.index(loop)
    before, after = body.ops[:at], body.ops[at + 1 :]
    early, late = _flat(before), _flat(after)
    everything = [*early, *inner, *late]
    if loop.attr.reversed or len(everything) > _MOST_OPS or not all(map(_is_simple, everything)):
        return None
    written = _written(everything)
    if written is None or any(_stores(op) for op in inner):
        return None
    depends = _depends(task, loop, everything, set() if func.noalias else written, written)
    conditions = [op.args[0] for op in (*before, *after) if op.code == C.IF]
    if any(depends[same] for same in (*loop.args, *conditions)):
        return None
    loads = [op for op in inner if op.code == C.GLOBAL_LOAD]
    staged = tuple(
        [op for op in loads if depends[op] == frozenset((axis, _INNER))] for axis in (0, 1)
    )
    needed = _needed(inner, {*staged[0], *staged[1]})
    staged = tuple([op for op in found if op in needed] for found in staged)
    if not all(1 <= len(found) <= _MOST_STAGED for found in staged):
        return None
    if any(op.code == C.GLOBAL_LOAD and depends[op] - {_INNER} for op in needed
           if op not in staged[0] and op not in staged[1]):  # fmt: skip
        return None
    sums = [op for op in early if op.code == C.ALLOCA]
    types = [op.type for op in (*staged[0], *staged[1])]
    if not all(isinstance(t, DataType) and t.size in (4, 8) for t in types):
        return None
    large = any(isinstance(t, DataType) and t.size == 8 for t in types)
    own = _GROUP if large or len(sums) > 1 else 2 * _GROUP
    if len(sums) > _GROUP or not sums:
        return None
    return _Plan(loop, before, after, depends, (staged[0], staged[1]), needed, own)


def _flat(ops: list[Op]) -> list[Op]:
    """The ops, with those of a condition in its place; the condition itself if it has an else."""
    found: list[Op] = []
    for op in ops:
        found += op.regions[0].ops if op.code == C.IF and not op.regions[1].ops else [op]
    return found


def _stores(op: Op) -> bool:
    """True for an op that writes to an array, and for a condition around one."""
    if op.code == C.IF:
        return any(_stores(inner) for inner in op.regions[0].ops)
    return bool(C.WRITE[op.code]) and op.args[0].code != C.ALLOCA


def _is_simple(op: Op) -> bool:
    return not op.regions and op.code != C.CONTINUE and not C.ATOMIC[op.code] and is_plain(op)


def _written(ops: Iterable[Op]) -> set[int] | None:
    """The parameters that ops write to; None where an address is of another kind."""
    found: set[int] = set()
    for op in ops:
        if not (C.READ[op.code] or C.WRITE[op.code]) or not op.args:
            continue
        pointer = op.args[0]
        if pointer.code == C.ALLOCA:
            continue
        if pointer.code != C.EXTERNAL_PTR or pointer.args[0].code != C.ARG_ADDR:
            return None
        if pointer.attr != "unsafe":
            return None
        if op.code != C.GLOBAL_LOAD:
            found.add(int(pointer.args[0].attr[0]))
    return found


def _depends(
    task: Op, loop: Op, ops: list[Op], overlapping: set[int], written: set[int]
) -> dict[Op, frozenset[int]]:
    """For each op the axes, the inner loop and other things that its value depends on.

    overlapping: parameters that are written, where any other one may share their memory.
    """
    found: dict[Op, frozenset[int]] = {}
    for op in ops:
        if op.code == C.LOOP_INDEX:
            found[op] = frozenset({int(op.attr) if op.args[0] is task else _INNER})
        elif (
            op.code in (C.ALLOCA, C.LOCAL_LOAD)
            or C.WRITE[op.code]
            or (
                op.code == C.GLOBAL_LOAD
                and (overlapping or int(op.args[0].args[0].attr[0]) in written)
            )
        ):
            found[op] = _UNKNOWN
        else:
            found[op] = frozenset().union(*(found.get(arg, frozenset()) for arg in op.args))
    return found


def _needed(inner: list[Op], staged: set[Op]) -> set[Op]:
    """The ops of the inner loop that its stores use, but for the addresses of staged loads."""
    needed: set[Op] = set()
    for op in reversed(inner):
        if C.WRITE[op.code] or op in needed:
            needed.add(op)
            if op not in staged:
                needed.update(op.args)
    return needed


def _tiles_of(b: Builder, length: Op, side: int) -> Op:
    """The tiles of an axis."""
    tiles = b.binary(C.ADD, length, b.const(side - 1, i32))
    return b.binary(C.BIT_SAR, tiles, b.const(side.bit_length() - 1, i32))


class _Products(Grid):
    """Makes the new body of one task.

    side: iterations of a tile along each axis. made: the ops of the new body. tiles: shared memory
    for each staged load, and the elements between values of ``k`` in it. places: of a thread's
    iterations in a tile, along each axis.
    """

    def __init__(self, func: Func, task: Op, plan: _Plan) -> None:
        self.plan: Final = plan
        self.side: Final = _SIDE * plan.own
        self.made: dict[Key, Op] = {}
        self.tiles: dict[Op, tuple[Op, int]] = {}
        block = task.block
        assert block is not None
        other = clone(func, task, {}, block)
        super().__init__(func, task, self._threads)
        self._limit(other)
        block.ops.insert(block.ops.index(task) + 1, other)

    def _limit(self, other: Op) -> None:
        """The task for few tiles has no iterations where there are enough of them."""
        header = other.regions[0]
        bounds = header.ops.pop()
        begin, end, *others = bounds.args
        b = Builder(self.func, header, other.loc)
        lengths = [b.binary(C.SUB, end, begin), b.binary(C.SUB, others[1], others[0])]
        few = b.binary(C.SUB, b.const(1, i32), self._tiles(b, lengths)[0])
        end = b.binary(C.ADD, begin, b.binary(C.MUL, lengths[0], few))
        bounds.args = (begin, end, *others)
        header.ops.append(bounds)

    def _tiles(self, b: Builder, lengths: list[Op]) -> tuple[Op, list[Op]]:
        """1 if there are enough tiles, else 0; and those of the grid.

        Arithmetic alone: the host computes it before each launch.
        """
        shift = b.const(self.side.bit_length() - 1, i32)
        one, most = b.const(1, i32), b.const(_MOST_TILES, i32)
        whole = [b.binary(C.MIN, b.binary(C.BIT_SAR, n, shift), most) for n in lengths]
        enough = b.binary(C.SUB, b.binary(C.MUL, *whole), b.const(_FEW - 1, i32))
        enough = b.binary(C.MIN, b.binary(C.MAX, enough, b.const(0, i32)), one)
        tiles = [_tiles_of(b, n, self.side) for n in lengths]
        tiles = [b.binary(C.MAX, b.binary(C.MIN, n, most), one) for n in tiles]
        return enough, tiles

    def _threads(self, b: Builder, lengths: list[Op]) -> Op:
        enough, tiles = self._tiles(b, lengths)
        blocks = b.binary(C.MUL, enough, b.binary(C.MUL, *tiles))
        return b.binary(C.MUL, blocks, b.const(THREADS, i32))

    def run(self) -> None:
        b = self.b
        for loads, axis in zip(self.plan.staged, (0, 1), strict=True):
            for load in loads:
                assert isinstance(load.type, DataType)
                row = self.side + (_GROUP if self.runs_inward(load, axis) else 0)
                self.tiles[load] = b.array(load.type, _DEPTH * row, TILE, "shared"), row
        enough, tiles = self._tiles(b, self.lengths)
        block = b.binary(C.BIT_SAR, self.index, b.const(THREADS.bit_length() - 1, i32))
        self.thread = b.binary(C.BIT_AND, self.index, b.const(THREADS - 1, i32))
        shift = b.const(_SIDE.bit_length() - 1, i32)
        self.places = [
            b.binary(C.BIT_SHL, at, b.const(_GROUP.bit_length() - 1, i32))
            for at in (b.binary(C.BIT_SAR, self.thread, shift),
                       b.binary(C.BIT_AND, self.thread, b.const(_SIDE - 1, i32)))
        ]  # fmt: skip
        counts = [b.binary(C.MUL, enough, _tiles_of(b, n, self.side)) for n in self.lengths]
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
        at = [[b.binary(C.ADD, self.corner[axis], self.place(axis, n)) for n in range(plan.own)]
              for axis in (0, 1)]  # fmt: skip
        for op in self.indices:
            for n, place in enumerate(at[int(op.attr)]):
                key = (op, n, -1) if op.attr == 0 else (op, -1, n)
                self.made[key] = b.binary(C.ADD, self.begins[int(op.attr)], place)
        new = [[b.binary(C.CMP_GE, place, begins[axis]) for place in at[axis]] for axis in (0, 1)]
        for op in plan.before:
            if _stores(op):
                self.apart([op], new)
            else:
                self.copies([op])
        self.inner()
        stores = [*map(_stores, plan.after), True].index(True)
        self.copies(plan.after[:stores])
        self.apart(plan.after[stores:], new)

    def apart(self, ops: list[Op], new: list[list[Op]]) -> None:
        """The ops for one iteration after the other, without those of a neighbouring tile."""
        b = self.b
        for p, q in product(range(self.plan.own), repeat=2):
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
        n = range(self.plan.own)
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

    def runs_inward(self, load: Op, axis: int) -> bool:
        """True if the elements of a load for neighbours along the inner loop are neighbours."""
        terms = form_of(load.args[0].args[-1]).terms
        return any(
            op.code == C.LOOP_INDEX and op.args[0] is self.plan.loop and factor == 1
            for op, factor in terms.items()
        ) and not any(axis in self.plan.depends.get(op, ()) for op in terms)

    def fill(self, load: Op, indices: list[Op], first: Op, last: Op) -> None:
        """Copy what a tile reads for `_DEPTH` values, with the threads along the array's rows."""
        b, plan = self.b, self.plan
        tile, row = self.tiles[load]
        axis = 0 if load in plan.staged[0] else 1
        along = _DEPTH if self.runs_inward(load, axis) else self.side
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
