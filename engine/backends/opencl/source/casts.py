"""OpenCL C for conversions: `cast_value` and `cast_bits`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ....ir import Op
from ....ir import codes as C
from ....types import DataType, Type, f16, f32, f64, u1
from .emitter import ATOM, EQUAL, UNARY, wrap
from .names import VALUE

if TYPE_CHECKING:
    from .emitter import Emitter

__all__ = ["CASTS", "convert"]


def convert(e: Emitter, a: str, source: Type, target: Type) -> str:
    """``a``, which binds as tightly as a cast, converted as `cast_value` does."""
    if source is target:
        return a
    if target is u1:
        return f"({a} != 0)"
    if target.is_int:
        if not source.is_real:
            return f"({VALUE[target.name]}){a}"
        kind = "f32" if source is f16 else source.name
        return f"{e.helper(f'{target.name}_of_{kind}')}({a})"
    if target is f16:
        if source is f32:
            return f"{e.helper('half')}({a})"
        if source is f64:
            return f"{e.helper('half_of_f64')}({a})"
        if source.bits <= 16:
            return f"{e.helper('half')}((float){a})"
        # All beyond is an infinity, and all below is a float.
        assert isinstance(source, DataType)
        name = f"qd_half_of_{source.name}"
        low = "x < -131072 ? -131072.0f : " if source.is_signed else ""
        return e.helper(
            name,
            f"static inline float {name}({VALUE[source.name]} x)\n{{\n"
            f"    return {e.helper('half')}({low}x > 131072 ? 131072.0f : (float)x);\n}}\n",
        ) + f"({a})"  # fmt: skip
    if source is f16 and target is f32:
        return a
    return f"({VALUE[target.name]}){a}"


def _cast_value(e: Emitter, op: Op) -> None:
    x, t = op.args[0], op.type
    source = x.type
    if source is t or (source is f16 and t is f32):
        e.put(op, e.v[x.id], e.low.get(x.id, ATOM))
        return
    if t is u1:
        e.put(op, f"{e.at(x, EQUAL + 1)} != 0", EQUAL)
        return
    raw = e.raw.get(x.id)
    if raw is not None and t.is_int and t.bits <= source.bits:
        e.put(op, f"({VALUE[t.name]}){wrap(*raw, UNARY)}", UNARY)
        return
    if source.is_real and (t.is_int or t is f16):
        e.put(op, convert(e, e.whole(x), source, t))
        return
    text = convert(e, e.at(x, UNARY), source, t)
    e.put(op, text, UNARY if text.startswith("(") else ATOM)


def _cast_bits(e: Emitter, op: Op) -> None:
    x, t = op.args[0], op.type
    source = x.type
    if source is t or (source.is_real and t.is_real):
        e.put(op, e.v[x.id], e.low.get(x.id, ATOM))
    elif source.is_int and t.is_int:
        if t is u1:
            e.put(op, f"{e.at(x, EQUAL + 1)} != 0", EQUAL)
        else:
            e.put(op, f"({VALUE[t.name]}){e.at(x, UNARY)}", UNARY)
    elif source is f16:
        e.put(op, f"({VALUE[t.name]}){e.helper('half_bits')}({e.whole(x)})", UNARY)
    elif t is f16:
        e.put(op, f"{e.helper('half_value')}((ushort){e.at(x, UNARY)})")
    else:
        # The cast decides the type of a literal.
        e.put(op, f"as_{VALUE[t.name]}(({VALUE[source.name]}){e.at(x, UNARY)})")


CASTS: Final[dict[int, Callable[[Emitter, Op], None]]] = {
    C.CAST_VALUE: _cast_value, C.CAST_BITS: _cast_bits,
}  # fmt: skip
