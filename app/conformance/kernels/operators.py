"""Operators of integers and booleans."""

from .... import engine as qd
from ..feature import Group
from .kit import I32, I64, U32, filled, of, zeros

feature = Group("operators", "Operators")


@feature("// rounds down", [-4, 3, -4, 3, -1])
def floor_division():
    @qd.kernel
    def k(a: I32, b: I32, out: I32):
        for i in out:
            out[i] = a[i] // b[i]

    return filled(k, of(qd.i32, -7, 7, 7, -7, -1), of(qd.i32, 2, 2, -2, -2, 5), zeros(qd.i32, 5))


@feature("% has the sign of the divisor", [1, 1, -1, -1, 4])
def modulo():
    @qd.kernel
    def k(a: I32, b: I32, out: I32):
        for i in out:
            out[i] = a[i] % b[i]

    return filled(k, of(qd.i32, -7, 7, 7, -7, -1), of(qd.i32, 2, 2, -2, -2, 5), zeros(qd.i32, 5))


@feature("raw_div and raw_mod truncate", [-3, 3, -3, 3, -1, 1, 1, -1])
def raw_division():
    @qd.kernel
    def k(a: I32, b: I32, out: I32):
        for i in a:
            out[i] = qd.raw_div(a[i], b[i])
            out[4 + i] = qd.raw_mod(a[i], b[i])

    return filled(k, of(qd.i32, -7, 7, 7, -7), of(qd.i32, 2, 2, -2, -2), zeros(qd.i32, 8))


@feature("division of unsigned integers", [2147483647, 1, 4294967295 // 7, 4294967295 % 7])
def unsigned_division():
    @qd.kernel
    def k(a: qd.u32, b: qd.u32, c: qd.u32, out: U32):
        out[0] = a // b
        out[1] = a % b
        out[2] = a // c
        out[3] = a % c

    return filled(k, 2**32 - 1, 2, 7, zeros(qd.u32, 4))


@feature(
    "division of 64-bit integers by variables and constants", [-33333333334, 2, -10000000000, 0]
)
def wide_division():
    @qd.kernel
    def k(a: qd.i64, b: qd.i64, out: I64):
        out[0] = a // b
        out[1] = a % b
        out[2] = a // 10
        out[3] = a % 10

    return filled(k, -(10**11), 3, zeros(qd.i64, 4))


@feature("an integer divided by a variable 0 is 0", [0, 0, 0, 0])
def by_zero():
    @qd.kernel
    def k(a: qd.i32, b: qd.i32, out: I32):
        out[0] = a // b
        out[1] = a % b
        out[2] = qd.raw_div(a, b)
        out[3] = qd.raw_mod(a, b)

    return filled(k, 7, 0, of(qd.i32, 9, 9, 9, 9))


@feature("the lowest integer divided by -1 wraps", [-(2**31), 0])
def lowest_by_minus_one():
    @qd.kernel
    def k(a: qd.i32, b: qd.i32, out: I32):
        out[0] = a // b
        out[1] = a % b

    return filled(k, -(2**31), -1, zeros(qd.i32, 2))


@feature("/ of integers is real division", [3.5, -0.25])
def true_division():
    @qd.kernel
    def k(a: qd.i32, b: qd.i32) -> tuple[qd.f32, qd.f32]:
        return a / b, -1 / (b + b)

    return k(7, 2)


@feature("real division and its floor", [3.5, 3.0, 0.5, -4.0, 1.5])
def real_division():
    @qd.kernel
    def k(a: qd.f32, b: qd.f32) -> tuple[qd.f32, qd.f32, qd.f32, qd.f32, qd.f32]:
        return a / b, a // b, (a % b) * 0.5, -a // b, (-a % b) * 1.5

    return k(7.0, 2.0)


@feature("shifts: >> keeps the sign, bit_shr does not", [-128, -1, 15, 4, 2147483644])
def shifts():
    @qd.kernel
    def k(a: qd.i32, n: qd.i32, out: I32):
        out[0] = (a - 1) << n
        out[1] = a >> n + 24
        out[2] = qd.bit_shr(a, 28)
        out[3] = 1 << 2
        out[4] = qd.bit_shr(a - 1, 1)

    return filled(k, -7, 4, zeros(qd.i32, 5))


@feature("shifts of 64-bit and unsigned integers", [2**40, -(2**23), 2**63, 1])
def wide_shifts():
    @qd.kernel
    def k(a: qd.i64, b: qd.u64, n: qd.i32) -> tuple[qd.i64, qd.i64, qd.u64, qd.u64]:
        return a << n, -(a << 63) >> 40, b << 63, (b << 63) >> 63

    return k(1, 1, 40)


@feature("& | ^ ~ of signed and unsigned integers", [8, 14, 6, -13, 4294967283])
def bitwise():
    @qd.kernel
    def k(a: qd.i32, b: qd.i32, c: qd.u32) -> tuple[qd.i32, qd.i32, qd.i32, qd.i32, qd.u32]:
        return a & b, a | b, a ^ b, ~a, ~c

    return k(12, 10, 12)


@feature("comparisons of signed and unsigned integers", [1, 0, 1, 1, 0, 1])
def comparisons():
    @qd.kernel
    def k(a: qd.i32, b: qd.i32, c: qd.u32, d: qd.u32, out: I32):
        out[0] = a < b
        out[1] = c < d
        out[2] = a <= b
        out[3] = c >= d
        out[4] = a == b
        out[5] = a != b

    return filled(k, -1, 1, 2**32 - 1, 1, zeros(qd.i32, 6))


@feature("chained comparisons", [1, 0])
def chained():
    @qd.kernel
    def k(a: qd.i32) -> tuple[qd.i32, qd.i32]:
        return 1 if 0 < a < 10 else 0, 1 if 0 < a < 5 else 0

    return k(7)


@feature("and, or, not give operands and evaluate what they need", [0, 5, 1, 0, 2])
def boolean_operators():
    @qd.func
    def counted(x: qd.template(), value):
        x += 1
        return value

    @qd.kernel
    def k(a: qd.i32, out: I32):
        calls = 0
        out[0] = a and counted(calls, 3)
        out[1] = a or counted(calls, 5)
        out[2] = not a
        out[3] = not (a + 1)
        if a == 0 or counted(calls, 1) == 1:
            calls += 1
        out[4] = calls

    return filled(k, 0, zeros(qd.i32, 5))


@feature("a if c else b computes one side", [10, 1])
def conditional():
    @qd.func
    def bumped(x: qd.template()):
        x += 1
        return x * 10

    @qd.kernel
    def k(a: qd.i32) -> tuple[qd.i32, qd.i32]:
        n = 0
        m = 0
        y = bumped(n) if a > 0 else bumped(m)
        return y, n + m

    return k(3)


@feature("select computes both sides", [2, 1])
def selection():
    @qd.kernel
    def k(a: qd.i32) -> tuple[qd.i32, qd.i32]:
        return qd.select(a > 3, 1, 2), qd.select(a < 3, 1, 2)

    return k(2)


@feature("powers with integer exponents, negative ones too", [1024, -27, 1, 8192.0, 1, 0])
def powers():
    @qd.kernel
    def k(a: qd.i32, n: qd.i32, x: qd.f32, out: qd.types.NDArray[qd.f32, 1]):
        out[0] = a**n
        out[1] = (a - 5) ** 3
        out[2] = a**0
        out[3] = x ** (-3 - n)
        out[4] = 1 ** (n - 20)
        out[5] = a ** (n - 20)

    return filled(k, 2, 10, 0.5, zeros(qd.f32, 6))


@feature("abs, min and max of integers", [7, -7, 7, 2147483647, 0])
def extremes():
    @qd.kernel
    def k(a: qd.i32, b: qd.u32, out: I64):
        out[0] = abs(a)
        out[1] = min(a, 3, 5)
        out[2] = max(-a, 3, 5)
        out[3] = max(b, 5)
        out[4] = min(b, 0)

    return filled(k, -7, 2147483647, zeros(qd.i64, 5))


@feature("augmented assignments of every operator", [7, 3, 10, 5, 1, 4, 2, 2, 6, 4])
def augmented():
    @qd.kernel
    def k(n: qd.i32, out: I32):
        a = n
        a += 2
        out[0] = a
        a -= 4
        out[1] = a
        b = n
        b *= 2
        out[2] = b
        b //= 2
        out[3] = b
        b %= 2
        out[4] = b
        b <<= 2
        out[5] = b
        b >>= 1
        out[6] = b
        b &= 3
        out[7] = b
        b |= 4
        out[8] = b
        b ^= 2
        out[9] = b

    return filled(k, 5, zeros(qd.i32, 10))


@feature("counts of bits: popcnt, clz, ffs", [2, 28, 3, 0, 32, 0, 64, 0, 1])
def bit_counts():
    @qd.kernel
    def k(a: qd.i32, b: qd.i64, out: I32):
        out[0] = qd.popcnt(a)
        out[1] = qd.clz(a)
        out[2] = qd.ffs(a)
        out[3] = qd.popcnt(a - a)
        out[4] = qd.clz(a - a)
        out[5] = qd.ffs(a - a)
        out[6] = qd.popcnt(b)
        out[7] = qd.clz(b)
        out[8] = qd.ffs(b)

    return filled(k, 12, -1, zeros(qd.i32, 9))
