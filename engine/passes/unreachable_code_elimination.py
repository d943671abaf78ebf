"""unreachable_code_elimination: deletes code that cannot run.

Before::

    <u1> $0 = const true
    $1 : if $0 then {
      $2 : global_store $8, $9
    } else {
      $3 : global_store $8, $7
    }
    $4 : range_for $10, $10 body {
      ...
    }

After::

    $2 : global_store $8, $9

The pass removes

* an ``if`` on a constant: the branch that runs replaces it;
* ops after an op that always leaves: `continue`, `break`, `return`, a ``while_control`` on a
  constant 0, or an ``if`` that leaves in both branches;
* a ``while_control`` on any other constant, which never leaves;
* a ``while`` that always leaves at the end of its first iteration: its body replaces it;
* a `continue` as the last op of a loop's body, also inside an ``if`` at its end;
* a loop or a task over a range that is empty by its constant bounds.

If a loop moves to the root of a kernel, or of a graph region, this way, it is marked
``strictly_serialized``: only loops that the kernel's author wrote there run in parallel.

It leaves alone an empty ``if`` (`simplify` deletes it), a ``while`` that never ends,
and loops that run exactly once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..analysis.uses import code_mask
from ..ir import Block, Func, Op, set_block
from ..ir import codes as C
from .registry import register

if TYPE_CHECKING:
    from .manager import PassCx

__all__ = ["unreachable_code_elimination"]


@register("unreachable_code_elimination", optional=True, silent=True)
def unreachable_code_elimination(func: Func, cx: PassCx) -> bool:
    """Delete code that cannot run: constant ifs, code after a jump, empty ranges."""
    ops = cx.ops()
    if not (
        C.CONST in [op.args[0].code for op in ops.of(_IFS)]
        or any(map(_may_end, ops.of(_JUMPS)))
        or any(map(_is_empty, ops.of(_RANGES)))
    ):
        return False
    sweep = _Sweep(func.roots())
    sweep.block(func.body)
    return sweep.changed


_INTERESTING = [
    C.END[code] or C.CONTROL[code] or code == C.WHILE_CONTROL for code in range(C.COUNT)
]
_IFS = code_mask(code == C.IF for code in range(C.COUNT))
_JUMPS = code_mask(
    (C.END[code] and code != C.BOUNDS) or code == C.WHILE_CONTROL for code in range(C.COUNT)
)
_RANGES = code_mask(code in (C.RANGE_FOR, C.BOUNDS) for code in range(C.COUNT))


def _may_end(jump: Op) -> bool:
    """True if something is deleted for a jump: ops that follow it, or an if that it ends, or the
    jump, where the iteration ends anyway, or the loop, if it always leaves in the first one."""
    if jump.code == C.WHILE_CONTROL:
        if jump.args[0].code != C.CONST:
            return False
        if jump.args[0].attr:
            return True
    op = jump
    while True:
        block = op.block
        assert block is not None
        if block.ops[-1] is not op:
            return op is jump or all(map(_ends, op.regions))
        owner = block.owner
        if owner is None:
            return False
        if owner.code != C.IF:
            break
        op = owner
    if jump.code == C.WHILE_CONTROL:
        return owner.code == C.WHILE and _runs_once(block)
    return jump.code == C.CONTINUE and C.LOOP[owner.code]


def _ends(block: Block) -> bool:
    """True if the end of a block is not reached, as its last op leaves."""
    if not block.ops:
        return False
    last = block.ops[-1]
    if last.code == C.IF:
        return all(map(_ends, last.regions))
    return C.END[last.code] or _leaves(last)


def _leaves(op: Op) -> bool:
    """True for a while_control that always leaves."""
    return op.code == C.WHILE_CONTROL and op.args[0].code == C.CONST and not op.args[0].attr


class _Sweep:
    __slots__ = ("changed", "roots")

    def __init__(self, roots: list[Block]) -> None:
        self.roots = frozenset(roots)
        self.changed = False

    def block(self, block: Block) -> bool:
        """Clean ``block`` and what is under it; return True if its end can be reached."""
        interesting = _INTERESTING
        out: list[Op] | None = None
        ops = block.ops
        for index, op in enumerate(ops):
            if not interesting[op.code]:
                if out is not None:
                    out.append(op)
                continue
            kept, goes_on = self.control(op)
            if out is None and (len(kept) != 1 or kept[0] is not op):
                out = ops[:index]
            if out is not None:
                if block in self.roots and (len(kept) != 1 or kept[0] is not op):
                    _serialize(kept)
                set_block(kept, block)
                out += kept
            if not goes_on:
                if index + 1 < len(ops) and out is None:
                    out = ops[: index + 1]
                break
        else:
            goes_on = True
        if out is not None:
            block.ops = out
            self.changed = True
        return goes_on

    def control(self, op: Op) -> tuple[list[Op], bool]:
        """The ops that replace ``op``, and whether the next op can be reached."""
        code = op.code
        if code == C.IF:
            return self.branch(op)
        if code == C.WHILE_CONTROL:
            cond = op.args[0]
            if cond.code != C.CONST:
                return [op], True
            return ([], True) if cond.attr else ([op], False)
        if C.END[code]:
            return [op], False
        if code == C.GRAPH_REGION:
            self.block(op.regions[0])
            return [op], True
        bounds = op
        if code == C.OFFLOADED:
            self.block(op.regions[0])
            bounds = op.regions[0].ops[-1]
        if _is_empty(bounds):
            return [], True
        body = op.regions[-1]
        self.block(body)
        self.trim(body)
        if code == C.WHILE and _runs_once(body):
            return body.ops[:-1], True
        return [op], True

    def branch(self, op: Op) -> tuple[list[Op], bool]:
        cond = op.args[0]
        then, other = op.regions
        if cond.code == C.CONST:
            taken = then if cond.attr else other
            goes_on = self.block(taken)
            return taken.ops, goes_on
        then_goes_on = self.block(then)
        return [op], self.block(other) or then_goes_on

    def trim(self, block: Block) -> None:
        """Delete a `continue` that ends a loop's body, where the iteration ends anyway."""
        while block.ops:
            last = block.ops[-1]
            if last.code != C.CONTINUE:
                if last.code == C.IF:
                    for region in last.regions:
                        self.trim(region)
                return
            block.ops = block.ops[:-1]
            self.changed = True


def _serialize(ops: list[Op]) -> None:
    """Keep loops that come to the root from an if or a while in order."""
    for op in ops:
        if op.code == C.RANGE_FOR:
            op.attr = op.attr._replace(strictly_serialized=True)


def _is_empty(bounds: Op) -> bool:
    """True if some axis of ``begin, end, ...`` has constants with nothing between them."""
    args = bounds.args
    for i in range(0, len(args), 2):
        begin, end = args[i], args[i + 1]
        if begin is end or (
            begin.code == C.CONST and end.code == C.CONST and begin.attr >= end.attr
        ):
            return True
    return False


def _runs_once(body: Block) -> bool:
    """True if a while's body ends in leaving it, and has no other way to leave or to repeat."""
    if not body.ops:
        return False
    return _leaves(body.ops[-1]) and not _has_jumps(body.ops[:-1])


def _has_jumps(ops: list[Op]) -> bool:
    """True if ``ops`` hold a jump that belongs to the loop around them."""
    for op in ops:
        if op.code in (C.WHILE_CONTROL, C.BREAK, C.CONTINUE):
            return True
        if op.code == C.IF and any(_has_jumps(region.ops) for region in op.regions):
            return True
    return False
