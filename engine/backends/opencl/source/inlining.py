"""Finds the values of a function that are inlined where they are used, instead of having a name.

A value goes into the text of its only use if it may be computed there as well: it is pure, or a
load with no write between its place and that of its use (which may itself be part of a larger
text, or of an address that is used again further down). Operands that are read several times, ends
of loops, and the two sides of a choice (both are computed) are named by the code that emits their
use, or here.
"""

from __future__ import annotations

from typing import Final

from ....ir import Block, Op
from ....ir import codes as C
from ....ir.edit import all_blocks

__all__ = ["InliningPlan"]


_INLINABLE: Final = [
    (C.PURE[code] or code in (C.LOCAL_LOAD, C.GLOBAL_LOAD, C.AD_STACK_LOAD_TOP,
                              C.AD_STACK_LOAD_TOP_ADJ))
    for code in range(C.COUNT)
]  # fmt: skip
_LOADS: Final = frozenset(
    {C.LOCAL_LOAD, C.GLOBAL_LOAD, C.AD_STACK_LOAD_TOP, C.AD_STACK_LOAD_TOP_ADJ}
)
_CHANGES: Final = [
    C.WRITE[code] or C.ATOMIC[code] or C.FENCE[code]
    or (C.EFFECT[code] and code not in _LOADS)
    for code in range(C.COUNT)
]  # fmt: skip
_ADDRESSES: Final = frozenset({C.SHIFT_PTR, C.EXTERNAL_PTR, C.LINEARIZE})
"""Ops whose text is written at each use, however many there are."""
_NAMED: Final = frozenset({C.RANGE_FOR, C.PRINT, C.RETURN, C.CALL, C.WHILE})
"""Ops whose operands are read in an order or number of times that is not that of one expression."""


class InliningPlan:
    """The facts about the ops of a function that are found before they are emitted; all by id.

    inlined: those to inline. counts: how often each is used. addressed: those whose address is
    passed to a function. set_next: variables with nothing but constants between them and a first
    store.
    """

    def __init__(self) -> None:
        self.inlined: Final[set[int]] = set()
        self.counts: Final[dict[int, int]] = {}
        self.addressed: Final[set[int]] = set()
        self.set_next: Final[set[int]] = set()

    def add(self, body: Block) -> None:
        """Plan the ops under ``body``."""
        counts, user = self.counts, dict[int, Op]()
        blocks = all_blocks(body)
        get = counts.get
        for block in blocks:
            for op in block.ops:
                for a in op.args:
                    counts[a.id] = get(a.id, 0) + 1
                    user[a.id] = op
                if op.code == C.CALL:
                    self.addressed.update([a.id for a in op.args if a.type.is_ptr])
        for block in blocks:
            _plan_block(block.ops, counts, user, self.inlined)
            self._first_stores(block.ops)

    def _first_stores(self, ops: list[Op]) -> None:
        fresh: Op | None = None
        for op in ops:
            if op.code == C.ALLOCA:
                fresh = op
            elif op.code != C.CONST:
                if fresh is not None and op.code == C.LOCAL_STORE and op.args[0] is fresh:
                    self.set_next.add(fresh.id)
                fresh = None


def _plan_block(
    ops: list[Op], counts: dict[int, int], user: dict[int, Op], inlined: set[int]
) -> None:
    place: dict[int, int] = {}
    """The position in the block where an op's text is evaluated."""
    number = {op.id: k for k, op in enumerate(ops)}
    changes = 0
    before: list[int] = []
    for op in ops:
        before.append(changes)
        changes += _CHANGES[op.code]
    before.append(changes)
    for k in range(len(ops) - 1, -1, -1):
        op = ops[k]
        code, op_id = op.code, op.id
        # An address that is not inlined may be read up to the end of the block.
        place[op_id] = len(ops) if code in _ADDRESSES else k
        if not _INLINABLE[code] or counts.get(op_id) != 1:
            continue
        use = user[op_id]
        if use.id not in number:
            continue
        # A choice computes both sides: what costs something is not left to a branch.
        if use.code == C.SELECT and use.args[0] is not op and code != C.CONST:
            continue
        if use.code in _NAMED and code in _LOADS:
            continue
        at = place[use.id]
        if code in _LOADS and before[at] != before[k]:
            continue
        place[op_id] = at
        inlined.add(op_id)
