"""Blocks of ``if`` that are emitted and compiled when a launch first reaches them.

::

    $5 : if $4 true {                    if v4:
      ...                         ->      reach(1)
    }

A launch of a large kernel may run a small part of it, and Python's compiler takes longer than that
part. All pieces of code run in one namespace, so none needs to know what another one uses: the
names of the source are made of the numbers of ops, and what an op uses has run before it. Only the
kernel's own code is split, not functions that it calls and not loops that run in blocks.
"""

from __future__ import annotations

from copy import copy
from types import CodeType
from typing import Any, Final

from ...errors import QuadrantsUnsupportedError
from ...ir import Block
from ...ir import codes as C
from .emit import Emitter

__all__ = ["LateEmitter"]

_LEAST: Final = 24
"""Ops of a block that is worth a piece of its own."""
_LEAVING: Final = frozenset({C.BREAK, C.CONTINUE, C.WHILE_CONTROL, C.GRAPH_REGION})
"""Ops whose Python statement must be in the code of what it leaves."""


class LateEmitter(Emitter):
    """See the module docstring. ``lines`` and ``ops`` grow while launches run."""

    pieces: list[tuple[LateEmitter, Block] | CodeType] | None = None
    """For each piece its code, or the emitter as it was at the block; None if all is emitted at
    once."""
    space: dict[str, Any]
    """The names of the running program."""

    def run(self) -> str:
        """The source; of a kernel that is emitted late, the function that begins it."""
        if any(op.code == C.GRAPH_REGION for op in self.func.body.ops):
            return super().run()
        self.pieces = [(self, self.func.body)]
        self.outer = "global"
        self.names["begin"], self.names["reach"] = self._begin, self._reach
        self.lines.append("def kernel(cx): begin(cx, globals())")
        self.ops.append(None)
        return self.lines[0]

    def nested(self, block: Block) -> None:
        late = self.pieces is not None and self.callee is None and self.body_of is None
        if late and block.owner is not None and block.owner.code == C.IF and _is_large(block):
            self._later(block)
        else:
            super().nested(block)

    def _later(self, block: Block) -> None:
        assert self.pieces is not None
        # Lists and tables are those of all copies; what is around the block is the copy's own.
        self.line(f" reach({len(self.pieces)})")
        self.pieces.append((copy(self), block))

    def _begin(self, cx: Any, space: dict[str, Any]) -> None:
        """Launch."""
        self.space = space
        space["cx"] = cx
        self._reach(0)

    def _reach(self, number: int) -> None:
        """Run a piece."""
        assert self.pieces is not None
        piece = self.pieces[number]
        if isinstance(piece, tuple):
            emitter, block = piece
            piece = self.pieces[number] = emitter._compiled(block)
            self.space.update(self.names)
        exec(piece, self.space)

    def _compiled(self, block: Block) -> CodeType:
        """The code of a piece, whose lines have their numbers in ``ops``."""
        first = len(self.lines)
        self.pad, self.loops = "", 0
        if block is self.func.body:
            self.everything()
        else:
            self.block(block)
        source = "\n".join(self.lines[first:]) + "\n"
        try:
            code = compile(source, f"<interp {self.func.name}>", "exec")
        except (SyntaxError, RecursionError, MemoryError) as error:
            raise QuadrantsUnsupportedError(f"interp: Python cannot compile it: {error}") from error
        return _moved(code, first)


def _is_large(block: Block) -> bool:
    """True if a block has enough ops, and none of them leaves a loop around it."""
    left, waiting = _LEAST, [block]
    while waiting and left > 0:
        ops = waiting.pop().ops
        left -= len(ops)
        waiting += [region for op in ops for region in op.regions]
    return left <= 0 and not _leaves(block)


def _leaves(block: Block) -> bool:
    return any(
        op.code in _LEAVING or (op.code == C.IF and any(map(_leaves, op.regions)))
        for op in block.ops
    )


def _moved(code: CodeType, lines: int) -> CodeType:
    """Code, and that of its functions, with larger numbers of lines."""
    parts = [_moved(c, lines) if isinstance(c, CodeType) else c for c in code.co_consts]
    return code.replace(co_firstlineno=code.co_firstlineno + lines, co_consts=tuple(parts))
