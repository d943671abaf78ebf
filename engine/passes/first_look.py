"""The first looks of passes that find in most runs that they have nothing to do.

Kernels for which that holds in every run load these, and not the passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..analysis.uses import code_mask
from ..ir import Block, Op
from ..ir import codes as C

if TYPE_CHECKING:
    from .manager import PassCx

__all__ = [
    "GOING", "LOADS", "MOVABLE", "REACHING", "is_empty", "is_trivial", "is_unsigned",
    "loaded_again", "may_cut", "may_go", "may_join", "may_simplify",
]  # fmt: skip

LOADS = code_mask(code == C.GLOBAL_LOAD for code in range(C.COUNT))
_IFS = code_mask(code == C.IF for code in range(C.COUNT))
GOING = code_mask(
    C.CONTROL[code] or code in (C.ABS, C.SHIFT_PTR) for code in range(C.COUNT)
)  # fmt: skip
MOVABLE = [C.PURE[code] or code in (C.ALLOCA, C.ARRAY_ALLOCA) for code in range(C.COUNT)]


def may_simplify(cx: PassCx) -> bool:
    """False if `simplify` would change nothing."""
    joins = may_join(cx)
    if joins or cx.config.flatten_if or loaded_again(cx, joins):
        return True
    return any(map(may_go, cx.ops().of(GOING)))


def loaded_again(cx: PassCx, joins: bool) -> set[Op]:
    """The addresses that several global loads of a block use; most are of one.

    joins: ifs become one in this sweep, and so may any two blocks.
    """
    seen: set[tuple[Block | None, Op]] = set()
    again: set[Op] = set()
    for op in cx.ops().of(LOADS):
        ptr = op.args[0]
        while is_trivial(ptr):
            ptr = ptr.args[0]
        load = None if joins else op.block, ptr
        if load in seen:
            again.add(ptr)
        else:
            seen.add(load)
    return again


def may_join(cx: PassCx) -> bool:
    """True if an if has the condition of the one before it in its block, with nothing in between
    that must stay there."""
    last: dict[Block | None, Op] = {}
    for op in cx.ops().of(_IFS):
        block = op.block
        before, last[block] = last.get(block), op
        if before is not None and before.args[0] is op.args[0] and block is not None:
            ops = block.ops
            between = ops[ops.index(before) + 1 : ops.index(op)]
            if all(MOVABLE[one.code] for one in between):
                return True
    return False


def may_go(op: Op) -> bool:
    """True for an op that may be deleted or replaced by its operand."""
    if op.regions:
        return not any(region.ops for region in op.regions[op.code == C.OFFLOADED :])
    return is_trivial(op) or (op.code == C.ABS and is_unsigned(op.args[0]))


def is_unsigned(op: Op) -> bool:
    return op.type.is_int and not op.type.is_signed


def is_trivial(ptr: Op) -> bool:
    """True for an address shifted by 0."""
    if ptr.code != C.SHIFT_PTR:
        return False
    base, offset = ptr.args
    # An array that the kernel makes is not the same as its first element.
    zero = offset.code == C.CONST and offset.attr == 0
    return zero and base.code not in (C.ARRAY_ALLOCA, C.GLOBAL_TMP)


REACHING = [C.END[code] or C.CONTROL[code] or code == C.WHILE_CONTROL for code in range(C.COUNT)]
_REACHING = code_mask(REACHING)


def may_cut(cx: PassCx) -> bool:
    """False if `unreachable_code_elimination` would change nothing."""
    return any(map(_may_cut, cx.ops().of(_REACHING)))


def _may_cut(op: Op) -> bool:
    """True if ``op`` may be what something is deleted for; in most runs none is."""
    code = op.code
    if code == C.IF or code == C.WHILE_CONTROL:
        return op.args[0].code == C.CONST
    if C.END[code] and code != C.BOUNDS:
        return _may_end(op)
    return is_empty(op)


def _may_end(jump: Op) -> bool:
    """True if ops follow a jump or the if that it ends, or if the iteration ends there anyway."""
    block = jump.block
    if block is None or block.owner is None or block.ops[-1] is not jump:
        return True
    owner = block.owner
    if owner.code == C.IF and all(r.ops and C.END[r.ops[-1].code] for r in owner.regions):
        return True
    while jump.code == C.CONTINUE and owner.code == C.IF:
        block = owner.block
        if block is None or block.owner is None:
            return True
        if block.ops[-1] is not owner:
            return False
        owner = block.owner
    return jump.code == C.CONTINUE


def is_empty(bounds: Op) -> bool:
    """True if some axis of ``begin, end, ...`` has constants with nothing between them."""
    args = bounds.args
    for i in range(0, len(args), 2):
        begin, end = args[i], args[i + 1]
        if begin is end or (
            begin.code == C.CONST and end.code == C.CONST and begin.attr >= end.attr
        ):
            return True
    return False
