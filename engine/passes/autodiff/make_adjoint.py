"""make_adjoint: appends its reverse to each independent block, and drops the kernel's side effects.

Before, where parameter 2 holds the adjoints of parameter 0, and 3 those of 1::

    <f32> $4 = global_load $3
    <f32> $5 = mul $4, $4
    <*f32> $7 = external_ptr $6, $i ['unsafe']
    $8 : global_store $7, $5

After::

    <f32> $4 = global_load $3
    <*f32> $9 = arg_addr [(3, False)]
    <*f32> $10 = external_ptr $9, $i ['unsafe']
    <f32> $11 = global_load $10                    the adjoint of the element
    <f32> $12 = const 0.0
    $13 : global_store $10, $12                    what was in it before the store counts no more
    <f32> $14 = mul $11, $4                        `derivatives` says so for each operation
    <f32> $15 = mul $11, $4
    <f32> $16 = add $14, $15
    <*f32> $17 = arg_addr [(2, False)]
    <*f32> $18 = external_ptr $17, $i ['unsafe']
    <f32> $19 = atomic_add $18, $16

The reverse of an ``if`` is an ``if`` on the same condition, and that of a loop is a loop over the
same bounds in the opposite direction; that of a push is a pop. The reverse reads kept values from
the top of their stack, and recomputes others in the block that mirrors theirs. Of the forward part,
only ops that the reverse needs remain; stores to arrays, prints, the user's asserts and the
kernel's results go.

It leaves alone ops through which no derivative flows, and checks of bounds.
"""

from __future__ import annotations

from ...ir import Builder, Func, Op, set_block, walk
from ...ir import codes as C
from ...types import PointerType
from ..manager import PassCx
from ..registry import register
from .activity import Activity
from .independent_blocks import independent_blocks
from .primal_effects import delete_unneeded
from .reverse_block import reverse_block
from .segments import FENCE

__all__ = ["make_adjoint"]


@register("make_adjoint")
def make_adjoint(func: Func, cx: PassCx) -> bool:
    """Append its reverse to each independent block, and drop the kernel's side effects."""
    if func.autodiff != "reverse":
        return False
    activity = cx.analysis("activity", Activity)
    forward = set(walk(func.body))
    front: list[Op] = []
    cells = _adjoints_of_cells(func, activity, front)
    blocks = independent_blocks(func, activity)
    after: dict[Op, list[Op]] = {}  # last op of an independent block -> its reverse
    for ib in blocks:
        made = reverse_block(func, ib, activity, cells)
        set_block(made, ib.block)
        after[ib.ops[-1]] = made
    for block in {id(ib.block): ib.block for ib in blocks}.values():
        out: list[Op] = []
        for op in block.ops:
            out.append(op)
            out += after.get(op, ())
        block.ops = out
    func.body.ops = [
        *front,
        *[op for op in func.body.ops if op.code != C.MEM_FENCE or op.attr != FENCE],
    ]
    func.results = ()
    delete_unneeded(func, forward, set(activity.flat), activity.cells)
    return True


def _adjoints_of_cells(func: Func, activity: Activity, front: list[Op]) -> dict[Op, Op]:
    """A variable for the adjoint of each cell, put to ``front``."""
    found: dict[Op, Op] = {}
    for cell in func.body.ops:
        if cell in activity.cells and cell in activity.active:
            b = Builder(func, func.body, cell.loc, front)
            t = cell.type
            assert isinstance(t, PointerType)
            found[cell] = b.alloca(t.elem, f"adjoint of {cell.attr}")
    return found
