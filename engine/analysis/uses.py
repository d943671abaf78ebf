"""Ops by opcode, and uses of values. IR keeps no such lists; one sweep makes them for a pass."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, compress

from ..ir import Block, Func, Op, walk
from ..ir.edit import all_blocks

__all__ = ["OpList", "code_mask", "use_counts", "users"]


def code_mask(wanted: Iterable[object]) -> bytes:
    """``wanted``, whose item for each opcode is true or not, for `OpList.of`."""
    return bytes([bool(item) for item in wanted]).ljust(256, b"\0")


class OpList:
    """The ops of a function or block, in program order; most passes only look for some opcodes.

    A pass that finds here that it has nothing to do need not walk the blocks: most runs find that.
    codes: the opcode of each op.
    """

    __slots__ = ("codes", "ops")

    def __init__(self, of: Func | Block) -> None:
        self.ops = walk(of if isinstance(of, Block) else of.body)
        self.codes = bytes([op.code for op in self.ops])

    def of(self, mask: bytes) -> Iterable[Op]:
        """The ops whose opcode is in ``mask``, made by `code_mask`."""
        ops, marks = self.ops, self.codes.translate(mask)
        if marks.count(1) > len(ops) >> 3:
            return compress(ops, marks)
        # Where few are, the others are not touched: to read an op from memory is what costs.
        found: list[Op] = []
        at = marks.find(1)
        while at >= 0:
            found.append(ops[at])
            at = marks.find(1, at + 1)
        return found

    def unused(self, mask: bytes) -> list[Op]:
        """The ops of ``mask`` that are no operand of another one."""
        used = set(chain.from_iterable([op.args for op in self.ops]))
        if used.issuperset(self.of(mask)):  # most often, and asked faster than one by one
            return []
        return [op for op in self.of(mask) if op not in used]


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
