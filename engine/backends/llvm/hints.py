"""Hints to LLVM about a loop, where LLVM's own estimate is known to be wrong.

*Scalar*: a loop that loads its data from distant addresses, and computes little with it, is slower
with vector instructions: their lanes are filled and emptied one by one. LLVM assumes so only for
much larger distances. Accesses of neighbouring iterations to neighbouring elements are good; so are
those up to four elements apart (components of vectors), as long as stores leave out none of the
elements between. Every other access whose distance is known counts against arithmetic. Measured
on loops over 3x3 matrices and over structs of seven numbers: 1.5 and 2.5 times faster.

*Together*: the innermost loop of a task that goes over several axes is short where the axes are
those of blocks. LLVM would unroll it, and then vectorise the loop around it across rows.

*Unrolled*: an inner loop of few iterations that computes exponentials. Their arithmetic makes it so
large that LLVM would not unroll it, and then would not vectorise the loop around it.

*Straight*: one vector that holds all iterations of a loop. Before, it must stay a loop.

*Cold*: a loop that the IR says to be of few iterations is neither vectorised nor unrolled; both
take LLVM time, for nothing.
"""

from __future__ import annotations

from typing import Final

from ...ir import Op
from ...ir import codes as C
from ...passes.linear_form import form_of

__all__ = ["COLD", "SCALAR", "TOGETHER", "UNROLLED", "loop_hint"]

SCALAR: Final = '!{!"llvm.loop.vectorize.width", i32 1}'
TOGETHER: Final = '!{!"llvm.loop.unroll.disable"}'
UNROLLED: Final = '!{!"llvm.loop.unroll.full"}'
COLD: Final = '!{!"llvm.loop.disable_nonforced"}'

_WEIGHT: Final = 4
"""So many simple operations are worth one access that vectors are bad at."""
_MANY: Final = 64
"""LLVM takes seconds to fill the lanes for this many accesses one by one."""
_NEAR: Final = 4
_FAR: Final = 1000
_SHORT: Final = range(4, 17)
_FEW: Final = range(2, 9)


def loop_hint(loop: Op, axis: int, bounds: list[str], axes: int) -> str:
    """The property for the innermost loop of a nest; "" for none.

    loop: the op, whose index along ``axis`` the loop counts. bounds: its begin and end, as
    operands. axes: how many loops there are in the nest.
    """
    ops = loop.regions[-1].ops
    if loop.code == C.RANGE_FOR and loop.attr.cold:
        return COLD
    if loop.code == C.RANGE_FOR and loop.attr.straight:
        return f'!{{!"llvm.loop.vectorize.width", i32 {bounds[1]}}}; {TOGETHER}'
    if True in [C.LOOP[op.code] for op in ops]:
        return ""
    if _is_scattered(loop, axis, ops):
        return SCALAR
    whole = len(bounds) == 2 and all(text.lstrip("-").isdigit() for text in bounds)
    few = whole and int(bounds[1]) - int(bounds[0]) in _FEW
    if few and loop.code == C.RANGE_FOR and any(op.code == C.EXP for op in ops):
        return UNROLLED
    if axes > 1 and whole and int(bounds[1]) - int(bounds[0]) in _SHORT and _is_task(loop):
        return TOGETHER
    return ""


def _is_task(loop: Op) -> bool:
    """True if the nest is all that a task does, or a chunk of a task."""
    owner = loop.block.owner if loop.block is not None else None
    return loop.code == C.OFFLOADED or (owner is not None and owner.code == C.OFFLOADED)


def _is_scattered(loop: Op, axis: int, ops: list[Op]) -> bool:
    """True if accesses that vectors are bad at outweigh the arithmetic."""
    bad = work = 0
    stores: dict[tuple[object, int], set[int]] = {}
    for op in ops:
        code = op.code
        if code == C.GLOBAL_LOAD or code == C.GLOBAL_STORE:
            found = _distance(loop, axis, op.args[0])
            if found is None:
                continue
            distance, place = found
            if abs(distance) > _NEAR:
                bad += 1
            elif code == C.GLOBAL_STORE and abs(distance) > 1:
                key = (op.args[0].args[0].attr, abs(distance))
                stores.setdefault(key, set()).add(place % distance)
        elif op.regions:
            work += sum(len(region.ops) for region in op.regions)
        elif C.MATH[code] or code in (C.DIV, C.MOD):
            work += 8
        elif op.type.is_real and (C.BINARY[code] or C.UNARY[code] or code == C.SELECT):
            work += 1
    bad += sum(len(places) for (_, near), places in stores.items() if len(places) < near)
    return bad * _WEIGHT > work or bad > _MANY


def _distance(loop: Op, axis: int, pointer: Op) -> tuple[int, int] | None:
    """The distance between an address in one iteration and the next, and its constant part.

    Both in elements. None if it does not move, moves by an unknown distance, or is not that of an
    array element.
    """
    if pointer.code != C.SHIFT_PTR or pointer.args[0].code != C.ARG_ADDR:
        return None
    offset = pointer.args[1]
    if offset.code != C.LINEARIZE:
        return None
    n: int = offset.attr
    factor, step, place = 1, 0, 0
    for k in range(n - 1, -1, -1):
        form = form_of(offset.args[k])
        place += factor * form.constant
        for op, times in form.terms.items():
            if op.code != C.LOOP_INDEX:
                if op.block is loop.regions[-1]:
                    return None
            elif op.args[0] is loop and op.attr == axis:
                step += factor * times
        if k:
            extent = offset.args[n + k - 1]
            # One that is not known is large.
            factor *= int(extent.attr) if extent.code == C.CONST else _FAR
    return (step, place) if step else None
