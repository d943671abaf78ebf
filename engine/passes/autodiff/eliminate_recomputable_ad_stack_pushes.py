"""eliminate_recomputable_ad_stack_pushes: drops stacks whose values can be recomputed.

::

    <*f32> $20 = ad_stack_alloca [...]    <*f32> $20 = ad_stack_alloca [...]
    <*f32> $22 = ad_stack_alloca [...]
    $5 : range_for $b, $e body {          $5 : range_for $b, $e body {
      <f32> $9 = local_load $1              <f32> $9 = local_load $1
      $21 : ad_stack_push $20, $9           $21 : ad_stack_push $20, $9
      <f32> $10 = exp $9                    <f32> $10 = exp $9
      $23 : ad_stack_push $22, $10

A stack goes if its value can be computed from values that the reverse has: kept values, arguments,
indices of loops, elements of arrays. In the end only two kinds of values are kept: those that a
loop carries from one iteration to the next, and those that two branches of an ``if`` store in a
variable.

It leaves alone a value that controls an ``if``, the bounds of a loop or an index, if computing it
needs float arithmetic: the compiler may round that differently in the reverse. It also leaves
alone loads of the kernel's own variables and arrays, because these change later.
"""

from __future__ import annotations

from ...ir import Func, Op, drop
from ...ir import codes as C
from ..manager import PassCx
from ..registry import register
from .activity import Activity
from .independent_blocks import independent_blocks
from .needs import CONTROL, Needs, kept_values
from .segments import LOOPS, has_inner

__all__ = ["eliminate_recomputable_ad_stack_pushes"]


@register("eliminate_recomputable_ad_stack_pushes")
def eliminate_recomputable_ad_stack_pushes(func: Func, cx: PassCx) -> bool:
    """Drop stacks with values that the reverse can recompute."""
    if func.autodiff != "reverse" or not has_inner(func, LOOPS):
        return False
    dead: set[Op] = set()
    activity = cx.analysis("activity", Activity)
    for ib in independent_blocks(func, activity):
        kept = {x: s for x, s in kept_values(ib).items() if s.code == C.AD_STACK_ALLOCA}
        if not kept:
            continue
        needs = Needs(func, ib, activity)
        gone: set[Op] = set()
        needs.again(kept, gone)
        dead.update([kept[value] for value in gone])
        if cx.remarking:
            for value, stack in kept.items():
                cx.remark(stack, _why(value, stack in dead, needs.how.get(value, 0)))
    if not dead:
        return False
    dead.update([op for op in activity.flat if op.code == C.AD_STACK_PUSH and op.args[0] in dead])
    drop(dead)
    return True


def _why(value: Op, gone: bool, how: int) -> str:
    if gone:
        return f"${value.id} is computed again in the reverse"
    if value.code == C.LOCAL_LOAD:
        return f"${value.id} stays on a stack: the loop changes {value.args[0].attr!r}"
    if how & CONTROL and value.type.is_real is False:
        return (
            f"${value.id} stays on a stack: it controls what happens, and the reverse cannot have "
            "it again to the bit"
        )
    return f"${value.id} stays on a stack: it is made of values that the reverse does not have"
