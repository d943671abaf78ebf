"""per_task_cse: computes each value only once (common-subexpression elimination).

Before::

    <f32> $2 = mul $x, $y
    $3 : if $c then {
      $4 : global_store $p, $2
      <f32> $5 = mul $y, $x
      $6 : global_store $q, $5
    } else {
      $7 : global_store $p, $2
    }

After::

    <f32> $2 = mul $x, $y
    $4 : global_store $p, $2
    $3 : if $c then {
      $6 : global_store $q, $2
    } else {
    }

If a pure op has the same opcode, type, operands (in any order if the op is commutative) and
attribute as an earlier op in its own block or in one around it, the earlier op replaces it.
An op that begins, or ends, both branches of an ``if`` moves in front of it, or after it.

It leaves alone loads, stores, atomics and random numbers (outside of such ifs), constants that
differ in the sign of a zero or in NaN, and equal ops where neither comes before the other on
every path, such as in two branches. Tasks share nothing: one cannot see the values of another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir import Block, Func, Op, replace_uses, set_block
from ..ir import codes as C
from ..ir.semantics import const_key, same_const
from .registry import register
from .rules.rewriter import keep_merged

if TYPE_CHECKING:
    from .manager import PassCx

__all__ = ["per_task_cse"]

_Key = tuple[object, ...]


# An operand of what goes is one of what stays: nothing becomes unused. An operand becomes an equal
# op, and a constant an equal constant; none of them moves.
@register(
    "per_task_cse", optional=True, per_task=True, silent=True,
    keeps=("constant_fold", "die", "extract_constant"),
)  # fmt: skip
def per_task_cse(func: Func, cx: PassCx) -> bool:
    """Reuse values that were computed before; merge what both branches of an if do."""
    cse = _Cse()
    regions = (func.body,) if cx.task is None else cx.task.regions
    for region in regions:
        cse.block(region)
    cx.rewrote_all(cse.repl, "computed before")
    cx.rewrote_all(cse.pairs, "computed in both branches")
    # Each value was looked up with its operands replaced; only ends of branches were compared
    # before theirs were.
    if cse.changed and not any(map(_has_common_end, cse.ifs)):
        cx.keep("per_task_cse")
    if not cse.moved:
        keep_merged(cx, cse.users)
    return cse.changed


class _Cse:
    __slots__ = ("changed", "ifs", "known", "moved", "pairs", "repl", "users")

    def __init__(self) -> None:
        self.changed = False
        self.moved = False
        """True if ops have moved out of branches."""
        self.users: list[Op] = []
        """The ops with a new operand."""
        self.known: dict[_Key, Op] = {}
        """Values that come before the current op on every path, by what they compute."""
        self.repl: dict[Op, Op] = {}
        self.ifs: list[Op] = []
        """Those with two branches."""
        self.pairs: dict[Op, Op] = {}
        """Ops of a second branch by the equal ones of the first that have moved out for both."""

    def block(self, block: Block) -> None:
        known, repl = self.known, self.repl
        get = repl.get
        pure, commutative = C.PURE, C.COMMUTATIVE
        added: list[_Key] = []
        dead = False
        ops = self.hoisted(block)
        for op in ops:
            code = op.code
            args = op.args
            if repl:
                for a in args:
                    if a in repl:
                        args = op.args = tuple([get(x, x) for x in args])
                        self.users.append(op)
                        break
            if pure[code]:
                swap = commutative[code] and args[0].id > args[1].id
                # Real min and max give either of two zeros with different signs.
                if swap and not (op.type.is_real and code in (C.MIN, C.MAX)):
                    args = (args[1], args[0])
                attr = op.attr
                key = (code, op.type, args, attr if code else const_key(attr))
                first = known.setdefault(key, op)
                if first is op:
                    added.append(key)
                else:
                    repl[op] = first
                    dead = True
            elif op.regions:
                for region in op.regions:
                    self.block(region)
        if dead:
            self.changed = True
            block.ops = [op for op in block.ops if op not in repl]
        for key in added:
            del known[key]

    def hoisted(self, block: Block) -> list[Op]:
        """The block's ops after equal ends of the branches of its ifs have moved out."""
        ops = block.ops
        if C.IF not in [op.code for op in ops]:
            return ops
        out: list[Op] | None = None
        for index, op in enumerate(ops):
            if op.code == C.IF and op.regions[0].ops and op.regions[1].ops:
                self.ifs.append(op)
                before, after = _common_ends(op, self.pairs)
                if before or after:
                    self.changed = self.moved = True
                    set_block(before, block)
                    set_block(after, block)
                    if out is None:
                        out = ops[:index]
                    out += [*before, op, *after]
                    continue
            if out is not None:
                out.append(op)
        if out is not None:
            block.ops = out
        return block.ops


def _common_ends(op: Op, merged: dict[Op, Op]) -> tuple[list[Op], list[Op]]:
    """Take equal first and equal last ops out of both branches of the if ``op``; ``merged`` gets
    those of the second branch."""
    then, other = op.regions
    a, b = then.ops, other.ops
    pairs: dict[Op, Op] = {}
    size = min(len(a), len(b))
    first = 0
    while first < size and _equal(a[first], b[first], pairs):
        pairs[b[first]] = a[first]
        first += 1
    last = 0
    # A last op is used by none, and uses nothing of its branch but what is common.
    while last < size - first and _equal(a[-1 - last], b[-1 - last], pairs):
        last += 1
    if first or last:
        then.ops = a[first : len(a) - last]
        other.ops = b[first : len(b) - last]
        replace_uses(other, pairs)
        merged.update(pairs)
        if last:
            merged.update(zip(b[-last:], a[-last:], strict=True))
    return a[:first], a[len(a) - last :]


def _has_common_end(op: Op) -> bool:
    """True if `_common_ends` would find something."""
    a, b = op.regions[0].ops, op.regions[1].ops
    return bool(a and b) and (_equal(a[0], b[0], {}) or _equal(a[-1], b[-1], {}))


def _equal(a: Op, b: Op, pairs: dict[Op, Op]) -> bool:
    """True if two ops do the same; ``pairs`` maps ops of the second branch to equal ones."""
    if a.code != b.code or a.type is not b.type or a.regions or C.END[a.code]:
        return False
    same = same_const(a.attr, b.attr) if a.code == C.CONST else a.attr == b.attr
    return same and a.args == tuple([pairs.get(x, x) for x in b.args])
