"""The derivative of every operation: one table, used by reverse and by forward mode.

::

    RULES[C.MUL] = (Partial((1,), ...), Partial((0,), ...))     d(a * b): b da + a db

A row has one entry for each operand: the derivative by it, or None where that is zero or
meaningless (integers, conditions, steps such as ``floor``). A `Partial` states which values the
derivative is made of (``needs``: indices of operands, `RESULT` for the value of the operation
itself) and how it is applied: its function gets the number to be multiplied, ``g``.
In reverse mode that is the adjoint of the operation's value, and the result is added to the adjoint
of the operand. In forward mode it is the tangent of the operand, and the result is a part of the
tangent of the operation's value. `contribution` and `tangent` are these two; both emit ops of typed
IR through a `Builder` at a position of the caller's choice, and ask the caller for the values that
are readable there.

The rules where calculus, or IEEE arithmetic, leaves a choice:

* ``min``/``max`` of equal numbers: the right operand gets it all; of a NaN and a number,
  the number.
* ``abs`` at 0: 0. ``sqrt`` at 0: infinity (an adjoint of 0 becomes NaN there), ``rsqrt`` and
  ``inv`` at 0: -infinity.
* ``floor ceil round sgn floordiv`` and comparisons: 0 everywhere, also at the steps.
* ``a % b`` and ``raw_mod``: 1 for a, minus the whole quotient for b.
* ``x ** y``: for x it is ``y * x ** (y - 1)``, which is 0 for y = 0 whatever x is; for y it is
  ``x ** y * log(x)``, taken as 0 at x = 0 and NaN for negative x.
* ``select`` passes the derivative to the operand that it selected, and nothing to the other.
* Casts between float types cast the derivative; casts from or to integers end it.
* Derivatives of ``tanh tan exp sqrt rsqrt inv div`` are computed from the result, which costs less
  than from the operand and is as exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ...ir import Builder, Op
from ...ir import codes as C
from ...named_tuple import NamedTuple
from ...types import DataType, Type, f64, i64

__all__ = ["RESULT", "RULES", "Partial", "contribution", "flows", "needs", "tangent"]

RESULT: Final = -1
"""Among `Partial.needs`: the value of the operation itself."""

Value = Callable[[int], Op]
"""The readable value of an operand, by its number, or of the result."""


class Partial(NamedTuple):
    """The derivative of an operation by one of its operands; see the module docstring.

    apply: ``(builder, op, value, g)`` returns an op that is ``g`` times the derivative.
    """

    needs: tuple[int, ...]
    apply: Callable[[Builder, Op, Value, Op], Op]


def _scalar(t: Type) -> DataType:
    assert isinstance(t, DataType)
    return t


def _number(b: Builder, value: float, like: Op) -> Op:
    return b.const(value, _scalar(like.type))


def _same(b: Builder, op: Op, value: Value, g: Op) -> Op:
    return g


def _negated(b: Builder, op: Op, value: Value, g: Op) -> Op:
    return b.unary(C.NEG, g)


def _abs(b: Builder, op: Op, value: Value, g: Op) -> Op:
    return b.binary(C.MUL, g, b.unary(C.SGN, value(0)))


def _sqrt(b: Builder, op: Op, value: Value, g: Op) -> Op:
    r = value(RESULT)
    return b.binary(C.DIV, g, b.binary(C.ADD, r, r))


def _rsqrt(b: Builder, op: Op, value: Value, g: Op) -> Op:
    r = value(RESULT)
    cube = b.binary(C.MUL, b.binary(C.MUL, r, r), r)
    return b.binary(C.MUL, b.binary(C.MUL, g, _number(b, -0.5, g)), cube)


def _inv(b: Builder, op: Op, value: Value, g: Op) -> Op:
    r = value(RESULT)
    return b.unary(C.NEG, b.binary(C.MUL, g, b.binary(C.MUL, r, r)))


def _exp(b: Builder, op: Op, value: Value, g: Op) -> Op:
    return b.binary(C.MUL, g, value(RESULT))


def _log(b: Builder, op: Op, value: Value, g: Op) -> Op:
    return b.binary(C.DIV, g, value(0))


def _sin(b: Builder, op: Op, value: Value, g: Op) -> Op:
    return b.binary(C.MUL, g, b.unary(C.COS, value(0)))


def _cos(b: Builder, op: Op, value: Value, g: Op) -> Op:
    return b.unary(C.NEG, b.binary(C.MUL, g, b.unary(C.SIN, value(0))))


def _tan(b: Builder, op: Op, value: Value, g: Op) -> Op:
    r = value(RESULT)
    return b.binary(C.MUL, g, b.binary(C.ADD, _number(b, 1.0, g), b.binary(C.MUL, r, r)))


def _tanh(b: Builder, op: Op, value: Value, g: Op) -> Op:
    r = value(RESULT)
    return b.binary(C.MUL, g, b.binary(C.SUB, _number(b, 1.0, g), b.binary(C.MUL, r, r)))


def _asin(b: Builder, op: Op, value: Value, g: Op) -> Op:
    # (1 - x) (1 + x) and not 1 - x * x: exact where x is near 1.
    x, one = value(0), _number(b, 1.0, g)
    square = b.binary(C.MUL, b.binary(C.SUB, one, x), b.binary(C.ADD, one, x))
    return b.binary(C.DIV, g, b.unary(C.SQRT, square))


def _acos(b: Builder, op: Op, value: Value, g: Op) -> Op:
    return b.unary(C.NEG, _asin(b, op, value, g))


def _times_right(b: Builder, op: Op, value: Value, g: Op) -> Op:
    return b.binary(C.MUL, g, value(1))


def _times_left(b: Builder, op: Op, value: Value, g: Op) -> Op:
    return b.binary(C.MUL, g, value(0))


def _numerator(b: Builder, op: Op, value: Value, g: Op) -> Op:
    return b.binary(C.DIV, g, value(1))


def _denominator(b: Builder, op: Op, value: Value, g: Op) -> Op:
    return b.unary(C.NEG, b.binary(C.MUL, b.binary(C.DIV, g, value(1)), value(RESULT)))


def _divisor(b: Builder, op: Op, value: Value, g: Op) -> Op:
    """Of both remainders: ``(a - a % b) / b`` is the whole quotient that was taken."""
    x, y = value(0), value(1)
    rest = b.binary(op.code, x, y)
    quotient = b.unary(C.ROUND, b.binary(C.DIV, b.binary(C.SUB, x, rest), y))
    return b.unary(C.NEG, b.binary(C.MUL, g, quotient))


def _takes_right(b: Builder, op: Op, value: Value) -> Op:
    """The condition that a min or max returned its right operand, as it does for equal ones."""
    x, y = value(0), value(1)
    return b.binary(C.CMP_EQ, y, b.binary(op.code, x, y))


def _left_extreme(b: Builder, op: Op, value: Value, g: Op) -> Op:
    return b.select(_takes_right(b, op, value), _number(b, 0.0, g), g)


def _right_extreme(b: Builder, op: Op, value: Value, g: Op) -> Op:
    return b.select(_takes_right(b, op, value), g, _number(b, 0.0, g))


def _chosen(b: Builder, op: Op, value: Value, g: Op) -> Op:
    return b.select(value(0), g, _number(b, 0.0, g))


def _not_chosen(b: Builder, op: Op, value: Value, g: Op) -> Op:
    return b.select(value(0), _number(b, 0.0, g), g)


def _one_less(b: Builder, n: Op, t: DataType) -> Op:
    """``n - 1`` for the exponent of a power of type ``t``, in a type in which it does not wrap."""
    if n.type.is_int and n.code != C.CONST:
        n = b.cast(n, f64 if t is f64 else i64)
    nt = _scalar(n.type)
    if n.code == C.CONST and (nt.is_real or n.attr > nt.min):
        return b.const(n.attr - 1, nt)
    return b.binary(C.SUB, n, b.const(1, nt))


def _base(b: Builder, op: Op, value: Value, g: Op) -> Op:
    x, n = value(0), value(1)
    t = _scalar(op.type)
    if n.code == C.CONST and n.attr == 0:
        return b.const(0.0, t)
    slope = b.binary(C.MUL, b.cast(n, t), b.binary(C.POW, x, _one_less(b, n, t)))
    if n.code != C.CONST:  # at x = 0 this would be 0 * infinity
        none = b.binary(C.CMP_EQ, n, b.const(0, _scalar(n.type)))
        slope = b.select(none, b.const(0.0, t), slope)
    return b.binary(C.MUL, g, slope)


def _exponent(b: Builder, op: Op, value: Value, g: Op) -> Op:
    x, zero = value(0), _number(b, 0.0, g)
    slope = b.binary(C.MUL, value(RESULT), b.unary(C.LOG, x))
    slope = b.select(b.binary(C.CMP_EQ, x, zero), zero, slope)
    return b.binary(C.MUL, g, slope)


def _over_square(b: Builder, value: Value, g: Op, top: int) -> Op:
    """``g`` times an operand of atan2, over the squared distance of the point from the origin."""
    y, x = value(0), value(1)
    square = b.binary(C.ADD, b.binary(C.MUL, x, x), b.binary(C.MUL, y, y))
    return b.binary(C.MUL, g, b.binary(C.DIV, value(top), square))


def _atan2_y(b: Builder, op: Op, value: Value, g: Op) -> Op:
    return _over_square(b, value, g, 1)


def _atan2_x(b: Builder, op: Op, value: Value, g: Op) -> Op:
    return b.unary(C.NEG, _over_square(b, value, g, 0))


_ZERO_1: Final = (None,)
_ZERO_2: Final = (None, None)
_SAME: Final = Partial((), _same)
_EXTREMES: Final = (Partial((0, 1), _left_extreme), Partial((0, 1), _right_extreme))
_REMAINDER: Final = (_SAME, Partial((0, 1), _divisor))

RULES: Final[dict[int, tuple[Partial | None, ...]]] = {
    C.NEG: (Partial((), _negated),),
    C.ABS: (Partial((0,), _abs),),
    C.SGN: _ZERO_1,
    C.BIT_NOT: _ZERO_1,
    C.LOGIC_NOT: _ZERO_1,
    C.SQRT: (Partial((RESULT,), _sqrt),),
    C.RSQRT: (Partial((RESULT,), _rsqrt),),
    C.EXP: (Partial((RESULT,), _exp),),
    C.LOG: (Partial((0,), _log),),
    C.SIN: (Partial((0,), _sin),),
    C.COS: (Partial((0,), _cos),),
    C.TAN: (Partial((RESULT,), _tan),),
    C.ASIN: (Partial((0,), _asin),),
    C.ACOS: (Partial((0,), _acos),),
    C.TANH: (Partial((RESULT,), _tanh),),
    C.FLOOR: _ZERO_1,
    C.CEIL: _ZERO_1,
    C.ROUND: _ZERO_1,
    C.INV: (Partial((RESULT,), _inv),),
    C.POPCNT: _ZERO_1,
    C.CLZ: _ZERO_1,
    C.FFS: _ZERO_1,
    C.CAST_VALUE: (_SAME,),
    C.CAST_BITS: _ZERO_1,
    C.ADD: (_SAME, _SAME),
    C.SUB: (_SAME, Partial((), _negated)),
    C.MUL: (Partial((1,), _times_right), Partial((0,), _times_left)),
    C.DIV: (Partial((1,), _numerator), Partial((1, RESULT), _denominator)),
    C.FLOORDIV: _ZERO_2,
    C.MOD: _REMAINDER,
    C.FLOORMOD: _REMAINDER,
    C.MAX: _EXTREMES,
    C.MIN: _EXTREMES,
    C.POW: (Partial((0, 1), _base), Partial((0, RESULT), _exponent)),
    C.ATAN2: (Partial((0, 1), _atan2_y), Partial((0, 1), _atan2_x)),
    C.BIT_AND: _ZERO_2,
    C.BIT_OR: _ZERO_2,
    C.BIT_XOR: _ZERO_2,
    C.BIT_SHL: _ZERO_2,
    C.BIT_SHR: _ZERO_2,
    C.BIT_SAR: _ZERO_2,
    C.CMP_LT: _ZERO_2,
    C.CMP_LE: _ZERO_2,
    C.CMP_GT: _ZERO_2,
    C.CMP_GE: _ZERO_2,
    C.CMP_EQ: _ZERO_2,
    C.CMP_NE: _ZERO_2,
    C.SELECT: (None, Partial((0,), _chosen), Partial((0,), _not_chosen)),
}
"""Every operation that computes a number from numbers. What reads and writes memory, and control,
is the passes' own."""


def flows(op: Op) -> tuple[int, ...]:
    """Numbers of the operands on which the value of ``op`` depends differentiably.

    Empty for an op that is not in the table, and for one without a float value.
    """
    row = RULES.get(op.code)
    if row is None or not op.type.is_real:
        return ()
    args = op.args
    return tuple([i for i, p in enumerate(row) if p is not None and args[i].type.is_real])


def needs(op: Op, index: int) -> tuple[Op, ...]:
    """The values that `contribution` to the operand ``index`` of ``op`` reads."""
    partial = RULES[op.code][index]
    if partial is None:
        return ()
    return tuple([op if i == RESULT else op.args[i] for i in partial.needs])


def _reader(op: Op, value: Callable[[Op], Op]) -> Value:
    return lambda i: value(op if i == RESULT else op.args[i])


def contribution(b: Builder, op: Op, index: int, g: Op, value: Callable[[Op], Op]) -> Op | None:
    """Return the amount that ``g``, the adjoint of ``op``, adds to that of operand ``index``.

    value: returns the readable op for each of `needs`; nothing else is requested. None: nothing.
    """
    row = RULES.get(op.code)
    partial = row[index] if row is not None else None
    operand = op.args[index].type
    if partial is None or not operand.is_real or not op.type.is_real:
        return None
    made = partial.apply(b, op, _reader(op, value), g)
    return b.cast(made, operand)


def _itself(op: Op) -> Op:
    return op


def tangent(
    b: Builder, op: Op, tangents: Sequence[Op | None], value: Callable[[Op], Op] = _itself
) -> Op | None:
    """The tangent of the value of ``op`` from those of its operands, None for those without one.

    None: it has none.
    """
    row = RULES.get(op.code)
    if row is None or not op.type.is_real:
        return None
    if op.code == C.SELECT and tangents[1] is not None and tangents[2] is not None:
        return b.select(value(op.args[0]), tangents[1], tangents[2])
    read = _reader(op, value)
    total: Op | None = None
    for partial, t in zip(row, tangents, strict=True):
        if partial is None or t is None:
            continue
        if op.code == C.SUB and total is not None:
            return b.binary(C.SUB, total, t)
        part = partial.apply(b, op, read, b.cast(t, op.type))
        total = part if total is None else b.binary(C.ADD, total, part)
    return total
