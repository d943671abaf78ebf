"""extract_constant: moves constants to the front and keeps one of each.

Before::

    kernel k(x: ndarray<f32, 1>) stage=typed {
      <i32> $0 = arg_load [0]
      <i32> $1 = const 2
      <i32> $2 = mul $0, $1
      $3 : if $9 then {
        <i32> $4 = const 2
        <i32> $5 = add $2, $4

After: ``$1`` comes first, and ``$5 = add $2, $1``; ``$4`` is gone.

The front is the start of the kernel's body, or of each region (header, body) of a task, so that
tasks stay independent of each other. A constant is then before every use, so other passes need not
check its position, and loops do not repeat it.

Constants that differ in type, or in the sign of a zero, are not merged, nor is NaN with a number.
Ops other than constants do not move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir import Block, Func, Op
from ..ir import codes as C
from ..ir.edit import replace_uses
from ..ir.semantics import const_key
from .registry import register

if TYPE_CHECKING:
    from .manager import PassCx

__all__ = ["extract_constant"]


# An operand becomes an equal constant; other rules than folding compare operands by identity.
@register(
    "extract_constant", optional=True, silent=True,
    keeps=("constant_fold", "die", "extract_constant"),
)  # fmt: skip
def extract_constant(func: Func, cx: PassCx) -> bool:
    """Move constants to the front of the kernel or task, one of each value."""
    changed = False
    tasks = func.tasks()
    fronts = [region for task in tasks for region in task.regions] if tasks else [func.body]
    elsewhere = cx.ops().codes.count(C.CONST)
    for front in fronts:
        elsewhere -= _in_front(front)
    for front in fronts:
        changed |= _extract(front, cx, elsewhere > 0)
    return changed


def _in_front(front: Block) -> int:
    """The number of constants that ``front`` begins with."""
    for count, op in enumerate(front.ops):
        if op.code != C.CONST:
            return count
    return len(front.ops)


def _extract(front: Block, cx: PassCx, elsewhere: bool) -> bool:
    """Do so for one front; elsewhere: there are constants that are not in front."""
    known: dict[object, Op] = {}
    repl: dict[Op, Op] = {}
    moved: list[Op] = []
    const = C.CONST
    ops = front.ops
    count = 0  # constants that are in front already
    for op in ops:
        if op.code != const:
            break
        first = known.setdefault((op.type, const_key(op.attr)), op)
        if first is not op:
            repl[op] = first
        count += 1
    blocks: list[Block] = []
    if elsewhere:
        _find(ops[count:], front, blocks, moved)
    if not moved and not repl:
        return False
    fresh: list[Op] = []
    for op in moved:
        first = known.setdefault((op.type, const_key(op.attr)), op)
        if first is op:
            op.block = front
            fresh.append(op)
        else:
            repl[op] = first
    for block in blocks:
        if block is not front:
            block.ops = [op for op in block.ops if op.code != const]
    rest = [op for op in ops[count:] if op.code != const]
    front.ops = [op for op in ops[:count] if op not in repl] + fresh + rest
    if repl:
        replace_uses(front, repl)
        cx.rewrote_all(repl, "the same constant")
    return True


def _find(ops: list[Op], block: Block, blocks: list[Block], moved: list[Op]) -> None:
    """Collect the constants under ``ops``, which are in ``block``, and the blocks with any."""
    const = C.CONST
    before = len(moved)
    nested = 0
    for op in ops:
        if op.code == const:
            moved.append(op)
        elif op.regions:
            here = len(moved)
            for region in op.regions:
                _find(region.ops, region, blocks, moved)
            nested += len(moved) - here
    if len(moved) - before > nested:
        blocks.append(block)
