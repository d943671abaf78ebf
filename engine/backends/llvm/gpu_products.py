"""Products in tiles: the first tier has the loop as it was.

`passes.tile_products` makes two tasks of a loop. The first runs it in tiles, if there are enough of
them; the second is the loop as it was, and has no iterations then::

    $enough = min(max(... - 31, 0), 1)            # 1 or 0
    $4 : bounds <0>, $enough * ...                # of the first task
    $42 : bounds $b, $b + ($e - $b) * (<1> - $enough), ...          # of the second

Tiles are ten times the code of the loop, for LLVM and for the driver. In the first tier the kernel
of the first task therefore runs the loop as it was, for the launches in which that task has
iterations: the second task with ``$enough`` in the place of ``1 - $enough``. Both do the same
operations in the same order, which the pass promises.
"""

from __future__ import annotations

from ...analysis import shared_arrays
from ...ir import Func, Op, walk
from ...ir import codes as C
from ...ir.edit import clone
from ...passes.stage_shared import TILE

__all__ = ["untiled"]

_OTHER_SUMS = frozenset({C.FRAGMENT_MMA, C.WARPGROUP_MMA})
"""These do not add up in the order of the loop."""


def untiled(func: Func, task: Op) -> Op | None:
    """The loop that a task runs in tiles; None if it does no such thing."""
    arrays = shared_arrays(task.regions[1])
    if not any(array.attr.name == TILE for array in arrays) or task.block is None:
        return None
    ops = task.block.ops
    other = next(iter(ops[ops.index(task) + 1 :]), None)
    if other is None or other.code != task.code or other.loc is not task.loc:
        return None
    if shared_arrays(other.regions[1]):
        return None
    if any(op.code in _OTHER_SUMS for op in walk(task.regions[1])):
        return None
    end = other.regions[0].ops[-1].args[1]
    length = end if end.code == C.MUL else _one(end, C.MUL) if end.code == C.ADD else None
    few = None if length is None else _one(length, C.SUB)
    if length is None or few is None or not _is(few.args[0], 1) or not _is_bit(few.args[1]):
        return None
    made: dict[Op, Op] = {}
    found = clone(func, other, made, task.block)
    made[length].args = tuple(
        [made[few.args[1]] if arg is few else made[arg] for arg in length.args]
    )
    return found


def _one(op: Op, code: int) -> Op | None:
    """The one operand of an op that is such an operation."""
    found = [arg for arg in op.args if arg.code == code]
    return found[0] if len(found) == 1 else None


def _is(op: Op, number: int) -> bool:
    return op.code == C.CONST and op.attr == number


def _is_bit(op: Op) -> bool:
    """True for ``min(max(x, 0), 1)``."""
    inner = _one(op, C.MAX) if op.code == C.MIN else None
    return (
        inner is not None
        and any(_is(arg, 1) for arg in op.args)
        and any(_is(arg, 0) for arg in inner.args)
    )
