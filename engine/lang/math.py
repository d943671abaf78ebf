"""``qd.math``: constants, and functions in the style of shading languages."""

from __future__ import annotations

import math as _math
from math import e, inf, nan, pi

from ..frontend.registry import intrinsic
from ..types.later import unsupported
from .functions import (
    acos,
    asin,
    atan2,
    ceil,
    clz,
    cos,
    exp,
    ffs,
    floor,
    log,
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
    "fract", "inf", "isinf", "isnan", "log", "log2", "mix", "nan", "pi", "popcnt", "pow",
    "radians", "round", "rsqrt", "sign", "sin", "smoothstep", "sqrt", "step", "tan", "tanh",
]  # fmt: skip


@intrinsic("clamp")
def clamp(x: float, xmin: float, xmax: float) -> float:
    """x kept between xmin and xmax."""
    return min(max(x, xmin), xmax)


@intrinsic("mix")
def mix(x: float, y: float, a: float) -> float:
    """x for a = 0, y for a = 1, linear between."""
    return x * (1.0 - a) + y * a


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


def __getattr__(name: str) -> object:
    raise unsupported("qd.math", name)
