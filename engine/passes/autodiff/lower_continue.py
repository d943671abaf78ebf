"""lower_continue: removes ``continue`` from loops over ranges (reverse mode).

A loop that runs backwards cannot leave an iteration early. The ops after an ``if`` that may
``continue`` move into the branch that does not::

    $5 : if $4 then {                     $5 : if $4 then {
      $6 : continue                       } else {
    } else {                                $7 : ...
    }                                     }
    $7 : ...

If several paths ``continue``, each sets a variable, and the rest is in an ``if`` on that variable.
Unreachable code is dropped.

It leaves alone the ``continue`` of a ``while``, which does not run backwards, and kernels that are
not differentiated in reverse mode.
"""

from __future__ import annotations

from typing import Final

from ...ir import Block, Builder, Callee, Func, Op, all_blocks, set_block
from ...ir import codes as C
from ...types import u1
from ..manager import PassCx
from ..registry import register

__all__ = ["lower_continue"]


@register("lower_continue")
def lower_continue(func: Func, cx: PassCx) -> bool:
    """Turn continue in loops over ranges into ifs (reverse mode)."""
    if func.autodiff != "reverse" or isinstance(func, Callee):
        return False
    blocks = all_blocks(func.body)
    if not any(b.ops and b.ops[-1].code == C.CONTINUE for b in blocks):
        return False
    lowering = _Lowering(func)
    for block in reversed(blocks):  # inner loops first
        if block.owner is not None and block.owner.code == C.RANGE_FOR:
            lowering.body(block)
    return lowering.changed


class _Lowering:
    def __init__(self, func: Func) -> None:
        self.func: Final = func
        self.changed = False

    def body(self, block: Block) -> None:
        """Lower the body of one loop."""
        if self.continues(block):
            self.changed = True
            self.ends(block, 0)

    def continues(self, block: Block) -> bool:
        """True if some path through ``block`` leaves the iteration."""
        if block.ops and block.ops[-1].code == C.CONTINUE:
            return True
        return any(
            op.code == C.IF and any(self.continues(region) for region in op.regions)
            for op in block.ops
        )

    def ends(self, block: Block, start: int) -> list[Block]:
        """Lower a block from an op on; the blocks at whose ends the iteration goes on."""
        ops = block.ops
        for at in range(start, len(ops)):
            op = ops[at]
            if op.code == C.CONTINUE:
                del ops[at:]
                return []
            if op.code != C.IF or not any(self.continues(r) for r in op.regions):
                continue
            rest = ops[at + 1 :]
            del ops[at + 1 :]
            open_ends = [end for region in op.regions for end in self.ends(region, 0)]
            if not rest or not open_ends:
                return open_ends
            if len(open_ends) > 1:
                target = self.join(block, op, open_ends)
            else:
                (target,) = open_ends
            first = len(target.ops)
            target.ops += rest
            set_block(rest, target)
            return self.ends(target, first)
        return [block]

    def join(self, block: Block, branch: Op, ends: list[Block]) -> Block:
        """The block that is run after ``branch`` if one of ``ends`` was reached."""
        b = Builder(self.func, block, branch.loc, [])
        goes_on = b.alloca(u1, "goes on")
        b.store(goes_on, b.const(False, u1))
        block.ops[-1:] = [*b.ops, branch]
        for end in ends:
            b = Builder(self.func, end, branch.loc)
            b.store(goes_on, b.const(True, u1))
        b = Builder(self.func, block, branch.loc)
        return b.if_(b.load(goes_on)).regions[0]
