"""Turns the ops of a block into lines of text in any language, by a table of emitter functions.

The emitters of LLVM IR and of OpenCL C are `Statements`. An emitter ends a block early where the
text has left it (`ended`), and skips ops that have no statement of their own (`unused`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from ..errors import QuadrantsInternalError
from ..ir import Block, Op
from ..ir import codes as C

__all__ = ["Row", "Statements", "full_table"]

Row = Callable[[Any, Any], None]
"""Emits an op of one kind, given the emitter and the op."""


class Statements:
    """The statements of one function, while they are emitted.

    language: as people call it. table: what emits an op, by its code. lines: the text so far. ids:
    the op that each line is of, -1 for none. head: lines for the start of the function. unused: ids
    of integers that only addresses are made of, which are emitted within these. op_id: the op being
    emitted. ended: nothing after this in the block is reached.
    """

    language: ClassVar[str]
    table: ClassVar[list[Row]]

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.ids: list[int] = []
        self.head: list[str] = []
        self.unused: set[int] = set()
        self.op_id = -1
        self.ended = False

    def run(self, block: Block) -> None:
        """Emit the ops of ``block`` up to the first that leaves it."""
        emit, unused = self.table, self.unused
        for op in block.ops:
            if self.ended:
                return
            if op.id not in unused:
                self.op_id = op.id
                emit[op.code](self, op)

    def unsupported(self, op: Op) -> QuadrantsInternalError:
        """The error for an op that has no emitter."""
        types = ", ".join(a.type.name for a in op.args)
        return QuadrantsInternalError.from_loc(
            f"no {self.language} code for {op.name}({types}) -> {op.type.name} (${op.id})", op.loc
        )


def full_table(rows: Mapping[int, Row]) -> list[Row]:
    """``rows`` as a `Statements.table`; a code that has none is an error."""
    return [rows.get(code, _refuse) for code in range(C.COUNT)]


def _refuse(e: Statements, op: Op) -> None:
    raise e.unsupported(op)
