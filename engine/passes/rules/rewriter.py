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

from ...analysis.uses import code_mask
from ...ir import UNKNOWN, Block, Func, Op
from ...ir import codes as C
from ...named_tuple import NamedTuple
from ...types import DataType, Type, normalize, void

if TYPE_CHECKING:
    from ..manager import PassCx

__all__ = ["DROP", "Rewriter", "Rule", "Table", "apply_rules", "rule_table"]

Rule = Callable[[Op, "Rewriter"], Op | None]

DROP: Final = Op(C.CONST, void, (), None, (), -1, None, UNKNOWN)
"""Returned by a rule to delete an op without a value."""

_MAX_CHAIN = 8
"""The most changes of one op in a sweep; the rest waits for the next round."""


class Table(NamedTuple):
    """rules: by opcode. mask: the opcodes with rules, see `code_mask`."""

    rules: list[tuple[Rule, ...]]
    mask: bytes


def rule_table(rules: Mapping[int, tuple[Rule, ...]]) -> Table:
    """The table of ``rules``, which are by opcode."""
    found = [rules.get(code, ()) for code in range(C.COUNT)]
    return Table(found, code_mask(found))


class Rewriter:
    """The tools of a rule: constants, new ops, and ways to turn its op into another.

    fast_math: the config's; rules about floats that change results for NaN, infinities, signed
    zeros or the last bit check it. cx: for remarks. first: the rule that fired first, with the op
    and its result; the sweep does nothing up to there.
    """

    __slots__ = ("cx", "fast_math", "first", "func", "op", "pending", "repl")

    def __init__(self, func: Func, cx: PassCx) -> None:
        self.func = func
        self.cx = cx
        self.fast_math = cx.config.fast_math
        self.first: tuple[Op, Op, Rule] | None = None
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
    rules = table.rules
    for op in cx.ops().of(table.mask):
        rw.op = op
        for rule in rules[op.code]:
            if (result := rule(op, rw)) is not None:
                rw.first = (op, result, rule)
                _sweep(func.body, rw, rules)
                return True
    return False


def _sweep(block: Block, rw: Rewriter, rules: list[tuple[Rule, ...]]) -> None:
    repl = rw.repl
    get = repl.get
    out: list[Op] | None = None  # the new list, once it differs from the old one
    for index, op in enumerate(block.ops):
        result: Op | None = None
        if rw.first is not None:
            if op is rw.first[0]:
                result = _fired(*rw.first, rw, rules)
                rw.first = None
        else:
            if repl:
                args = op.args
                for a in args:
                    if a in repl:
                        op.args = tuple([get(x, x) for x in args])
                        break
            for rule in rules[op.code]:
                rw.op = op
                if (result := rule(op, rw)) is not None:
                    result = _fired(op, result, rule, rw, rules)
                    break
        if result is None or (result is op and not rw.pending):
            if out is not None:
                out.append(op)
        else:
            if out is None:
                out = block.ops[:index]
            out += rw.pending
            rw.pending.clear()
            if result is op:
                out.append(op)
            elif result is not DROP:
                repl[op] = result
        if op.regions:
            for region in op.regions:
                _sweep(region, rw, rules)
    if out is not None:
        block.ops = out


def _fired(op: Op, result: Op, rule: Rule, rw: Rewriter, rules: list[tuple[Rule, ...]]) -> Op:
    """Report what ``rule`` made of ``op``; apply further rules if that is changed in place."""
    rw.fired(op, result, rule)
    for _ in range(_MAX_CHAIN if result is op else 0):
        for rule in rules[op.code]:
            if (again := rule(op, rw)) is not None:
                rw.fired(op, again, rule)
                if again is not op:
                    return again
                break
        else:
            break
    return result
