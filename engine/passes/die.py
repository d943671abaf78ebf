"""die: deletes ops without uses and without effects.

Before::

    <f32> $3 = global_load $2
    <f32> $4 = sqrt $3
    <f32> $5 = mul $3, $3
    $6 : global_store $2, $5

After: ``$4`` is gone. One sweep from the end finds whole chains, since every use is after its
definition.

Unused loads and unused random numbers are deleted as well. So are all operations on an adstack that
nothing reads, and on adjoints of a stack that nothing reads.

It leaves alone stores (also to locals without loads: `cfg_optimization` finds the dead ones),
atomics, asserts, prints and control flow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..analysis.uses import code_mask
from ..ir import Block, Func, Op, drop, walk
from ..ir import codes as C
from .registry import register

if TYPE_CHECKING:
    from .manager import PassCx

__all__ = ["die"]

_REMOVABLE = code_mask(C.REMOVABLE)


# Rules look at an op and its operands, and what is in use stays as it is. One sweep is enough.
@register(
    "die", optional=True, silent=True,
    keeps=("alg_simp", "binary_op_simplify", "constant_fold", "die", "extract_constant",
           "loop_invariant_code_motion"),
)  # fmt: skip
def die(func: Func, cx: PassCx) -> bool:
    """Delete unused ops that have no effect."""
    # A chain of unused ops ends in one that nothing uses.
    unused = not cx.ops().all_used(_REMOVABLE)
    changed = unused and _sweep(func.body, bytearray(func.next_id))
    if func.autodiff == "reverse" and _drop_unread_stacks(func):
        _sweep(func.body, bytearray(func.next_id))
        return True
    return changed


def _drop_unread_stacks(func: Func) -> bool:
    """Delete what is done to adstacks, and to their adjoints, that nothing reads."""
    ops = [op for op in walk(func.body) if C.STACK[op.code]]
    adjoints = {op.args[0] for op in ops if op.code == C.AD_STACK_LOAD_TOP_ADJ}
    read = adjoints | {op.args[0] for op in ops if op.code == C.AD_STACK_LOAD_TOP}
    dead: set[Op] = set()
    changed = False
    for op in ops:
        stack = op.args[0]
        if stack not in read or (op.code == C.AD_STACK_ACC_ADJOINT and stack not in adjoints):
            dead.add(op)
        elif stack.attr.adjoint and stack not in adjoints:
            stack.attr = stack.attr._replace(adjoint=False)
            changed = True
    drop(dead)
    return changed or bool(dead)


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
