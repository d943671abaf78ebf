"""make_cpu_multithreaded_range_for: splits a parallel task into chunks for threads.

The task then iterates over chunks (``unit='chunk'``). Each chunk runs the user's loop over its
share of the outermost axis, with all axes unchanged::

    $0 : offloaded {range_for} header {     $0 : offloaded {range_for unit='chunk'} header {
      $3 : bounds $1, $2                      ... number of chunks from the extents
    } body {                                  $3 : bounds <0>, $chunks
      <i32> $4 = loop_index $0 [0]          } body {
      ...                                     ... begin and end of chunk number $0 [0]
    }                                         $9 : range_for $begin, $end body {
                                                <i32> $4 = loop_index $9 [0]
                                                ...

A chunk takes about 20 microseconds or more, estimated from the body (the last one may take less).
For balance, bodies with loops get up to four chunks per thread, other bodies one.
``num_cpu_threads`` of the loop, else ``cpu_max_num_threads``, limits the chunks;
``make_cpu_multithreading_loop=False`` allows one. A ``default_cpu_block_dim`` other than 32 is the
minimum number of iterations in a chunk and replaces the estimate. The ``block_dim`` of a loop is
for GPUs and has no effect here.

Serial tasks and tasks that already consist of chunks do not change.
"""

from __future__ import annotations

from typing import Final

from ..config import OPTIONS
from ..ir import Block, Builder, ForAttr, Func, Op
from ..ir import codes as C
from ..ir.edit import clone, move_body
from ..types import i32, i64
from .cost import body_cost
from .manager import PassCx
from .registry import register

_CHUNK_NS = 20_000
_MIN_PLAIN_CELLS = 512
_MAX_CELLS = 32_768

_BLOCK_DIM: Final = OPTIONS["default_cpu_block_dim"].default
"""At this value the cost of the body decides; another one is taken as said."""


@register("make_cpu_multithreaded_range_for", per_task=True)
def make_cpu_multithreaded_range_for(func: Func, cx: PassCx) -> bool:
    """Split parallel tasks into chunks that each keep a CPU thread busy for a while."""
    task = cx.task
    if task is None or task.attr.kind != "range_for" or task.attr.unit != "cell":
        return False
    attr = task.attr
    header, body = task.regions
    axes = len(header.ops[-1].args) // 2
    outer = attr.axes[0] if attr.axes else 0
    cells, limit = _plan(task, cx)

    b = Builder(func, body, task.loc, [])
    bounds = _clone_header(func, header, body, b.ops)
    begin = b.cast(bounds[2 * outer], i64)
    extent, size = _size(b, bounds, outer, cells, limit)
    first = b.binary(C.MUL, b.cast(b.loop_index(task, 0), i64), size)
    last = b.binary(C.MIN, b.binary(C.ADD, first, size), extent)
    slices = list(bounds)
    slices[2 * outer] = b.cast(b.binary(C.ADD, begin, first), i32)
    slices[2 * outer + 1] = b.cast(b.binary(C.ADD, begin, last), i32)
    loop = b.range_for(tuple(slices), ForAttr(axes=attr.axes, loop_name=attr.loop_name))
    move_body(task, loop)
    body.ops = b.ops

    h = Builder(func, header, task.loc, header.ops[:-1])
    extent, size = _size(h, header.ops[-1].args, outer, cells, limit)
    rounded = h.binary(C.SUB, h.binary(C.ADD, extent, size), h.const(1, i64))
    end = header.ops[-1]
    end.args = (h.const(0, i32), h.cast(h.binary(C.DIV, rounded, size), i32))
    header.ops = [*h.ops, end]
    task.attr = attr._replace(unit="chunk", axes=None)
    cx.remark(task, f"at most {limit} chunks of at least {cells} iterations each, split along"
              f" axis {outer} of {axes}")  # fmt: skip
    return True


def whole_axis(loop: Op, axis: int) -> tuple[Op, Op]:
    """Begin and end of an axis of a loop over the iterations of a chunk, in all chunks together.

    They are those of the chunk where the whole axis cannot be determined.
    """
    begin, end = loop.args[2 * axis : 2 * axis + 2]
    total = end.args[0] if end.code == C.CAST_VALUE else end
    if total.code == C.ADD and [op.code for op in total.args] == [C.CAST_VALUE, C.MIN]:
        start, last = total.args
        length = last.args[1].args[0] if last.args[1].code == C.MAX else last
        if length.code == C.SUB:
            length = length.args[0]
        if length.code == C.CAST_VALUE:
            return start.args[0], length.args[0]
    return begin, end


def _clone_header(func: Func, header: Block, body: Block, out: list[Op]) -> tuple[Op, ...]:
    """Copies of the bounds, computed in ``body``."""
    mapping: dict[Op, Op] = {}
    for op in header.ops[:-1]:
        out.append(clone(func, op, mapping, body))
    return tuple([mapping[a] for a in header.ops[-1].args])


def _size(b: Builder, bounds: tuple[Op, ...], outer: int, cells: int, limit: int) -> tuple[Op, Op]:
    """Extent of the axis to cut and the length of a chunk along it, both i64.

    length = max(extent / limit, cells / iterations of a row), rounded up, at least 1. Every chunk
    computes this again, so it holds no division by a number that is not a constant, except that of
    loops with several axes; that one is by a maximum with 1, which needs no guard.
    """
    extent = _extent(b, bounds[2 * outer], bounds[2 * outer + 1])
    share = extent
    if limit > 1:
        share = b.binary(C.ADD, extent, b.const(limit - 1, i64))
        share = b.binary(C.DIV, share, b.const(limit, i64))
    if len(bounds) == 2:
        return extent, b.binary(C.MAX, share, b.const(max(cells, 1), i64))
    row: Op | None = None
    for axis in range(len(bounds) // 2):
        if axis != outer:
            length = _extent(b, bounds[2 * axis], bounds[2 * axis + 1])
            row = length if row is None else b.binary(C.MUL, row, length)
    assert row is not None
    rows = b.binary(C.DIV, b.const(cells, i64), b.binary(C.MAX, row, b.const(1, i64)))
    return extent, b.binary(C.MAX, b.binary(C.MAX, share, rows), b.const(1, i64))


def _extent(b: Builder, begin: Op, end: Op) -> Op:
    """Length of an axis as i64, 0 if it is empty."""
    length = b.cast(end, i64)
    if begin.code != C.CONST or begin.attr:
        length = b.binary(C.SUB, length, b.cast(begin, i64))
    return b.binary(C.MAX, length, b.const(0, i64))


def _plan(task: Op, cx: PassCx) -> tuple[int, int]:
    """The least number of iterations in a chunk, and the largest number of chunks."""
    cost, loops = body_cost(task.regions[1])
    cells = _CHUNK_NS * 10 // max(cost, 1)
    cells = min(max(cells, 1 if loops else _MIN_PLAIN_CELLS), _MAX_CELLS)
    config = cx.config
    chosen = config.default_cpu_block_dim
    if chosen != _BLOCK_DIM:
        cells = chosen
    if not config.make_cpu_multithreading_loop:
        return cells, 1
    if task.attr.num_cpu_threads:
        return cells, task.attr.num_cpu_threads
    return cells, max(1, config.cpu_max_num_threads) * (4 if loops else 1)
