"""The parts into which demote_block_sync cuts a loop body: phases, and the ops around them."""

from __future__ import annotations

from ..ir import Builder, Op, walk

__all__ = ["Around", "Phase", "Piece", "phases_of"]


class Phase:
    """The part of the body that all iterations of a block run between two barriers.

    ops: those of the task's body. exports: variables of the block with the value that each is set
    to at the end. checks: likewise, with a value that must agree. here: the ops that stand for
    values of other phases. loop: over the iterations, once the phase is emitted.
    """

    __slots__ = ("checks", "exports", "head", "here", "indices", "loop", "ops", "place")

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.exports: list[tuple[Op, Op]] = []
        self.checks: list[tuple[Op, Op]] = []
        self.here: dict[Op, Op] = {}
        self.loop: Op | None = None
        self.head: Builder | None = None
        self.indices: list[Op] = []  # of the iteration, by axis
        self.place: Op | None = None  # of the iteration in its block, i64

    def all_ops(self) -> list[Op]:
        """The ops with those in their regions."""
        found: list[Op] = []
        for op in self.ops:
            found.append(op)
            for region in op.regions:
                found += walk(region)
        return found


class Around:
    """An op that goes around phases, or a jump between them. values: of the block, its operands."""

    __slots__ = ("op", "regions", "values")

    def __init__(self, op: Op, regions: list[list[Piece]]) -> None:
        self.op = op
        self.regions = regions
        self.values: list[Op | None] = []  # the variable of each operand, None: computed again


Piece = Phase | Around


def phases_of(pieces: list[Piece]) -> list[Phase]:
    """All phases, in program order."""
    found: list[Phase] = []
    for piece in pieces:
        if isinstance(piece, Phase):
            found.append(piece)
        else:
            for region in piece.regions:
                found += phases_of(region)
    return found
