"""Identities of + - * / and their relatives.

Floats keep their exact meaning unless ``fast_math``: ``x * 0`` is NaN for an infinite x,
``x + 0.0`` is +0 for x = -0, so that only ``x - 0.0`` and ``x + -0.0`` are x. Integers wrap, and
the result of a division by 0 is 0.
"""

from __future__ import annotations

import math

from ... import logs as log
from ...ir import Op
from ...ir import codes as C
from ...ir.semantics import binary_fn
from ...types import DataType, f16, f32, f64, u1
from .rewriter import Rewriter

__all__ = ["add", "div", "floordiv", "floormod", "min_max", "mod", "mul", "neg", "sub"]

_LEAST_NORMAL = {f16: 2.0**-14, f32: 2.0**-126, f64: 2.0**-1022}


def _exponent(value: int) -> int:
    """k for a positive ``value`` of 2**k, else -1."""
    return value.bit_length() - 1 if value > 0 and value & (value - 1) == 0 else -1


def _adds_nothing(zero: Op, sign: float, rw: Rewriter) -> bool:
    """True if adding this operand changes nothing; ``sign`` is -1 if it is subtracted."""
    if zero.code != C.CONST or zero.attr != 0:
        return False
    return zero.type.is_int or rw.fast_math or math.copysign(1.0, zero.attr) * sign < 0.0


def add(op: Op, rw: Rewriter) -> Op | None:
    """x + 0."""
    a, b = op.args
    if _adds_nothing(b, 1.0, rw):
        return a
    return b if _adds_nothing(a, 1.0, rw) else None


def sub(op: Op, rw: Rewriter) -> Op | None:
    """x - 0, x - x, 0 - x."""
    a, b = op.args
    if _adds_nothing(b, -1.0, rw):
        return a
    if a is b and (op.type.is_int or rw.fast_math):
        return rw.become_const(op, 0)
    # 0.0 - x differs from -x for x = 0.0 only; -0.0 - x never does.
    return rw.become(op, C.NEG, b) if _adds_nothing(a, 1.0, rw) else None


def neg(op: Op, rw: Rewriter) -> Op | None:
    """-(-x)."""
    x = op.args[0]
    return x.args[0] if x.code == C.NEG else None


def mul(op: Op, rw: Rewriter) -> Op | None:
    """x * 1, x * 0, x * 2, x * 2**k, x * -1."""
    a, b = op.args
    if b.code != C.CONST:
        if a.code != C.CONST:
            return None
        a, b = b, a
    value = b.attr
    t = op.type
    if value == 1:
        return a
    if t.is_real:
        if value == 0.0 and rw.fast_math:
            return rw.become_const(op, 0)
        if value == 2.0:
            return rw.become(op, C.ADD, a, a)
        return rw.become(op, C.NEG, a) if value == -1.0 else None
    if value == 0:
        return b
    if value == -1:
        return rw.become(op, C.NEG, a)
    k = _exponent(value)
    if k <= 0:
        return None
    assert isinstance(t, DataType)
    return rw.become(op, C.BIT_SHL, a, rw.const(k, t))


def _quotient_of_equals(op: Op, rw: Rewriter) -> Op | None:
    """x / x: 1, but 0 for the integer 0."""
    x = op.args[0]
    if op.type.is_real:
        return rw.become_const(op, 1) if rw.fast_math else None
    assert isinstance(op.type, DataType)
    if op.type is u1:
        return x
    nonzero = rw.emit(C.CMP_NE, u1, (x, rw.const(0, op.type)))
    return rw.become(op, C.CAST_VALUE, nonzero)


def div(op: Op, rw: Rewriter) -> Op | None:
    """x / 1, x / x, real x / constant, unsigned x / 2**k."""
    a, b = op.args
    if a is b:
        return _quotient_of_equals(op, rw)
    if b.code != C.CONST:
        return None
    value = b.attr
    if value == 1:
        return a
    t = op.type
    assert isinstance(t, DataType)
    if t.is_real:
        return _times_reciprocal(op, a, value, t, rw)
    if value == 0:
        return rw.become_const(op, 0)
    if value == -1 and t.is_signed:
        return rw.become(op, C.NEG, a)
    k = _exponent(value)
    if k > 0 and not t.is_signed:
        return rw.become(op, C.BIT_SHR, a, rw.const(k, t))
    return None


def _times_reciprocal(op: Op, a: Op, value: float, t: DataType, rw: Rewriter) -> Op | None:
    if value == 0.0:
        where = f"{op.loc}: " if op.loc.line else ""
        log.warn(f"{where}Potential division by 0", once=True)
        return None
    exact = math.isfinite(value) and abs(math.frexp(value)[0]) == 0.5
    if not (rw.fast_math or exact):
        rw.cx.remark(op, f"${op.id} stays a division: fast_math would multiply by the reciprocal")
        return None
    factor = binary_fn(C.DIV, t, t, t)(1.0, value)
    if not _LEAST_NORMAL[t] <= abs(factor) < math.inf:
        return None
    return rw.become(op, C.MUL, a, rw.const(factor, t))


def floordiv(op: Op, rw: Rewriter) -> Op | None:
    """Floor of x / 1, x / x, integer x / 2**k."""
    a, b = op.args
    if a is b:
        return _quotient_of_equals(op, rw)
    t = op.type
    if b.code != C.CONST or not isinstance(t, DataType):
        return None
    value = b.attr
    if t.is_real:
        return rw.become(op, C.FLOOR, a) if value == 1.0 else None
    if value == 1:
        return a
    if value == 0:
        return rw.become_const(op, 0)
    k = _exponent(value)
    if k > 0:
        return rw.become(op, C.BIT_SAR if t.is_signed else C.BIT_SHR, a, rw.const(k, t))
    return None


def _remainder_is_zero(op: Op, rw: Rewriter) -> bool:
    """Integer x mod 1, -1, 0 and x."""
    a, b = op.args
    if op.type.is_real:
        return a is b and rw.fast_math
    return a is b or (b.code == C.CONST and b.attr in (1, -1, 0))


def mod(op: Op, rw: Rewriter) -> Op | None:
    """x mod x, x mod 1, unsigned x mod 2**k."""
    if _remainder_is_zero(op, rw):
        return rw.become_const(op, 0)
    return None if op.type.is_signed else _mask(op, rw)


def floormod(op: Op, rw: Rewriter) -> Op | None:
    """x mod x, x mod 1, integer x mod 2**k: with the sign of the divisor that is a mask."""
    return rw.become_const(op, 0) if _remainder_is_zero(op, rw) else _mask(op, rw)


def _mask(op: Op, rw: Rewriter) -> Op | None:
    a, b = op.args
    t = op.type
    if b.code != C.CONST or not t.is_int or _exponent(b.attr) <= 0:
        return None
    assert isinstance(t, DataType)
    return rw.become(op, C.BIT_AND, a, rw.const(b.attr - 1, t))


def min_max(op: Op, rw: Rewriter) -> Op | None:
    """min(x, x), max(x, x)."""
    a, b = op.args
    return a if a is b else None
