"""Functions of floats, and random numbers."""

import math

import numpy as np

from .... import engine as qd
from ..feature import ANY, Group
from .kit import F32, F64, I32, filled, of, zeros

feature = Group("math", "Functions of numbers")

_X = (0.25, 0.5, 0.875)
_FUNCTIONS = {
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "tanh": math.tanh,
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
}


def _applied(function, dtype):
    def run():
        @qd.kernel
        def k(x: qd.types.NDArray[dtype, 1], out: qd.types.NDArray[dtype, 1]):
            for i in x:
                out[i] = function(x[i])

        return filled(k, of(dtype, *_X), zeros(dtype, len(_X)))

    return run


for _name, _function in _FUNCTIONS.items():
    for _dtype, _rtol, _needs in ((qd.f32, 4e-6, ()), (qd.f64, 1e-14, ("f64",))):
        feature.add(
            f"{_name}_{_dtype}", f"{_name} of {_dtype}", _applied(getattr(qd, _name), _dtype),
            [_function(x) for x in _X], _needs, _rtol,
        )  # fmt: skip


@feature(
    "atan2 in every quadrant",
    [math.pi / 4, 3 * math.pi / 4, -3 * math.pi / 4, -math.pi / 4],
    rtol=1e-6,
)
def angles():
    @qd.kernel
    def k(y: F32, x: F32, out: F32):
        for i in out:
            out[i] = qd.atan2(y[i], x[i])

    return filled(k, of(qd.f32, 1, 1, -1, -1), of(qd.f32, 1, -1, -1, 1), zeros(qd.f32, 4))


@feature("floor, ceil, and round half away from zero", [2, -3, 3, -2, 3, -3, 1, -1])
def rounding():
    @qd.kernel
    def k(x: F32, out: F32):
        for i in x:
            out[i] = qd.floor(x[i])
            out[2 + i] = qd.ceil(x[i])
            out[4 + i] = qd.round(x[i])
            out[6 + i] = qd.round(x[i] * 0.2, qd.i32)

    return filled(k, of(qd.f32, 2.5, -2.5), zeros(qd.f32, 8))


@feature("real powers", [8.0, 0.25, 1.4142135, 1.0], rtol=1e-6)
def real_powers():
    @qd.kernel
    def k(x: qd.f32, y: qd.f32) -> tuple[qd.f32, qd.f32, qd.f32, qd.f32]:
        return qd.pow(x, y), x ** (1.0 - y), x ** (y / 6.0), qd.pow(x, 0.0)

    return k(2.0, 3.0)


@feature("min and max of a number and NaN give the number", [1.0, 1.0, 2.5, -1.5])
def minmax_of_floats():
    @qd.kernel
    def k(x: F32, out: F32):
        for i in range(1):
            out[0] = qd.min(x[0], x[1])
            out[1] = qd.max(x[1], x[0])
            out[2] = qd.max(x[2], x[3], 0.0)
            out[3] = qd.min(x[2], x[3], 0.0)

    return filled(k, of(qd.f32, 1.0, np.nan, 2.5, -1.5), zeros(qd.f32, 4))


@feature("isnan and isinf, under fast_math too", [1, 0, 0, 1, 0, 0], fast_math=True)
def kinds_of_numbers():
    @qd.kernel
    def k(x: F32, out: I32):
        for i in x:
            out[2 * i] = qd.math.isnan(x[i])
            out[2 * i + 1] = qd.math.isinf(x[i])

    return filled(k, of(qd.f32, np.nan, np.inf, 1.0), zeros(qd.i32, 6))


@feature("frexp", [0.75, 4, -0.5, 0])
def mantissa_and_exponent():
    @qd.kernel
    def k(x: qd.f32) -> tuple[qd.f32, qd.i32, qd.f32, qd.i32]:
        m, e = qd.frexp(x)
        n, f = qd.frexp(-x / 24.0)
        return m, e, n, f

    return k(12.0)


@feature(
    "clamp, mix, step, smoothstep, fract, sign, mod", [1.0, 12.5, 0.0, 0.15625, 0.25, -1.0, 0.75]
)
def shading():
    m = qd.math

    @qd.kernel
    def k(x: qd.f32, out: F32):
        out[0] = m.clamp(x * 8.0, 0.0, 1.0)
        out[1] = m.mix(10.0, 20.0, x)
        out[2] = m.step(0.5, x)
        out[3] = m.smoothstep(0.0, 1.0, x)
        out[4] = m.fract(x + 8.0)
        out[5] = m.sign(-x)
        out[6] = m.mod(-x - 2.0, 3.0)

    return filled(k, 0.25, zeros(qd.f32, 7))


@feature("log2, degrees, radians, pi, e", [3.0, 180.0, 3.1415927, 2.7182817], rtol=1e-6)
def units():
    m = qd.math

    @qd.kernel
    def k(x: qd.f32) -> tuple[qd.f32, qd.f32, qd.f32, qd.f32]:
        return m.log2(x), m.degrees(m.pi * x / 8.0), m.radians(x * 22.5), m.e * x / 8.0

    return k(8.0)


@feature(
    "complex numbers as vectors", [[-4.0, 3.0], [4.0, -3.0], [2.0, 1.0], [-1.0, 0.0]], rtol=2e-6
)
def complex_numbers():
    m = qd.math

    @qd.kernel
    def k() -> qd.types.matrix(4, 2, qd.f32):
        a, b = m.vec2(3.0, 4.0), m.vec2(0.0, 1.0)
        return qd.Matrix.rows([m.cmul(a, b), m.cdiv(a, b), m.csqrt(a), m.cpow(b, 2)])

    return np.round(k().to_numpy(), 5) + 0.0


@feature("functions of f16", [0.47940, 1.64872, 0.70711], ("f16",), rtol=2e-3)
def functions_of_halves():
    @qd.kernel
    def k(x: qd.types.NDArray[qd.f16, 1], out: qd.types.NDArray[qd.f16, 1]):
        for i in x:
            out[0] = qd.sin(x[i])
            out[1] = qd.exp(x[i])
            out[2] = qd.sqrt(x[i])

    return filled(k, of(qd.f16, 0.5), zeros(qd.f16, 3))


@feature(
    "fast_math: results within a few units",
    [2.449489743, 0.40824829, 1.25],
    rtol=1e-5,
    fast_math=True,
)
def fast():
    @qd.kernel
    def k(x: F32, out: F32):
        for i in range(1):
            out[0] = qd.sqrt(x[0]) * qd.sqrt(x[1])
            out[1] = qd.rsqrt(x[0] * x[1])
            out[2] = x[2] / x[3]

    return filled(k, of(qd.f32, 2.0, 3.0, 10.0, 8.0), zeros(qd.f32, 3))


# ---- random numbers

chance = Group("random", "Random numbers", ("random",))


@chance("random floats are from 0 to below 1", [True, True, True])
def random_floats():
    @qd.kernel
    def k(x: F32):
        for i in x:
            x[i] = qd.random(qd.f32)

    x = filled(k, zeros(qd.f32, 4000))
    return [bool(x.min() >= 0), bool(x.max() < 1), bool(abs(x.mean() - 0.5) < 0.02)]


@chance("random f64 and integers", [True, True, True], ("f64",))
def random_integers():
    @qd.kernel
    def k(x: F64, y: I32):
        for i in x:
            x[i] = qd.random(qd.f64)
            y[i] = qd.random(qd.i32)

    x, y = zeros(qd.f64, 4000), zeros(qd.i32, 4000)
    k(x, y)
    spread = bool((y < 0).mean() > 0.45) and len(set(y.tolist())) > 3990
    return [bool(abs(x.mean() - 0.5) < 0.02), spread, bool((x * 2**40 % 1).any())]


@chance("normal numbers", [True, True])
def normal_numbers():
    @qd.kernel
    def k(x: F32):
        for i in x:
            x[i] = qd.randn()

    x = filled(k, zeros(qd.f32, 4000))
    return [bool(abs(x.mean()) < 0.06), bool(abs(x.std() - 1) < 0.06)]


@chance(
    "a seed produces the same numbers everywhere, different ones at each launch",
    [ANY, False],
    random_seed=7,
)
def seeds():
    @qd.kernel
    def k(x: F32):
        for i in x:
            x[i] = qd.random(qd.f32)

    x, y = zeros(qd.f32, 50), zeros(qd.f32, 50)
    k(x)
    k(y)
    return [x, x.tolist() == y.tolist()]
