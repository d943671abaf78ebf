"""remove_user_asserts: deletes breakpoints, and the kernel's own asserts unless debug is on.

::

    <u1> $2 = cmp_gt $0, $1               <u1> $2 = cmp_gt $0, $1
    $3 : assert $2 {text='too small'}

Side effects of the condition (an atomic, a print) stay. So do checks that the compiler inserts
(kinds ``bound`` and ``check``).
"""

from __future__ import annotations

from ..analysis.uses import code_mask
from ..ir import Func, drop
from ..ir import codes as C
from .manager import PassCx
from .registry import register

_ASSERTS = code_mask(code == C.ASSERT for code in range(C.COUNT))


@register("remove_user_asserts")
def remove_user_asserts(func: Func, cx: PassCx) -> bool:
    """Delete breakpoints, and the kernel's asserts unless debug is on."""
    kinds = ("breakpoint",) if cx.config.debug else ("breakpoint", "user")
    dead = {op for op in cx.ops().of(_ASSERTS) if op.attr.kind in kinds}
    drop(dead)
    return bool(dead)
