"""demote_operations: replaces compound operations by simpler ones.

From here to the end of the pipeline there is no ``floordiv`` and no ``floormod`` of integers, no
``sgn``, ``inv`` or ``rsqrt``, no ``bit_shr`` of a signed type and no ``pow`` with an integer
exponent (see `is_demoted`), so backends need not implement them. For i32::

    <i32> $3 = floordiv $1, $2          <i32> $4 = div $1, $2
                                        <i32> $5 = mod $1, $2
                                        <i32> $7 = bit_xor $5, $2
                                        <u1>  $8 = bit_and ($5 != 0), ($7 < 0)
                                        <i32> $3 = sub $4, <cast $8>

A constant divisor above 0 is cheaper: a power of two needs one shift or mask, any other divisor one
division and a correction by the sign of the remainder. Unsigned operands need no correction.

* ``bit_shr`` of a signed type becomes one of the unsigned type, between two bit casts;
* ``pow`` with an integer exponent squares and multiplies in a loop over the exponent's bits. For
  floats it computes in f64, so that rounding errors do not add up; an f64 base uses ``pow`` of
  floats. For a negative exponent, a float base returns the reciprocal, and an integer base the
  truncated reciprocal: 0, or for the bases 1 and -1 their power (under ``debug``,
  `insert_debug_checks` refuses this before);
* ``sgn`` becomes two comparisons (0 for NaN), ``inv`` becomes ``1 / x``, ``rsqrt``
  ``1 / sqrt(x)``.

It leaves alone ``pow`` of floats, ``bit_shr`` of unsigned types, ``div`` and ``mod``, and all other
mathematical functions. It also leaves alone ``floordiv`` and ``floormod`` of floats: each backend
computes them by the steps of `semantics`, also under ``fast_math``. If a quotient that should be a
whole number were off by one bit, its floor would be off by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..analysis.uses import code_mask
from ..ir import Builder, Func, Op
from ..ir import codes as C
from ..ir.edit import all_blocks
from ..types import DataType, Type, f64, to_unsigned
from .manager import PassCx
from .registry import register


def is_demoted(op: Op) -> bool:
    """True if ``op`` is one that no longer occurs after this pass."""
    code = op.code
    if code == C.POW:
        return op.args[1].type.is_int
    if code in (C.FLOORDIV, C.FLOORMOD):
        return op.type.is_int
    return code in _RULES and (code != C.BIT_SHR or op.type.is_signed)


@register("demote_operations")
def demote_operations(func: Func, cx: PassCx) -> bool:
    """Replace floor division, integer powers and other compound operations by simpler ones."""
    changed = False
    rules = _RULES
    if not any(cx.ops().of(_RULED)):
        return False
    for block in all_blocks(func.body):
        if not any(op.code in rules for op in block.ops):
            continue
        b = Builder(func, block, ops=[], default_fp=cx.default_fp)
        for op in block.ops:
            if op.code in rules and is_demoted(op):
                b.loc = op.loc
                rules[op.code](b, op)
                changed = True
            b.ops.append(op)
        block.ops = b.ops
    return changed


# Each rule emits what goes before and turns the op itself into the last step, so its id stays.


def _become(op: Op, code: int, *args: Op) -> None:
    op.code, op.args = code, args


def _scalar(t: Type) -> DataType:
    assert isinstance(t, DataType)
    return t


def _divisor(op: Op) -> int:
    """The constant divisor of an integer operation if it is above 0, else 0."""
    d = op.args[1]
    return int(d.attr) if d.code == C.CONST and d.attr > 0 else 0


def _sign_mask(b: Builder, x: Op) -> Op:
    """-1 where ``x`` is negative, else 0."""
    t = _scalar(x.type)
    return b.binary(C.BIT_SAR, x, b.const(t.bits - 1, t))


def _needs_correction(b: Builder, rest: Op, divisor: Op) -> Op:
    """The condition that a truncated remainder is on the wrong side of 0."""
    t = _scalar(rest.type)
    zero = b.const(0, t)
    nonzero = b.binary(C.CMP_NE, rest, zero)
    differ = b.binary(C.CMP_LT, b.binary(C.BIT_XOR, rest, divisor), zero)
    return b.binary(C.BIT_AND, nonzero, differ)


def _floordiv(b: Builder, op: Op) -> None:
    x, y = op.args
    t = _scalar(op.type)
    d = _divisor(op)
    if not t.is_signed:
        _become(op, C.DIV, x, y)
    elif d and d & (d - 1) == 0:
        _become(op, C.BIT_SAR, x, b.const(d.bit_length() - 1, t))
    elif d:
        rest = b.binary(C.MOD, x, y)
        _become(op, C.ADD, b.binary(C.DIV, x, y), _sign_mask(b, rest))
    else:
        wrong = _needs_correction(b, b.binary(C.MOD, x, y), y)
        _become(op, C.SUB, b.binary(C.DIV, x, y), b.cast(wrong, t))


def _floormod(b: Builder, op: Op) -> None:
    x, y = op.args
    t = _scalar(op.type)
    d = _divisor(op)
    if not t.is_signed:
        _become(op, C.MOD, x, y)
    elif d and d & (d - 1) == 0:
        _become(op, C.BIT_AND, x, b.const(d - 1, t))
    elif d:
        rest = b.binary(C.MOD, x, y)
        _become(op, C.ADD, rest, b.binary(C.BIT_AND, _sign_mask(b, rest), y))
    else:
        rest = b.binary(C.MOD, x, y)
        wrong = _needs_correction(b, rest, y)
        _become(op, C.SELECT, wrong, b.binary(C.ADD, rest, y), rest)


def _bit_shr(b: Builder, op: Op) -> None:
    x, amount = op.args
    t = _scalar(op.type)
    u = to_unsigned(t)
    bits = b.emit(C.CAST_BITS, (x,), None, u)
    count = b.emit(C.CAST_BITS, (amount,), None, u)
    _become(op, C.CAST_BITS, b.emit(C.BIT_SHR, (bits, count), None, u))


def _sgn(b: Builder, op: Op) -> None:
    (x,) = op.args
    t = _scalar(op.type)
    zero = b.const(0, t)
    above = b.cast(b.binary(C.CMP_GT, x, zero), t)
    if t.is_signed:
        _become(op, C.SUB, above, b.cast(b.binary(C.CMP_LT, x, zero), t))
    else:
        _become(op, C.CAST_VALUE, b.binary(C.CMP_GT, x, zero))


def _inv(b: Builder, op: Op) -> None:
    _become(op, C.DIV, b.const(1, _scalar(op.type)), op.args[0])


def _rsqrt(b: Builder, op: Op) -> None:
    _become(op, C.DIV, b.const(1, _scalar(op.type)), b.unary(C.SQRT, op.args[0]))


def _pow(b: Builder, op: Op) -> None:
    """Square and multiply; see the module docstring."""
    x, n = op.args
    t, nt = _scalar(op.type), _scalar(n.type)
    if t is f64 and nt.bits <= 32:  # every exponent is exact
        _become(op, C.POW, x, b.cast(n, f64))
    elif t.is_real and t is not f64:
        _become(op, C.CAST_VALUE, _power(b, b.cast(x, f64), n))
    else:
        _power(b, x, n)
        last = b.ops.pop()
        _become(op, last.code, *last.args)


def _power(b: Builder, x: Op, n: Op) -> Op:
    """``x ** n`` for an integer ``n``, in the type of ``x``."""
    t, nt = _scalar(x.type), _scalar(n.type)
    u = to_unsigned(nt)
    negative = b.binary(C.CMP_LT, n, b.const(0, nt)) if nt.is_signed else None
    count = n
    if negative is not None:
        # -n as unsigned is right for the smallest integer too.
        count = b.emit(C.CAST_BITS, (b.select(negative, b.unary(C.NEG, n), n),), None, u)
    one = b.const(1, t)
    left, base, result = b.alloca(u), b.alloca(t), b.alloca(t)
    b.store(left, count)
    b.store(base, x)
    b.store(result, one)
    loop = b.while_()
    with b.inside(loop.regions[0]):
        k = b.load(left)
        b.emit(C.WHILE_CONTROL, (b.binary(C.CMP_NE, k, b.const(0, u)),))
        factor, product = b.load(base), b.load(result)
        odd = b.binary(C.CMP_NE, b.binary(C.BIT_AND, k, b.const(1, u)), b.const(0, u))
        b.store(result, b.select(odd, b.binary(C.MUL, product, factor), product))
        b.store(base, b.binary(C.MUL, factor, factor))
        if u.bits > 1:
            b.store(left, b.binary(C.BIT_SAR, k, b.const(1, u)))
        else:
            b.store(left, b.const(0, u))
    if negative is None:
        return b.load(result)
    power = b.load(result)
    if t.is_real:
        other = b.binary(C.DIV, one, power)
    else:
        unit = b.binary(C.CMP_EQ, x, one)
        if t.is_signed:
            unit = b.binary(C.BIT_OR, unit, b.binary(C.CMP_EQ, x, b.const(-1, t)))
        other = b.select(unit, power, b.const(0, t))
    return b.select(negative, other, power)


_RULES: Final[dict[int, Callable[[Builder, Op], None]]] = {
    C.FLOORDIV: _floordiv,
    C.FLOORMOD: _floormod,
    C.BIT_SHR: _bit_shr,
    C.SGN: _sgn,
    C.INV: _inv,
    C.RSQRT: _rsqrt,
    C.POW: _pow,
}
_RULED: Final = code_mask(code in _RULES for code in range(C.COUNT))
