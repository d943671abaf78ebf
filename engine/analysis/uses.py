"""Uses of values. Ops keep no use lists; these are made by one sweep when a pass wants them."""

from __future__ import annotations

from ..ir import Block, Op
from ..ir.edit import all_blocks

__all__ = ["use_counts", "users"]


def use_counts(block: Block) -> dict[Op, int]:
    """The number of uses of each op as an operand under ``block``; unused ops are missing."""
    counts: dict[Op, int] = {}
    get = counts.get
    for b in all_blocks(block):
        for op in b.ops:
            for a in op.args:
                counts[a] = get(a, 0) + 1
    return counts


def users(block: Block) -> dict[Op, list[Op]]:
    """The ops under ``block`` that use each op, in program order, once for each use."""
    found: dict[Op, list[Op]] = {}
    for b in all_blocks(block):
        for op in b.ops:
            for a in op.args:
                if a in found:
                    found[a].append(op)
                else:
                    found[a] = [op]
    return found
