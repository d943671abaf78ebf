"""die: deletes ops without uses and without effects.

Before::

    <f32> $3 = global_load $2
    <f32> $4 = sqrt $3
    <f32> $5 = mul $3, $3
    $6 : global_store $2, $5

After: ``$4`` is gone. Chains of unused ops go as a whole.

Unused loads and unused random numbers are deleted as well. So are all operations on an adstack that
nothing reads, and on adjoints of a stack that nothing reads.

It leaves alone stores (also to locals without loads: `cfg_optimization` finds the dead ones),
atomics, asserts, prints and control flow.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

from ..analysis.uses import OpList, code_mask
from ..ir import Func, Op, drop, walk
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
    changed = _drop_unused(cx.ops())
    if func.autodiff == "reverse" and _drop_unread_stacks(func):
        _drop_unused(OpList(func))
        return True
    return changed


def _drop_unused(ops: OpList) -> bool:
    """Delete what nothing uses, and what nothing else uses."""
    # A chain of unused ops ends in one that nothing uses; most runs find none.
    dead = ops.unused(_REMOVABLE)
    if not dead:
        return False
    if any(op.args for op in dead):
        uses = Counter(chain.from_iterable([op.args for op in ops.ops]))
        for op in dead:  # which grows
            for a in op.args:
                uses[a] -= 1
                if not uses[a] and C.REMOVABLE[a.code]:
                    dead.append(a)
    drop(set(dead))
    return True


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
