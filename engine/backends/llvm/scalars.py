"""LLVM IR for operations on scalars: arithmetic, comparison, conversion, mathematics.

`SCALAR` maps an opcode to a function ``(emitter, op)`` that appends the instructions and names the
op's value. `ir.semantics` says what each operation computes; where LLVM leaves a case undefined
(division by zero, shifts by the width, conversions out of range) the instructions here define it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ...ir import Op
from ...ir import codes as C
from ...types import Type, f16, f64, u1
from ..index_sums import NARROW
from .later import later
from .text import VALUE, constant

if TYPE_CHECKING:
    from .emitter import Emitter

__all__ = ["SCALAR", "combine", "convert", "resize"]

Emit = Callable[["Emitter", Op], None]

_INT: Final = {
    C.ADD: "add", C.SUB: "sub", C.MUL: "mul", C.BIT_AND: "and", C.BIT_OR: "or", C.BIT_XOR: "xor",
}  # fmt: skip
_REAL: Final = {C.ADD: "fadd", C.SUB: "fsub", C.MUL: "fmul", C.DIV: "fdiv", C.MOD: "frem"}
# What arithmetic modulo 2 is.
_BOOL: Final = {
    C.ADD: "xor", C.SUB: "xor", C.MUL: "and", C.BIT_AND: "and", C.BIT_OR: "or", C.BIT_XOR: "xor",
    C.MIN: "and", C.MAX: "or", C.DIV: "and", C.FLOORDIV: "and",
}  # fmt: skip
_SIGNED: Final = {C.CMP_LT: "slt", C.CMP_LE: "sle", C.CMP_GT: "sgt", C.CMP_GE: "sge"}
_UNSIGNED: Final = {C.CMP_LT: "ult", C.CMP_LE: "ule", C.CMP_GT: "ugt", C.CMP_GE: "uge"}
_EITHER: Final = {C.CMP_EQ: "eq", C.CMP_NE: "ne"}
_ORDERED: Final = {
    C.CMP_LT: "olt", C.CMP_LE: "ole", C.CMP_GT: "ogt", C.CMP_GE: "oge", C.CMP_EQ: "oeq",
    C.CMP_NE: "une",
}  # fmt: skip
_OTHERS: Final = (
    C.POW, C.RSQRT, C.INV, C.NEG, C.ABS, C.SGN, C.BIT_NOT, C.LOGIC_NOT, C.POPCNT, C.CLZ, C.FFS,
)  # fmt: skip
"""Operations of `mathematics` that no library of C has."""


# Two operands


def combine(e: Emitter, code: int, t: Type, a: str, b: str) -> str:
    """``a code b`` for the operations that atomics apply: add, mul, min, max and the bit ones."""
    ty = VALUE[t.name]
    if t is u1:
        return e.value(f"{_BOOL[code]} i1 {a}, {b}")
    if code in (C.MIN, C.MAX):
        if t.is_real:
            return _extremum(e, "min" if code == C.MIN else "max", ty, a, b)
        name = ("s" if t.is_signed else "u") + ("min" if code == C.MIN else "max")
        return e.call(name, ty, f"{ty} {a}, {ty} {b}", flags=False)
    if t.is_real:
        return e.value(f"{_REAL[code]} {e.fast}{ty} {a}, {b}")
    return e.value(f"{_INT[code]} {ty} {a}, {b}")


def _extremum(e: Emitter, name: str, ty: str, a: str, b: str) -> str:
    """The minimum or maximum of two floats; a number where one of them is NaN.

    ``nnan``, or one under fast_math could not become a vector minimum. Without it, a loop that
    reduces by ``minnum`` gets checks of NaN as vectors, whose cost LLVM counts in two ways; where
    these disagree, it ends the process. ``minimumnum`` needs no checks. The sign of a zero is
    unspecified in either.
    """
    if e.fast or not e.vectors:
        return e.call(f"{name}num", ty, f"{ty} {a}, {ty} {b}", more="nnan " if e.fast else "")
    return e.call(f"{name}imumnum", ty, f"{ty} {b}, {ty} {a}", more="nsz ")


def _combine(e: Emitter, op: Op) -> None:
    v = e.v
    a, b = op.args
    if op.code in (C.MIN, C.MAX):
        for one, other in ((a, b), (b, a)):
            if one.code == C.CONST and one.attr != one.attr:
                # NaN loses against anything; LLVM was promised that it sees none (`Emitter.call`).
                v[op.id] = v[other.id]
                return
    v[op.id] = combine(e, op.code, op.type, v[a.id], v[b.id])


def _divide(e: Emitter, op: Op) -> None:
    """div, mod, floordiv, floormod."""
    t, code = op.type, op.code
    a, b = e.v[op.args[0].id], e.v[op.args[1].id]
    if t.is_real:
        e.v[op.id] = _divide_real(e, code, t, a, b)
    elif t is u1:
        e.v[op.id] = "false" if code in (C.MOD, C.FLOORMOD) else e.value(f"and i1 {a}, {b}")
    elif t.is_signed:
        e.v[op.id] = _divide_signed(e, code, t, a, b, op.args[1])
    else:
        ty = VALUE[t.name]
        name = "udiv" if code in (C.DIV, C.FLOORDIV) else "urem"
        divisor = op.args[1]
        if divisor.code == C.CONST and divisor.attr:
            e.v[op.id] = e.value(f"{name} {ty} {a}, {b}")
            return
        none = e.value(f"icmp eq {ty} {b}, 0")
        safe = e.value(f"select i1 {none}, {ty} 1, {ty} {b}")
        q = e.hidden(ty, e.value(f"{name} {ty} {a}, {safe}"))
        # x % 1 is 0 already, which is what % 0 must give.
        e.v[op.id] = q if name == "urem" else e.value(f"select i1 {none}, {ty} 0, {ty} {q}")


def _divide_real(e: Emitter, code: int, t: Type, a: str, b: str) -> str:
    ty = VALUE[t.name]
    if code == C.DIV:
        return e.value(f"fdiv {e.fast}{ty} {a}, {b}")
    if code == C.MOD:
        return e.value(f"frem {e.fast}{ty} {a}, {b}")
    # Without fast_math: floor() would make a wrong last bit a wrong whole number.
    q = e.call("floor", ty, f"{ty} {e.value(f'fdiv {ty} {a}, {b}')}", flags=False)
    if code == C.FLOORDIV:
        return q
    return e.value(f"fsub {ty} {a}, {e.value(f'fmul {ty} {q}, {b}')}")


def _positive(op: Op) -> bool:
    """True if a signed integer is certainly above 0: a constant, or a maximum with one."""
    if op.code == C.MAX:
        return any(_positive(a) for a in op.args)
    return op.code == C.CONST and op.attr > 0


def _divide_signed(e: Emitter, code: int, t: Type, a: str, b: str, divisor: Op) -> str:
    """Signed division that is defined for 0 and for MIN / -1."""
    ty = VALUE[t.name]
    known = (divisor.code == C.CONST and divisor.attr not in (0, -1)) or _positive(divisor)
    safe, none, minus = b, "", ""
    if not known:
        none = e.value(f"icmp eq {ty} {b}, 0")
        minus = e.value(f"icmp eq {ty} {b}, -1")
        odd = e.value(f"or i1 {none}, {minus}")
        safe = e.value(f"select i1 {odd}, {ty} 1, {ty} {b}")
    if code in (C.DIV, C.FLOORDIV):
        q = e.value(f"sdiv {ty} {a}, {safe}")
        if divisor.code != C.CONST:
            q = e.hidden(ty, q)
        if code == C.FLOORDIV:
            # One lower where there is a remainder and its sign is not the divisor's.
            back = e.value(f"mul {ty} {q}, {safe}")
            r = e.value(f"sub {ty} {a}, {back}")
            low = e.value(f"select i1 {_signs_differ(e, ty, r, safe)}, {ty} -1, {ty} 0")
            q = e.value(f"add {ty} {q}, {low}")
        if known:
            return q
        negated = e.value(f"sub {ty} 0, {a}")
        q = e.value(f"select i1 {minus}, {ty} {negated}, {ty} {q}")
        return e.value(f"select i1 {none}, {ty} 0, {ty} {q}")
    r = e.value(f"srem {ty} {a}, {safe}")
    if divisor.code != C.CONST:
        r = e.hidden(ty, r)
    if code == C.MOD:
        return r
    moved = e.value(f"add {ty} {r}, {safe}")
    return e.value(f"select i1 {_signs_differ(e, ty, r, safe)}, {ty} {moved}, {ty} {r}")


def _signs_differ(e: Emitter, ty: str, r: str, b: str) -> str:
    """True, as i1, if remainder ``r`` is not 0 and its sign differs from that of ``b``."""
    some = e.value(f"icmp ne {ty} {r}, 0")
    mixed = e.value(f"xor {ty} {r}, {b}")
    differ = e.value(f"icmp slt {ty} {mixed}, 0")
    return e.value(f"and i1 {some}, {differ}")


def _shift(e: Emitter, op: Op) -> None:
    t = op.type
    a, b = e.v[op.args[0].id], e.v[op.args[1].id]
    if t is u1:
        e.v[op.id] = a
        return
    ty = VALUE[t.name]
    amount = op.args[1]
    if amount.code == C.CONST:
        b = str(int(amount.attr) % t.bits)
    else:
        b = e.value(f"and {ty} {b}, {t.bits - 1}")
    arithmetic = op.code == C.BIT_SAR and t.is_signed
    name = "shl" if op.code == C.BIT_SHL else "ashr" if arithmetic else "lshr"
    e.v[op.id] = e.value(f"{name} {ty} {a}, {b}")


def _compare(e: Emitter, op: Op) -> None:
    left, right = op.args
    t, code = left.type, op.code
    a, b = e.v[left.id], e.v[right.id]
    ty = VALUE[t.name]
    if t.is_real:
        e.v[op.id] = e.value(f"fcmp {_ORDERED[code]} {ty} {a}, {b}")
        return
    name = _EITHER.get(code) or (_SIGNED if t.is_signed else _UNSIGNED)[code]
    e.v[op.id] = e.value(f"icmp {name} {ty} {a}, {b}")


def _select(e: Emitter, op: Op) -> None:
    cond, a, b = (e.v[x.id] for x in op.args)
    ty = VALUE[op.type.name]
    e.v[op.id] = e.value(f"select i1 {cond}, {ty} {a}, {ty} {b}")


# Conversions


def resize(e: Emitter, a: str, bits: int, to: int, *, signed: bool) -> str:
    if bits == to:
        return a
    name = "trunc" if bits > to else "sext" if signed else "zext"
    return e.value(f"{name} i{bits} {a} to i{to}")


def convert(e: Emitter, a: str, source: Type, target: Type) -> str:
    """``a`` converted as `cast_value` does."""
    if source is target:
        return a
    ty = VALUE[source.name]
    if target is u1:
        if source.is_real:
            return e.value(f"fcmp une {ty} {a}, {constant(0.0, source)}")
        return e.value(f"icmp ne {ty} {a}, 0")
    if source.is_int and target.is_int:
        return resize(e, a, source.bits, target.bits, signed=source.is_signed)
    to = VALUE[target.name]
    if source.is_int:
        name = "sitofp" if source.is_signed else "uitofp"
        if target is f16:
            # f64 holds every integer that f16 does not turn into infinity.
            wide = e.value(f"{name} {ty} {a} to double")
            return convert(e, wide, f64, f16)
        return e.value(f"{name} {ty} {a} to {to}")
    if target.is_int:
        if source is f16:
            a, ty = e.value(f"fpext half {a} to float"), "float"
        name = "fptosi" if target.is_signed else "fptoui"
        return e.call(f"{name}.sat.{to}", ty, f"{ty} {a}", flags=False, result=to)
    if source.bits < target.bits:
        return e.value(f"fpext {ty} {a} to {to}")
    if source is f64 and target is f16:
        return e.value(f"call half {e.helper('f64_to_f16')}(double {a})")
    return e.value(f"fptrunc {ty} {a} to {to}")


def _cast_value(e: Emitter, op: Op) -> None:
    x = op.args[0]
    e.v[op.id] = convert(e, e.v[x.id], x.type, op.type)


def _cast_bits(e: Emitter, op: Op) -> None:
    x = op.args[0]
    ty, to = VALUE[x.type.name], VALUE[op.type.name]
    a = e.v[x.id]
    e.v[op.id] = a if ty == to else e.value(f"bitcast {ty} {a} to {to}")


def _maybe_hidden(emit: Emit) -> Emit:
    """``emit``, for ops that may make integers of few bits."""

    def hiding(e: Emitter, op: Op) -> None:
        emit(e, op)
        if op.id in e.narrow:
            e.v[op.id] = e.hidden(VALUE[op.type.name], e.v[op.id])

    return hiding


SCALAR: Final[dict[int, Emit]] = {
    **dict.fromkeys((C.ADD, C.SUB, C.MUL, C.MIN, C.MAX, C.BIT_AND, C.BIT_OR, C.BIT_XOR), _combine),
    **dict.fromkeys((C.DIV, C.MOD, C.FLOORDIV, C.FLOORMOD), _divide),
    **dict.fromkeys((C.BIT_SHL, C.BIT_SHR, C.BIT_SAR), _shift),
    **dict.fromkeys((*_ORDERED,), _compare),
    **later("mathematics", [code for code in range(C.COUNT) if C.LIBM[code] or code in _OTHERS]),
    C.SELECT: _select, C.CAST_VALUE: _cast_value, C.CAST_BITS: _cast_bits,
}  # fmt: skip
SCALAR.update({code: _maybe_hidden(SCALAR[code]) for code in NARROW})
