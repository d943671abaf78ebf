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
    "LOADS", "MOVABLE", "any_empty", "any_trivial", "is_empty", "is_trivial", "is_unsigned",
    "loaded_again", "may_cut", "may_join", "may_simplify", "runs_once",
]  # fmt: skip

LOADS = code_mask(code == C.GLOBAL_LOAD for code in range(C.COUNT))
_ACCESSES = code_mask(
    C.ATOMIC[code] or code in (C.GLOBAL_LOAD, C.GLOBAL_STORE) for code in range(C.COUNT)
)
_IFS = code_mask(code == C.IF for code in range(C.COUNT))
_CONTROL = code_mask(C.CONTROL)
_VALUES = code_mask(code in (C.ABS, C.SHIFT_PTR) for code in range(C.COUNT))
MOVABLE = [C.PURE[code] or code in (C.ALLOCA, C.ARRAY_ALLOCA) for code in range(C.COUNT)]


def may_simplify(cx: PassCx) -> bool:
    """False if `simplify` would change nothing."""
    joins = may_join(cx)
    if joins or cx.config.flatten_if or any_trivial(cx) or any_empty(cx):
        return True
    return bool(loaded_again(cx, joins, trivial=False))


def loaded_again(cx: PassCx, joins: bool, trivial: bool) -> set[Op]:
    """The addresses that several global loads of a block use, with no write to the same address in
    between; most are of one load.

    joins: ifs become one in this sweep, and so may any two blocks. trivial: there are trivial
    addresses.
    """
    loads = list(cx.ops().of(LOADS))
    ptrs = [op.args[0] for op in loads]
    for at, ptr in enumerate(ptrs) if trivial else ():
        while is_trivial(ptr):
            ptr = ptrs[at] = ptr.args[0]
    if len(set(ptrs)) == len(ptrs):
        return set()
    if not (joins or trivial):
        loads = list(cx.ops().of(_ACCESSES))
        ptrs = [op.args[0] for op in loads]
    seen: set[tuple[Block | None, Op]] = set()
    again: set[Op] = set()
    for op, ptr in zip(loads, ptrs, strict=True):
        load = None if joins else op.block, ptr
        if op.code != C.GLOBAL_LOAD:
            seen.discard(load)
        elif load in seen:
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


def any_trivial(cx: PassCx) -> bool:
    """True if an address is trivial, or an absolute value that of an unsigned number."""
    found = [op for op in cx.ops().of(_VALUES) if op.args[-1].code == C.CONST or op.code == C.ABS]
    return any(
        is_unsigned(op.args[0]) if op.code == C.ABS else is_trivial(op) for op in found
    )  # fmt: skip


def any_empty(cx: PassCx) -> bool:
    """True if a control op, or a task, has nothing in its regions; its bounds do not count."""
    for op in cx.ops().of(_CONTROL):
        for region in op.regions[op.code == C.OFFLOADED :]:
            if region.ops:
                break
        else:
            return True
    return False


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


_JUMPS = code_mask(
    (C.END[code] and code != C.BOUNDS) or code == C.WHILE_CONTROL for code in range(C.COUNT)
)
_RANGES = code_mask(code in (C.RANGE_FOR, C.BOUNDS) for code in range(C.COUNT))


def may_cut(cx: PassCx) -> bool:
    """False if `unreachable_code_elimination` would change nothing."""
    ops = cx.ops()
    return (
        C.CONST in [op.args[0].code for op in ops.of(_IFS)]
        or any(map(_may_end, ops.of(_JUMPS)))
        or any(map(is_empty, ops.of(_RANGES)))
    )


def _may_end(jump: Op) -> bool:
    """True if something is deleted for a jump: ops that follow it, or an if that it ends, or the
    jump, where the iteration ends anyway, or the loop, if it always leaves in the first one."""
    if jump.code == C.WHILE_CONTROL:
        if jump.args[0].code != C.CONST:
            return False
        if jump.args[0].attr:
            return True
    op = jump
    while True:
        block = op.block
        assert block is not None
        if block.ops[-1] is not op:
            return op is jump or all(map(_ends, op.regions))
        owner = block.owner
        if owner is None:
            return False
        if owner.code != C.IF:
            break
        op = owner
    if jump.code == C.WHILE_CONTROL:
        return owner.code == C.WHILE and runs_once(block)
    return jump.code == C.CONTINUE and C.LOOP[owner.code]


def _ends(block: Block) -> bool:
    """True if the end of a block is not reached, as its last op leaves."""
    if not block.ops:
        return False
    last = block.ops[-1]
    if last.code == C.IF:
        return all(map(_ends, last.regions))
    return C.END[last.code] or _leaves(last)


def _leaves(op: Op) -> bool:
    """True for a while_control that always leaves."""
    return op.code == C.WHILE_CONTROL and op.args[0].code == C.CONST and not op.args[0].attr


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


def runs_once(body: Block) -> bool:
    """True if a while's body ends in leaving it, and has no other way to leave or to repeat."""
    if not body.ops:
        return False
    return _leaves(body.ops[-1]) and not _has_jumps(body.ops[:-1])


def _has_jumps(ops: list[Op]) -> bool:
    """True if ``ops`` hold a jump that belongs to the loop around them."""
    for op in ops:
        if op.code in (C.WHILE_CONTROL, C.BREAK, C.CONTINUE):
            return True
        if op.code == C.IF and any(_has_jumps(region.ops) for region in op.regions):
            return True
    return False
