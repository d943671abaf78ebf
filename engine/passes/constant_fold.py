"""constant_fold: computes operations whose operands are constants.

Before::

    <i8> $0 = const 100
    <i8> $1 = const 50
    <i8> $2 = add $0, $1
    <f32> $3 = cast_value $2

After::

    <i8> $2 = const -106
    <f32> $3 = const -106.0

It folds all types, including floats and 8- and 16-bit types, by the rules of `ir.semantics`, which
the interpreter shares. A ``select`` with a constant condition becomes the chosen operand. A cast
to the type of its operand becomes the operand, constant or not.

It leaves alone

* a bit cast to or from a NaN: the bits of a NaN are not defined in the IR;
* ``x ** n`` of integers with a negative n: `alg_simp` reports it;
* with ``debug_nan``, what makes a NaN or infinity: a constant would have no origin;
* everything that reads memory, and random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..ir import Func, Op
from ..ir import codes as C
from ..ir.semantics import binary_fn, unary_fn
from .registry import register
from .rules.rewriter import Rewriter, Rule, apply_rules, rule_table

if TYPE_CHECKING:
    from .manager import PassCx

__all__ = ["constant_fold"]


@register("constant_fold", optional=True, silent=True)
def constant_fold(func: Func, cx: PassCx) -> bool:
    """Compute operations on constants."""
    return apply_rules(func, cx, _TABLE)


def _fold_unary(op: Op, rw: Rewriter) -> Op | None:
    x = op.args[0]
    if x.code != C.CONST:
        return None
    value = unary_fn(op.code, x.type, op.type)(x.attr)  # type: ignore[arg-type]
    return None if _is_origin(op, rw, value) else rw.become_const(op, value)


def _fold_cast(op: Op, rw: Rewriter) -> Op | None:
    x = op.args[0]
    if x.type is op.type:
        return x
    if x.code != C.CONST:
        return None
    value = unary_fn(op.code, x.type, op.type)(x.attr)  # type: ignore[arg-type]
    if op.code == C.CAST_BITS:
        undefined = value != value or x.attr != x.attr
        return None if undefined else rw.become_const(op, value)
    return None if _is_origin(op, rw, value) else rw.become_const(op, value)


def _fold_binary(op: Op, rw: Rewriter) -> Op | None:
    a, b = op.args
    if b.code != C.CONST or a.code != C.CONST:
        return None
    if op.code == C.POW and a.type.is_int and b.type.is_int and b.attr < 0:
        return None
    fn = binary_fn(op.code, a.type, b.type, op.type)  # type: ignore[arg-type]
    value = fn(a.attr, b.attr)
    return None if _is_origin(op, rw, value) else rw.become_const(op, value)


def _is_origin(op: Op, rw: Rewriter, value: Any) -> bool:
    """True if debug_nan is to report the op: it makes a NaN of what is none, or an infinity of
    finite numbers."""
    if not rw.cx.config.debug_nan or not isinstance(value, float) or math.isfinite(value):
        return False
    passes_on = math.isnan if math.isnan(value) else _not_finite
    return not any(isinstance(x.attr, float) and passes_on(x.attr) for x in op.args)


def _not_finite(value: float) -> bool:
    return not math.isfinite(value)


def _fold_select(op: Op, rw: Rewriter) -> Op | None:
    cond, a, b = op.args
    if cond.code != C.CONST:
        return None
    chosen = a if cond.attr else b
    return chosen if chosen.type is op.type else rw.become(op, C.CAST_VALUE, chosen)


def _rules() -> dict[int, tuple[Rule, ...]]:
    rules: dict[int, tuple[Rule, ...]] = {}
    for code in range(C.COUNT):
        if C.UNARY[code]:
            rules[code] = (_fold_unary,)
        elif C.BINARY[code]:
            rules[code] = (_fold_binary,)
    rules[C.CAST_VALUE] = rules[C.CAST_BITS] = (_fold_cast,)
    rules[C.SELECT] = (_fold_select,)
    return rules


def _near(ops: Iterable[Op]) -> list[Op]:
    const, casts = C.CONST, (C.CAST_VALUE, C.CAST_BITS)
    return [op for op in ops if op.args[0].code == const or op.code in casts]


_TABLE = rule_table(_rules(), _near)
