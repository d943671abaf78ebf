"""The estimated cost of running a block once on a CPU, for passes that compare two forms.

Times are rough, in tenths of a nanosecond, for code that LLVM has optimised.
"""

from __future__ import annotations

from typing import Final

from ..ir import Block, Op
from ..ir import codes as C

__all__ = ["body_cost", "op_cost", "trips"]

_GUESSED_TRIPS: Final = 32  # iterations of an inner loop whose bounds are not constant


_FREE: Final = (C.CONST, C.ARG_ADDR, C.ARG_LOAD, C.ALLOCA, C.ARRAY_ALLOCA, C.LOOP_INDEX)


def _cost(code: int) -> int:
    if C.MATH[code] or code == C.RAND:
        return 40
    if C.ATOMIC[code] or code in (C.PRINT, C.CLOCK):
        return 50
    if code == C.CALL:
        return 500
    if code in (C.DIV, C.FLOORDIV, C.MOD, C.FLOORMOD):
        return 10
    return 0 if code in _FREE else 1


_COST: Final = [_cost(code) for code in range(C.COUNT)]


def op_cost(op: Op) -> int:
    """Cost of one op, without its regions, in a body that LLVM can vectorise."""
    return _COST[op.code]


def body_cost(block: Block) -> tuple[int, bool]:
    """Cost of running ``block`` once, and whether it holds loops."""
    total, loops = 0, False
    for op in block.ops:
        cost = _COST[op.code]
        if op.regions:
            inner = [body_cost(region) for region in op.regions]
            cost += max(c for c, _ in inner) if op.code == C.IF else sum(c for c, _ in inner)
            if C.LOOP[op.code]:
                # Loops are rarely vectorised together with what is around them.
                cost *= 4 * trips(op)
                loops = True
            loops = loops or any(has for _, has in inner)
        total += cost
    return total, loops


def trips(loop: Op) -> int:
    """Iterations of a loop: exact for constant bounds, else a guess."""
    count = 1
    for begin, end in zip(loop.args[0::2], loop.args[1::2], strict=True):
        known = begin.code == C.CONST and end.code == C.CONST
        count *= max(0, int(end.attr) - int(begin.attr)) if known else _GUESSED_TRIPS
    return count if loop.args else 2 * _GUESSED_TRIPS
