"""One forward sweep that applies rules to ops.

A rule gets an op whose operands are already rewritten and returns

* None: nothing to do;
* the op itself: it was changed in place (its id stays);
* another op: a value that comes before it and replaces it; the op is deleted;
* `DROP`: an op without a value is deleted.

New ops that a rule makes with the `Rewriter` are put in front of the op, in order, and
``func.origins`` records which op they came from. Definitions come before uses, so one sweep with a
map of replacements reaches every use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from ...ir import UNKNOWN, Block, Func, Op
from ...ir import codes as C
from ...types import DataType, Type, normalize, void

if TYPE_CHECKING:
    from ..manager import PassCx

__all__ = ["DROP", "Rewriter", "Rule", "Table", "apply_rules", "rule_table"]

Rule = Callable[[Op, "Rewriter"], Op | None]
Table = list[tuple[Rule, ...]]

DROP: Final = Op(C.CONST, void, (), None, (), -1, None, UNKNOWN)
"""Returned by a rule to delete an op without a value."""

_MAX_CHAIN = 8
"""The most changes of one op in a sweep; the rest waits for the next round."""


def rule_table(rules: Mapping[int, tuple[Rule, ...]]) -> Table:
    """``rules`` as a list indexed by opcode."""
    return [rules.get(code, ()) for code in range(C.COUNT)]


class Rewriter:
    """The tools of a rule: constants, new ops, and ways to turn its op into another.

    fast_math: the config's; rules about floats that change results for NaN, infinities, signed
    zeros or the last bit check it. cx: for remarks.
    """

    __slots__ = ("changed", "cx", "fast_math", "func", "op", "pending", "repl")

    def __init__(self, func: Func, cx: PassCx) -> None:
        self.func = func
        self.cx = cx
        self.fast_math = cx.config.fast_math
        self.changed = False
        self.repl: dict[Op, Op] = {}
        self.pending: list[Op] = []
        self.op: Op = DROP

    def emit(self, code: int, type: Type, args: tuple[Op, ...], attr: object = None) -> Op:
        """A new op in front of the current one, with its location."""
        op = self.op
        func = self.func
        new = func.new_op(code, type, args, attr, op.loc, op.block)
        func.origins[new.id] = op.id
        self.pending.append(new)
        return new

    def const(self, value: float | int, t: DataType) -> Op:
        """A new constant in front of the current op."""
        return self.emit(C.CONST, t, (), normalize(value, t))

    def fired(self, op: Op, result: Op, rule: Rule) -> None:
        """Report what ``rule`` made of ``op``."""
        cx = self.cx
        if cx.remarking:
            into = None if result is DROP else result
            cx.rewrote(op, into, f"rule {rule.__name__.lstrip('_')}")

    def become(self, op: Op, code: int, *args: Op) -> Op:
        """Turn ``op`` into another operation of the same type."""
        op.code = code
        op.args = args
        op.attr = None
        return op

    def become_const(self, op: Op, value: float | int) -> Op:
        """Turn ``op`` into a constant of its type."""
        assert isinstance(op.type, DataType)
        op.code = C.CONST
        op.args = ()
        op.attr = normalize(value, op.type)
        return op


def apply_rules(func: Func, cx: PassCx, table: Table) -> bool:
    """Apply the rules in ``table`` once to every op of ``func``; True if any fired."""
    rw = Rewriter(func, cx)
    _sweep(func.body, rw, table)
    return rw.changed


def _sweep(block: Block, rw: Rewriter, table: Table) -> None:
    repl = rw.repl
    get = repl.get
    out: list[Op] | None = None  # the new list, once it differs from the old one
    for index, op in enumerate(block.ops):
        if repl:
            args = op.args
            for a in args:
                if a in repl:
                    op.args = tuple([get(x, x) for x in args])
                    break
        for rule in table[op.code]:
            rw.op = op
            if (result := rule(op, rw)) is not None:
                rw.changed = True
                rw.fired(op, result, rule)
                if result is op:
                    result = _again(op, rw, table)
                if rw.pending or result is not op:
                    if out is None:
                        out = block.ops[:index]
                    out += rw.pending
                    rw.pending.clear()
                if result is not op:
                    if result is not DROP:
                        repl[op] = result
                elif out is not None:
                    out.append(op)
                break
        else:
            if out is not None:
                out.append(op)
        if op.regions:
            for region in op.regions:
                _sweep(region, rw, table)
    if out is not None:
        block.ops = out


def _again(op: Op, rw: Rewriter, table: Table) -> Op:
    """Apply further rules to an op that one changed in place."""
    for _ in range(_MAX_CHAIN):
        for rule in table[op.code]:
            if (result := rule(op, rw)) is not None:
                rw.fired(op, result, rule)
                if result is not op:
                    return result
                break
        else:
            break
    return op
