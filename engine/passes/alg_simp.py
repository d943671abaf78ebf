"""alg_simp: algebraic simplification of single operations.

Before::

    <i32> $2 = mul $x, $c8
    <f32> $3 = mul $y, $c1
    <f32> $4 = div $3, $c4
    <u1> $5 = cmp_eq $x, $x
    $6 : assert $5 {...}

After (``$6`` is gone, and so is ``$3``)::

    <i32> $2 = bit_shl $x, $c3
    <f32> $4 = mul $y, $q       (a new constant, 0.25)
    <u1> $5 = const true

The rules are in ``rules/`` by subject; a table in this module lists the rules of each opcode, in
order. Under ``fast_math`` floats are also simplified where that changes the result for NaN,
infinities, signed zeros or the last bit (``x * 0``, ``x - x``, ``x / 3``, ``x ** 7.0``).

Without ``fast_math`` it leaves alone ``x + 0.0`` (-0 + 0 is +0), ``x == x`` of floats (false for
NaN) and ``x / 3.0``. It always leaves alone ``int(float(x))`` where the float type cannot hold
every x, and float division by 0, for which it warns. ``x ** n`` of integers with a constant
negative n is an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from ..ir import Func, Op
from ..ir import codes as C
from .registry import register
from .rules import arithmetic, casts
from .rules.rewriter import Rewriter, Rule, apply_rules, rule_table

if TYPE_CHECKING:
    from .manager import PassCx

__all__ = ["alg_simp"]


@register("alg_simp", optional=True, silent="fast_math")
def alg_simp(func: Func, cx: PassCx) -> bool:
    """Simplify single operations by algebra: x * 1, x - x, x ** 2, casts of casts."""
    return apply_rules(func, cx, _TABLE)


def _later(module: str, name: str) -> Rule:
    """The rule ``name`` of a module that kernels without its ops do not load."""
    found: list[Rule] = []

    def rule(op: Op, rw: Rewriter) -> Op | None:
        if not found:
            found.append(getattr(import_module(f".rules.{module}", __package__), name))
        return found[0](op, rw)

    rule.__name__ = name
    return rule


_RULES: dict[int, tuple[Rule, ...]] = {
    **{code: (_later("logic", "compare"),) for code in range(C.COUNT) if C.COMPARE[code]},
    **{code: (_later("logic", "shift"),) for code in range(C.COUNT) if C.SHIFT[code]},
    C.NEG: (arithmetic.neg,),
    C.ADD: (arithmetic.add,),
    C.SUB: (arithmetic.sub,),
    C.MUL: (arithmetic.mul,),
    C.DIV: (arithmetic.div,),
    C.FLOORDIV: (arithmetic.floordiv,),
    C.MOD: (arithmetic.mod,),
    C.FLOORMOD: (arithmetic.floormod,),
    C.MIN: (arithmetic.min_max,),
    C.MAX: (arithmetic.min_max,),
    C.POW: (_later("power", "power"),),
    C.BIT_AND: (_later("logic", "bit_and"),),
    C.BIT_OR: (_later("logic", "bit_or"),),
    C.BIT_XOR: (_later("logic", "bit_xor"),),
    C.BIT_NOT: (_later("logic", "bit_not"),),
    C.LOGIC_NOT: (_later("logic", "logic_not"),),
    C.SELECT: (_later("logic", "select"),),
    C.CAST_VALUE: (casts.same_type, casts.cast_of_cast),
    C.CAST_BITS: (casts.same_type, casts.bits_of_bits),
    C.ASSERT: (_later("logic", "holds"),),
    C.WHILE_CONTROL: (_later("logic", "holds"),),
}


def _near(ops: Iterable[Op]) -> list[Op]:
    """Those with a constant, with the same operand twice, or with one operand; and all selects."""
    const, select = C.CONST, C.SELECT
    return [
        op for op in ops
        if (args := op.args)[-1].code == const
        or args[0].code == const
        or args[0] is args[-1]
        or op.code == select
    ]  # fmt: skip


_TABLE = rule_table(_RULES, _near)
