"""OpenCL C for operations on scalars: arithmetic, comparison, conversion, mathematics.

`SCALAR` maps an opcode to a function ``(emitter, op)`` that returns the op's value as text.
`ir.semantics` says what each operation computes; where C leaves a case undefined (signed overflow,
division by zero, shifts by the width, conversions out of range) the text here defines it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ....ir import Op
from ....ir import codes as C
from ....types import Type, f16, f32, f64, u1
from .casts import convert
from .emitter import (
    ADD,
    AND,
    ATOM,
    CHOICE,
    EQUAL,
    MUL,
    OR,
    RELATION,
    SHIFT,
    UNARY,
    XOR,
    wrap,
)  # fmt: skip
from .names import UNSIGNED, VALUE, literal

if TYPE_CHECKING:
    from .emitter import Emitter

__all__ = ["SCALAR", "combined"]

Emit = Callable[["Emitter", Op], None]

_SIGN: Final = {
    C.ADD: ("+", ADD), C.SUB: ("-", ADD), C.MUL: ("*", MUL), C.BIT_AND: ("&", AND),
    C.BIT_OR: ("|", OR), C.BIT_XOR: ("^", XOR),
}  # fmt: skip
# What arithmetic modulo 2 is.
_BOOL: Final = {
    C.ADD: ("^", XOR), C.SUB: ("^", XOR), C.MUL: ("&", AND), C.BIT_AND: ("&", AND),
    C.BIT_OR: ("|", OR), C.BIT_XOR: ("^", XOR), C.MIN: ("&", AND), C.MAX: ("|", OR),
    C.DIV: ("&", AND), C.FLOORDIV: ("&", AND),
}  # fmt: skip
_COMPARE: Final = {
    C.CMP_LT: ("<", RELATION), C.CMP_LE: ("<=", RELATION), C.CMP_GT: (">", RELATION),
    C.CMP_GE: (">=", RELATION), C.CMP_EQ: ("==", EQUAL), C.CMP_NE: ("!=", EQUAL),
}  # fmt: skip
_LIBM: Final = [code for code in range(C.COUNT) if C.LIBM[code]]
_WHOLE: Final = (C.FLOOR, C.CEIL, C.ROUND)
_HELPER: Final = {
    C.DIV: "div", C.MOD: "mod", C.FLOORDIV: "floordiv", C.FLOORMOD: "floormod",
    C.MIN: "min", C.MAX: "max",
}  # fmt: skip
_TIGHT: Final = frozenset({AND, OR, XOR, SHIFT})
"""Levels whose place in C's order is hard to remember: their operands get parentheses."""


def _name(e: Emitter, name: str, t: Type) -> str:
    """The name of a floating-point function for a type: as in C, with a final f for ``float``."""
    return e.program.math(name if t is f64 else f"{name}f")


def _put_real(e: Emitter, op: Op, text: str, level: int = ATOM) -> None:
    """A float; one of f16, which was computed as a float, is rounded."""
    if op.type is f16:
        e.put(op, f"{e.helper('half')}({text})")
    else:
        e.put(op, text, level)


# Two operands


def combined(e: Emitter, code: int, t: Type, a: str, b: str) -> str:
    """``a code b`` for the operations that atomics apply; a, b: texts that bind tightly."""
    if t is u1:
        sign = _BOOL[code][0]
        return f"{a} {sign} {b}"
    if code in (C.MIN, C.MAX):
        kind = f32 if t is f16 else t
        return f"{e.helper(f'{_HELPER[code]}_{kind.name}')}({a}, {b})"
    sign = _SIGN[code][0]
    if t.is_real:
        text = f"{a} {sign} {b}"
        return f"{e.helper('half')}({text})" if t is f16 else text
    wide = UNSIGNED[t.name]
    return f"({VALUE[t.name]})(({wide}){a} {sign} ({wide}){b})"


def _combine(e: Emitter, op: Op) -> None:
    a, b = op.args
    code, t = op.code, op.type
    if t is u1:
        sign, level = _BOOL[code]
        e.put(op, f"{e.at(a, UNARY)} {sign} {e.at(b, UNARY)}", level)
        return
    sign, level = _SIGN[code]
    if t.is_real:
        _put_real(e, op, f"{e.at(a, level)} {sign} {e.at(b, level + 1)}", level)
    elif level in _TIGHT:
        e.put(op, f"{e.at(a, UNARY)} {sign} {e.at(b, UNARY)}", level)
    elif t.bits >= 32 and (not t.is_signed or _fits(e, op)):
        e.put(op, f"{e.at(a, level)} {sign} {e.at(b, level + 1)}", level)
    else:
        _wrapping(e, op, sign, level)


def _wrapping(e: Emitter, op: Op, sign: str, level: int) -> None:
    """A sum or product in the unsigned type, where it wraps."""
    a, b = op.args
    left, right = e.raw.get(a.id), e.raw.get(b.id)
    if left is None and right is None:
        x = f"({UNSIGNED[op.type.name]}){e.at(a, UNARY)}"
    elif left is None:
        x = e.at(a, level)
    else:
        x = wrap(*left, level)
    y = e.at(b, level + 1) if right is None else wrap(*right, level + 1)
    if left is not None and right is None and y.startswith("-"):
        y = f"({y})"
    e.put_raw(op, f"{x} {sign} {y}", level)


def _fits(e: Emitter, op: Op) -> bool:
    """True if a signed sum or product certainly does not overflow."""
    a, b = (size_of(e, x, 6) for x in op.args)
    return (1 + (a + b if op.code == C.MUL else max(a, b))) < op.type.bits


def size_of(e: Emitter, op: Op, depth: int) -> int:
    """n such that -2**n <= value < 2**n, as small as can be seen at once."""
    known = e.sizes.get(op.id)
    if known is not None:
        return known
    t, code = op.type, op.code
    found = whole = t.bits - t.is_signed
    if code == C.CONST:
        found = int(op.attr).bit_length()
    elif code == C.CAST_VALUE and op.args[0].type.is_int:
        found = size_of(e, op.args[0], depth - 1) if depth else op.args[0].type.bits
    elif depth and code in _SIZES:
        found = _SIZES[code]([size_of(e, x, depth - 1) for x in op.args])
    elif depth and code == C.DIV and op.args[1].code == C.CONST and op.args[1].attr > 0:
        found = size_of(e, op.args[0], depth - 1)
    # What wraps may be anything.
    found = e.sizes[op.id] = min(found, whole)
    return found


_SIZES: Final[dict[int, Callable[[list[int]], int]]] = {
    C.ADD: lambda n: 1 + max(n), C.SUB: lambda n: 1 + max(n), C.MUL: lambda n: 1 + sum(n),
    C.MAX: max, C.MIN: max,
}  # fmt: skip


def _minmax(e: Emitter, op: Op) -> None:
    a, b = op.args
    t = op.type
    if t is u1:
        _combine(e, op)
        return
    for one, other in ((a, b), (b, a)):
        if one.code == C.CONST and one.attr != one.attr:
            # NaN loses against anything; under fast_math compilers are promised that there is none.
            e.put(op, e.at(other, UNARY), UNARY)
            return
    if t.is_int:  # no function: PoCL would compile that, too
        x, y = _repeatable(e, a), _repeatable(e, b)
        e.put(op, f"{x} {'<' if op.code == C.MIN else '>'} {y} ? {x} : {y}", CHOICE)
        return
    kind = f32 if t is f16 else t
    e.put(op, f"{e.helper(f'{_HELPER[op.code]}_{kind.name}')}({e.whole(a)}, {e.whole(b)})")


_REPEATABLE: Final = re.compile(r"(\(\w+\))?\w+")


def _repeatable(e: Emitter, op: Op) -> str:
    """An operand for a place where it is read twice."""
    text = e.at(op, UNARY)
    return text if _REPEATABLE.fullmatch(text) else e.atom(op)


def _divide(e: Emitter, op: Op) -> None:
    """div, mod, floordiv, floormod."""
    t, code = op.type, op.code
    a, b = op.args
    if t.is_real:
        _divide_real(e, op, code)
    elif t is u1:
        if code in (C.MOD, C.FLOORMOD):
            e.put(op, "false")
        else:
            e.put(op, f"{e.at(a, UNARY)} & {e.at(b, UNARY)}", AND)
    elif code in (C.DIV, C.MOD) and (_positive(b) or (b.code == C.CONST and b.attr < -1)):
        sign = "/" if code == C.DIV else "%"
        level = ATOM if b.code == C.CONST else UNARY
        e.put(op, f"{e.at(a, MUL)} {sign} {e.at(b, level)}", MUL)
    else:
        e.put(op, f"{e.helper(f'{_HELPER[code]}_{t.name}')}({e.whole(a)}, {e.whole(b)})")


def _positive(op: Op) -> bool:
    """True if a signed integer is certainly above 0: a constant, or a maximum with one."""
    if op.code == C.MAX:
        return op.type.is_signed and any(_positive(a) for a in op.args)
    return op.code == C.CONST and op.attr > 0


def _divide_real(e: Emitter, op: Op, code: int) -> None:
    t = op.type
    a, b = op.args
    if code == C.DIV:
        inexact = not e.program.capabilities.exact_division and not e.program.fast
        if t is not f64 and inexact and e.program.capabilities.fp64:
            text = f"(float)((double){e.at(a, UNARY)} / (double){e.at(b, UNARY)})"
            level = UNARY
        else:
            text, level = f"{e.at(a, MUL)} / {e.at(b, MUL + 1)}", MUL
    elif code == C.MOD:
        text, level = f"{_name(e, 'fmod', t)}({e.whole(a)}, {e.whole(b)})", ATOM
    else:
        kind = "f32" if t is f16 else t.name
        text, level = f"{e.helper(f'{_HELPER[code]}_{kind}')}({e.whole(a)}, {e.whole(b)})", ATOM
        if t is f16:
            text = _floor_half(e, code, e.whole(a), e.whole(b))
    _put_real(e, op, text, level)


def _floor_half(e: Emitter, code: int, a: str, b: str) -> str:
    """floordiv and floormod of halves, each step rounded to a half."""
    name = "half_floordiv" if code == C.FLOORDIV else "half_floormod"
    half = e.helper("half")
    floor = e.helper(
        "qd_half_floordiv",
        "static inline float qd_half_floordiv(float a, float b)\n"
        f"{{\n    return {_name(e, 'floor', f32)}({half}(a / b));\n}}\n",
    )
    if code == C.FLOORMOD:
        e.helper(
            "qd_half_floormod",
            "static inline float qd_half_floormod(float a, float b)\n"
            f"{{\n    return a - {half}(b * {floor}(a, b));\n}}\n",
        )
    return f"qd_{name}({a}, {b})"


def _shift(e: Emitter, op: Op) -> None:
    t = op.type
    a, amount = op.args
    if t is u1:
        e.put(op, e.v[a.id], e.low.get(a.id, ATOM))
        return
    if amount.code == C.CONST:
        n = str(int(amount.attr) % t.bits)
    else:
        n = f"({e.at(amount, UNARY)} & {t.bits - 1})"
    if op.code == C.BIT_SHL:
        raw = e.raw.get(a.id)
        wide = UNSIGNED[t.name]
        x = wrap(*raw, UNARY) if raw else f"({wide}){e.at(a, UNARY)}"
        if VALUE[t.name] == wide:
            e.put(op, f"{e.at(a, UNARY)} << {n}", SHIFT)
        else:
            e.put_raw(op, f"{x} << {n}", SHIFT)
    elif op.code == C.BIT_SAR or not t.is_signed:
        e.put(op, f"{e.at(a, UNARY)} >> {n}", SHIFT)
    else:
        bits = f"u{VALUE[t.name]}"
        e.put(op, f"({VALUE[t.name]})(({bits}){e.at(a, UNARY)} >> {n})", UNARY)


def _compare(e: Emitter, op: Op) -> None:
    a, b = op.args
    sign, level = _COMPARE[op.code]
    e.put(op, f"{e.at(a, RELATION + 1)} {sign} {e.at(b, RELATION + 1)}", level)


def _select(e: Emitter, op: Op) -> None:
    cond, a, b = op.args
    x, y = e.at(a, CHOICE + 1), e.at(b, CHOICE + 1)
    e.put(op, f"{e.at(cond, EQUAL)} ? {x} : {y}", CHOICE)


def _pow(e: Emitter, op: Op) -> None:
    base, n = op.args
    t = op.type
    if t.is_real:
        exponent = e.whole(n) if n.type.is_real else convert(e, e.at(n, UNARY), n.type, t)
        _real_call(e, op, "pow", [e.whole(base), exponent])
        return
    if t is u1:
        e.put(op, f"{e.at(base, UNARY)} | ({e.at(n, EQUAL + 1)} == 0)", OR)
        return
    count = e.atom(n)
    negative = f"{count} < 0" if n.type.is_signed else "false"
    name = e.helper(f"ipow_{t.name}")
    e.put(op, f"{name}({e.whole(base)}, (ulong){count}, {negative})")


def _math_of_two(e: Emitter, op: Op) -> None:
    _real_call(e, op, C.NAME[op.code], [_as_real(e, a, op.type) for a in op.args])


# One operand


def _as_real(e: Emitter, x: Op, t: Type) -> str:
    """An operand as the real type of an operation's result."""
    if x.type is t:
        return e.whole(x)
    return convert(e, e.at(x, UNARY), x.type, t)


def _real_call(e: Emitter, op: Op, name: str, args: list[str]) -> None:
    """Call a function of floats; f16 is computed in f32 and rounded once."""
    _put_real(e, op, f"{_name(e, name, op.type)}({', '.join(args)})")


def _math(e: Emitter, op: Op) -> None:
    x = op.args[0]
    t = op.type
    if not t.is_real:
        if op.code not in _WHOLE:
            raise e.unsupported(op)
        e.put(op, e.v[x.id], e.low.get(x.id, ATOM))
        return
    arg = _as_real(e, x, t)
    if op.code == C.SQRT:
        e.put(op, _rounded_root(e, t, arg))
    else:
        _real_call(e, op, C.NAME[op.code], [arg])


def _rounded_root(e: Emitter, t: Type, arg: str) -> str:
    """A square root, rounded correctly unless `fast_math` is set."""
    program = e.program
    text = f"{_name(e, 'sqrt', t)}({arg})"
    exact = t is f64 or program.fast or program.capabilities.exact_division
    if not exact and program.capabilities.fp64:
        text = f"(float){_name(e, 'sqrt', f64)}((double)({arg}))"
    return f"{e.helper('half')}({text})" if t is f16 else text


def _rsqrt(e: Emitter, op: Op) -> None:
    x, t = op.args[0], op.type
    arg = _as_real(e, x, t)
    root = _rounded_root(e, t, arg)
    _put_real(e, op, f"{literal(1.0, t)} / {root}", MUL)


def _inv(e: Emitter, op: Op) -> None:
    x, t = op.args[0], op.type
    if t.is_real:
        _put_real(e, op, f"{literal(1.0, t)} / {e.at(x, UNARY)}", MUL)
    elif t is u1:
        e.put(op, e.v[x.id], e.low.get(x.id, ATOM))
    else:
        e.put(op, f"{e.helper(f'div_{t.name}')}(1, {e.whole(x)})")


def _neg(e: Emitter, op: Op) -> None:
    x, t = op.args[0], op.type
    if t is u1:
        e.put(op, e.v[x.id], e.low.get(x.id, ATOM))
    elif t.is_real:
        text = e.at(x, UNARY)
        e.put(op, f"-({text})" if text.startswith("-") else f"-{text}", UNARY)
    else:
        wide = UNSIGNED[t.name]
        raw = e.raw.get(x.id)
        inner = wrap(*raw, ADD + 1) if raw else f"({wide}){e.at(x, UNARY)}"
        e.put_raw(op, f"0 - {inner}", ADD)


def _abs(e: Emitter, op: Op) -> None:
    x, t = op.args[0], op.type
    if t.is_real:
        e.put(op, f"{_name(e, 'fabs', t)}({e.whole(x)})")
    elif t.is_signed:
        e.put(op, f"{e.helper(f'abs_{t.name}')}({e.whole(x)})")
    else:
        e.put(op, e.v[x.id], e.low.get(x.id, ATOM))


def _sgn(e: Emitter, op: Op) -> None:
    x, t = op.args[0], op.type
    if t is u1:
        e.put(op, e.v[x.id], e.low.get(x.id, ATOM))
        return
    kind = "f32" if t is f16 else t.name
    e.put(op, f"{e.helper(f'sgn_{kind}')}({e.whole(x)})")


def _bit_not(e: Emitter, op: Op) -> None:
    x = op.args[0]
    if op.type is u1:
        e.put(op, f"!{e.at(x, UNARY)}", UNARY)
    elif op.type.bits < 32:
        e.put_raw(op, f"~(uint){e.at(x, UNARY)}", UNARY)
    else:
        e.put(op, f"~{e.at(x, UNARY)}", UNARY)


def _logic_not(e: Emitter, op: Op) -> None:
    x = op.args[0]
    if x.type is u1:
        e.put(op, f"!{e.at(x, UNARY)}", UNARY)
    else:
        e.put(op, f"{e.at(x, EQUAL + 1)} == 0", EQUAL)


def _count(e: Emitter, op: Op) -> None:
    """popcnt, clz, ffs: of an integer, as i32."""
    x = op.args[0]
    t = x.type
    if t is u1:
        text = e.at(x, UNARY)
        e.put(op, f"(int){'!' if op.code == C.CLZ else ''}{text}", UNARY)
    elif op.code == C.FFS:
        e.put(op, f"{e.helper(f'ffs_{t.name}')}({e.whole(x)})")
    else:
        # The cast decides which of the overloaded functions is meant.
        bits = VALUE[t.name] if not t.is_signed else f"u{VALUE[t.name]}"
        name = "popcount" if op.code == C.POPCNT else "clz"
        e.put(op, f"(int){name}(({bits}){e.at(x, UNARY)})", UNARY)


SCALAR: Final[dict[int, Emit]] = {
    **dict.fromkeys((C.ADD, C.SUB, C.MUL, C.BIT_AND, C.BIT_OR, C.BIT_XOR), _combine),
    C.MIN: _minmax, C.MAX: _minmax,
    **dict.fromkeys((C.DIV, C.MOD, C.FLOORDIV, C.FLOORMOD), _divide),
    **dict.fromkeys((C.BIT_SHL, C.BIT_SHR, C.BIT_SAR), _shift),
    **dict.fromkeys((*_COMPARE,), _compare),
    **{code: _math if C.UNARY[code] else _math_of_two for code in _LIBM},
    C.SELECT: _select, C.POW: _pow, C.RSQRT: _rsqrt, C.INV: _inv, C.NEG: _neg,
    C.ABS: _abs, C.SGN: _sgn, C.BIT_NOT: _bit_not, C.LOGIC_NOT: _logic_not, C.POPCNT: _count,
    C.CLZ: _count, C.FFS: _count,
}  # fmt: skip
