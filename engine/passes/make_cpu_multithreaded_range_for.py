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

from collections.abc import Callable, Sequence
from typing import Final

from ..config import OPTIONS
from ..ir import Block, Builder, ForAttr, Func, Loc, Op
from ..ir import codes as C
from ..ir.edit import clone, move_body
from ..ir.semantics import const_key
from ..types import DataType, Type, i32, i64
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
    cx.keep(*split_into_chunks(func, task, cx))
    return True


def split_into_chunks(func: Func, task: Op, cx: PassCx) -> tuple[str, ...]:
    """Split a parallel task into chunks; the passes that this keeps without work."""
    attr = task.attr
    header, body = task.regions
    axes = len(header.ops[-1].args) // 2
    outer = attr.axes[0] if attr.axes else 0
    cells, limit = _plan(task, cx)
    simple = _is_simple(header.ops[-1].args)

    n = _Numbers(func, body, task.loc)
    bounds = _bounds_in_body(n, header)
    begin = n.wide(bounds[2 * outer])
    extent, size = _size(n, bounds, outer, cells, limit)
    first = n.binary(C.MUL, n.wide(n.b.loop_index(task, 0)), size)
    last = n.binary(C.MIN, n.binary(C.ADD, first, size), extent)
    part = [n.narrow(n.binary(C.ADD, begin, place)) for place in (first, last)]
    bounds[2 * outer : 2 * outer + 2] = part
    slices = tuple([n.op(bound, i32) for bound in bounds])
    loop = n.b.range_for(slices, ForAttr(axes=attr.axes, loop_name=attr.loop_name))
    consts, free = _front(body)
    front, body.ops = body.ops[:free], body.ops[free:]
    move_body(task, loop)
    body.ops = [*n.front, *front[:consts], *n.b.ops[:-1], *front[consts:], loop]
    kept: tuple[str, ...] = ()
    if simple:
        kept = "alg_simp", "binary_op_simplify", "constant_fold", "die"
        values = [(op.type, const_key(op.attr)) for op in (*n.front, *front[:consts])]
        if len(set(values)) == len(values):
            kept += ("extract_constant",)

    h = _Numbers(func, header, task.loc, header.ops[:-1])
    end = header.ops[-1]
    extent, size = _size(h, [_value(bound) for bound in end.args], outer, cells, limit)
    rounded = h.binary(C.SUB, h.binary(C.ADD, extent, size), 1)
    end.args = (h.op(0, i32), h.narrow(h.binary(C.DIV, rounded, size)))
    header.ops = [*h.front, *h.b.ops, end]
    task.attr = attr._replace(unit="chunk", axes=None)
    cx.remark(task, f"at most {limit} chunks of at least {cells} iterations each, split along"
              f" axis {outer} of {axes}")  # fmt: skip
    return kept


def whole_axis(loop: Op, axis: int) -> tuple[Op, Op]:
    """Begin and end of an axis of a loop over the iterations of a chunk, in all chunks together.

    They are those of the chunk where the whole axis cannot be determined. Constants may be new ops,
    which are in no block.
    """
    begin, end = loop.args[2 * axis : 2 * axis + 2]
    first, last = [x.args[0] if x.code == C.CAST_VALUE else x for x in (begin, end)]
    start = _constant(0, loop)
    if first.code == last.code == C.ADD and first.args[0] is last.args[0]:
        start, first, last = _narrowed(first.args[0], loop), first.args[1], last.args[1]
    if last.code != C.MIN or last.args[0].code != C.ADD or last.args[0].args[0] is not first:
        return begin, end
    length = last.args[1]
    if length.code == C.CONST and start is not None and start.code == C.CONST:
        return start, _constant(int(start.attr + length.attr), loop)
    stop: Op | None = None
    if length.code == C.MAX:
        length = length.args[0]
        stop = _narrowed(length.args[0] if length.code == C.SUB else length, loop)
    return (begin, end) if start is None or stop is None else (start, stop)


def _narrowed(value: Op, loop: Op) -> Op | None:
    """The i32 that an i64 was made from; None if it was not."""
    if value.code == C.CONST:
        return _constant(int(value.attr), loop)
    return value.args[0] if value.code == C.CAST_VALUE else None


def _constant(value: int, loop: Op) -> Op:
    """A constant that is in no block."""
    return Op(C.CONST, i32, (), value, (), -1, None, loop.loc)


class _Numbers:
    """Emits arithmetic on i64 that is simple already: numbers that are known are computed, and
    constants are in front, one of each value. Every task gets such arithmetic: in a kernel with
    thousands of loops, most of the time of passes went into simplifying it.

    front: the constants. b: the builder of all else.
    """

    def __init__(self, func: Func, block: Block, loc: Loc, ops: Sequence[Op] = ()) -> None:
        """ops: what the block has already."""
        self.front: Final[list[Op]] = []
        self.b: Final = Builder(func, block, loc, [])
        self._known: Final[dict[tuple[Type, int], Op]] = {}
        for op in ops:
            if op.code == C.CONST:
                self.front.append(op)
                self._known.setdefault((op.type, op.attr), op)
            else:
                self.b.ops.append(op)

    def op(self, value: Op | int, t: DataType = i64) -> Op:
        """A value as an op."""
        if isinstance(value, Op):
            return value
        found = self._known.get((t, value))
        if found is None:
            b = self.b
            found = self._known[t, value] = b.func.new_op(C.CONST, t, (), value, b.loc, b.block)
            self.front.append(found)
        return found

    def binary(self, code: int, a: Op | int, b: Op | int) -> Op | int:
        """``a`` and ``b`` combined; a division is of numbers that are not negative."""
        if isinstance(a, int):
            if isinstance(b, int):
                return _FOLDED[code](a, b)
            if code == C.ADD and a == 0:
                return b
        elif isinstance(b, int) and b == _NEUTRAL.get(code):
            return a
        return self.b.emit(code, (self.op(a), self.op(b)), None, i64)

    def wide(self, value: Op | int) -> Op | int:
        return self.b.emit(C.CAST_VALUE, (value,), None, i64) if isinstance(value, Op) else value

    def narrow(self, value: Op | int) -> Op:
        if isinstance(value, int):
            return self.op(value, i32)
        return self.b.emit(C.CAST_VALUE, (value,), None, i32)


_FOLDED: Final[dict[int, Callable[[int, int], int]]] = {
    C.ADD: lambda a, b: a + b, C.SUB: lambda a, b: a - b, C.MUL: lambda a, b: a * b,
    C.DIV: lambda a, b: a // b, C.MIN: min, C.MAX: max,
}  # fmt: skip
_NEUTRAL: Final = {C.ADD: 0, C.SUB: 0, C.MUL: 1, C.DIV: 1}
"""Operands on the right that change nothing."""
_FREE: Final = frozenset({
    C.ARG_ADDR, C.ARG_LOAD, C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, C.GLOBAL_TMP,
})  # fmt: skip
"""Ops that need no operands, and are the same in each iteration of a loop."""


def _value(op: Op) -> Op | int:
    """An integer, as the number that it is if that is known."""
    return int(op.attr) if op.code == C.CONST else op


def _front(body: Block) -> tuple[int, int]:
    """The number of constants that ``body`` begins with, and that of all ops up to the first that
    an iteration must compute."""
    consts = free = 0
    for op in body.ops:
        if op.code == C.CONST and consts == free:
            consts += 1
        elif op.code not in _FREE:
            break
        free += 1
    return consts, free


def _is_simple(bounds: Sequence[Op]) -> bool:
    """True if each axis is from 0 to a value that no rule looks into, so that the arithmetic on it
    is simple, and the header needs the constants that it has."""
    return all(
        begin.code == C.CONST
        and not begin.attr
        and end.code in _FREE
        and begin.type is end.type is i32
        for begin, end in zip(bounds[::2], bounds[1::2], strict=True)
    )


def _bounds_in_body(n: _Numbers, header: Block) -> list[Op | int]:
    """Copies of the bounds, computed in the task's body."""
    mapping: dict[Op, Op] = {}
    for op in header.ops[:-1]:
        if op.code != C.CONST:
            for a in op.args:
                if a.code == C.CONST and a not in mapping:
                    mapping[a] = clone(n.b.func, a, mapping, n.b.block)
                    n.front.append(mapping[a])
            n.b.ops.append(clone(n.b.func, op, mapping, n.b.block))
    return [_value(mapping.get(a, a)) for a in header.ops[-1].args]


def _size(
    n: _Numbers, bounds: Sequence[Op | int], outer: int, cells: int, limit: int
) -> tuple[Op | int, Op | int]:
    """Extent of the axis to cut and the length of a chunk along it.

    length = max(extent / limit, cells / iterations of a row), rounded up, at least 1. Every chunk
    computes this again, so it holds no division by a number that is not a constant, except that of
    loops with several axes; that one is by a maximum with 1, which needs no guard.
    """
    extent = _extent(n, bounds[2 * outer], bounds[2 * outer + 1])
    share = n.binary(C.DIV, n.binary(C.ADD, extent, limit - 1), limit)
    if len(bounds) == 2:
        return extent, n.binary(C.MAX, share, max(cells, 1))
    row: Op | int = 1
    for axis in range(len(bounds) // 2):
        if axis != outer:
            length = _extent(n, bounds[2 * axis], bounds[2 * axis + 1])
            row = length if row == 1 else n.binary(C.MUL, row, length)
    rows = n.binary(C.DIV, cells, n.binary(C.MAX, row, 1))
    return extent, n.binary(C.MAX, n.binary(C.MAX, share, rows), 1)


def _extent(n: _Numbers, begin: Op | int, end: Op | int) -> Op | int:
    """Length of an axis, 0 if it is empty."""
    return n.binary(C.MAX, n.binary(C.SUB, n.wide(end), n.wide(begin)), 0)


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
