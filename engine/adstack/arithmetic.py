"""Arithmetic of a kernel as size expressions: what `resolve.Resolver` does for each operation.

A value is requested in one of three modes (see `resolve`): `EXACT`, `UP` or `DOWN`. A rule gets the
resolver, the op and the mode, and raises `Unresolved` where the value cannot be determined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ..ir import Op
from ..ir import codes as C
from ..types import ElementLayout
from .intervals import Facts
from .linear import from_linear, linear
from .size_expr import ONE, ZERO, Arg, Binary, Const, MaxOver, Shape, SizeExpr, Var

if TYPE_CHECKING:
    from .resolve import Resolver

__all__ = ["DOWN", "EXACT", "RULES", "UP", "Unresolved", "min_or_max", "over"]

DOWN: Final = -1
EXACT: Final = 0
UP: Final = 1

_SAME: Final = {C.ADD: "add", C.MUL: "mul", C.MAX: "max", C.MIN: "min", C.SUB: "sub"}
_DIVISIONS: Final = {
    C.FLOORDIV: "floordiv", C.FLOORMOD: "mod", C.DIV: "floordiv", C.MOD: "mod",
}  # fmt: skip
_SHIFTS: Final = frozenset({C.BIT_SHL, C.BIT_SAR, C.BIT_SHR})
_COUNTS: Final = frozenset({C.POPCNT, C.CLZ, C.FFS})


class Unresolved(Exception):
    """Raised for a value that no size expression describes.

    op: makes the value. why: describes the value in the user's terms. named: True if ``why`` names
    the value by itself, so that the source of the op adds nothing.
    """

    def __init__(self, op: Op, why: str, named: bool = False) -> None:
        super().__init__(why)
        self.op = op
        self.why = why
        self.named = named


def min_or_max(mode: int, values: list[SizeExpr]) -> SizeExpr:
    """The largest (DOWN: smallest) of some values."""
    out = values[0]
    for value in values[1:]:
        out = Binary("min" if mode == DOWN else "max", out, value)
    return out


def over(var: Var, begin: SizeExpr, end: SizeExpr, e: SizeExpr, mode: int) -> SizeExpr:
    """The largest (DOWN: smallest) over a range."""
    if mode == UP:
        return MaxOver(var.number, begin, end, e)
    negative = from_linear(linear(Binary("sub", ZERO, e)))
    return Binary("sub", ZERO, MaxOver(var.number, begin, end, negative))


# --- the rules --------------------------------------------------------------------------------


def _argument(of: Resolver, op: Op, mode: int) -> SizeExpr:
    return Arg(op.attr)


def _shape(of: Resolver, op: Op, mode: int) -> SizeExpr:
    axis: int = op.attr[0]
    param: int = op.attr[1]
    layout: ElementLayout | None = of.func.params[param].layout
    return Const(layout.shape[axis]) if layout is not None else Shape(param, axis)


def _index(of: Resolver, op: Op, mode: int) -> SizeExpr:
    if op.args[0].code != C.RANGE_FOR:
        raise Unresolved(op, "the index of a loop that is no range")
    return of.var(op.args[0], op.attr)


def _cast(of: Resolver, op: Op, mode: int) -> SizeExpr:
    x = op.args[0]
    if x.type.is_int and (op.type.bits > 1 or x.type.bits == 1):
        return of.value(x, mode)
    if op.type.bits == 1:
        return _truth(of, op, mode)
    raise Unresolved(op, f"an integer made from a number of the type {x.type.name}")


def _arithmetic(of: Resolver, op: Op, mode: int) -> SizeExpr:
    name = _SAME[op.code]
    a, b = op.args
    if op.code == C.SUB and mode != EXACT:
        return of.difference(a, b, mode)
    if op.code == C.MUL and mode != EXACT:
        return _product(of, a, b, mode)
    return Binary(name, of.value(a, mode), of.value(b, mode))


def _product(of: Resolver, a: Op, b: Op, mode: int) -> SizeExpr:
    """The largest of the four products of the ends."""
    for x, y in ((a, b), (b, a)):
        if x.code == C.CONST:
            factor = int(x.attr)
            return Binary("mul", Const(factor), of.value(y, mode if factor > 0 else -mode))
    ends = [(of.value(x, DOWN), of.value(x, UP)) for x in (a, b)]
    corners = [Binary("mul", x, y) for x in ends[0] for y in ends[1]]
    return min_or_max(mode, list(dict.fromkeys(corners)))


def _negative(of: Resolver, op: Op, mode: int) -> SizeExpr:
    return Binary("sub", ZERO, of.value(op.args[0], -mode))


def _magnitude(of: Resolver, op: Op, mode: int) -> SizeExpr:
    x = op.args[0]
    if mode == DOWN:
        return ZERO
    return Binary("max", of.value(x, mode), Binary("sub", ZERO, of.value(x, -mode)))


def _division(of: Resolver, op: Op, mode: int) -> SizeExpr:
    a, b = op.args
    name = _DIVISIONS[op.code]
    floors = op.code in (C.FLOORDIV, C.FLOORMOD)
    try:
        d = of.value(b, EXACT)
    except Unresolved:
        return _rough_division(of, op, mode)
    positive = isinstance(d, Const) and d.value > 0
    if mode != EXACT and (name == "mod" or not positive):
        return _rough_division(of, op, mode)
    x = of.value(a, mode)
    if floors:
        return Binary(name, x, d)
    low_x, low_d = (Facts(of.func.params).bounds(e)[0] for e in (x, d))
    if low_x >= 0 and low_d >= 0:
        return Binary(name, x, d)
    if not positive:
        raise Unresolved(op, "a quotient of what may be negative")
    return _truncated(name, x, d)


def _rough_division(of: Resolver, op: Op, mode: int) -> SizeExpr:
    """A quotient is not larger than what is divided, a remainder not than the divisor."""
    if mode == EXACT:
        raise Unresolved(op, "a division by a number that is not known")
    d = op.args[1]
    if op.code in (C.FLOORMOD, C.MOD) and d.code == C.CONST and int(d.attr) > 0:
        if mode == UP:
            return Const(int(d.attr) - 1)
        return ZERO if op.code == C.FLOORMOD else Const(1 - int(d.attr))
    x = op.args[0] if _DIVISIONS[op.code] == "floordiv" else op.args[1]
    high, low = of.value(x, UP), of.value(x, DOWN)
    size = min_or_max(UP, [ZERO, high, Binary("sub", ZERO, low)])
    return size if mode == UP else Binary("sub", ZERO, size)


def _shift(of: Resolver, op: Op, mode: int) -> SizeExpr:
    x, by = op.args
    if by.code != C.CONST or (op.code == C.BIT_SHR and op.type.is_signed):
        raise Unresolved(op, "a shift of bits")
    factor = Const(1 << (int(by.attr) % op.type.bits))
    return Binary("mul" if op.code == C.BIT_SHL else "floordiv", of.value(x, mode), factor)


def _masked(of: Resolver, op: Op, mode: int) -> SizeExpr:
    x, mask = op.args
    if x.code == C.CONST:
        x, mask = mask, x
    if op.type.bits == 1:
        return _truth(of, op, mode)
    if mask.code != C.CONST or int(mask.attr) < 0:
        raise Unresolved(op, "an operation on bits")
    bits = int(mask.attr)
    if bits & (bits + 1) == 0:
        try:
            return Binary("mod", of.value(x, EXACT), Const(bits + 1))
        except Unresolved:
            if mode == EXACT:
                raise
    elif mode == EXACT:
        raise Unresolved(op, "an operation on bits")
    return Const(bits) if mode == UP else ZERO


def _choice(of: Resolver, op: Op, mode: int) -> SizeExpr:
    values = [of.value(x, mode) for x in op.args[1:]]
    if mode == EXACT and values[0] != values[1]:
        raise Unresolved(op, "a choice between two values")
    return min_or_max(mode, values) if values[0] != values[1] else values[0]


def _truth(of: Resolver, op: Op, mode: int) -> SizeExpr:
    if mode == EXACT:
        raise Unresolved(op, "a condition")
    return ONE if mode == UP else ZERO


def _bit_count(of: Resolver, op: Op, mode: int) -> SizeExpr:
    if mode == EXACT:
        raise Unresolved(op, "a count of bits")
    return Const(op.args[0].type.bits) if mode == UP else ZERO


def _truncated(name: str, x: SizeExpr, d: SizeExpr) -> SizeExpr:
    """C's division and remainder, by a positive number."""
    minus = Binary("max", ZERO, Binary("sub", ZERO, x))
    return Binary("sub", Binary(name, Binary("max", ZERO, x), d), Binary(name, minus, d))


Rule = Callable[["Resolver", Op, int], SizeExpr]


def _rules() -> dict[int, Rule]:
    rules: dict[int, Rule] = {
        C.ARG_LOAD: _argument,
        C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS: _shape,
        C.LOOP_INDEX: _index,
        C.CAST_VALUE: _cast,
        C.NEG: _negative,
        C.ABS: _magnitude,
        C.BIT_AND: _masked,
        C.SELECT: _choice,
        C.LOGIC_NOT: _truth,
    }
    rules.update(dict.fromkeys(_SAME, _arithmetic))
    rules.update(dict.fromkeys(_DIVISIONS, _division))
    rules.update(dict.fromkeys(_SHIFTS, _shift))
    rules.update(dict.fromkeys(_COUNTS, _bit_count))
    compares = [code for code, is_compare in enumerate(C.COMPARE) if is_compare]
    rules.update(dict.fromkeys(compares, _truth))
    return rules


RULES: Final = _rules()
"""By opcode; loads are the resolver's own."""
