"""tile_iterations: a CPU's thread runs a loop in tiles if it would read arrays across their rows.

In ``y[j, i] = x[i, j]`` either the reads or the writes of neighbouring iterations are whole rows
apart. Each moves a line of the cache for one element, and of rows that are a power of two apart few
lines are in the cache at once. Instead, a chunk runs tiles of 128 by 256 iterations: it copies the
tile of ``x``, transposed, to an array of its own, runs the iterations along the rows of ``y``, with
stores to another one, and copies this to ``y``::

    $9 : range_for $b, $e, $c, $f body {      if both axes have 64 iterations or more
      <i32> $5 = loop_index $9 [0]              <*f32> $20, $21 = array_alloca {36864}
      <i32> $6 = loop_index $9 [1]              $30 : range_for <0>, $m, <0>, $n body {
      <*f32> $8 = external_ptr $x, $5, $6         ... the corners of a tile
      <f32> $7 = global_load $8                   $40 : range_for ... {move='transposed'} body {
      <f32> $4 = mul $7, <2>                        $20[...] = x[...] }
      <*f32> $10 = external_ptr $y, $6, $5        $9 : range_for ... {axes=(1, 0)} body {
      $11 : global_store $10, $4                    <f32> $7 = global_load $20[...]
    }                                               <f32> $4 = mul $7, <2>
                                                    $11 : global_store $21[...], $4 }
                                                  if y has 16 MiB or more
                                                    $50 : range_for ... {move='streamed'} body {
                                                      y[...] = $21[...] }
                                                  else ... the same without that
                                                }
                                              else the loop as it was

A loop with a `move` is an ordinary loop that copies elements; the CPU backend prints it as a call
of a function that transposes in registers, or writes whole lines past the cache. Arrays that the
loop also accesses otherwise are written by the iterations themselves, and an element that is only
copied goes from the first array to ``y`` without an iteration.

It is `stage_shared` for CPUs, with the same analysis, but with any number of other accesses. In
addition, each element of what the task writes must belong to one iteration, because the iterations
run in another order than the user's.

It leaves alone loops with atomics or local variables from outside of the loop, such as the
accumulators of `make_thread_local`, since sums of floats depend on the order; and loops that are
known to be shorter than a tile.
"""

from __future__ import annotations

from typing import Final

from ..analysis import uniquely_accessed
from ..ir import Block, Builder, ForAttr, Func, Op, replace_uses
from ..ir import codes as C
from ..ir.edit import clone_into
from ..types import Type, i32, i64
from .make_cpu_multithreaded_range_for import whole_axis
from .manager import PassCx
from .needs import SHORTEST, tileable_loop
from .registry import register
from .staging import Staging, contiguous_axis, find_staging, is_element

__all__ = ["TILE", "tile_iterations"]

TILE: Final = "copied tile"
"""The name of the arrays that hold copies."""

_ALONG: Final = 128
_ROW: Final = _ALONG + 16
"""Iterations of a tile along its rows, those of what is written, and elements from one row of a
copy to the next: a column of rows of 128 would be in few of the cache's sets."""
_TILE_BYTES: Final = 144 << 10
"""Bytes of a copy, which the second-level cache holds: segments of x are as long as they can be."""
_MOST_ACROSS: Final = 256
_STREAMED: Final = 16 << 20
"""Bytes of an array from which on it is written past the cache. At 16 MiB that takes 0.56 of the
time, 0.78 with a sum over the array afterwards; at 4 MiB 0.86 and 1.27."""


@register("tile_iterations", optional=True, per_task=True)
def tile_iterations(func: Func, cx: PassCx) -> bool:
    """Run loops that read arrays across their rows in tiles, which are copied first."""
    task, loop = cx.task, tileable_loop(cx.task)
    if task is None or loop is None:
        return False
    found = find_staging(func, loop)
    if found is None:
        return False
    why_not = _why_not(func, task, loop)
    if why_not:
        cx.remark(loop, f"no tiles, although it reads across rows: {why_not}")
        return False
    tiling = _Tiling(func, task, loop, found)
    tiling.run()
    across, along = tiling.sides[tiling.across], tiling.sides[tiling.along]
    cx.remark(
        loop,
        f"runs in tiles of {across} by {along}: {len(found.staged)} loads go through "
        f"copies of them, {len(tiling.stores)} large arrays are written past the cache",
    )
    return True


def _why_not(func: Func, task: Op, loop: Op) -> str:
    """The reason that the iterations must stay in their order; empty if there is none."""
    unique = uniquely_accessed(func, task)
    for op in loop.regions[0].ops:
        if C.ATOMIC[op.code]:
            return "updates would be in another order"
        if not (C.READ[op.code] or C.WRITE[op.code]) or not op.args:
            continue
        pointer = op.args[0]
        if pointer.code == C.ALLOCA:
            if pointer.block is not loop.regions[0]:
                return "a variable is used in several iterations"
        elif pointer.code != C.EXTERNAL_PTR:
            return "it accesses memory other than arrays"
        elif C.WRITE[op.code] and pointer.args[0].attr not in unique:
            return "several iterations may write to one element"
    return ""


def _streamed(func: Func, loop: Op, found: Staging) -> list[Op]:
    """The stores of whole rows of arrays that nothing else accesses."""
    ops = loop.regions[0].ops
    arrays = [
        op.args[0].args[0].attr
        for op in ops
        if (C.READ[op.code] or C.WRITE[op.code]) and op.args[0].code == C.EXTERNAL_PTR
    ]
    return [
        op for op in ops
        if op.code == C.GLOBAL_STORE and op.args[0].code == C.EXTERNAL_PTR
        and arrays.count(op.args[0].args[0].attr) == 1
        and contiguous_axis(func, loop, op.args[0]) == found.lanes
        and is_element(loop, op.args[0], found.lanes)
    ]  # fmt: skip


class _Tiling:
    """Makes the tiles of one loop.

    along / across: the axes of the loop along the rows of what is written and of what is staged.
    sides: iterations of a tile. copies: of loads that are staged; results: of stores that go past
    the cache. corner: indices of the first iteration of a tile; bounds: of its loops.
    """

    def __init__(self, func: Func, task: Op, loop: Op, found: Staging) -> None:
        self.func = func
        self.loop = loop
        self.found = found
        self.stores = _streamed(func, loop, found)
        self.along, self.across = found.lanes, 1 - found.lanes
        sizes = [op.type.size for op in found.staged] + [op.args[1].type.size for op in self.stores]
        rows = _TILE_BYTES // (_ROW * max(sizes)) & -8
        self.sides = {self.along: _ALONG, self.across: min(rows, _MOST_ACROSS)}
        self.b = Builder(func, task.regions[1], loop.loc, [])
        self.corner: list[Op] = []
        self.bounds: tuple[Op, ...] = ()

    def run(self) -> None:
        b, loop, func = self.b, self.loop, self.func
        body = b.block
        whole = [
            b.const(end.attr, i64) if end.code == C.CONST else b.cast(end, i64)
            for axis in (0, 1) for end in whole_axis(loop, axis)
        ]  # fmt: skip
        ends = [b.cast(bound, i64) for bound in loop.args]
        lengths = [b.binary(C.SUB, ends[2 * axis + 1], ends[2 * axis]) for axis in (0, 1)]
        long = [b.binary(C.CMP_GE, length, b.const(SHORTEST, i64)) for length in lengths]
        choice = b.if_(b.binary(C.BIT_AND, *long))
        clone_into(func, [loop], {}, choice.regions[1])
        with b.inside(choice.regions[0]):
            self.copies = [self._array(load.type) for load in self.found.staged]
            self.tiles = dict(zip(self.found.staged, self.copies, strict=True))
            for store in self.stores:
                # What only copies needs no iterations.
                copy = self.tiles.get(store.args[1])
                self.tiles[store] = copy or self._array(store.args[1].type)
            self.far = [self._is_far(whole, store) for store in self.stores]
            zero, one = b.const(0, i32), b.const(1, i64)
            counts: list[Op] = []
            for axis in (0, 1):
                rounded = b.binary(C.ADD, lengths[axis], b.const(self.sides[axis], i64))
                rounded = b.binary(C.SUB, rounded, one)
                count = b.binary(C.DIV, rounded, b.const(self.sides[axis], i64))
                counts += [zero, b.cast(count, i32)]
            tiles = b.range_for(tuple(counts), ForAttr(axes=(self.along, self.across)))
            with b.inside(tiles.regions[0]):
                self._tile(ends, tiles)
        at = body.ops.index(loop)
        body.ops[at : at + 1] = b.ops
        self._redirect()

    def _array(self, t: Type) -> Op:
        return self.b.array(t, self.sides[self.across] * _ROW, TILE, clear=False)

    def _is_far(self, ends: list[Op], store: Op) -> Op:
        """True if the whole array is large."""
        b = self.b
        spans = [b.binary(C.SUB, ends[2 * axis + 1], ends[2 * axis]) for axis in (0, 1)]
        least = b.const(_STREAMED // store.args[1].type.size, i64)
        return b.binary(C.CMP_GE, b.binary(C.MUL, *spans), least)

    def _tile(self, ends: list[Op], tiles: Op) -> None:
        """One tile: copies, the user's iterations, and what these have stored."""
        b, loop = self.b, self.loop
        bounds: list[Op] = []
        for axis in (0, 1):
            at = b.cast(b.loop_index(tiles, axis), i64)
            side = b.const(self.sides[axis], i64)
            first = b.binary(C.ADD, ends[2 * axis], b.binary(C.MUL, at, side))
            past = b.binary(C.MIN, b.binary(C.ADD, first, side), ends[2 * axis + 1])
            self.corner.append(b.cast(first, i32))
            bounds += [b.const(0, i32), b.cast(b.binary(C.SUB, past, first), i32)]
        self.bounds = tuple(bounds)
        for copy, load in zip(self.copies, self.found.staged, strict=True):
            with b.inside(self._move((self.along, self.across), "transposed")):
                place, pointer = self._places(load.args[0])
                value = b.load(pointer)
                b.func.origins[value.id] = load.id
                b.store(b.element(copy, place), value)
        b.ops.append(loop)
        loop.block = tiles.regions[0]
        for store, far in zip(self.stores, self.far, strict=True):
            large = b.if_(far)
            for region, how in zip(large.regions, ("streamed", ""), strict=True):
                with b.inside(region), b.inside(self._move((self.across, self.along), how)):
                    place, pointer = self._places(store.args[0])
                    write = b.store(pointer, b.load(b.element(self.tiles[store], place)))
                    b.func.origins[write.id] = store.id

    def _move(self, axes: tuple[int, int], how: str) -> Block:
        self.moving = self.b.range_for(self.bounds, ForAttr(axes=axes, independent=True, move=how))
        return self.moving.regions[0]

    def _places(self, pointer: Op) -> tuple[Op, Op]:
        """The place in a tile, and the address in an array, of an iteration of a move."""
        b = self.b
        own = [b.loop_index(self.moving, axis) for axis in (0, 1)]
        base = b.emit(C.ARG_ADDR, (), pointer.args[0].attr, pointer.args[0].type)
        at = [
            b.binary(C.ADD, self.corner[int(index.attr)], own[int(index.attr)])
            if index.code == C.LOOP_INDEX else b.const(int(index.attr), i32)
            for index in pointer.args[1:]
        ]  # fmt: skip
        element = b.emit(C.EXTERNAL_PTR, (base, *at), pointer.attr, pointer.type)
        return self._place(b, own), element

    def _place(self, b: Builder, own: list[Op]) -> Op:
        return b.emit(C.LINEARIZE, (own[self.across], own[self.along], b.const(_ROW, i32)), 2)

    def _redirect(self) -> None:
        """Let the user's iterations run over the tile."""
        loop, body = self.loop, self.loop.regions[0]
        loop.args = self.bounds
        # No iteration accesses what another one writes: LLVM need not compare addresses.
        loop.attr = loop.attr._replace(axes=(self.across, self.along), independent=True)
        b = Builder(self.func, body, loop.loc, [])
        own = [b.loop_index(loop, axis) for axis in (0, 1)]
        place = self._place(b, own)
        index = [b.binary(C.ADD, self.corner[axis], own[axis]) for axis in (0, 1)]
        done = {op for op in self.stores if op.args[1] in self.tiles}
        for op, tile in self.tiles.items():
            op.args = (b.element(tile, place), *op.args[1:])
        old = {op: index[int(op.attr)] for op in body.ops
               if op.code == C.LOOP_INDEX and op.args[0] is loop}  # fmt: skip
        body.ops = b.ops + [op for op in body.ops if op not in old and op not in done]
        if not any(C.WRITE[op.code] for op in body.ops):
            assert loop.block is not None
            loop.block.ops.remove(loop)
        replace_uses(body, old)
