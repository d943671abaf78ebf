"""The operations of `semantics` on arrays, one element for each lane.

`binary` and `unary` return the source of an expression. It is NumPy's own operator where that
produces the same bits for all operands (which tests check), a function of this file where it needs
care, and for everything else `each`: the definition itself, on one lane after the other. That is so
for the functions of the math library: NumPy has versions of its own, whose last bit may differ.

An array has the dtype of its values' type; u1 is bool. One of two operands may be a Python number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final
from typing import cast as typing_cast

import numpy as np

from ...ir import Op, operand_type
from ...ir import codes as C
from ...ir.semantics import binary_fn, unary_fn
from ...types import PRIMITIVE_TYPES, DataType, Type, u1

if TYPE_CHECKING:
    from .vector import VectorEmitter

__all__ = ["NAMES", "binary", "cast", "combined", "unary"]

Array = Any
_where: Final = typing_cast("Any", np.where)
_INFIX: Final = {
    C.CMP_LT: "<", C.CMP_LE: "<=", C.CMP_GT: ">", C.CMP_GE: ">=", C.CMP_EQ: "==", C.CMP_NE: "!=",
    C.BIT_AND: "&", C.BIT_OR: "|", C.BIT_XOR: "^",
}  # fmt: skip
_REAL: Final = {
    C.ADD: "{} + {}", C.SUB: "{} - {}", C.MUL: "{} * {}", C.DIV: "{} / {}", C.TRUEDIV: "{} / {}",
    C.MOD: "fmod({}, {})", C.FLOORDIV: "floor({} / {})", C.FLOORMOD: "floormod({}, {})",
    C.MAX: "larger({}, {})", C.MIN: "smaller({}, {})",
}  # fmt: skip
_INT: Final = {
    C.ADD: "{} + {}", C.SUB: "{} - {}", C.MUL: "{} * {}", C.DIV: "quotient({}, {})",
    C.FLOORDIV: "floor_divide({}, {})", C.MOD: "fmod({}, {})", C.FLOORMOD: "remainder({}, {})",
    C.MAX: "maximum({}, {})", C.MIN: "minimum({}, {})",
}  # fmt: skip
_SHIFTS: Final = {C.BIT_SHL: "shl", C.BIT_SHR: "shr", C.BIT_SAR: "sar"}
_UNARY_REAL: Final = {
    C.NEG: "-{}", C.ABS: "abs({})", C.SGN: "sgn({})", C.SQRT: "sqrt({})", C.RSQRT: "1.0 / sqrt({})",
    C.INV: "1.0 / {}", C.FLOOR: "floor({})", C.CEIL: "ceil({})", C.ROUND: "nearest({})",
}  # fmt: skip
_UNARY_INT: Final = {
    C.NEG: "-{}", C.ABS: "abs({})", C.SGN: "sgn({})", C.BIT_NOT: "~{}", C.FLOOR: "{}",
    C.CEIL: "{}", C.ROUND: "{}",
}  # fmt: skip
_LIBRARY: Final[dict[int, Callable[[float], float]]] = {
    code: getattr(math, C.NAME[code])
    for code in range(C.COUNT)
    if C.UNARY[code] and C.LIBM[code] and code not in _UNARY_REAL
}


def cast(e: VectorEmitter, text: str, source: Type, target: Type) -> str:
    """``text``, an array, converted from one type to another as `cast_value` does."""
    if source is target or not isinstance(source, DataType) or not isinstance(target, DataType):
        return text
    if target is u1:
        return f"({text} != 0)"
    if target.is_int and source.is_real:
        return f"to_int({text}, {target}, {target.min}, {target.max})"
    return f"{text}.astype({target})"


def binary(e: VectorEmitter, op: Op) -> str:
    """The value of a binary op with at least one operand that varies."""
    types = op.args[0].type, op.args[1].type
    want = [operand_type(op.code, i, types, op.type) or types[i] for i in (0, 1)]
    return combined(e, op.code, (want[0], want[1]), op.type, (e.arg(op, 0), e.arg(op, 1)))


def combined(
    e: VectorEmitter, code: int, types: tuple[Type, Type], t: Type, operands: tuple[str, str]
) -> str:
    """A binary operation on operands of these types, as the table wants them."""
    want = types[0]
    if code in _INFIX:
        return f"{operands[0]} {_INFIX[code]} {operands[1]}"
    if want.is_real and code in _REAL:
        return _REAL[code].format(*operands)
    if want.is_int and want is not u1:
        if code in _INT:
            return _INT[code].format(*operands)
        if code in _SHIFTS:
            return f"{_SHIFTS[code]}({', '.join(operands)}, {t})"
    fn = e.function(binary_fn(code, *types, t))  # type: ignore[arg-type]
    return f"each({fn}, {t}, {', '.join(operands)})"


def unary(e: VectorEmitter, op: Op) -> str:
    """The value of a unary op whose operand varies."""
    code, source, target = op.code, op.args[0].type, op.type
    x = e.values[op.args[0]]
    if code == C.CAST_VALUE:
        return cast(e, x, source, target)
    if code == C.LOGIC_NOT:
        return f"{x} == 0"
    if code == C.CAST_BITS and u1 not in (source, target):
        return f"{x}.view({target})"
    if target.is_real and code != C.CAST_BITS:
        x = cast(e, x, source, target)
        if code in _UNARY_REAL:
            return _UNARY_REAL[code].format(x)
        if code in _LIBRARY:
            fn = e.function(unary_fn(code, target, target))  # type: ignore[arg-type]
            return f"library({e.function(_LIBRARY[code])}, {fn}, {target}, {x})"
    elif code in _UNARY_INT and source is target and target is not u1:
        return _UNARY_INT[code].format(x)
    fn = e.function(unary_fn(code, source, target))  # type: ignore[arg-type]
    return f"each({fn}, {target}, {e.values[op.args[0]]})"


# --- what the texts call ---------------------------------------------------------------------


def each(fn: Callable[..., Any], dtype: Any, *operands: Any) -> Array:
    """The definition, lane by lane."""
    sizes: list[int] = [x.size for x in operands if isinstance(x, np.ndarray)]
    lists: list[Any] = [x.tolist() if isinstance(x, np.ndarray) else repeat(x) for x in operands]
    return np.fromiter(map(fn, *lists), dtype, sizes[0])


def library(
    raw: Callable[[float], float], fn: Callable[[float], float], dtype: Any, x: Array
) -> Array:
    """A function of the math library in f64, rounded to the type; ``fn`` is the same and total."""
    try:
        return np.fromiter(map(raw, x.tolist()), np.float64, x.size).astype(dtype)
    except (ValueError, OverflowError):
        return each(fn, dtype, x)


def to_int(x: Array, dtype: Any, low: int, high: int) -> Array:
    """Truncated and saturated; NaN becomes 0."""
    wide = x.astype(np.float64)
    least, most = float(low), float(high)
    result = np.where((wide > least) & (wide < most), wide, 0.0).astype(dtype)
    result[wide <= least] = low
    result[wide >= most] = high
    return result


def larger(a: Any, b: Any) -> Array:
    return _where((a >= b) | (b != b), a, b)


def smaller(a: Any, b: Any) -> Array:
    return _where((a <= b) | (b != b), a, b)


def floormod(a: Any, b: Any) -> Array:
    return a - b * np.floor(a / b)


def quotient(a: Any, b: Any) -> Array:
    """Division of integers that truncates; 0 for division by 0."""
    return (a - np.fmod(a, b)) // b


def nearest(x: Array) -> Array:
    """Half away from zero."""
    size = np.abs(x)
    whole = np.floor(size)
    return np.copysign(whole + (size - whole >= 0.5).astype(x.dtype), x)


def sgn(x: Array) -> Array:
    """+0 for NaN and both zeros."""
    return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)


def _bits(a: Any, b: Any, dtype: Any) -> tuple[Array, Array]:
    """The left operand's bits and the amount modulo its width, as unsigned numbers."""
    unsigned = np.dtype(f"u{np.dtype(dtype).itemsize}")
    amount = np.asarray(b).astype(unsigned) & unsigned.type(8 * unsigned.itemsize - 1)
    return np.asarray(a, dtype).view(unsigned), amount


def shl(a: Any, b: Any, dtype: Any) -> Array:
    bits, amount = _bits(a, b, dtype)
    return np.left_shift(bits, amount).view(dtype)


def shr(a: Any, b: Any, dtype: Any) -> Array:
    bits, amount = _bits(a, b, dtype)
    return np.right_shift(bits, amount).view(dtype)


def sar(a: Any, b: Any, dtype: Any) -> Array:
    _, amount = _bits(a, b, dtype)
    return np.right_shift(np.asarray(a, dtype), amount.astype(dtype))


def choose(cond: Any, a: Any, b: Any, dtype: Any) -> Array:
    """``select``; Python numbers next to arrays get the type of the result."""
    return np.where(cond, np.asarray(a, dtype), np.asarray(b, dtype))


NAMES: Final[dict[str, Any]] = {
    "each": each, "library": library, "to_int": to_int, "larger": larger, "smaller": smaller,
    "floormod": floormod, "quotient": quotient, "nearest": nearest, "sgn": sgn, "shl": shl,
    "shr": shr, "sar": sar, "choose": choose, "fmod": np.fmod, "floor": np.floor, "ceil": np.ceil,
    "floor_divide": np.floor_divide, "remainder": np.remainder, "maximum": np.maximum,
    "minimum": np.minimum, "sqrt": np.sqrt, "abs": np.abs, "flatnonzero": np.flatnonzero,
    "arange": np.arange, "zeros": np.zeros, "ones": np.ones, "full": np.full, "bool": np.bool_,
    **{str(t): t.np for t in PRIMITIVE_TYPES},
}  # fmt: skip
"""The functions that the emitted source calls."""
