"""block_reduce: threads of a GPU add up for themselves, and blocks for their threads.

An atomic update of an address that is the same in all iterations would make all threads of the
device queue for one word. Instead, the task becomes one of threads, which share the iterations::

    $2 : offloaded {kind='range_for'} header {     $2 : offloaded {... block_dim=256 unit='thread'}
      $4 : bounds <0>, $n                            $4 : bounds <0>, $n
    } body {                                       } body {
      <i32> $5 = loop_index $2 [0]                   <*f32> $20 = alloca, with <-0.0>
      ...                                            $30 : range_for <0>, $n {shared=True} {
      <f32> $8 = atomic_add $sum, $7                   <i32> $5 = loop_index $30 [0]
    }                                                  ... $7 is added to $20
                                                     }
                                                     <*f32> $40 = array_alloca {shared, 256}
                                                     $40[thread] = $20
                                                     block_sync
                                                     the first 16 threads add up 16 elements each
                                                     block_sync
                                                     the first thread adds up those 16, and updates
                                                       $sum if there is anything to add
                                                   }

It does so for every update that `make_thread_local` finds on a CPU, and with the same neutral
values; their option is the same. Any number of blocks is right: a backend starts as many as the
device holds at once, and assigns the iterations of the shared loop to the threads. Values are added
in pairs, so that a sum of floats has the error of a tree. Its order depends on the grid and on the
block that comes first: results differ in the last bits from launch to launch, as those of atomics
do. If no iteration of a block made an update, none follows: the address may be invalid.

It leaves alone tasks whose iterations wait for each other, those with adstacks, and loops that are
known to be short.
"""

from __future__ import annotations

import math
from typing import Final

from ..analysis import bounds_of, needs_blocks
from ..config import CompileConfig
from ..ir import Block, Builder, ForAttr, Func, Op, set_block, walk
from ..ir import codes as C
from ..ir.edit import clone_into
from ..ir.semantics import ATOMIC_OPERATION, neutral
from ..types import DataType, Type, i32
from .grid import THREADS
from .hoist import before_loop
from .make_thread_local import accumulator, reductions, update_once
from .manager import PassCx
from .registry import register

__all__ = ["PARTIALS", "block_reduce"]

PARTIALS: Final = "partial results"
"""The name of the arrays that this pass makes."""

_FEW: Final = 32
"""Iterations that may update a word one by one."""
_DEFAULT: Final = 128
"""Threads of a block that nothing asks for: `THREADS` are better, because each block makes an
update."""


@register("block_reduce", optional=True, per_task=True)
def block_reduce(func: Func, cx: PassCx) -> bool:
    """Give reductions an accumulator for each thread, and one update for each block."""
    task, config = cx.task, cx.config
    if task is None or task.attr.kind != "range_for" or not config.opt_level:
        return False
    body = task.regions[1]
    ops = walk(body)
    updates = [op for op in ops if C.ATOMIC[op.code]]
    if not updates:
        return False
    why_not = ""
    if needs_blocks(body):
        why_not = "its iterations wait for each other"
    elif any(op.code == C.AD_STACK_ALLOCA for op in ops):
        why_not = "the loop has stacks"
    elif _is_short(task):
        why_not = "the loop is short"
    if why_not:
        cx.remark(updates[0], f"no accumulator for each thread: {why_not}")
        return False
    found = reductions(func, cx, task, task)
    if found:
        _Mapping(func, task, config).run(found)
        cx.remark(task, "threads add up for themselves, and blocks update once")
    return bool(found)


def _is_short(task: Op) -> bool:
    bounds = bounds_of(task)
    if any(bound.code != C.CONST for bound in bounds):
        return False
    ends = zip(bounds[::2], bounds[1::2], strict=True)
    return math.prod([max(0, int(end.attr) - int(begin.attr)) for begin, end in ends]) <= _FEW


class _Mapping:
    """Makes the new body of one task. thread: the op of its number in the block."""

    def __init__(self, func: Func, task: Op, config: CompileConfig) -> None:
        self.func, self.task, self.config = func, task, config
        size = task.attr.block_dim or config.default_gpu_block_dim
        if size == _DEFAULT and not task.attr.block_dim:
            size = min(THREADS, config.max_block_dim or THREADS)
        self.size: Final = size
        self.b: Final = Builder(func, Block(), task.loc)
        self.thread: Final = self.b.loop_index(task, 0)

    def run(self, found: list[list[Op]]) -> None:
        b, task, body = self.b, self.task, self.task.regions[1]
        indices = [op for op in walk(body) if op.code == C.LOOP_INDEX and op.args[0] is task]
        places = [before_loop(self.func, ops[0].args[0], task, b) for ops in found]
        totals = [self.accumulator(ops) for ops in found]
        attr = task.attr
        mapping: dict[Op, Op] = {}
        *header, last = task.regions[0].ops
        clone_into(self.func, header, mapping, b.block)
        bounds = tuple([mapping[op] for op in last.args])
        loop = b.range_for(bounds, ForAttr(axes=attr.axes, shared=True))
        loop.regions[0].ops = body.ops
        set_block(body.ops, loop.regions[0])
        for op in indices:
            op.args = (loop,)
        self.combine(found, totals, places)
        task.attr = attr._replace(unit="thread", block_dim=self.size)
        body.ops = b.block.ops
        set_block(body.ops, body)

    def accumulator(self, updates: list[Op]) -> Op:
        """The variable of a thread that ``updates`` now go to."""
        local = accumulator(self.b, updates[0], self.none(updates[0]))
        for op in updates:
            op.args = (local, *op.args[1:])
        return local

    def none(self, update: Op) -> int | float:
        t = update.type
        assert isinstance(t, DataType)
        return neutral(update.code, t, self.config.fast_math)

    def combine(self, found: list[list[Op]], totals: list[Op], places: list[Op]) -> None:
        """After the loop: one update for each block."""
        b, size = self.b, self.size
        kinds = [(ATOMIC_OPERATION[ops[0].code], ops[0].type) for ops in found]
        arrays: list[Op] = []
        for (_, t), total in zip(kinds, totals, strict=True):
            arrays.append(b.array(t, size, PARTIALS, "shared"))
            b.store(b.element(arrays[-1], self.thread), b.load(total))
        b.emit(C.BLOCK_SYNC)
        columns = max(n for n in range(1, math.isqrt(size) + 1) if size % n == 0)
        rows = size // columns
        if columns > 1:
            some = b.if_(b.binary(C.CMP_LT, self.thread, b.const(columns, i32)))
            with b.inside(some.regions[0]):
                places_of = [self.thread] + [
                    b.binary(C.ADD, self.thread, b.const(k * columns, i32)) for k in range(1, rows)
                ]  # fmt: skip
                for (code, t), array in zip(kinds, arrays, strict=True):
                    part = self.tree(code, t, [b.load(b.element(array, at)) for at in places_of])
                    b.store(b.element(array, self.thread), part)
            b.emit(C.BLOCK_SYNC)
        left = columns if columns > 1 else rows
        first = b.if_(b.binary(C.CMP_EQ, self.thread, b.const(0, i32)))
        with b.inside(first.regions[0]):
            for ops, (code, t), array, place in zip(found, kinds, arrays, places, strict=True):
                at = [b.const(k, i32) for k in range(left)]
                total = self.tree(code, t, [b.load(b.element(array, k)) for k in at])
                update_once(b, ops[0], place, total, self.none(ops[0]))

    def tree(self, code: int, t: Type, values: list[Op]) -> Op:
        """The values combined in pairs."""
        while len(values) > 1:
            pairs = zip(values[::2], values[1::2], strict=False)
            odd = values[len(values) // 2 * 2 :]
            values = [self.b.emit(code, pair, None, t) for pair in pairs] + odd
        return values[0]
