"""coalesce_ad_stack_loads: one read of the top of a stack serves until the stack changes.

::

    <f32> $5 = ad_stack_load_top $1       <f32> $5 = ad_stack_load_top $1
    $6 : range_for $b, $e body {          $6 : range_for $b, $e body {
      <f32> $7 = ad_stack_load_top $1       <f32> $8 = mul $5, $2
      <f32> $8 = mul $7, $2                 ...

In a loop that leaves the stack as it is, the read moves in front of the loop.

It leaves alone reads with a push or pop between them, reads of adjoints, and a read in a branch
of an if that nothing before the if reads.
"""

from __future__ import annotations

from ...ir import Block, Func, Op, replace_uses
from ...ir import codes as C
from ..manager import PassCx
from ..registry import register

__all__ = ["coalesce_ad_stack_loads"]


@register("coalesce_ad_stack_loads", optional=True)
def coalesce_ad_stack_loads(func: Func, cx: PassCx) -> bool:
    """Read the top of an adstack once where it stays the same."""
    if func.autodiff != "reverse":
        return False
    changes: dict[Op, set[Op]] = {}
    if not _changes(func.body, changes):
        return False
    sweep = _Sweep(changes)
    sweep.block(func.body, {})
    replace_uses(func.body, sweep.repl)
    cx.rewrote_all(sweep.repl, "the top of the stack was read before")
    return bool(sweep.repl) or sweep.moved


def _changes(block: Block, found: dict[Op, set[Op]]) -> set[Op]:
    """Stacks that are pushed to or popped under ``block``; ``found`` gets it for ifs and loops."""
    here: set[Op] = set()
    for op in block.ops:
        if op.regions:
            inside: set[Op] = set()
            for region in op.regions:
                inside |= _changes(region, found)
            found[op] = inside
            here |= inside
        elif op.code in (C.AD_STACK_PUSH, C.AD_STACK_POP, C.AD_STACK_ALLOCA):
            here.add(op if op.code == C.AD_STACK_ALLOCA else op.args[0])
    return here


class _Sweep:
    def __init__(self, changes: dict[Op, set[Op]]) -> None:
        self.changes = changes
        self.repl: dict[Op, Op] = {}
        self.moved = False

    def block(self, block: Block, tops: dict[Op, Op]) -> list[Op]:
        """Rewrite a block. tops: stack -> the read of its top that holds when the block begins.

        Return the reads, the first of each stack, that can be moved in front of the block.
        """
        early: dict[Op, Op] = {}
        changed: set[Op] = set()
        out: list[Op] = []
        for op in block.ops:
            code = op.code
            if op.regions:
                self.control(op, tops, changed, out, early)
                inside = self.changes[op]
                changed |= inside
                for stack in inside:
                    tops.pop(stack, None)
            elif code == C.AD_STACK_LOAD_TOP:
                stack = op.args[0]
                found = tops.get(stack)
                if found is not None:
                    self.repl[op] = found
                    continue
                tops[stack] = op
                if stack not in changed:
                    early[stack] = op
            elif code in (C.AD_STACK_PUSH, C.AD_STACK_POP):
                changed.add(op.args[0])
                tops.pop(op.args[0], None)
            elif code == C.AD_STACK_ALLOCA:
                changed.add(op)
            out.append(op)
        block.ops = out
        return list(early.values())

    def control(
        self, op: Op, tops: dict[Op, Op], changed: set[Op], out: list[Op], early: dict[Op, Op]
    ) -> None:
        """Rewrite the blocks of an if or a loop."""
        loop = C.LOOP[op.code]
        inside = self.changes[op]
        for region in op.regions:
            start = {s: top for s, top in tops.items() if not loop or s not in inside}
            movable = self.block(region, start)
            if op.code != C.RANGE_FOR:
                continue
            for top in movable:
                stack = top.args[0]
                if stack not in inside and stack.block is not region:
                    region.ops.remove(top)
                    top.block = op.block
                    out.append(top)
                    tops[stack] = top
                    if stack not in changed:
                        early[stack] = top
                    self.moved = True
