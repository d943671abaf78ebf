"""``qd.math``: constants, and functions in the style of shading languages."""

from __future__ import annotations

import math as _math
from math import e, inf, nan, pi

from ..frontend.registry import intrinsic
from ..types import i32, u32
from ..types.later import unsupported
from .func import pyfunc
from .functions import (
    abs,
    acos,
    asin,
    atan2,
    cast,
    ceil,
    clz,
    cos,
    exp,
    ffs,
    floor,
    log,
    max,
    min,
    popcnt,
    pow,
    round,
    rsqrt,
    sin,
    sqrt,
    tan,
    tanh,
)  # fmt: skip

__all__ = [
    "acos", "asin", "atan2", "ceil", "clamp", "clz", "cos", "degrees", "e", "exp", "ffs", "floor",
    "fns", "fract", "inf", "isinf", "isnan", "log", "log2", "max", "min", "mix", "mod", "nan",
    "pi", "popcnt", "pow", "radians", "round", "rsqrt", "sign", "sin", "smoothstep", "sqrt",
    "step", "tan", "tanh",
]  # fmt: skip


@intrinsic("clamp")
def clamp(x: float, xmin: float, xmax: float) -> float:
    """x kept between xmin and xmax."""
    return min(max(x, xmin), xmax)


@intrinsic("mix")
def mix(x: float, y: float, a: float) -> float:
    """x for a = 0, y for a = 1, linear between."""
    return x * (1.0 - a) + y * a


@intrinsic("mod")
def mod(x: float, y: float) -> float:
    """x - y * floor(x / y), a real number for integers too."""
    return x - y * _math.floor(x / y)


@intrinsic("fract")
def fract(x: float) -> float:
    """x - floor(x)."""
    return x - _math.floor(x)


@intrinsic("sign")
def sign(x: float) -> float:
    """-1, 0 or 1, in x's type."""
    return type(x)((x > 0) - (x < 0))


@intrinsic("step")
def step(edge: float, x: float) -> float:
    """0 if x < edge, else 1."""
    return 0.0 if x < edge else 1.0


@intrinsic("smoothstep")
def smoothstep(edge0: float, edge1: float, x: float) -> float:
    """0 below edge0, 1 above edge1, and a smooth cubic between."""
    t = clamp((x - edge0) / (edge1 - edge0), 0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)


@intrinsic("degrees")
def degrees(x: float) -> float:
    """Radians to degrees."""
    return _math.degrees(x)


@intrinsic("radians")
def radians(x: float) -> float:
    """Degrees to radians."""
    return _math.radians(x)


@intrinsic("log2")
def log2(x: float) -> float:
    """Logarithm to base 2."""
    return _math.log2(x)


@intrinsic("isnan")
def isnan(x: float) -> bool:
    """Whether x is not a number; right under ``fast_math`` too."""
    return _math.isnan(x)


@intrinsic("isinf")
def isinf(x: float) -> bool:
    """Whether x is an infinity; right under ``fast_math`` too."""
    return _math.isinf(x)


@pyfunc
def fns(mask, base, offset):  # pyright: ignore
    """The place of a set bit of a 32-bit mask, as u32; 0xFFFFFFFF if there is none.

    offset: n > 0 asks for the n-th set bit from ``base`` upwards, n < 0 for the n-th downwards,
    both counting the bit at ``base``; 0 asks for the bit at ``base`` itself.
    """
    bits = cast(mask, u32)  # pyright: ignore
    found = u32(0xFFFFFFFF)
    at = cast(base, i32)  # pyright: ignore
    left = cast(abs(offset), i32)  # pyright: ignore
    step = 1
    if offset == 0:
        left = 1
        step = 32
    elif offset < 0:
        step = -1
    while left > 0 and at >= 0 and at < 32:
        if (bits >> at) & 1:  # pyright: ignore
            left -= 1
            if left == 0:
                found = cast(at, u32)
        at += step
    return found


def __getattr__(name: str) -> object:
    raise unsupported("qd.math", name)
