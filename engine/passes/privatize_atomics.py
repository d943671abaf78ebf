"""privatize_atomics: blocks of a GPU count into a copy of a small array in their shared memory.

A loop such as ``h[k[i]] += 1`` sends one atomic update an iteration to global memory, where many
wait for the same word. Instead, each block updates a copy in shared memory, and adds its copy up
once at the end::

    $2 : offloaded {kind='range_for'} header {     $2 : offloaded {kind='range_for' block_dim=256}
      $4 : bounds $begin, $end                       $4 : bounds <0>, 256 * the number of blocks
    } body {                                       } body {
      <i32> $5 = loop_index $2 [0]                   <i32> $9 = loop_index $2 [0]
      ...                                            <*i32> $20 = array_alloca {shared, 4096}
      <*i32> $7 = external_ptr $h, $6                if the array has at most 4096 elements
      <i32> $8 = atomic_add $7, $one                   $30 : range_for ... { $5 = $begin + $9 ...
    }                                                    ... $20[$6] is updated
                                                     else
                                                       $50 : range_for ... { h[$6] is updated }
                                                     block_sync
                                                     $60 : range_for ... { h[j] += $20[j] }

Whether the array is small is known at compile time for fields, and else decided by each launch. The
grid is as large as fills a GPU, and each thread runs every so many iterations. Scheme: the
privatised histogram of J. Gomez-Luna et al., "An optimized approach to histogram computation on
GPU", Machine Vision and Applications 24 (2013).

A task qualifies if it has one axis, no block of its own and little other work, and if it accesses
one array by nothing but one kind of atomic update of 32-bit integers, at a place that
varies, whose old values are not used, and calls no functions. Integers alone: their sums do not
depend on the order, and shared memory adds them without a loop.
"""

from __future__ import annotations

from typing import Final

from ..analysis import needs_blocks
from ..ir import Block, Builder, Func, Op, set_block, walk
from ..ir import codes as C
from ..ir.edit import clone_into, replace_uses
from ..types import DataType, i32, u32
from .grid import THREADS, Grid, has_room, is_plain
from .manager import PassCx
from .registry import register
from .small_array import SmallArray, array_of

__all__ = ["COPY", "privatize_atomics"]

COPY: Final = "private copy"
"""The name of the arrays that this pass makes."""

_BINS: Final = 4096
"""Elements of a copy: 16 KiB of shared memory, which leave room for all threads of a GPU's core."""
_MOST_BLOCKS: Final = 1056
"""Eight blocks for each of 132 cores, those of the largest GPUs of their time."""
_MOST_OPS: Final = 48
_KINDS: Final = frozenset({C.ATOMIC_ADD, C.ATOMIC_BIT_OR, C.ATOMIC_BIT_XOR})
"""Those that a copy of zeros can begin with."""


@register("privatize_atomics", optional=True, per_task=True)
def privatize_atomics(func: Func, cx: PassCx) -> bool:
    """Count into copies of small arrays in the shared memory of blocks."""
    task = cx.task
    if task is None or task.attr.kind != "range_for" or task.attr.block_dim:
        return False
    body, bounds = task.regions[1], task.regions[0].ops[-1].args
    ops = walk(body)
    updates = [op for op in ops if op.code in _KINDS]
    if not updates or len(bounds) != 2:
        return False
    array: int | None = None
    if len(ops) > _MOST_OPS or not all(map(is_plain, ops)) or needs_blocks(body):
        why_not = "the loop does more than counting"
    elif updates[0].type not in (i32, u32):
        why_not = "it updates no 32-bit integers"
    else:
        array, why_not = array_of(func, task, updates, _BINS)
    if array is None:
        cx.remark(updates[0], f"no copies in shared memory: {why_not}")
        return False
    if not has_room(cx, task):
        return False
    _Mapping(func, task, updates, array).run()
    cx.remark(task, "blocks update a copy of a small array in shared memory")
    return True


def _grid_of(b: Builder, length: Op) -> tuple[Op, Op]:
    """The number of blocks, and of their threads: an iteration for each, up to a full GPU."""
    bits = THREADS.bit_length() - 1
    blocks = b.binary(C.BIT_SAR, length, b.const(bits, i32))
    blocks = b.binary(C.ADD, blocks, b.const(1, i32))
    blocks = b.binary(C.MIN, blocks, b.const(_MOST_BLOCKS, i32))
    blocks = b.binary(C.MAX, blocks, b.const(1, i32))
    return blocks, b.binary(C.MUL, blocks, b.const(THREADS, i32))


class _Mapping(Grid):
    """Makes the new body of one task.

    blocks / threads: of the grid.
    """

    def __init__(self, func: Func, task: Op, updates: list[Op], number: int) -> None:
        super().__init__(func, task, lambda b, lengths: _grid_of(b, lengths[0])[1])
        self.updates: Final = updates
        self.array: Final = SmallArray(func, self.b, number, updates[0].args[0], _BINS)
        (self.begin,), (self.length,) = self.begins, self.lengths
        self.blocks, self.threads = _grid_of(self.b, self.length)

    def run(self) -> None:
        b = self.b
        copy = b.array(self.updates[0].type, _BINS, COPY, "shared")
        size, small = self.array.size()
        pays = b.binary(C.MUL, self.blocks, size)
        half = b.binary(C.BIT_SAR, self.length, b.const(1, i32))
        shared = b.binary(C.BIT_AND, small, b.binary(C.CMP_LE, pays, half))
        choice = b.if_(shared)
        with b.inside(choice.regions[0]):
            loop, at = self.loop()
            mapping: dict[Op, Op] = {}
            clone_into(self.func, self.old.ops, mapping, loop)
            replace_uses(loop, {mapping[op]: at for op in self.indices})
            for op in self.updates:
                new = mapping[op]
                self.func.origins[new.id] = op.id
                self.array.redirect(new, copy)
        with b.inside(choice.regions[1]):
            loop, at = self.loop()
            loop.ops += self.old.ops
            set_block(self.old.ops, loop)
            replace_uses(loop, dict.fromkeys(self.indices, at))
        # Not in the first region: some OpenCL compilers fail at barriers that are conditional.
        b.emit(C.BLOCK_SYNC)
        self.add_up(copy, b.select(shared, size, b.const(0, i32)))
        self.finish()

    def loop(self) -> tuple[Block, Op]:
        """The loop over the iterations of a thread: its body, the user's index."""
        b = self.b
        block, at = self.strided(self.length, self.index, self.threads)
        with b.inside(block):
            return block, b.binary(C.ADD, self.begin, at)

    def add_up(self, copy: Op, size: Op) -> None:
        """Add the block's copy to the array."""
        b, update, t = self.b, self.updates[0], self.updates[0].type
        assert isinstance(t, DataType)
        mine = b.binary(C.BIT_AND, self.index, b.const(THREADS - 1, i32))
        block, at = self.strided(size, mine, b.const(THREADS, i32))
        with b.inside(block):
            value = b.load(b.element(copy, at))
            some = b.if_(b.binary(C.CMP_NE, value, b.const(0, t)))
            with b.inside(some.regions[0]):
                b.emit(update.code, (self.array.element(at), value))
