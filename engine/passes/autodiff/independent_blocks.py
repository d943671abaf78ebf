"""Independent blocks: parts of a kernel whose values are computed again and then reversed.

The root of a kernel consists of segments: parallel loops, and runs of other ops. Inside of one, an
*independent block* is a list of ops whose every execution is independent of the others: it touches
no local variable from outside. The gradient of a kernel runs all of the block once more and its
reverse after it; loops around it are merely run backwards. The smaller the blocks, the fewer values
are kept.

`independent_blocks` uses the body of a segment as one block, unless all that has adjoints in it is
in loops whose bodies are independent of each other and of the code around them; then it searches
those.
"""

from __future__ import annotations

from typing import Final

from ...ir import Block, Func, Op, base_of, walk
from ...ir import codes as C
from ...named_tuple import NamedTuple
from .activity import Activity
from .segments import is_parallel, reversed_part, segments

__all__ = ["IndependentBlock", "independent_blocks", "is_parallel"]

_MEMORY: Final = frozenset({C.ALLOCA, C.ARRAY_ALLOCA})


class IndependentBlock(NamedTuple):
    """Some or all ops of a block, in a row, that are differentiated together."""

    block: Block
    ops: list[Op]


def independent_blocks(func: Func, activity: Activity) -> list[IndependentBlock]:
    """Those of all segments, in program order."""
    found: list[IndependentBlock] = []
    for ops in segments(reversed_part(func)):
        if not any(op in activity.effects for op in ops):
            continue
        if is_parallel(ops[0]):
            body = ops[0].regions[0]
            _search(IndependentBlock(body, body.ops), activity, found)
        else:
            _search(IndependentBlock(func.body, ops), activity, found)
    return found


def _search(ib: IndependentBlock, activity: Activity, found: list[IndependentBlock]) -> None:
    loops: list[Op] = []
    cells = activity.cells
    if not _only_loops(ib.ops, activity, loops) or not all(_alone(op, cells) for op in loops):
        found.append(ib)
        return
    for loop in loops:
        body = loop.regions[0]
        _search(IndependentBlock(body, body.ops), activity, found)


def _only_loops(ops: list[Op], activity: Activity, loops: list[Op]) -> bool:
    """True if all effects are in loops, which ``loops`` gets, and there are no variables."""
    for op in ops:
        code = op.code
        if code == C.IF:
            if not all(_only_loops(region.ops, activity, loops) for region in op.regions):
                return False
        elif code == C.RANGE_FOR:
            if op in activity.effects:
                loops.append(op)
        elif op in activity.effects or code in _MEMORY or code in (C.WHILE, C.CONTINUE):
            return False
    return bool(loops) or not any(op in activity.effects for op in ops)


def _alone(loop: Op, cells: set[Op]) -> bool:
    """True if the body of a loop touches no variable from outside."""
    inside = walk(loop.regions[0])
    own = {op for op in inside if op.code in _MEMORY} | cells
    return not any(
        base_of(a).code in _MEMORY and base_of(a) not in own
        for op in inside for a in op.args if a.type.is_ptr
    )  # fmt: skip
