"""tile_iterations: a CPU's thread runs a loop in tiles if it would read arrays across their rows.

In ``y[j, i] = x[i, j]`` either the reads or the writes of neighbouring iterations are whole rows
apart. Each moves a line of the cache for one element, and of rows that are a power of two apart few
lines are in the cache at once. Instead, a chunk runs tiles of 64 by 64 iterations: it copies the
tile of ``x`` row by row to an array of its own, and then runs the iterations along the other axis,
so that all lines of ``x`` and ``y`` are complete when the cache drops them::

    $9 : range_for $b, $e, $c, $f body {      if both axes are as long as a tile
      <i32> $5 = loop_index $9 [0]              <*f32> $20 = array_alloca {5120}
      <i32> $6 = loop_index $9 [1]              $30 : range_for <0>, $m, <0>, $n body {
      <*f32> $8 = external_ptr $x, $5, $6         ... the corners of a tile
      <f32> $7 = global_load $8                   $40 : range_for ... { $20[...] = x[...] }
      <*f32> $10 = external_ptr $y, $6, $5        $9 : range_for ... {axes=(1, 0)} body {
      $11 : global_store $10, $7                    <f32> $7 = global_load $20[...]
    }                                               $11 : global_store $10, $7
                                                  }
                                                }
                                              else the loop as it was

It is `stage_shared` for CPUs, with the same analysis, but with any number of other accesses. In
addition, each element of what the task writes must belong to one iteration, because the iterations
run in another order than the user's.

It leaves alone loops with atomics or local variables from outside of the loop, such as the
accumulators of `make_thread_local`, since sums of floats depend on the order; and loops that are
known to be shorter than a tile.
"""

from __future__ import annotations

from typing import Final

from ..analysis import cell_loop, uniquely_accessed
from ..ir import Block, Builder, ForAttr, Func, Op, replace_uses
from ..ir import codes as C
from ..ir.edit import clone_into
from ..types import DataType, i32, i64
from .manager import PassCx
from .registry import register
from .stage_shared import Staging, find_staging

__all__ = ["TILE", "tile_iterations"]

TILE: Final = "copied tile"
"""The name of the arrays that hold copies."""

_SIDE: Final = 64
"""Iterations of a tile along each axis. A transpose of 8192^2 f32 needs twice the time with 32, and
as much with 128 by 64, 64 by 256 or 64 by 512."""
_BITS: Final = _SIDE.bit_length() - 1
_ROW: Final = _SIDE + 16
"""Elements from one row of a copy to the next. A column of rows of 64 would be in an eighth of the
cache's sets."""


@register("tile_iterations", optional=True, per_task=True)
def tile_iterations(func: Func, cx: PassCx) -> bool:
    """Run loops that read arrays across their rows in tiles, which are copied first."""
    task = cx.task
    if task is None or task.attr.unit != "chunk":
        return False
    loop = cell_loop(task)
    if loop is None or len(loop.args) != 4 or loop.attr.axes not in (None, (0, 1), (1, 0)):
        return False
    if loop.attr.reversed or any(_is_short(loop, axis) for axis in (0, 1)):
        return False
    found = find_staging(func, loop)
    if found is None:
        return False
    why_not = _why_not(func, task, loop)
    if why_not:
        cx.remark(loop, f"no tiles, although it reads across rows: {why_not}")
        return False
    _tile(func, task, loop, found)
    cx.remark(loop, f"runs in tiles of {_SIDE} by {_SIDE}: {len(found.staged)} loads go through "
              "copies of them")  # fmt: skip
    return True


def _is_short(loop: Op, axis: int) -> bool:
    begin, end = loop.args[2 * axis : 2 * axis + 2]
    return begin.code == end.code == C.CONST and int(end.attr) - int(begin.attr) < _SIDE


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


def _tile(func: Func, task: Op, loop: Op, found: Staging) -> None:
    body = task.regions[1]
    b = Builder(func, body, loop.loc, [])
    ends = [b.cast(bound, i64) for bound in loop.args]
    lengths = [b.binary(C.SUB, ends[2 * axis + 1], ends[2 * axis]) for axis in (0, 1)]
    long = [b.binary(C.CMP_GE, length, b.const(_SIDE, i64)) for length in lengths]
    choice = b.if_(b.binary(C.BIT_AND, *long))
    clone_into(func, [loop], {}, choice.regions[1])
    copies: list[Op] = []
    counts: list[Op] = []
    with b.inside(choice.regions[0]):
        for load in found.staged:
            assert isinstance(load.type, DataType)
            copies.append(b.array(load.type, _SIDE * _ROW, TILE))
        for length in lengths:
            rounded = b.binary(C.ADD, length, b.const(_SIDE - 1, i64))
            counts.append(b.cast(b.binary(C.BIT_SAR, rounded, b.const(_BITS, i64)), i32))
        zero = b.const(0, i32)
        tiles = b.range_for((zero, counts[0], zero, counts[1]), ForAttr(axes=loop.attr.axes))
    corner: list[Op] = []
    with b.inside(tiles.regions[0]):
        bounds: list[Op] = []
        for axis in (0, 1):
            at = b.cast(b.loop_index(tiles, axis), i64)
            first = b.binary(C.ADD, ends[2 * axis], b.binary(C.BIT_SHL, at, b.const(_BITS, i64)))
            last = b.binary(C.ADD, first, b.const(_SIDE, i64))
            corner.append(b.cast(first, i32))
            past = b.binary(C.MIN, last, ends[2 * axis + 1])
            bounds += [b.const(0, i32), b.cast(b.binary(C.SUB, past, first), i32)]
        _fill(b, found, copies, corner, tuple(bounds))
        b.ops.append(loop)
    at = body.ops.index(loop)
    body.ops[at : at + 1] = b.ops
    loop.block = tiles.regions[0]
    loop.args = tuple(bounds)
    # No iteration accesses what another one writes: LLVM need not compare addresses.
    loop.attr = loop.attr._replace(axes=(1 - found.lanes, found.lanes), independent=True)
    _redirect(func, loop, found, copies, corner)


def _fill(
    b: Builder, found: Staging, copies: list[Op], corner: list[Op], bounds: tuple[Op, ...]
) -> None:
    """Copy the tiles, row by row."""
    lanes = found.lanes
    loop = b.range_for(bounds, ForAttr(axes=(lanes, 1 - lanes)))
    with b.inside(loop.regions[0]):
        own = [b.loop_index(loop, axis) for axis in (0, 1)]
        place = _place(b, own, lanes)
        index = [b.binary(C.ADD, corner[axis], own[axis]) for axis in (0, 1)]
        for copy, load in zip(copies, found.staged, strict=True):
            pointer = load.args[0]
            base = b.emit(C.ARG_ADDR, (), pointer.args[0].attr, pointer.args[0].type)
            outer = [b.const(int(one.attr), i32) for one in pointer.args[1:-2]]
            at = (base, *outer, index[lanes], index[1 - lanes])
            value = b.load(b.emit(C.EXTERNAL_PTR, at, pointer.attr, pointer.type))
            b.func.origins[value.id] = load.id
            b.store(b.element(copy, place), value)


def _place(b: Builder, own: list[Op], lanes: int) -> Op:
    """The place in a tile."""
    return b.emit(C.LINEARIZE, (own[lanes], own[1 - lanes], b.const(_ROW, i32)), 2)


def _redirect(func: Func, loop: Op, found: Staging, copies: list[Op], corner: list[Op]) -> None:
    """Let the staged loads read the tiles."""
    body: Block = loop.regions[0]
    b = Builder(func, body, loop.loc, [])
    own = [b.loop_index(loop, axis) for axis in (0, 1)]
    place = _place(b, own, found.lanes)
    index = [b.binary(C.ADD, corner[axis], own[axis]) for axis in (0, 1)]
    for copy, load in zip(copies, found.staged, strict=True):
        load.args = (b.element(copy, place),)
    old = {op: index[int(op.attr)] for op in body.ops
           if op.code == C.LOOP_INDEX and op.args[0] is loop}  # fmt: skip
    body.ops = b.ops + [op for op in body.ops if op not in old]
    replace_uses(body, old)
