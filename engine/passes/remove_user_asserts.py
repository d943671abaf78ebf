"""remove_user_asserts: deletes breakpoints, and the kernel's own asserts unless debug is on.

::

    <u1> $2 = cmp_gt $0, $1               <u1> $2 = cmp_gt $0, $1
    $3 : assert $2 {text='too small'}

Side effects of the condition (an atomic, a print) stay. So do checks that the compiler inserts
(kinds ``bound`` and ``check``).
"""

from __future__ import annotations

from ..ir import Func
from ..ir import codes as C
from ..ir.edit import all_blocks
from .manager import PassCx
from .registry import register


@register("remove_user_asserts")
def remove_user_asserts(func: Func, cx: PassCx) -> bool:
    """Delete breakpoints, and the kernel's asserts unless debug is on."""
    kinds = ("breakpoint",) if cx.config.debug else ("breakpoint", "user")
    changed = False
    for block in all_blocks(func.body):
        if any(op.code == C.ASSERT and op.attr.kind in kinds for op in block.ops):
            block.ops = [op for op in block.ops if op.code != C.ASSERT or op.attr.kind not in kinds]
            changed = True
    return changed
