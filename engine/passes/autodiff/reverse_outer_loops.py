"""reverse_outer_loops: makes loops around independent blocks run backwards.

Before, where the bodies of the two inner loops are independent blocks::

    $3 : range_for $b, $e body {          $3 : range_for $b, $e body {
      $5 : range_for $0, $n body {          $9 : range_for $0, $m {reversed=True} body {
        ...                                   ...
      }                                     }
      $9 : range_for $0, $m body {          $5 : range_for $0, $n {reversed=True} body {
        ...                                   ...
      }                                     }
    }                                     }

The order of loops and ``if`` ops with something to differentiate is reversed too: in the reverse,
the last one comes first. They move after all other ops of their block, which compute values.

It leaves alone parallel loops, whose iterations have no order, and everything inside of
independent blocks, which `make_adjoint` reverses.
"""

from __future__ import annotations

from ...ir import Block, Func, Op
from ...ir import codes as C
from ..manager import PassCx
from ..registry import register
from .activity import Activity
from .independent_blocks import independent_blocks
from .segments import is_parallel, reversed_part, segments

__all__ = ["reverse_outer_loops"]


@register("reverse_outer_loops")
def reverse_outer_loops(func: Func, cx: PassCx) -> bool:
    """Run loops around independent blocks backwards, the last one first."""
    if func.autodiff != "reverse":
        return False
    activity = cx.analysis("activity", Activity)
    firsts = {ib.ops[0] for ib in independent_blocks(func, activity)}
    before = func.body.ops
    part = reversed_part(func)
    out = before[: len(before) - len(part)]
    changed = False
    for ops in segments(part):
        if not any(op in activity.effects for op in ops):
            out += ops
        elif is_parallel(ops[0]):
            changed |= _reverse(ops[0].regions[0], activity.effects, firsts)
            out += ops
        elif ops[0] in firsts:
            out += ops
        else:
            out += _swapped(ops, activity.effects)
            for op in ops:
                changed |= _turn(op, activity.effects, firsts)
    changed |= out != before
    func.body.ops = out
    return changed


def _reverse(block: Block, effects: set[Op], firsts: set[Op]) -> bool:
    """Reverse what is in a block, if it is around independent blocks."""
    if not block.ops or block.ops[0] in firsts:
        return False
    before = block.ops
    block.ops = _swapped(before, effects)
    changed = block.ops != before
    for op in before:
        changed |= _turn(op, effects, firsts)
    return changed


def _swapped(ops: list[Op], effects: set[Op]) -> list[Op]:
    """Ops without effects, then the others, the last first."""
    return [op for op in ops if op not in effects] + [op for op in reversed(ops) if op in effects]


def _turn(op: Op, effects: set[Op], firsts: set[Op]) -> bool:
    """Turn a loop around independent blocks; look into it, or into an if."""
    if op not in effects:
        return False
    changed = False
    if op.code == C.RANGE_FOR:
        op.attr = op.attr._replace(reversed=not op.attr.reversed)
        changed = True
    for region in op.regions:
        changed |= _reverse(region, effects, firsts)
    return changed
