"""die: deletes ops whose value nobody uses and that have no effect.

Before::

    <f32> $3 = global_load $2
    <f32> $4 = sqrt $3
    <f32> $5 = mul $3, $3
    $6 : global_store $2, $5

After: ``$4`` is gone. One sweep from the end finds whole chains, since every use stands after its
definition.

It leaves alone stores (also to locals that nobody loads: `cfg_optimization` knows which are dead),
atomics, asserts, prints and control flow. Loads go when unused; so does an unused random number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir import Block, Func
from ..ir import codes as C
from .registry import register

if TYPE_CHECKING:
    from .manager import PassCx

__all__ = ["die"]


@register("die", optional=True)
def die(func: Func, cx: PassCx) -> bool:
    """Delete unused ops that have no effect."""
    return _sweep(func.body, bytearray(func.next_id))


def _sweep(block: Block, live: bytearray) -> bool:
    """Walk backwards; ``live[id]`` is set when a kept op uses the value."""
    removable = C.REMOVABLE
    changed = False
    dead = 0
    for op in reversed(block.ops):
        if removable[op.code] and not live[op.id]:
            dead += 1
            continue
        if op.regions:
            for region in reversed(op.regions):
                changed |= _sweep(region, live)
        for a in op.args:
            live[a.id] = 1
    if dead:
        block.ops = [op for op in block.ops if live[op.id] or not removable[op.code]]
        return True
    return changed
