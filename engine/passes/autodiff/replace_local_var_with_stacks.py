"""replace_local_var_with_stacks: turns variables that keep values of a loop into stacks.

::

    <*f32> $20 = alloca ['a']             <*f32> $20 = ad_stack_alloca {name='a' adjoint=False ...}
    $5 : range_for $b, $e body {          $5 : range_for $b, $e body {
      <f32> $9 = local_load $1              <f32> $9 = local_load $1
      $21 : local_store $20, $9             $21 : ad_stack_push $20, $9
      ...                                   ...

In the reverse, where iterations run in the opposite order, `make_adjoint` pops the values.
Stacks do not keep adjoints: these are summed in variables, which compilers hold in registers, so
an entry is as large as the value.

It leaves alone variables that are read, or that keep a value of an ``if`` outside of loops.
"""

from __future__ import annotations

from ...ir import Func, Op
from ...ir import codes as C
from ...ir.attrs import AdStackAttr
from ..manager import PassCx
from ..registry import register
from .activity import Activity
from .independent_blocks import independent_blocks
from .needs import kept_values
from .segments import LOOPS, has_inner

__all__ = ["replace_local_var_with_stacks"]


@register("replace_local_var_with_stacks")
def replace_local_var_with_stacks(func: Func, cx: PassCx) -> bool:
    """Turn variables that keep values of inner loops into adstacks."""
    if func.autodiff != "reverse" or not has_inner(func, LOOPS):
        return False
    stores: dict[Op, Op] = {}
    activity = cx.analysis("activity", Activity)
    for ib in independent_blocks(func, activity):
        kept = kept_values(ib)
        variables = {place: x for x, place in kept.items() if place.code == C.ALLOCA}
        for place, value in variables.items():
            loop = _innermost_loop(value, ib.block)
            if loop is None:
                continue
            place.code = C.AD_STACK_ALLOCA
            place.attr = AdStackAttr(name=place.attr, adjoint=False)
            stores[place] = value
            if cx.remarking:
                cx.remark(place, f"${value.id} is kept on a stack: {_describe(loop)} makes many")
    if not stores:
        return False
    for op in activity.flat:
        if op.code == C.LOCAL_STORE and op.args[0] in stores:
            op.code = C.AD_STACK_PUSH
    return True


def _innermost_loop(value: Op, top: object) -> Op | None:
    """The innermost loop around a value inside the block ``top``."""
    block = value.block
    while block is not None and block is not top:
        owner = block.owner
        if owner is None:
            return None
        if C.LOOP[owner.code]:
            return owner
        block = owner.block
    return None


def _describe(loop: Op) -> str:
    line = loop.loc.line
    return f"the loop at line {line}" if line else f"the loop ${loop.id}"
