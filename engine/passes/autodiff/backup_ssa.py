"""backup_ssa: values of ifs that the reverse needs, outside of loops, get a plain variable.

::

    $5 : if $2 then {                     <*f32> $20 = alloca ['a']
      <f32> $9 = local_load $1            $5 : if $2 then {
      <f32> $10 = sin $9                    <f32> $9 = local_load $1
      ...                                   $21 : local_store $20, $9
    }                                       <f32> $10 = sin $9
                                            ...

Such a value is computed at most once, so it needs no stack. A value that can be recomputed is not
kept.

It leaves alone values in loops (see `promote_ssa_to_local_var`) and values that the reverse can
already see.
"""

from __future__ import annotations

from ...ir import Func
from ..manager import PassCx
from ..registry import register
from .activity import Activity
from .independent_blocks import independent_blocks
from .needs import Needs, kept_values
from .promote_ssa_to_local_var import keep
from .segments import IFS, has_inner

__all__ = ["backup_ssa"]


@register("backup_ssa")
def backup_ssa(func: Func, cx: PassCx) -> bool:
    """Store values of ifs that the reverse needs and cannot recompute in variables."""
    if func.autodiff != "reverse" or not has_inner(func, IFS):
        return False
    changed = False
    activity = cx.analysis("activity", Activity)
    for ib in independent_blocks(func, activity):
        needs = Needs(func, ib, activity)
        if not needs.nested:
            continue
        kept = kept_values(ib)
        can = needs.again(kept)
        wanted = {
            x: None for x, how in needs.how.items()
            if x in needs.nested and x not in needs.in_loop and how & ~can.get(x, 0)
        }  # fmt: skip
        if wanted:
            if cx.remarking:
                for x in wanted:
                    cx.remark(x, f"${x.id} is kept in a variable for the reverse")
            keep(func, ib, wanted)
            changed = True
    return changed
