"""``qd.math``: constants, vector types, and functions in the style of shading languages.

Functions of numbers take vectors and matrices element by element. ``vec2`` ... ``mat4`` hold floats
of the program's default_fp, ``ivec2`` ... its default_ip, ``uvec2`` ... the unsigned type of that
width.
"""

from __future__ import annotations

import math as _math
from math import e, inf, nan, pi
from typing import TYPE_CHECKING, Any, Final

from ...frontend.registry import intrinsic
from ...types import MatrixType, i32, matrix_type, to_unsigned, u32
from ...types.later import unsupported
from ..func import pyfunc
from ..functions import (
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
    of_math,
    popcnt,
    pow,
    round,
    rsqrt,
    sin,
    sqrt,
    tan,
    tanh,
)  # fmt: skip
from ..values.elementwise import elementwise
from ..values.number_types import defaults
from .complex_numbers import cconj, cdiv, cexp, cinv, clog, cmul, cpow, csqrt
from .geometry import (
    cross,
    determinant,
    distance,
    dot,
    eye,
    inverse,
    length,
    normalize,
    reflect,
    refract,
    rot_by_axis,
    rot_yaw_pitch_roll,
    rotation2d,
    rotation3d,
    scale,
    translate,
    vdir,
)

__all__ = [
    "acos", "asin", "atan2", "cconj", "cdiv", "ceil", "cexp", "cinv", "clamp", "clog", "clz",
    "cmul", "cos", "cpow", "cross", "csqrt", "degrees", "determinant", "distance", "dot", "e",
    "exp", "eye", "ffs", "floor", "fns", "fract", "inf", "inverse", "isinf", "isnan", "ivec2",
    "ivec3", "ivec4", "length", "log", "log2", "mat2", "mat3", "mat4", "max", "min", "mix", "mod",
    "nan", "normalize", "pi", "popcnt", "pow", "radians", "reflect", "refract", "rot_by_axis",
    "rot_yaw_pitch_roll", "rotation2d", "rotation3d", "round", "rsqrt", "scale", "sign", "sin",
    "smoothstep", "sqrt", "step", "tan", "tanh", "translate", "uvec2", "uvec3", "uvec4", "vdir",
    "vec2", "vec3", "vec4",
]  # fmt: skip

vec2: Final = matrix_type((2,), float)
vec3: Final = matrix_type((3,), float)
vec4: Final = matrix_type((4,), float)
ivec2: Final = matrix_type((2,), int)
ivec3: Final = matrix_type((3,), int)
ivec4: Final = matrix_type((4,), int)
mat2: Final = matrix_type((2, 2), float)
mat3: Final = matrix_type((3, 3), float)
mat4: Final = matrix_type((4, 4), float)

if TYPE_CHECKING:
    uvec2: MatrixType
    uvec3: MatrixType
    uvec4: MatrixType

_UNSIGNED: Final = {"uvec2": 2, "uvec3": 3, "uvec4": 4}


@intrinsic("clamp")
@elementwise
def clamp(x: Any, xmin: Any, xmax: Any) -> Any:
    """x kept between xmin and xmax."""
    return min(max(x, xmin), xmax)


@intrinsic("mix")
@elementwise
def mix(x: Any, y: Any, a: Any) -> Any:
    """x for a = 0, y for a = 1, linear between."""
    return x * (1.0 - a) + y * a


@intrinsic("mod")
@elementwise
def mod(x: Any, y: Any) -> Any:
    """x - y * floor(x / y), a float for integers too."""
    return x - y * _math.floor(x / y)


@intrinsic("fract")
@elementwise
def fract(x: Any) -> Any:
    """x - floor(x)."""
    return x - _math.floor(x)


@intrinsic("sign")
@elementwise
def sign(x: Any) -> Any:
    """-1, 0 or 1 as a float."""
    return float((x > 0) - (x < 0))


@intrinsic("step")
@elementwise
def step(edge: Any, x: Any) -> Any:
    """0 if x < edge, else 1."""
    return 0.0 if x < edge else 1.0


@intrinsic("smoothstep")
@elementwise
def smoothstep(edge0: Any, edge1: Any, x: Any) -> Any:
    """0 below edge0, 1 above edge1, and a smooth cubic between."""
    t = clamp((x - edge0) / (edge1 - edge0), 0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)


degrees = of_math("degrees", "Radians to degrees.", __name__)
radians = of_math("radians", "Degrees to radians.", __name__)
log2 = of_math("log2", "Logarithm to base 2.", __name__)
isnan = of_math("isnan", "True if x is not a number; also correct under ``fast_math``.", __name__)
isinf = of_math("isinf", "True if x is an infinity; also correct under ``fast_math``.", __name__)


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


def __getattr__(name: str) -> Any:
    if name in _UNSIGNED:
        return matrix_type((_UNSIGNED[name],), to_unsigned(defaults()[0]))
    raise unsupported("qd.math", name)
