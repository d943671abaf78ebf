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

from ..ir import Block, Func, Op, set_block
from ..ir import codes as C
from .first_look import is_empty, may_cut, runs_once
from .registry import register

if TYPE_CHECKING:
    from .manager import PassCx

__all__ = ["unreachable_code_elimination"]


@register("unreachable_code_elimination", optional=True, silent=True)
def unreachable_code_elimination(func: Func, cx: PassCx) -> bool:
    """Delete code that cannot run: constant ifs, code after a jump, empty ranges."""
    if not may_cut(cx):
        return False
    sweep = _Sweep(func.roots())
    sweep.block(func.body)
    return sweep.changed


_INTERESTING = [
    C.END[code] or C.CONTROL[code] or code == C.WHILE_CONTROL for code in range(C.COUNT)
]


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
        if is_empty(bounds):
            return [], True
        body = op.regions[-1]
        self.block(body)
        self.trim(body)
        if code == C.WHILE and runs_once(body):
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
