"""Functions of ``qd.math`` that are made of several ops."""

from __future__ import annotations

import ast
import math
from typing import Any, Final

from ..ir import Op
from ..ir import codes as C
from ..types import DataType, f16, f32, f64, i32, u1, u16, u32, u64
from .arguments import arguments
from .func_builder import FuncBuilder
from .intrinsics import real
from .matrices import as_matrix, elementwise
from .operators import BINARY, Binary, binary
from .registry import handler
from .values import MatrixValue, is_static

__all__: list[str] = []

_ADD: Final = BINARY[ast.Add]
_SUB: Final = BINARY[ast.Sub]
_MUL: Final = BINARY[ast.Mult]
_DIV: Final = BINARY[ast.Div]
_MIN: Final = Binary("min", C.MIN, min)
_MAX: Final = Binary("max", C.MAX, max)

_ARGUMENTS: Final = {
    "clamp": ("x", "xmin", "xmax"),
    "mix": ("x", "y", "a"),
    "mod": ("x", "y"),
    "fract": ("x",),
    "sign": ("x",),
    "smoothstep": ("edge0", "edge1", "x"),
    "step": ("edge", "x"),
    "degrees": ("x",),
    "radians": ("x",),
    "log2": ("x",),
    "isnan": ("x",),
    "isinf": ("x",),
}

# Type of the bits of a real, the mask of its magnitude, the bits of infinity.
_BITS: Final[dict[DataType, tuple[DataType, int, int]]] = {
    f16: (u16, 0x7FFF, 0x7C00),
    f32: (u32, 0x7FFFFFFF, 0x7F800000),
    f64: (u64, 0x7FFFFFFFFFFFFFFF, 0x7FF0000000000000),
}


@handler(*_ARGUMENTS)
def _derived(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Any:
    values = arguments(fb, node, name, _ARGUMENTS[name])
    if all(is_static(v) and not isinstance(v, MatrixValue) for v in values):
        return fb.python(node, fn, *values)

    def of(*parts: Any) -> Any:
        return _computed(fb, node, name, list(parts))

    if any(isinstance(v, MatrixValue) for v in values):
        return elementwise(fb, node, name, of, *[as_matrix(fb, v, node) or v for v in values])
    return of(*values)


def _computed(fb: FuncBuilder, node: ast.Call, name: str, values: list[Any]) -> Any:
    """One of these functions, of numbers."""

    def op(row: Binary, a: Any, b: Any) -> Any:
        return binary(fb, node, row, a, b, node, node)

    if name == "clamp":
        x, low, high = values
        return op(_MIN, op(_MAX, x, low), high)
    if name == "mix":
        x, y, a = values
        return op(_ADD, op(_MUL, x, op(_SUB, 1.0, a)), op(_MUL, y, a))
    if name == "mod":
        x, y = values
        whole = fb.emit(node, C.FLOOR, (op(_DIV, x, y),))
        return op(_SUB, x, op(_MUL, y, whole))
    if name == "smoothstep":
        low, high, x = values
        t = op(_DIV, op(_SUB, x, low), op(_SUB, high, low))
        t = op(_MIN, op(_MAX, t, 0.0), 1.0)
        return op(_MUL, op(_MUL, t, t), op(_SUB, 3.0, op(_MUL, 2.0, t)))
    if name == "step":
        edge, x = (fb.op(v, node) for v in values)
        below = fb.emit(node, C.CMP_LT, (x, edge), None, u1)
        t = real(fb, values[1], node).type
        assert isinstance(t, DataType)
        return fb.emit(node, C.SELECT, (below, fb.typed(0, t, node), fb.typed(1, t, node)))
    return _one(fb, node, name, values[0])


def _one(fb: FuncBuilder, node: ast.AST, name: str, value: Any) -> Op:
    x = real(fb, value, node)
    t = x.type
    assert isinstance(t, DataType)
    if name == "sign":
        return fb.emit(node, C.SGN, (x,))
    if name == "fract":
        return fb.emit(node, C.SUB, (x, fb.emit(node, C.FLOOR, (x,))))
    if name == "log2":
        scale = fb.typed(1.0 / math.log(2.0), t, node)
        return fb.emit(node, C.MUL, (fb.emit(node, C.LOG, (x,)), scale))
    if name in ("degrees", "radians"):
        factor = 180.0 / math.pi if name == "degrees" else math.pi / 180.0
        return fb.emit(node, C.MUL, (x, fb.typed(factor, t, node)))
    # By the bits: fast_math may assume that comparisons never see NaN or infinity.
    bits, mask, infinity = _BITS[t]
    magnitude = fb.emit(node, C.CAST_BITS, (x,), None, bits)
    magnitude = fb.emit(node, C.BIT_AND, (magnitude, fb.typed(mask, bits, node)))
    code = C.CMP_GT if name == "isnan" else C.CMP_EQ
    return fb.emit(node, code, (magnitude, fb.typed(infinity, bits, node)), None, u1)


@handler("zero", "one")
def _filled(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Any:
    """0 or 1 in the type and shape of the argument."""
    (value,) = arguments(fb, node, name, ("x",))
    number = int(name == "one")

    def like(x: Any) -> Any:
        t = fb.op(x, node).type
        assert isinstance(t, DataType)
        return fb.typed(number, t, node)

    if is_static(value) and not isinstance(value, MatrixValue):
        return fb.python(node, fn, value)
    if isinstance(value, MatrixValue):
        return elementwise(fb, node, name, like, value)
    return like(value)


@handler("frexp")
def _frexp(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Any:
    (value,) = arguments(fb, node, name, ("x",))
    if isinstance(value, MatrixValue):
        pairs = [_split(fb, node, part) for part in fb.parts(value, node)]
        return tuple(MatrixValue(value.shape, list(side)) for side in zip(*pairs, strict=True))
    return fb.python(node, fn, value) if is_static(value) else _split(fb, node, value)


def _split(fb: FuncBuilder, node: ast.AST, value: Any) -> tuple[Op, Op]:
    """Fraction and exponent of a real number, from its bits."""
    x = real(fb, value, node)
    x = fb.cast(x, f32, node) if x.type is f16 else x
    t = x.type
    assert isinstance(t, DataType)
    bits, mask, infinity = _BITS[t]
    width = infinity.bit_count()  # of the exponent
    fraction = t.bits - 1 - width
    half = (1 << (width - 1)) - 2  # the exponent's bits of numbers from 0.5 to 1

    def emit(code: int, a: Op, b: int | Op, type: DataType = bits) -> Op:
        return fb.emit(
            node, code, (a, b if isinstance(b, Op) else fb.typed(b, bits, node)), None, type
        )

    def pick(cond: Op, a: Op, b: Op) -> Op:
        return fb.emit(node, C.SELECT, (cond, a, b))

    magnitude = emit(C.BIT_AND, fb.emit(node, C.CAST_BITS, (x,), None, bits), mask)
    # Numbers below the normal ones, times 2 ** (fraction + 1), are normal.
    small = emit(C.CMP_LT, magnitude, 1 << fraction, u1)
    lifted = fb.emit(node, C.MUL, (x, fb.typed(2.0 ** (fraction + 1), t, node)))
    raw = fb.emit(node, C.CAST_BITS, (pick(small, lifted, x),), None, bits)
    exponent = emit(C.BIT_AND, emit(C.BIT_SHR, raw, fraction), (1 << width) - 1)
    power = fb.emit(node, C.SUB, (fb.cast(exponent, i32, node), fb.typed(half, i32, node)))
    shift = fb.typed(fraction + 1, i32, node)
    power = pick(small, fb.emit(node, C.SUB, (power, shift)), power)
    kept = emit(C.BIT_OR, emit(C.BIT_AND, raw, ~infinity & (2 * mask + 1)), half << fraction)
    found = fb.emit(node, C.CAST_BITS, (kept,), None, t)
    odd = emit(C.CMP_EQ, magnitude, 0, u1)
    odd = fb.emit(node, C.BIT_OR, (odd, emit(C.CMP_GE, magnitude, infinity, u1)))
    return pick(odd, x, found), pick(odd, fb.typed(0, i32, node), power)
