"""Identities of bit operations, shifts, comparisons, negations and selects."""

from __future__ import annotations

from ...ir import Op
from ...ir import codes as C
from ...types import DataType, u1
from .rewriter import DROP, Rewriter

__all__ = [
    "bit_and", "bit_not", "bit_or", "bit_xor", "compare", "holds", "logic_not", "select", "shift",
]  # fmt: skip


def _all_ones(op: Op) -> bool:
    t = op.type
    if op.code != C.CONST or not isinstance(t, DataType):
        return False
    return op.attr == (-1 if t.is_signed else t.max)


def _zero(op: Op) -> bool:
    return op.code == C.CONST and op.attr == 0


def bit_and(op: Op, rw: Rewriter) -> Op | None:
    """x & -1, x & 0, x & x."""
    a, b = op.args
    if a is b or _all_ones(b) or _zero(a):
        return a
    return b if _all_ones(a) or _zero(b) else None


def bit_or(op: Op, rw: Rewriter) -> Op | None:
    """x | 0, x | -1, x | x."""
    a, b = op.args
    if a is b or _zero(b) or _all_ones(a):
        return a
    return b if _zero(a) or _all_ones(b) else None


def bit_xor(op: Op, rw: Rewriter) -> Op | None:
    """x ^ 0, x ^ x, x ^ -1."""
    a, b = op.args
    if a is b:
        return rw.become_const(op, 0)
    if _zero(b):
        return a
    if _zero(a):
        return b
    return rw.become(op, C.BIT_NOT, a) if _all_ones(b) else None


def bit_not(op: Op, rw: Rewriter) -> Op | None:
    """~(~x)."""
    x = op.args[0]
    return x.args[0] if x.code == C.BIT_NOT else None


def shift(op: Op, rw: Rewriter) -> Op | None:
    """A shift by 0 (or a multiple of the width), a shift of 0."""
    a, b = op.args
    if _zero(a) or (b.code == C.CONST and b.attr % a.type.bits == 0):
        return a
    return None


_OF_EQUALS = {
    C.CMP_EQ: 1, C.CMP_LE: 1, C.CMP_GE: 1, C.CMP_NE: 0, C.CMP_LT: 0, C.CMP_GT: 0,
}  # fmt: skip


def compare(op: Op, rw: Rewriter) -> Op | None:
    """Comparison of a value with itself, of an unsigned with 0, of a bool with 0."""
    a, b = op.args
    code = op.code
    if a is b:
        # NaN differs from itself; but neither is less.
        if a.type.is_int or rw.fast_math or code in (C.CMP_LT, C.CMP_GT):
            return rw.become_const(op, _OF_EQUALS[code])
        return None
    if b.code != C.CONST or b.attr != 0 or not b.type.is_int:
        return None
    if code in (C.CMP_LT, C.CMP_GE):
        return None if b.type.is_signed else rw.become_const(op, code == C.CMP_GE)
    truth = _truth(a)
    if truth is None or code not in (C.CMP_NE, C.CMP_EQ):
        return None
    return truth if code == C.CMP_NE else rw.become(op, C.LOGIC_NOT, truth)


def _truth(x: Op) -> Op | None:
    """The ``u1`` value that is not 0 exactly when the integer ``x`` is not, if there is one."""
    while x.type is not u1:
        if x.code != C.CAST_VALUE or not x.args[0].type.is_int:
            return None
        x = x.args[0]
    return x


_OPPOSITE = {
    C.CMP_EQ: C.CMP_NE, C.CMP_NE: C.CMP_EQ, C.CMP_LT: C.CMP_GE, C.CMP_GE: C.CMP_LT,
    C.CMP_GT: C.CMP_LE, C.CMP_LE: C.CMP_GT,
}  # fmt: skip


def logic_not(op: Op, rw: Rewriter) -> Op | None:
    """not not x; not of a comparison is the opposite one."""
    x = op.args[0]
    if x.type is not u1:
        return None
    if x.code == C.LOGIC_NOT:
        y = x.args[0]
        return y if y.type is u1 else None
    opposite = _OPPOSITE.get(x.code)
    if opposite is None:
        return None
    # With a NaN, both x < y and x >= y are false.
    exact = x.args[0].type.is_int or x.code in (C.CMP_EQ, C.CMP_NE) or rw.fast_math
    return rw.become(op, opposite, *x.args) if exact else None


def select(op: Op, rw: Rewriter) -> Op | None:
    """A choice between equals; a choice between true and false."""
    cond, a, b = op.args
    if a is b:
        return a if a.type is op.type else None
    if op.type is u1 and cond.type is u1 and a.code == C.CONST and b.code == C.CONST:
        if a.attr == b.attr:
            return a
        return cond if a.attr else rw.become(op, C.LOGIC_NOT, cond)
    return None


def holds(op: Op, rw: Rewriter) -> Op | None:
    """An assert or a while_control on a constant that is not 0."""
    cond = op.args[0]
    return DROP if cond.code == C.CONST and cond.attr else None
