"""LLVM IR for mathematics, and for operations on the bits and the sign of one number."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ...ir import Op
from ...ir import codes as C
from ...types import Type, f16, f32, i64, u1, u64
from .scalars import convert, resize
from .text import VALUE, constant

if TYPE_CHECKING:
    from .emitter import Emitter

__all__ = ["OPS"]

_WHOLE: Final = (C.FLOOR, C.CEIL, C.ROUND)


def _pow(e: Emitter, op: Op) -> None:
    base, exponent = op.args
    t = op.type
    a, n = e.v[base.id], e.v[exponent.id]
    if t.is_real:
        if exponent.type.is_int:
            n = convert(e, n, exponent.type, t)
        e.v[op.id] = _wide_call(e, "pow", t, [a, n])
        return
    wide = convert(e, n, exponent.type, i64 if exponent.type.is_signed else u64)
    if t is u1:
        # 0 ** n is 1 for n == 0 only; 1 ** n is 1. Negative exponents of 0 give 0.
        none = e.value(f"icmp eq i64 {wide}, 0")
        e.v[op.id] = e.value(f"or i1 {a}, {none}")
        return
    negative = e.value(f"icmp slt i64 {wide}, 0") if exponent.type.is_signed else "false"
    ty = VALUE[t.name]
    name = e.helper(f"ipow.{ty}{'' if t.is_signed else '.unsigned'}")
    e.v[op.id] = e.value(f"call {ty} {name}({ty} {a}, i64 {wide}, i1 {negative})")


def _math_of_two(e: Emitter, op: Op) -> None:
    args = [convert(e, e.v[x.id], x.type, op.type) for x in op.args]
    e.v[op.id] = _wide_call(e, C.NAME[op.code], op.type, args)


def _wide_call(e: Emitter, name: str, t: Type, args: list[str]) -> str:
    """Call a function of floats; f16 is computed in f32 and rounded once."""
    if t is f16:
        args = [convert(e, a, f16, f32) for a in args]
        return convert(e, _wide_call(e, name, f32, args), f32, f16)
    ty = VALUE[t.name]
    return e.call(name, ty, ", ".join([f"{ty} {a}" for a in args]))


def _math(e: Emitter, op: Op) -> None:
    x = op.args[0]
    t = op.type
    a = e.v[x.id]
    if not t.is_real:
        if op.code not in _WHOLE:
            raise e.unsupported(op)
        e.v[op.id] = a
        return
    a = convert(e, a, x.type, t)
    if op.code == C.EXP and t is f32 and e.fast and e.own_exp:
        e.v[op.id] = e.value(f"call float {e.helper('exp_f32')}(float {a})")
    else:
        e.v[op.id] = _wide_call(e, C.NAME[op.code], t, [a])


def _rsqrt(e: Emitter, op: Op) -> None:
    x, t = op.args[0], op.type
    ty = VALUE[t.name]
    root = _wide_call(e, "sqrt", t, [convert(e, e.v[x.id], x.type, t)])
    e.v[op.id] = e.value(f"fdiv {e.fast}{ty} {constant(1.0, t)}, {root}")


def _inv(e: Emitter, op: Op) -> None:
    x, t = op.args[0], op.type
    a, ty = e.v[x.id], VALUE[t.name]
    if t.is_real:
        e.v[op.id] = e.value(f"fdiv {e.fast}{ty} {constant(1.0, t)}, {a}")
        return
    # Of the integers only 1 and -1 have a reciprocal that does not truncate to 0.
    if t is u1:
        e.v[op.id] = a
        return
    unit = e.value(f"icmp eq {ty} {a}, 1")
    if t.is_signed:
        minus = e.value(f"icmp eq {ty} {a}, -1")
        unit = e.value(f"or i1 {unit}, {minus}")
    e.v[op.id] = e.value(f"select i1 {unit}, {ty} {a}, {ty} 0")


def _neg(e: Emitter, op: Op) -> None:
    a, t = e.v[op.args[0].id], op.type
    ty = VALUE[t.name]
    if t is u1:
        e.v[op.id] = a
    elif t.is_real:
        e.v[op.id] = e.value(f"fneg {e.fast}{ty} {a}")
    else:
        e.v[op.id] = e.value(f"sub {ty} 0, {a}")


def _abs(e: Emitter, op: Op) -> None:
    a, t = e.v[op.args[0].id], op.type
    ty = VALUE[t.name]
    if t.is_real:
        e.v[op.id] = e.call("fabs", ty, f"{ty} {a}")
    elif t.is_signed:
        e.v[op.id] = e.call("abs", ty, f"{ty} {a}, i1 false", flags=False)
    else:
        e.v[op.id] = a


def _sgn(e: Emitter, op: Op) -> None:
    a, t = e.v[op.args[0].id], op.type
    ty = VALUE[t.name]
    if t is u1:
        e.v[op.id] = a
        return
    if t.is_real:
        zero, one, minus = constant(0.0, t), constant(1.0, t), constant(-1.0, t)
        above = e.value(f"fcmp ogt {ty} {a}, {zero}")
        below = e.value(f"fcmp olt {ty} {a}, {zero}")
    else:
        zero, one, minus = "0", "1", "-1"
        above = e.value(f"icmp {'sgt' if t.is_signed else 'ne'} {ty} {a}, 0")
        below = e.value(f"icmp slt {ty} {a}, 0") if t.is_signed else "false"
    rest = e.value(f"select i1 {below}, {ty} {minus}, {ty} {zero}")
    e.v[op.id] = e.value(f"select i1 {above}, {ty} {one}, {ty} {rest}")


def _bit_not(e: Emitter, op: Op) -> None:
    ty = VALUE[op.type.name]
    ones = "true" if op.type is u1 else "-1"
    e.v[op.id] = e.value(f"xor {ty} {e.v[op.args[0].id]}, {ones}")


def _logic_not(e: Emitter, op: Op) -> None:
    x = op.args[0]
    ty = VALUE[x.type.name]
    if x.type.is_real:
        e.v[op.id] = e.value(f"fcmp oeq {ty} {e.v[x.id]}, {constant(0.0, x.type)}")
    else:
        e.v[op.id] = e.value(f"icmp eq {ty} {e.v[x.id]}, {constant(0, x.type)}")


def _count(e: Emitter, op: Op) -> None:
    """popcnt, clz, ffs: of an integer, as i32."""
    x = op.args[0]
    a, t = e.v[x.id], x.type
    ty = VALUE[t.name]
    if op.code == C.POPCNT:
        n = e.call("ctpop", ty, f"{ty} {a}", flags=False)
    elif op.code == C.CLZ:
        # A width of 1 cannot hold the count 1.
        if t is u1:
            inverted = e.value(f"xor i1 {a}, true")
            e.v[op.id] = e.value(f"zext i1 {inverted} to i32")
            return
        n = e.call("ctlz", ty, f"{ty} {a}, i1 false", flags=False)
    else:
        if t is u1:
            e.v[op.id] = e.value(f"zext i1 {a} to i32")
            return
        low = e.call("cttz", ty, f"{ty} {a}, i1 false", flags=False)
        first = e.value(f"add {ty} {low}, 1")
        none = e.value(f"icmp eq {ty} {a}, 0")
        n = e.value(f"select i1 {none}, {ty} 0, {ty} {first}")
    e.v[op.id] = resize(e, n, t.bits, 32, signed=False)


OPS: Final[dict[int, Callable[[Emitter, Any], None]]] = {
    **{
        code: _math if C.UNARY[code] else _math_of_two for code in range(C.COUNT) if C.LIBM[code]
    },
    C.POW: _pow, C.RSQRT: _rsqrt, C.INV: _inv, C.NEG: _neg, C.ABS: _abs, C.SGN: _sgn,
    C.BIT_NOT: _bit_not, C.LOGIC_NOT: _logic_not, C.POPCNT: _count, C.CLZ: _count, C.FFS: _count,
}  # fmt: skip
