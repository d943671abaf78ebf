"""Data types, literals and casts."""

import numpy as np

from .... import engine as qd
from ..feature import Group
from .kit import F32, F64, I32, filled, of, zeros

feature = Group("types", "Types and casts")

_WRAPS = {
    "i8": (127, [-128, -2, 1]),
    "i16": (32767, [-32768, -2, 1]),
    "i32": (2**31 - 1, [-(2**31), -2, 1]),
    "i64": (2**63 - 1, [-(2**63), -2, 1]),
    "u8": (255, [0, 254, 1]),
    "u16": (65535, [0, 65534, 1]),
    "u32": (2**32 - 1, [0, 2**32 - 2, 1]),
    "u64": (2**64 - 1, [0, 2**64 - 2, 1]),
}


def _wrapping(name, largest):
    dtype = getattr(qd, name)

    def run():
        @qd.kernel
        def k(x: qd.types.NDArray[dtype, 1], out: qd.types.NDArray[dtype, 1]):
            for i in x:
                one = qd.cast(1, dtype)
                out[0] = x[i] + one
                out[1] = x[i] + x[i]
                out[2] = x[i] * x[i]

        return filled(k, of(dtype, largest), zeros(dtype, 3))

    return run


for _name, (_largest, _gives) in _WRAPS.items():
    feature.add(f"wrap_{_name}", f"arithmetic of {_name} wraps", _wrapping(_name, _largest), _gives)


@feature("u1 is what comparisons give, and 0 or 1 as a number", [1, 0, 1, 2])
def booleans():
    @qd.kernel
    def k(a: qd.i32, flag: qd.u1, out: I32):
        out[0] = a > 3 and flag
        out[1] = a < 3
        out[2] = qd.cast(a, qd.u1)
        out[3] = (a > 3) * 1 + (a == 7) * 1

    return filled(k, 7, True, zeros(qd.i32, 4))


@feature("arrays of u1 hold a byte an element", [[True, False, True], 2])
def boolean_arrays():
    @qd.kernel
    def k(x: qd.types.NDArray[qd.u1, 1]) -> qd.i32:
        count = 0
        for i in x:
            x[i] = i != 1
        for i in x:
            count += x[i]
        return count

    x = np.zeros(3, np.bool_)
    count = k(x)
    return [x, count]


@feature("f32 arithmetic is rounded to 24 bits", [0.30000001192092896, 16777216.0])
def single():
    @qd.kernel
    def k(a: qd.f32, b: qd.f32, c: qd.f32, out: F32):
        out[0] = a + b
        out[1] = c + 1.0

    return filled(k, 0.1, 0.2, 16777216.0, zeros(qd.f32, 2))


@feature(
    "f64 arithmetic is rounded to 53 bits", [0.30000000000000004, 0.020000000000000004], ("f64",)
)
def double():
    @qd.kernel
    def k(a: qd.f64, b: qd.f64, out: F64):
        out[0] = a + b
        out[1] = a * b

    return filled(k, 0.1, 0.2, zeros(qd.f64, 2))


@feature("f16 is rounded to 11 bits after each operation", [2048.0, 0.199951171875], ("f16",))
def half():
    @qd.kernel
    def k(x: qd.types.NDArray[qd.f16, 1], out: qd.types.NDArray[qd.f16, 1]):
        for i in range(1):
            out[0] = x[0] + x[1]
            out[1] = x[2] + x[2]

    return filled(k, of(qd.f16, 2048.0, 1.0, 0.1), zeros(qd.f16, 2))


@feature("infinities and NaN, and comparisons with them", [float("inf"), 0, 1, 1, 0])
def not_finite():
    @qd.kernel
    def k(a: qd.f32, out: F32):
        big = a * a
        nan = big - big
        out[0] = big
        out[1] = nan == nan
        out[2] = nan != nan
        out[3] = big > 1.0
        out[4] = nan < 1.0

    return filled(k, 1e30, zeros(qd.f32, 5))


@feature("floats become integers by truncation", [2, -2, 0, 100])
def truncation():
    @qd.kernel
    def k(x: F32, out: I32):
        for i in x:
            out[i] = qd.cast(x[i], qd.i32)

    return filled(k, of(qd.f32, 2.9, -2.9, -0.9, 100.5), zeros(qd.i32, 4))


@feature("floats that do not fit saturate", [2**31 - 1, -(2**31), 0, 255, 0, 127])
def saturation():
    @qd.kernel
    def k(x: F32, out: I32):
        for i in range(1):
            out[0] = qd.cast(x[0], qd.i32)
            out[1] = qd.cast(-x[0], qd.i32)
            out[2] = qd.cast(x[1], qd.i32)
            out[3] = qd.cast(x[0], qd.u8)
            out[4] = qd.cast(-x[0], qd.u32)
            out[5] = qd.cast(x[0], qd.i8)

    return filled(k, of(qd.f32, 1e20, np.nan), zeros(qd.i32, 6))


@feature("integers become narrower by wrapping", [-56, 200, -31072, 34464])
def narrowing():
    @qd.kernel
    def k(a: qd.i32, b: qd.i32, out: I32):
        out[0] = qd.cast(a, qd.i8)
        out[1] = qd.cast(a, qd.u8)
        out[2] = qd.cast(b, qd.i16)
        out[3] = qd.cast(b, qd.u16)

    return filled(k, 200, 100000, zeros(qd.i32, 4))


@feature("integers become wider with their sign", [-1, 2**64 - 1, 4294967295, 255])
def widening():
    @qd.kernel
    def k(a: qd.i8, b: qd.u32, c: qd.u8) -> tuple[qd.i64, qd.u64, qd.i64, qd.i32]:
        return qd.cast(a, qd.i64), qd.cast(a, qd.u64), qd.cast(b, qd.i64), qd.cast(c, qd.i32)

    return k(-1, 2**32 - 1, 255)


@feature("64-bit integers become floats, rounded to nearest", [2.0**53, 2.0**64, 2.0**24], ("f64",))
def wide_to_real():
    @qd.kernel
    def k(a: qd.i64, b: qd.u64, c: qd.i32) -> tuple[qd.f64, qd.f64, qd.f32]:
        return qd.cast(a, qd.f64), qd.cast(b, qd.f64), qd.cast(c, qd.f32)

    return k(2**53 + 1, 2**64 - 1, 2**24 + 1)


@feature("bit_cast keeps the bits", [1065353216, 1.0, 3225000346])
def bits_kept():
    @qd.kernel
    def k(a: qd.f32, b: qd.i32, c: qd.f32) -> tuple[qd.i32, qd.f32, qd.u32]:
        return qd.bit_cast(a, qd.i32), qd.bit_cast(b, qd.f32), qd.bit_cast(c, qd.u32)

    return k(1.0, 1065353216, -2.9)


@feature("bit_cast of 64 bits", [4607182418800017408, 1.0], ("f64",))
def wide_bits_kept():
    @qd.kernel
    def k(a: qd.f64, b: qd.u64) -> tuple[qd.i64, qd.f64]:
        return qd.bit_cast(a, qd.i64), qd.bit_cast(b, qd.f64)

    return k(1.0, 4607182418800017408)


@feature("of two operands: real before integer, wider before narrower, unsigned before signed",
         [4294967295, -1, -1, 3.5])  # fmt: skip
def promotion():
    @qd.kernel
    def k(
        a: qd.i32, b: qd.u32, c: qd.i8, d: qd.u8, x: qd.f32
    ) -> tuple[qd.i64, qd.i64, qd.i64, qd.f32]:
        return (a - b) * 1, a * (a > b), c * qd.cast(1, qd.i32), x + d

    return k(-1, 0, -1, 3, 0.5)


@feature(
    "literals have the default types", [3.0, 0.5, 7], ("f64",), default_fp=qd.f64, default_ip=qd.i64
)
def default_types():
    @qd.kernel
    def k(n: int) -> tuple[float, float, int]:
        return 0.1 * 30.0, 1 / (n - 5), n

    return k(7)


@feature("a local keeps the type of its first value; an annotation chooses it", [3, 2.5])
def local_types():
    @qd.kernel
    def k(x: qd.f32) -> tuple[qd.i32, qd.f32]:
        a = 3
        b: qd.f32 = 2
        b += x
        return a, b

    return k(0.5)


@feature("arrays of every integer type", [[1, 2, 4]] * 8)
def every_integer():
    outs = []
    for name in ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"):
        dtype = getattr(qd, name)

        @qd.kernel
        def k(x: qd.types.NDArray[dtype, 1]):
            for i in x:
                x[i] = qd.cast(1, dtype) << qd.cast(i, dtype)

        x = filled(k, zeros(dtype, 3))
        outs.append(x)
    return outs


@feature(
    "scalar arguments of every type",
    [-8, -16, -32, -64, 8, 16, 32, 64, 1, 1.5, 2.5],
    ("f64", "f16"),
)
def every_argument():
    @qd.kernel
    def k(
        a: qd.i8, b: qd.i16, c: qd.i32, d: qd.i64, e: qd.u8, f: qd.u16, g: qd.u32, h: qd.u64,
        flag: qd.u1, x: qd.f16, y: qd.f64, out: F64,
    ):  # fmt: skip
        out[0] = a
        out[1] = b
        out[2] = c
        out[3] = d
        out[4] = e
        out[5] = f
        out[6] = g
        out[7] = h
        out[8] = flag
        out[9] = x
        out[10] = y

    return filled(k, -8, -16, -32, -64, 8, 16, 32, 64, True, 1.5, 2.5, zeros(qd.f64, 11))
