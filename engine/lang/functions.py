"""Functions of numbers that kernels use: mathematics, casts, select, random numbers.

In a kernel each stands for an operation. Called from Python, or on values that are known when a
kernel is compiled, they compute with Python's numbers; vectors and matrices element by element.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

from ..errors import QuadrantsAssertionError
from ..frontend.registry import intrinsic
from ..types import DataType, u1
from .values.elementwise import elementwise

__all__ = [
    "abs", "acos", "asin", "atan2", "bit_cast", "bit_shr", "cast", "ceil", "clz", "cos", "exp",
    "ffs", "floor", "frexp", "log", "max", "min", "one", "popcnt", "pow", "randn", "random",
    "raw_div", "raw_mod", "round", "rsqrt", "select", "sin", "sqrt", "stop_grad", "tan", "tanh",
    "zero",
]  # fmt: skip

_abs, _max, _min = abs, max, min
_least, _largest = elementwise(_min), elementwise(_max)


def only_in_kernels(name: str) -> NoReturn:
    """Raise the error for a function that Python code cannot call."""
    raise QuadrantsAssertionError(f"qd.{name} can only be used in a kernel")


def of_math(name: str, text: str, module: str = __name__) -> Callable[[Any], Any]:
    """The function of Python's `math` of that name, for vectors and matrices as well.

    text: its docstring. module: that it belongs to.
    """
    fn = getattr(math, name)

    def apply(x: Any) -> Any:
        return fn(x)

    apply.__name__, apply.__qualname__, apply.__doc__ = name, name, text
    apply.__module__ = module
    return intrinsic(name)(elementwise(apply))


sin = of_math("sin", "Sine of radians.")
cos = of_math("cos", "Cosine of radians.")
tan = of_math("tan", "Tangent of radians.")
asin = of_math("asin", "Inverse sine, in radians.")
acos = of_math("acos", "Inverse cosine, in radians.")
tanh = of_math("tanh", "Hyperbolic tangent.")
exp = of_math("exp", "e ** x.")
log = of_math("log", "Natural logarithm.")
sqrt = of_math("sqrt", "Square root.")


@intrinsic("atan2")
@elementwise
def atan2(a: Any, b: Any) -> Any:
    """The angle of the point (b, a), in radians."""
    return math.atan2(a, b)


@intrinsic("rsqrt")
@elementwise
def rsqrt(x: Any) -> Any:
    """1 / sqrt(x)."""
    return 1.0 / math.sqrt(x)


@intrinsic("floor")
@elementwise
def floor(x: Any, dtype: DataType | type | None = None) -> Any:
    """The largest integer not above x, in x's type, or converted to ``dtype``."""
    return _as(float(math.floor(float(x))), dtype)


@intrinsic("ceil")
@elementwise
def ceil(x: Any, dtype: DataType | type | None = None) -> Any:
    """The smallest integer not below x, in x's type, or converted to ``dtype``."""
    return _as(float(math.ceil(float(x))), dtype)


@intrinsic("round")
@elementwise
def round(x: Any, dtype: DataType | type | None = None) -> Any:
    """The nearest integer, half away from zero, in x's type, or converted to ``dtype``."""
    return _as(math.copysign(math.floor(_abs(x) + 0.5), x), dtype)


def _as(x: float, dtype: DataType | type | None) -> Any:
    return x if dtype is None else dtype(x)


@intrinsic("abs")
@elementwise
def abs(x: Any) -> Any:
    """The magnitude of x."""
    return _abs(x)


@intrinsic("min")
def min(*values: Any) -> Any:
    """The smallest; a number if the other is NaN."""
    return _least(*values) if len(values) > 1 else _min(*values)


@intrinsic("max")
def max(*values: Any) -> Any:
    """The largest; a number if the other is NaN."""
    return _largest(*values) if len(values) > 1 else _max(*values)


@intrinsic("pow")
@elementwise
def pow(base: Any, exponent: Any) -> Any:
    """``base ** exponent``; an integer exponent keeps the type of the base."""
    return base**exponent


@intrinsic("raw_div")
@elementwise
def raw_div(a: Any, b: Any) -> Any:
    """Division as in C: integers truncate towards zero."""
    if isinstance(a, int) and isinstance(b, int):
        quotient = _abs(a) // _abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient
    return a / b


@intrinsic("raw_mod")
@elementwise
def raw_mod(a: Any, b: Any) -> Any:
    """Remainder as in C: it has the sign of ``a``."""
    if isinstance(a, int) and isinstance(b, int):
        remainder = _abs(a) % _abs(b)
        return remainder if a >= 0 else -remainder
    return math.fmod(a, b)


@intrinsic("bit_shr")
def bit_shr(a: Any, b: Any) -> Any:
    """``a >> b`` with zeros shifted in, whatever the sign."""
    only_in_kernels("bit_shr")


@intrinsic("popcnt")
def popcnt(x: Any) -> Any:
    """The number of bits that are set."""
    only_in_kernels("popcnt")


@intrinsic("clz")
def clz(x: Any) -> Any:
    """The number of leading zero bits; the width of the type for 0."""
    only_in_kernels("clz")


@intrinsic("ffs")
def ffs(x: Any) -> Any:
    """The position of the lowest set bit, counted from 1; 0 for 0."""
    only_in_kernels("ffs")


@intrinsic("cast")
def cast(obj: Any, dtype: DataType | type) -> Any:
    """``obj`` converted to ``dtype``: floats truncate to integers, integers wrap."""
    from .values.matrix import Matrix

    return obj.cast(dtype) if isinstance(obj, Matrix) else dtype(obj)


@intrinsic("zero")
@elementwise
def zero(x: Any) -> Any:
    """0 in the type of x; for a vector or matrix, one of zeros."""
    return type(x)(0)


@intrinsic("one")
@elementwise
def one(x: Any) -> Any:
    """1 in the type of x; for a vector or matrix, one of ones."""
    return type(x)(1)


@intrinsic("frexp")
def frexp(x: Any) -> tuple[float, int]:
    """The fraction f, 0.5 <= |f| < 1, and the exponent e with x = f * 2**e.

    For 0, infinities and NaN, x and 0.
    """
    return math.frexp(x)


@intrinsic("bit_cast")
def bit_cast(obj: Any, dtype: DataType | type) -> Any:
    """The bits of ``obj`` read as ``dtype``, which has the same size."""
    only_in_kernels("bit_cast")


@intrinsic("select")
@elementwise
def select(cond: Any, x1: Any, x2: Any) -> Any:
    """``x1`` where ``cond`` is not 0, else ``x2``; both are computed."""
    return x1 if cond else x2


@intrinsic("random")
def random(dtype: DataType | type = float) -> Any:
    """A random number: in [0, 1) for float types, over the full range for integers."""
    import random as _random  # Python's own, with its hashes: kernels need neither

    if dtype is float or (isinstance(dtype, DataType) and dtype.is_real):
        return _random.random()
    if isinstance(dtype, DataType) and dtype is not u1:
        return _random.randint(dtype.min, dtype.max)
    return _random.getrandbits(1) if dtype in (bool, u1) else _random.getrandbits(32) - (1 << 31)


@intrinsic("randn")
def randn(dt: DataType | type = float) -> Any:
    """A random number of the standard normal distribution."""
    import random as _random

    return _random.gauss(0.0, 1.0)


@intrinsic("stop_grad")
def stop_grad(x: Any) -> NoReturn:
    """Let no gradient pass through a field or ndarray, in a kernel.

    Elements of ``x`` that are read in the same block of statements, before or after, or in blocks
    inside of it, count as constants when the kernel is differentiated.
    """
    only_in_kernels("stop_grad")
