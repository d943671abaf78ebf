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

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final

from ...analysis.uses import code_mask
from ...ir import UNKNOWN, Func, Op
from ...ir import codes as C
from ...named_tuple import NamedTuple
from ...types import DataType, Type, normalize, void

if TYPE_CHECKING:
    from ..manager import PassCx

__all__ = ["DROP", "Near", "Rewriter", "Rule", "Table", "apply_rules", "keep_merged",
           "rule_table"]  # fmt: skip

Rule = Callable[[Op, "Rewriter"], Op | None]

DROP: Final = Op(C.CONST, void, (), None, (), -1, None, UNKNOWN)
"""Returned by a rule to delete an op without a value."""

_MAX_CHAIN = 8
"""The most changes of one op in a sweep; the rest waits for the next round."""


Near = Callable[[Iterable[Op]], list[Op]]
"""Leaves out ops that no rule fires for, by a look at their operands: most ops are none."""


class Table(NamedTuple):
    """rules: by opcode. mask: the opcodes with rules, see `code_mask`. near: see `Near`."""

    rules: list[tuple[Rule, ...]]
    mask: bytes
    near: Near


def rule_table(rules: Mapping[int, tuple[Rule, ...]], near: Near) -> Table:
    """The table of ``rules``, which are by opcode."""
    found = [rules.get(code, ()) for code in range(C.COUNT)]
    return Table(found, code_mask(found), near)


_OF_EQUALS = [
    C.COMPARE[code] or code in (C.SUB, C.DIV, C.FLOORDIV, C.MOD, C.FLOORMOD, C.MIN, C.MAX,
                                C.BIT_AND, C.BIT_OR, C.BIT_XOR, C.SELECT, C.RANGE_FOR, C.BOUNDS)
    for code in range(C.COUNT)
]  # fmt: skip


def keep_merged(cx: PassCx, users: Iterable[Op]) -> None:
    """`PassCx.keep` what may be kept after operands of ``users`` have become ops of the same value,
    opcode and type, and those that they were have gone, and nothing else has changed."""
    cx.keep("constant_fold", "die", "extract_constant")
    if not any(map(_may_be_of_equals, users)):
        cx.keep("alg_simp", "binary_op_simplify")
        # Where nothing was unused before, no op goes that ends a block, with a jump before it.
        if cx.was_idle("die"):
            cx.keep("unreachable_code_elimination")


def _may_be_of_equals(op: Op) -> bool:
    """True if an op has the same operand twice, as in ``x - x``, or may be ``x - (x & y)``."""
    args = op.args
    return _OF_EQUALS[op.code] and (len(set(args)) < len(args) or op.code in (C.SUB, C.BIT_AND))


class Rewriter:
    """The tools of a rule: constants, new ops, and ways to turn its op into another.

    fast_math: the config's; rules about floats that change results for NaN, infinities, signed
    zeros or the last bit check it. cx: for remarks.
    """

    __slots__ = ("cx", "fast_math", "func", "op", "pending", "repl")

    def __init__(self, func: Func, cx: PassCx) -> None:
        self.func = func
        self.cx = cx
        self.fast_math = cx.config.fast_math
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
    ops = cx.ops()
    for op in table.near(ops.of(table.mask)):
        rw.op = op
        for rule in rules[op.code]:
            if (result := rule(op, rw)) is not None:
                result = _fired(op, result, rule, rw, rules)
                _sweep(ops.ops, ops.ops.index(op), result, rw, rules)
                return True
    return False


def _sweep(
    ops: list[Op], first: int, result: Op | None, rw: Rewriter, rules: list[tuple[Rule, ...]]
) -> None:
    """Apply the rules to the ops after the first one that a rule fired for, with ``result``."""
    repl = rw.repl
    get = repl.get
    edits: dict[Op, list[Op]] = {}  # what takes the place of an op
    for op in islice(ops, first, None):
        if repl:
            args = op.args
            for a in args:
                if a in repl:
                    op.args = tuple([get(x, x) for x in args])
                    break
        if result is None:
            for rule in rules[op.code]:
                rw.op = op
                if (result := rule(op, rw)) is not None:
                    result = _fired(op, result, rule, rw, rules)
                    break
            else:
                continue
        if result is not op:
            edits[op] = rw.pending[:]
            if result is not DROP:
                repl[op] = result
        elif rw.pending:
            edits[op] = [*rw.pending, op]
        rw.pending.clear()
        result = None
    for block in dict.fromkeys([op.block for op in edits]):
        assert block is not None
        block.ops = [new for op in block.ops for new in edits.get(op, (op,))]


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
