"""Loops that run in blocks: their iterations wait for each other or share memory."""

from __future__ import annotations

from ..ir import Block, Func, Op, walk
from ..ir import codes as C
from ..ir.attrs import DEFAULT_BLOCK_DIM
from .effects import SUBGROUP_OPS

__all__ = ["block_dim", "is_parallel", "needs_blocks", "shared_arrays"]


def needs_blocks(body: Block) -> bool:
    """True if the iterations that run ``body`` wait for each other or share an array."""
    return any(
        op.code == C.BLOCK_SYNC
        or op.code in SUBGROUP_OPS
        or (op.code == C.ARRAY_ALLOCA and op.attr.space == "shared")
        for op in walk(body)
    )


def shared_arrays(body: Block) -> list[Op]:
    """The arrays that the iterations of a block share, in program order."""
    return [
        op for op in walk(body) if op.code == C.ARRAY_ALLOCA and op.attr.space == "shared"
    ]  # fmt: skip


def is_parallel(func: Func, loop: Op) -> bool:
    """True if ``loop`` is, or will become, a parallel task whose iterations are the user's."""
    if loop.code == C.OFFLOADED:
        return loop.attr.kind == "range_for" and loop.attr.unit == "cell"
    at_root = func.is_root(loop.block)
    return at_root and loop.code == C.RANGE_FOR and not loop.attr.strictly_serialized


def block_dim(loop: Op) -> int:
    """Iterations in a block of a parallel loop."""
    return loop.attr.block_dim or DEFAULT_BLOCK_DIM
