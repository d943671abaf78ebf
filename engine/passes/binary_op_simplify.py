"""binary_op_simplify: merges chains of operations with constants, and puts constants on the right.

Before::

    <i32> $2 = add $c3, $x
    <i32> $3 = sub $2, $c5
    <i32> $4 = bit_shr $x, $c2
    <i32> $5 = bit_shl $4, $c2

After::

    <i32> $2 = add $x, $c3
    <i32> $3 = add $x, $n2      (a new constant, 3 - 5)
    <i32> $5 = bit_and $x, $m4  (a new constant, -4)

The rules, for constants c and d:

* ``c op x`` -> ``x op c`` for every commutative op, floats included (except float min and max:
  for two zeros with different signs, they return either of them);
* ``(x + c) - d``, and other combinations of + and -, -> ``x + e``;
* ``(x * c) * d`` -> ``x * e``; for floats any mix of * and /; ``(x / c) / d`` of integers;
* ``(x & c) & d`` -> ``x & e``, and likewise for ``|``, ``^`` and equal shifts;
* ``(x >> c) << c`` -> ``x & -(1 << c)``; ``x - (x & y)`` -> ``x & ~y``.

It leaves alone float operations, except for the swap, unless ``fast_math`` allows a different
rounding, and any merge whose constant would overflow, or become 0 in a product.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..ir import Func, Op
from ..ir import codes as C
from ..ir.semantics import binary_fn
from ..types import DataType
from .registry import register
from .rules.rewriter import Rewriter, Rule, apply_rules, rule_table

if TYPE_CHECKING:
    from .manager import PassCx

__all__ = ["binary_op_simplify"]


@register("binary_op_simplify", optional=True, silent="fast_math")
def binary_op_simplify(func: Func, cx: PassCx) -> bool:
    """Merge chains of operations with constants; put constants on the right."""
    return apply_rules(func, cx, _TABLE)


def _swap(op: Op, rw: Rewriter) -> Op | None:
    a, b = op.args
    if a.code != C.CONST or b.code == C.CONST:
        return None
    if op.type.is_real and op.code in (C.MIN, C.MAX):
        return None
    op.args = (b, a)
    return op


def _chain(op: Op, rw: Rewriter) -> tuple[Op, Op, int, Op, DataType] | None:
    """For ``(x op1 c) op2 d`` with constants c and d: x, c, op1, d and the type, if allowed."""
    inner, d = op.args
    if d.code != C.CONST or not C.BINARY[inner.code]:
        return None
    x, c = inner.args
    t = op.type
    if c.code != C.CONST or inner.type is not t or not isinstance(t, DataType):
        return None
    if t.is_real and not rw.fast_math:
        rw.cx.remark(op, f"${op.id} is not merged with ${inner.id}: floats, and fast_math is off")
        return None
    return x, c, inner.code, d, t


def _sums(op: Op, rw: Rewriter) -> Op | None:
    found = _chain(op, rw)
    if found is None:
        return None
    x, c, inner, d, t = found
    if inner not in (C.ADD, C.SUB):
        return None
    # x op1 (c ? d): the constants add up when both operations are the same.
    code = C.ADD if inner == op.code else C.SUB
    value = binary_fn(code, t, t, t)(c.attr, d.attr)
    if t.is_real and not math.isfinite(value):
        return None
    return rw.become(op, inner, x, rw.const(value, t))


def _products(op: Op, rw: Rewriter) -> Op | None:
    found = _chain(op, rw)
    if found is None:
        return None
    x, c, inner, d, t = found
    if inner not in (C.MUL, C.DIV):
        return None
    if t.is_real:
        value = binary_fn(C.MUL if inner == op.code else C.DIV, t, t, t)(c.attr, d.attr)
        if not math.isfinite(value) or value == 0.0:
            return None
        return rw.become(op, inner, x, rw.const(value, t))
    if inner != op.code:
        return None
    value = c.attr * d.attr
    # Truncating twice is truncating once, but -(-2**31) wraps, and so may the product.
    if inner == C.DIV and (c.attr == -1 or not t.min <= value <= t.max):
        return None
    return rw.become(op, inner, x, rw.const(value, t))


def _bits(op: Op, rw: Rewriter) -> Op | None:
    found = _chain(op, rw)
    if found is None or found[2] != op.code:
        return None
    x, c, _, d, t = found
    value = binary_fn(op.code, t, t, t)(c.attr, d.attr)
    return rw.become(op, op.code, x, rw.const(value, t))


def _shifts(op: Op, rw: Rewriter) -> Op | None:
    found = _chain(op, rw)
    if found is None:
        return None
    x, c, inner, d, t = found
    bits = t.bits
    first, second = c.attr % bits, d.attr % bits
    code = op.code
    if inner == code:
        count = first + second
        if count >= bits:
            if code != C.BIT_SAR or not t.is_signed:
                return rw.become_const(op, 0)
            count = bits - 1
        return rw.become(op, code, x, rw.const(count, t))
    if code == C.BIT_SHL and inner in (C.BIT_SHR, C.BIT_SAR) and first == second:
        return rw.become(op, C.BIT_AND, x, rw.const(-(1 << first), t))
    return None


def _sub_and(op: Op, rw: Rewriter) -> Op | None:
    a, b = op.args
    if b.code != C.BIT_AND:
        return None
    x, y = b.args
    if x is not a:
        x, y = y, x
    if x is not a or y.type is not op.type:
        return None
    return rw.become(op, C.BIT_AND, a, rw.emit(C.BIT_NOT, op.type, (y,)))


_RULES: dict[int, tuple[Rule, ...]] = {
    **{code: (_swap,) for code in range(C.COUNT) if C.COMMUTATIVE[code]},
    C.ADD: (_swap, _sums),
    C.SUB: (_sums, _sub_and),
    C.MUL: (_swap, _products),
    C.DIV: (_products,),
    C.BIT_AND: (_swap, _bits),
    C.BIT_OR: (_swap, _bits),
    C.BIT_XOR: (_swap, _bits),
    C.BIT_SHL: (_shifts,),
    C.BIT_SHR: (_shifts,),
    C.BIT_SAR: (_shifts,),
}


def _near(ops: Iterable[Op]) -> list[Op]:
    const, known = C.CONST, (C.CONST, C.BIT_AND)
    return [op for op in ops if op.args[1].code in known or op.args[0].code == const]


_TABLE = rule_table(_RULES, _near)
