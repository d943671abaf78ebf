"""Casts that do nothing, and casts of casts.

``cast<C>(cast<B>(x: A))`` drops the inner cast when ``cast<C>(x)`` is the same for every x:

* the inner cast keeps every value of A (a wider integer that has all of A's values, a wider float,
  a float whose mantissa holds the integer), unless the outer one goes from a float to an integer
  too narrow for A: that saturates, where an integer would wrap;
* or all three are integers and C is no wider than B, so that only low bits count; C is not ``u1``,
  for which every bit counts.
"""

from __future__ import annotations

from functools import cache

from ...ir import Op
from ...ir import codes as C
from ...types import Type, f16, f32, f64, u1
from .rewriter import Rewriter

__all__ = ["bits_of_bits", "cast_of_cast", "keeps_values", "same_type"]

_MANTISSA: dict[Type, int] = {f16: 11, f32: 24, f64: 53}


@cache
def keeps_values(a: Type, b: Type) -> bool:
    """True if every value of type ``a`` is one of type ``b``."""
    if a is b:
        return True
    if a.is_int and b.is_int:
        return b.bits > a.bits and (b.is_signed or not a.is_signed)
    if a.is_real and b.is_real:
        return b.bits >= a.bits
    return a.is_int and b.is_real and a.bits - a.is_signed <= _MANTISSA[b]


@cache
def _inner_is_redundant(a: Type, b: Type, c: Type) -> bool:
    if keeps_values(a, b):
        return not (a.is_int and b.is_real and c.is_int) or keeps_values(a, c) or c is u1
    if not (a.is_int and b.is_int and c.is_int) or b is u1 or c is u1:
        return False
    return c.bits <= b.bits


def same_type(op: Op, rw: Rewriter) -> Op | None:
    """A cast to the type that the operand has."""
    x = op.args[0]
    return x if x.type is op.type else None


def cast_of_cast(op: Op, rw: Rewriter) -> Op | None:
    """Drop the inner of two casts where it changes nothing."""
    inner = op.args[0]
    if inner.code != C.CAST_VALUE:
        return None
    x = inner.args[0]
    if not _inner_is_redundant(x.type, inner.type, op.type):
        return None
    if x.type is op.type:
        return x
    op.args = (x,)
    return op


def bits_of_bits(op: Op, rw: Rewriter) -> Op | None:
    """Merge two bit casts."""
    inner = op.args[0]
    if inner.code != C.CAST_BITS or inner.type is u1:
        return None
    x = inner.args[0]
    if x.type is op.type:
        return x
    op.args = inner.args
    return op
