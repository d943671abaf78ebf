"""The results of scalar operations, on Python numbers: the one definition.

The interpreter runs kernels with these functions and `constant_fold` folds with them; the other
backends are tested against them. Values are Python numbers as constants hold them: an int inside
the range of an integer type (0 or 1 for ``u1``), a float that is exactly a value of a float type.

    unary_fn(C.NEG, i32, i32)(5)              -> -5
    binary_fn(C.ADD, i8, i8, i8)(127, 1)      -> -128
    cast_fn(f64, u8)(300.7)                   -> 255

The three makers return a function specialised for the types and remember it, so that code that
runs an operation often asks once. They raise TypeError for a type that the operation does not have.
Operands of other types than typed IR demands are converted first, as `type_check` would do.

Beyond what `codes` fixes:

* ``+ - * /`` and ``sqrt`` of every float type round correctly (computing in f64 and rounding once
  more is exact for f32 and f16). Other functions are computed in f64 and rounded to the type.
  ``rsqrt`` and ``inv`` follow their formula, each step rounded.
* ``x ** n`` of integers wraps; for n < 0 it is the truncated exact result: 1 or -1 for the bases 1
  and -1, else 0 (also for base 0, as with division by zero).
* ``sgn`` of NaN and of both zeros is +0. ``abs`` and ``neg`` of the least integer wrap.
* ``floordiv`` of floats is ``floor(a / b)`` with the quotient rounded to the type; ``floormod`` is
  ``a - b * floor(a / b)``, each step rounded, so that both fit together.
* ``min``/``max`` of the two zeros returns either.
* The bits of a NaN are not defined.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from ctypes import c_float
from functools import cache
from typing import Any, Final

from ..types import ROUND_REAL, DataType, f32, f64, u1, wrap_int
from . import codes as C
from .typerules import operand_type

__all__ = [
    "ATOMIC_OPERATION", "Number", "binary_fn", "cast_fn", "const_key", "neutral", "same_const",
    "select", "unary_fn",
]  # fmt: skip

Number = int | float
Unary = Callable[[Any], Any]
Binary = Callable[[Any, Any], Any]

_NAN: Final = math.nan
_INF: Final = math.inf
_ROUND: Final = ROUND_REAL
_WHOLE: Final = 2.0**52
"""A float of at least this magnitude has no fraction."""

ATOMIC_OPERATION: Final[dict[int, int]] = {
    C.ATOMIC_ADD: C.ADD, C.ATOMIC_MUL: C.MUL, C.ATOMIC_MIN: C.MIN, C.ATOMIC_MAX: C.MAX,
    C.ATOMIC_BIT_AND: C.BIT_AND, C.ATOMIC_BIT_OR: C.BIT_OR, C.ATOMIC_BIT_XOR: C.BIT_XOR,
}  # fmt: skip
"""The binary operation that an atomic applies to its destination (xchg and cas apply none)."""

# Reductions


def neutral(code: int, t: DataType, fast_math: bool) -> Number:
    """The neutral element of an atomic operation: the value that changes nothing.

    For min and max of floats it is NaN. ``fast_math`` rules NaN out: there it is an infinity, which
    changes nothing even where the destination is infinite.
    """
    if code == C.ATOMIC_ADD:
        return -0.0 if t.is_real else 0
    if code == C.ATOMIC_MUL:
        return 1
    if code in (C.ATOMIC_BIT_OR, C.ATOMIC_BIT_XOR):
        return 0
    if code == C.ATOMIC_BIT_AND:
        return -1 if t.is_signed else t.max
    if not t.is_real:
        return t.max if code == C.ATOMIC_MIN else t.min
    if not fast_math:
        return _NAN
    return _INF if code == C.ATOMIC_MIN else -_INF


# Constants


def const_key(value: Number) -> object:
    """A dictionary key for a constant: -0.0 and 0.0 differ, all NaNs are one."""
    if value:
        return value if value == value else "nan"
    return "-0.0" if isinstance(value, float) and math.copysign(1.0, value) < 0.0 else 0


def same_const(a: Number, b: Number) -> bool:
    """True if two constants of one type are the same value: -0.0 is not 0.0, NaN is NaN."""
    return const_key(a) == const_key(b)


# Conversions


def _int_to_f64(x: int) -> float:
    """``x`` as a float from which one more rounding, to f32 or f16, yields the nearest value.

    Bits that do not fit are folded into the lowest one kept (rounding to odd).
    """
    size = abs(x).bit_length()
    if size <= 53:
        return float(x)
    shift = size - 53
    head, tail = divmod(abs(x), 1 << shift)
    odd = float((head | (tail != 0)) << shift)
    return -odd if x < 0 else odd


def _real_to_int(t: DataType) -> Unary:
    lo, hi = t.min, t.max

    def convert(x: float) -> int:
        if x != x:
            return 0
        if x <= lo:
            return lo
        return hi if x >= hi else int(x)

    return convert


def _to_bool(x: Number) -> int:
    return 1 if x != 0 else 0


def _same(x: Number) -> Number:
    return x


@cache
def cast_fn(source: DataType, target: DataType) -> Unary:
    """``cast_value`` from one type to another."""
    if source is target:
        return _same
    if target is u1:
        return _to_bool
    if target.is_int:
        if source.is_real:
            return _real_to_int(target)
        return lambda x: wrap_int(x, target)
    rounded = _ROUND[target]
    if source.is_real:
        return rounded
    if target is f64:
        return float
    return lambda x: rounded(_int_to_f64(x))


_FORMAT: Final = {(True, 16): "<e", (True, 32): "<f", (True, 64): "<d"}


def _bits_fn(source: DataType, target: DataType) -> Unary:
    if source.size != target.size:
        raise TypeError(f"cast_bits from {source} to {target}: the sizes differ")
    if source.is_int and target.is_int:
        return lambda x: wrap_int(x, target)
    if source.is_real and target.is_real:
        return _same
    real = source if source.is_real else target
    form, size = _FORMAT[True, real.bits], real.bits // 8
    if source.is_real:
        return lambda x: wrap_int(int.from_bytes(struct.pack(form, x), "little"), target)
    mask = (1 << source.bits) - 1
    return lambda x: struct.unpack(form, (x & mask).to_bytes(size, "little"))[0]


# Unary operations


def _sqrt(x: float) -> float:
    return math.sqrt(x) if x >= 0.0 else _NAN


def _reciprocal(x: float) -> float:
    return 1.0 / x if x else math.copysign(_INF, x)


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return _INF


def _log(x: float) -> float:
    if x > 0.0:
        return math.log(x)
    return -_INF if x == 0.0 else _NAN


def _or_nan(fn: Callable[[float], float]) -> Callable[[float], float]:
    """``fn`` with NaN for arguments outside its domain."""

    def total(x: float) -> float:
        try:
            return fn(x)
        except ValueError:
            return _NAN

    return total


def _floor(x: float) -> float:
    return math.copysign(math.floor(x), x) if abs(x) < _WHOLE else x


def _ceil(x: float) -> float:
    return math.copysign(math.ceil(x), x) if abs(x) < _WHOLE else x


def _round(x: float) -> float:
    size = abs(x)
    if not size < _WHOLE:
        return x
    whole = math.floor(size)
    return math.copysign(whole + (size - whole >= 0.5), x)


def _sign_real(x: float) -> float:
    return float((x > 0.0) - (x < 0.0))


_REAL_UNARY: Final[dict[int, Unary]] = {
    C.NEG: operator.neg, C.ABS: abs, C.SGN: _sign_real, C.SQRT: _sqrt, C.EXP: _exp, C.LOG: _log,
    C.SIN: _or_nan(math.sin), C.COS: _or_nan(math.cos), C.TAN: _or_nan(math.tan),
    C.ASIN: _or_nan(math.asin), C.ACOS: _or_nan(math.acos), C.TANH: math.tanh,
    C.FLOOR: _floor, C.CEIL: _ceil, C.ROUND: _round, C.INV: _reciprocal,
}  # fmt: skip
_EXACT_UNARY: Final = frozenset({C.NEG, C.ABS, C.SGN, C.FLOOR, C.CEIL, C.ROUND})


def _real_unary(code: int, t: DataType) -> Unary | None:
    rounded = _ROUND[t]
    if code == C.RSQRT:
        return lambda x: rounded(_reciprocal(rounded(_sqrt(x))))
    fn = _REAL_UNARY.get(code)
    if fn is None or t is f64 or code in _EXACT_UNARY:
        return fn
    return lambda x: rounded(fn(x))


def _sign_int(x: int) -> int:
    return (x > 0) - (x < 0)


def _int_unary(code: int, t: DataType) -> Unary | None:
    bits = t.bits
    mask = (1 << bits) - 1
    if code == C.NEG:
        return lambda x: wrap_int(-x, t)
    if code == C.ABS:
        return lambda x: wrap_int(abs(x), t)
    if code == C.BIT_NOT:
        return lambda x: wrap_int(~x, t)
    if code == C.POPCNT:
        return lambda x: (x & mask).bit_count()
    if code == C.CLZ:
        return lambda x: bits - (x & mask).bit_length()
    if code == C.FFS:
        return lambda x: (x & -x & mask).bit_length()
    if code == C.INV:
        return lambda x: _div(1, x) if t is not u1 else x
    if code in (C.FLOOR, C.CEIL, C.ROUND):
        return _same
    return _sign_int if code == C.SGN else None


def _is_zero(x: Number) -> int:
    return 1 if x == 0 else 0


@cache
def unary_fn(code: int, source: DataType, target: DataType) -> Unary:
    """The function of one operand of type ``source`` that a unary op of type ``target`` is."""
    if code == C.CAST_VALUE:
        return cast_fn(source, target)
    if code == C.CAST_BITS:
        return _bits_fn(source, target)
    if code == C.LOGIC_NOT:
        return _is_zero
    if target.is_real and not source.is_real:
        convert, real = cast_fn(source, target), unary_fn(code, target, target)
        return lambda x: real(convert(x))
    fn = _real_unary(code, source) if source.is_real else _int_unary(code, source)
    if fn is None:
        raise TypeError(f"{C.NAME[code]} is not defined for {source}")
    return fn


# Binary operations


def _div(a: int, b: int) -> int:
    if not b:
        return 0
    return a // b if (a < 0) == (b < 0) else -(-a // b)


def _floordiv(a: int, b: int) -> int:
    return a // b if b else 0


def _mod(a: int, b: int) -> int:
    return a - b * _div(a, b) if b else 0


def _floormod(a: int, b: int) -> int:
    return a % b if b else 0


def _div_real(a: float, b: float) -> float:
    if b:
        return a / b
    if a != a or a == 0.0 or b != b:
        return _NAN
    return math.copysign(_INF, a) * math.copysign(1.0, b)


def _mod_real(a: float, b: float) -> float:
    try:
        return math.fmod(a, b)
    except ValueError:
        return _NAN


def _pow_real(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except ValueError:
        if a == 0.0:  # a negative exponent: a pole, signed for odd integers
            return math.copysign(_INF, a) if math.fmod(b, 2.0) in (1.0, -1.0) else _INF
        return _NAN
    except OverflowError:
        return -_INF if a < 0.0 and math.fmod(b, 2.0) in (1.0, -1.0) else _INF


def _max(a: Any, b: Any) -> Any:
    return a if a >= b or b != b else b


def _min(a: Any, b: Any) -> Any:
    return a if a <= b or b != b else b


_COMPARE: Final[dict[int, Callable[[Any, Any], bool]]] = {
    C.CMP_LT: operator.lt, C.CMP_LE: operator.le, C.CMP_GT: operator.gt,
    C.CMP_GE: operator.ge, C.CMP_EQ: operator.eq, C.CMP_NE: operator.ne,
}  # fmt: skip
_REAL_BINARY: Final[dict[int, Binary]] = {
    C.ADD: operator.add, C.SUB: operator.sub, C.MUL: operator.mul, C.DIV: _div_real,
    C.TRUEDIV: _div_real, C.MOD: _mod_real, C.MAX: _max, C.MIN: _min,
    C.POW: _pow_real, C.ATAN2: math.atan2,
}  # fmt: skip
_INT_BINARY: Final[dict[int, Binary]] = {
    C.ADD: operator.add, C.SUB: operator.sub, C.MUL: operator.mul, C.DIV: _div,
    C.FLOORDIV: _floordiv, C.MOD: _mod, C.FLOORMOD: _floormod, C.MAX: _max, C.MIN: _min,
    C.BIT_AND: int.__and__, C.BIT_OR: int.__or__, C.BIT_XOR: int.__xor__,
}  # fmt: skip


def _real_binary(code: int, t: DataType) -> Binary | None:
    rounded = _ROUND[t]
    if code == C.FLOORDIV:
        return lambda a, b: _floor(rounded(_div_real(a, b)))
    if code == C.FLOORMOD:
        return lambda a, b: rounded(a - rounded(b * _floor(rounded(_div_real(a, b)))))
    fn = _REAL_BINARY.get(code)
    if fn is None or t is f64 or code in (C.MAX, C.MIN, C.MOD):
        return fn
    if t is f32:
        single = c_float
        return lambda a, b: single(fn(a, b)).value
    return lambda a, b: rounded(fn(a, b))


def _int_pow(t: DataType) -> Binary:
    modulus = 1 << t.bits

    def power(a: int, n: int) -> int:
        if n >= 0:
            return wrap_int(pow(a, n, modulus), t)
        if a == 1:
            return 1
        return (-1 if n & 1 else 1) if a == -1 else 0

    return power


def _int_binary(code: int, t: DataType) -> Binary | None:
    bits = t.bits
    mask = (1 << bits) - 1
    if code == C.POW:
        return _int_pow(t)
    if code == C.BIT_SHL:
        return lambda a, b: wrap_int(a << b % bits, t)
    if code == C.BIT_SHR:
        return lambda a, b: wrap_int((a & mask) >> b % bits, t)
    if code == C.BIT_SAR:
        return lambda a, b: a >> b % bits
    fn = _INT_BINARY.get(code)
    if fn is None or code in (C.MAX, C.MIN, C.MOD, C.FLOORMOD, C.BIT_AND, C.BIT_OR, C.BIT_XOR):
        return fn
    lo, hi = t.min, t.max

    def wrapped(a: int, b: int) -> int:
        r = fn(a, b)
        return r if lo <= r <= hi else wrap_int(r, t)

    return wrapped


def _plain_binary(code: int, t: DataType, exponent: DataType) -> Binary | None:
    """The operation on operands of type ``t``; only an integer exponent may have its own type."""
    compare = _COMPARE.get(code)
    if compare is not None:
        return lambda a, b: 1 if compare(a, b) else 0
    if t.is_int:
        return _int_binary(code, t)
    if code == C.POW and exponent.is_int:
        real = _real_binary(code, t)
        return lambda a, n: real(a, float(n)) if real else None
    return _real_binary(code, t)


@cache
def binary_fn(code: int, left: DataType, right: DataType, result: DataType) -> Binary:
    """The function of operands of types ``left`` and ``right`` that a binary op is."""
    types = (left, right)
    want = [operand_type(code, i, types, result) or types[i] for i in (0, 1)]
    a_type, b_type = (t if isinstance(t, DataType) else left for t in want)
    fn = _plain_binary(code, a_type, b_type)
    if fn is None:
        raise TypeError(f"{C.NAME[code]} is not defined for {a_type}")
    if a_type is left and b_type is right:
        return fn
    to_a, to_b = cast_fn(left, a_type), cast_fn(right, b_type)
    return lambda a, b: fn(to_a(a), to_b(b))


def select(cond: Number, a: Number, b: Number) -> Number:
    """``select`` on operands that have the result's type."""
    return a if cond != 0 else b
