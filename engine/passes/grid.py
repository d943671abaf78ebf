"""Iterations of a parallel task as threads of a grid: what passes share that map a loop to a GPU.

`Grid` replaces the bounds of a task by those of the grid, in blocks of 256 threads; the pass that
uses it then makes a body in which each thread runs iterations of its own, in loops of `strided`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ..config import CompileConfig
from ..ir import Block, Builder, ForAttr, Func, Op, set_block, walk
from ..ir import codes as C
from ..ir.edit import clone_into
from ..types import i32, u32

if TYPE_CHECKING:
    from .manager import PassCx

__all__ = ["THREADS", "Grid", "block_dim_of", "has_plain_bounds", "has_room", "is_plain"]

THREADS: Final = 256
"""Of a block."""
_DEFAULT: Final = 128
"""The same where neither the loop nor the option says anything."""
_BOUNDS: Final = frozenset({
    C.CONST, C.ARG_LOAD, C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, C.MIN, C.MAX, C.ADD, C.SUB, C.BOUNDS,
})  # fmt: skip
_OTHERS: Final = frozenset({
    C.CALL, C.PRINT, C.ASSERT, C.RAND, C.AD_STACK_ALLOCA, C.CLOCK, C.ARRAY_ALLOCA,
})  # fmt: skip


def block_dim_of(task: Op, config: CompileConfig, few: bool) -> int:
    """Threads of a block. few: `THREADS` where nothing asks for another number: their work is
    light, or each block has work of its own, so that fewer blocks are better."""
    if task.attr.block_dim:
        return task.attr.block_dim  # an error of the backend where that is too large
    threads = config.default_gpu_block_dim
    if few and threads == _DEFAULT:
        threads = THREADS
    return min(threads, config.max_block_dim or threads)


def has_room(cx: PassCx, task: Op) -> bool:
    """True if the options allow a `Grid`; a remark if not."""
    most = cx.config.max_block_dim
    if 0 < most < THREADS:
        cx.remark(task, f"max_block_dim allows blocks of {most} threads: no blocks of {THREADS}")
        return False
    return True


def has_plain_bounds(task: Op) -> bool:
    """True if the host can compute the bounds before a launch, and a thread again."""
    return all(op.code in _BOUNDS for op in task.regions[0].ops)


def is_plain(op: Op) -> bool:
    """True for an op that may run in another order and in another thread."""
    return op.code not in _OTHERS


class Grid:
    """A task with the bounds of a grid, and a builder for its new body.

    threads_of: makes the number of threads, a multiple of ``threads``, from the lengths of the
    user's axes. threads: of a block. old: the user's body. indices: ops of the user's indices.
    index: of the thread in the grid. begins / lengths: of the user's axes.
    """

    def __init__(
        self,
        func: Func,
        task: Op,
        threads_of: Callable[[Builder, list[Op]], Op],
        threads: int = THREADS,
    ) -> None:
        self.func: Final = func
        self.task: Final = task
        self.old: Final = task.regions[1]
        self.indices: Final = [
            op for op in walk(self.old) if op.code == C.LOOP_INDEX and op.args[0] is task
        ]
        header = task.regions[0]
        *bounds, last = header.ops
        self._bounds: Final = bounds
        self._ends: Final = last.args
        header.ops = []
        b = Builder(func, header, task.loc)
        total = threads_of(b, self._ranges(b)[1])
        last.args = (b.const(0, i32), total)
        header.ops.append(last)
        task.attr = task.attr._replace(block_dim=threads, axes=None)
        self.b: Final = Builder(func, Block(), task.loc)
        self.index: Final = self.b.loop_index(task, 0)
        self.begins, self.lengths = self._ranges(self.b)

    def _ranges(self, b: Builder) -> tuple[list[Op], list[Op]]:
        mapping: dict[Op, Op] = {}
        clone_into(self.func, self._bounds, mapping, b.block)
        ends = [mapping[op] for op in self._ends]
        begins = ends[::2]
        # Not the difference alone: that of an empty range may wrap, and seem long.
        last = [b.binary(C.MAX, end, at) for at, end in zip(begins, ends[1::2], strict=True)]
        return begins, [b.binary(C.SUB, end, at) for at, end in zip(begins, last, strict=True)]

    def strided(self, length: Op, first: Op, step: Op) -> tuple[Block, Op]:
        """A loop over ``first``, ``first + step``, ... below ``length``: its body, that number.

        Unsigned: a loop may have 2 ** 32 - 1 iterations.
        """
        b, zero = self.b, self.b.const(0, i32)
        whole, start, each = [b.cast(x, u32) for x in (length, first, step)]
        left = b.binary(C.SUB, b.binary(C.SUB, whole, b.const(1, u32)), start)
        count = b.cast(b.binary(C.ADD, b.binary(C.DIV, left, each), b.const(1, u32)), i32)
        trips = b.select(b.binary(C.CMP_LT, start, whole), count, zero)
        loop = b.range_for((zero, trips), ForAttr())
        with b.inside(loop.regions[0]):
            at = b.binary(C.ADD, first, b.binary(C.MUL, b.loop_index(loop, 0), step))
        return loop.regions[0], at

    def finish(self) -> None:
        """The task gets the new body."""
        self.old.ops = self.b.block.ops
        set_block(self.old.ops, self.old)
