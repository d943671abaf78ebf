"""promote_ssa_to_local_var: creates variables for values of inner loops that the reverse needs.

Before, where ``$3`` is the body of a parallel loop and ``$9`` is read by the rule of ``sin``::

    $5 : range_for $b, $e body {          <*f32> $20 = alloca ['a']
      <f32> $9 = local_load $1            $5 : range_for $b, $e body {
      <f32> $10 = sin $9                    <f32> $9 = local_load $1
      $11 : local_store $1, $10             $21 : local_store $20, $9
    }                                       ...

The variable is at the top of the independent block. It has one store, after the computation of the
value, and no load yet. `replace_local_var_with_stacks` turns it into a stack.

It leaves alone values that are free to recompute (constants, arguments, indices of loops), values
that the reverse can already see, and values in an ``if`` outside of loops (see `backup_ssa`).
"""

from __future__ import annotations

from ...ir import Builder, Func, Op
from ...types import DataType
from ..manager import PassCx
from ..registry import register
from .activity import Activity
from .independent_blocks import IndependentBlock, independent_blocks
from .names import name_of
from .needs import FREE, Needs, kept_values
from .segments import LOOPS, has_inner

__all__ = ["keep", "promote_ssa_to_local_var"]


@register("promote_ssa_to_local_var")
def promote_ssa_to_local_var(func: Func, cx: PassCx) -> bool:
    """Create a variable for each inner-loop value that the reverse needs."""
    if func.autodiff != "reverse" or not has_inner(func, LOOPS):
        return False
    changed = False
    activity = cx.analysis("activity", Activity)
    for ib in independent_blocks(func, activity):
        needs = Needs(func, ib, activity)
        if not needs.in_loop:
            continue
        kept = kept_values(ib)
        wanted = {
            x: None for x in needs.how
            if x in needs.in_loop and x.code not in FREE and x not in kept
        }  # fmt: skip
        if wanted:
            keep(func, ib, wanted)
            changed = True
    return changed


def keep(func: Func, ib: IndependentBlock, wanted: dict[Op, None]) -> None:
    """Store each of ``wanted`` to a variable of its own, at the top of the block, when it is made.

    The ops of the block change in place, those of ``ib`` do not.
    """
    first = ib.ops[0]
    tops: list[Op] = []
    for block in {x.block: None for x in wanted}:
        assert block is not None
        out: list[Op] = []
        for op in block.ops:
            out.append(op)
            if op in wanted:
                top = Builder(func, ib.block, op.loc, tops)
                assert isinstance(op.type, DataType)
                var = top.alloca(op.type, name_of(op))
                out.append(Builder(func, block, op.loc, []).store(var, op))
        block.ops = out
    at = ib.block.ops.index(first)
    ib.block.ops[at:at] = tops
