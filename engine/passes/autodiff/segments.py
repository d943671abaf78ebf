"""Segments of the root of a kernel: parallel loops, and the runs of other ops between them."""

from __future__ import annotations

from typing import Final

from ...ir import Block, Func, Op
from ...ir import codes as C

__all__ = [
    "FENCE", "IFS", "LOOPS", "cells_of", "has_inner", "is_parallel", "reversed_part", "segments",
]  # fmt: skip

FENCE: Final = "reverse"
"""Scope of the `mem_fence` between the part that fills cells and the segments in reverse order."""

IFS: Final = frozenset({C.IF})
LOOPS: Final = frozenset({C.RANGE_FOR, C.WHILE})


def is_parallel(op: Op) -> bool:
    """True if a root op becomes a parallel task."""
    return op.code == C.RANGE_FOR and not op.attr.strictly_serialized


def reversed_part(func: Func) -> list[Op]:
    """The ops of the root that are differentiated: those after the fence of `reverse_segments`."""
    ops = func.body.ops
    for k, op in enumerate(ops):
        if op.code == C.MEM_FENCE and op.attr == FENCE:
            return ops[k + 1 :]
    return ops


def cells_of(func: Func) -> set[Op]:
    """Variables that carry values from one segment to others (see `cells`)."""
    ops = func.body.ops
    first = len(ops) - len(reversed_part(func))
    return {op for op in ops[:first] if op.code == C.ALLOCA}


def segments(ops: list[Op]) -> list[list[Op]]:
    """Ops of the root: each parallel loop by itself, the others in runs."""
    found: list[list[Op]] = []
    run: list[Op] = []
    for op in ops:
        if is_parallel(op):
            if run:
                found.append(run)
                run = []
            found.append([op])
        else:
            run.append(op)
    if run:
        found.append(run)
    return found


def has_inner(func: Func, codes: frozenset[int]) -> bool:
    """True if there are ifs or loops, selected by ``codes``, inside of a segment."""
    blocks: list[Block] = []
    for op in reversed_part(func):
        if is_parallel(op):
            blocks += op.regions
        elif op.code in codes:
            return True
        else:
            blocks += op.regions
    for block in blocks:
        for op in block.ops:
            if op.regions:
                if op.code in codes:
                    return True
                blocks += op.regions
    return False
