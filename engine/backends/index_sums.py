"""Sums that are plain parts of an address: they are computed in 64 bits, where none overflows."""

from __future__ import annotations

from typing import Final

from ..ir import Op
from ..ir import codes as C
from ..types import i32

__all__ = ["is_index_sum", "only_in_addresses"]

_INDEX_LEAVES: Final = frozenset(
    {C.CONST, C.LOOP_INDEX, C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, C.ARG_LOAD}
)
_SUMS: Final = frozenset({C.ADD, C.SUB, C.MUL, C.BIT_SHL})


def is_index_sum(op: Op, depth: int) -> bool:
    """True if ``op`` is a sum that may be plain in an address, where it cannot overflow."""
    if depth == 0 or op.code not in _SUMS or op.type is not i32:
        return False
    a, b = op.args
    if op.code == C.MUL:
        return (a.code == C.LOOP_INDEX and b.code in _INDEX_LEAVES) or (
            b.code == C.LOOP_INDEX and a.code in _INDEX_LEAVES
        )
    if op.code == C.BIT_SHL:
        return a.code == C.LOOP_INDEX and b.code == C.CONST and 0 <= b.attr < 31
    return (a.code in _INDEX_LEAVES or is_index_sum(a, depth - 1)) and (
        b.code in _INDEX_LEAVES or is_index_sum(b, depth - 1)
    )


def only_in_addresses(ops: list[Op]) -> set[int]:
    """Ids of those of ``ops`` (in program order) whose i32 value only addresses need."""
    needed: set[Op] = set()
    unused: set[int] = set()
    for op in reversed(ops):
        code = op.code
        if code == C.LINEARIZE or code == C.SHIFT_PTR:
            indices = op.args[: op.attr] if code == C.LINEARIZE else op.args[1:]
            parts = [a for a in indices if a.code == C.LOOP_INDEX or is_index_sum(a, 4)]
            needed.update([a for a in op.args if a not in parts])
        elif op not in needed and (code == C.LOOP_INDEX or is_index_sum(op, 4)):
            unused.add(op.id)
            needed.update([a for a in op.args if a.code == C.ARG_LOAD])
        else:
            needed.update(op.args)
    return unused
