"""extract_constant: moves constants to the front and keeps one of each.

Before::

    kernel k(x: ndarray<f32, 1>) stage=typed {
      <i32> $0 = arg_load [0]
      <i32> $1 = const 2
      <i32> $2 = mul $0, $1
      $3 : if $9 then {
        <i32> $4 = const 2
        <i32> $5 = add $2, $4

After: ``$1`` comes first, and ``$5 = add $2, $1``; ``$4`` is gone.

The front is the start of the kernel's body, or of each region (header, body) of a task, so that
tasks stay independent of each other. A constant is then before every use, so other passes need not
check its position, and loops do not repeat it.

Constants that differ in type, or in the sign of a zero, are not merged, nor is NaN with a number.
Ops other than constants do not move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..analysis.uses import code_mask
from ..ir import Block, Func, Op
from ..ir import codes as C
from ..ir.edit import replace_uses
from ..ir.semantics import const_key
from .registry import register

if TYPE_CHECKING:
    from .manager import PassCx

__all__ = ["extract_constant"]


# An operand becomes an equal constant; other rules than folding compare operands by identity.
@register(
    "extract_constant", optional=True, silent=True,
    keeps=("constant_fold", "die", "extract_constant"),
)  # fmt: skip
def extract_constant(func: Func, cx: PassCx) -> bool:
    """Move constants to the front of the kernel or task, one of each value."""
    changed, only_moved = False, True
    tasks = func.tasks()
    fronts = [region for task in tasks for region in task.regions] if tasks else [func.body]
    counts = [_in_front(front) for front in fronts]
    constants: dict[Block, list[Op]] = {}
    if cx.ops().codes.count(C.CONST) > sum(counts):
        known = {front: front for front in fronts}
        for op in cx.ops().of(_CONST):
            assert op.block is not None
            constants.setdefault(_front_of(op.block, known), []).append(op)
    for front, count in zip(fronts, counts, strict=True):
        found = constants.get(front) or front.ops[:count]
        repl = _equal(found)
        if repl or len(found) > count:
            changed = True
            only_moved &= not repl and not any(map(_is_in_branch, found[count:]))
            _extract(front, found, count, repl, cx)
    if only_moved:  # no rule asks for the position of a constant, but for beginnings of branches
        cx.keep("alg_simp", "binary_op_simplify", "per_task_cse")
    return changed


_CONST = code_mask(code == C.CONST for code in range(C.COUNT))


def _in_front(front: Block) -> int:
    """The number of constants that ``front`` begins with."""
    for count, op in enumerate(front.ops):
        if op.code != C.CONST:
            return count
    return len(front.ops)


def _front_of(block: Block, known: dict[Block, Block]) -> Block:
    """The front that ``block`` is under; ``known`` keeps answers."""
    found = known.get(block)
    if found is None:
        assert block.owner is not None
        assert block.owner.block is not None
        found = known[block] = _front_of(block.owner.block, known)
    return found


def _is_in_branch(op: Op) -> bool:
    owner = op.block.owner if op.block is not None else None
    return owner is not None and owner.code == C.IF


def _equal(constants: list[Op]) -> dict[Op, Op]:
    """Those that are equal to an earlier one, and that one."""
    first: dict[object, Op] = {}
    repl: dict[Op, Op] = {}
    for op in constants:
        same = first.setdefault((op.type, const_key(op.attr)), op)
        if same is not op:
            repl[op] = same
    return repl


def _extract(front: Block, constants: list[Op], count: int, repl: dict[Op, Op], cx: PassCx) -> None:
    """Move the constants of one front there; the first ``count`` of them are there already."""
    moved = constants[count:]
    for block in {op.block for op in moved}:
        if block is not None and block is not front:
            block.ops = [op for op in block.ops if op.code != C.CONST]
    for op in moved:
        op.block = front
    rest = [op for op in front.ops[count:] if op.code != C.CONST]
    front.ops = [*[op for op in constants if op not in repl], *rest]
    if repl:
        replace_uses(front, repl)
        cx.rewrote_all(repl, "the same constant")
