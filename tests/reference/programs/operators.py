"""Arithmetic, bit operators, comparisons of scalars."""

import quadrants as qd

INIT = {
    "case_nan_and_inf": {"fast_math": False},
}


def case_arithmetic():
    ints = [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3), (0, 5)]
    floats = [(7.5, 2.0), (-7.5, 2.0), (7.5, -2.0), (-7.5, -2.0), (0.5, 0.125), (0.1, 0.3)]
    out = []
    for t, r, pairs in ((qd.i32, qd.f32, ints), (qd.f32, qd.f32, floats), (qd.f64, qd.f64, floats)):

        @qd.kernel
        def k(a: t, b: t) -> tuple[t, t, t, t, t, r]:
            return a + b, a - b, a * b, a // b, a % b, a / b

        out.append([k(a, b) for a, b in pairs])
    return out


def case_floor_division_and_mod_of_narrow_ints():
    out = []
    for t in (qd.i8, qd.i16, qd.i64):

        @qd.kernel
        def k(a: t, b: t) -> tuple[qd.i64, qd.i64]:
            return a // b, a % b

        out.append([k(-7, 2), k(7, -2), k(100, 7), k(-100, -7)])
    return out


def case_raw_division_of_reals():
    @qd.kernel
    def k(a: qd.f32, b: qd.f32) -> qd.f32:
        return qd.raw_div(a, b)

    return [k(7.0, 2.0), k(-7.0, 2.0)]


def case_raw_mod_of_reals():
    @qd.kernel
    def k(a: qd.f32, b: qd.f32) -> qd.f32:
        return qd.raw_mod(a, b)

    return [k(7.5, 2.0), k(-7.5, 2.0)]


def case_division_by_zero_of_reals():
    @qd.kernel
    def k(a: qd.f32, b: qd.f32) -> qd.f32:
        return a / b

    return [k(1.0, 0.0), k(-1.0, 0.0)]


def case_power_of_ints():
    @qd.kernel
    def k(a: qd.i32, b: qd.i32) -> qd.i32:
        return a**b

    return [k(2, 10), k(-3, 3), k(7, 0), k(0, 0), k(0, 5), k(1, 100), k(-1, 31), k(3, 21)]


def case_power_of_narrow_ints():
    @qd.kernel
    def k(a: qd.i8, b: qd.i32) -> qd.i32:
        return a**b

    return [k(2, 6), k(2, 7), k(2, 8), k(-5, 3)]


def case_power_of_reals():
    @qd.kernel
    def k(a: qd.f32, b: qd.f32) -> qd.f32:
        return a**b

    return [k(2.0, 0.5), k(2.0, -1.5), k(9.0, 0.0), k(0.0, 2.0)]


def case_power_of_a_real_with_an_int():
    @qd.kernel
    def k(a: qd.f32, b: qd.i32) -> qd.f32:
        return a**b

    return [k(2.0, 5), k(-1.5, 3), k(0.5, 0), k(2.0, -2)]


def case_power_of_an_int_with_a_real():
    @qd.kernel
    def k(a: qd.i32, b: qd.f32) -> qd.f32:
        return a**b

    return [k(2, 0.5), k(9, -0.5)]


def case_power_with_constant_exponents():
    @qd.kernel
    def k(a: qd.f32, i: qd.i32) -> tuple[qd.f32, qd.f32, qd.f32, qd.i32, qd.i32]:
        return a**2, a**3, a**0.5, i**2, i**5

    return [k(1.5, 3), k(4.0, -2)]


def case_negative_integer_exponent_at_run_time():
    @qd.kernel
    def k(a: qd.i32, b: qd.i32) -> qd.i32:
        return a**b

    return [k(2, -2), k(1, -3), k(-1, -3)]


def case_shifts_of_unsigned():
    @qd.kernel
    def k(a: qd.u32, b: qd.i32) -> tuple[qd.u32, qd.u32]:
        return a << b, a >> b

    return [k(4294967289, 1), k(4294967289, 28)]


def case_shift_keeps_the_left_type():
    @qd.kernel
    def k(a: qd.i8, b: qd.i64) -> tuple[qd.i64, qd.i64]:
        return a << b, qd.i64(a) << b

    return [k(1, 7), k(64, 2)]


def case_shift_of_wide_ints():
    @qd.kernel
    def k(a: qd.i64, b: qd.i32) -> tuple[qd.i64, qd.i64, qd.i64]:
        return a << b, a >> b, qd.bit_shr(a, b)

    return [k(1, 40), k(-1, 40)]


def case_bit_operators_of_mixed_types():
    @qd.kernel
    def k(a: qd.u8, b: qd.i64) -> tuple[qd.i64, qd.i64, qd.i64, qd.i64]:
        return a & b, a | b, a ^ b, ~a

    return [k(255, -1), k(12, 2**40 + 10)]


def case_bit_operators_of_u1():
    @qd.kernel
    def k(a: qd.i32) -> tuple[qd.i32, qd.i32, qd.i32]:
        return (a > 1) & (a > 2), (a > 1) | (a > 2), (a > 1) ^ (a > 2)

    return [k(0), k(2), k(3)]


def case_unary_operators():
    @qd.kernel
    def k(a: qd.i32, b: qd.f32) -> tuple[qd.i32, qd.i32, qd.f32, qd.f32, qd.i32, qd.f32]:
        return -a, +a, -b, +b, abs(a), abs(b)

    return [k(3, 2.5), k(-3, -2.5), k(0, 0.0)]


def case_unary_minus_of_narrow_and_unsigned():
    @qd.kernel
    def k(a: qd.i8, b: qd.u8, c: qd.u32) -> tuple[qd.i32, qd.i32, qd.i64]:
        return -a, -b, -c

    return [k(-128, 1, 1), k(5, 200, 0)]


def case_min_and_max():
    @qd.kernel
    def k(a: qd.i32, b: qd.f32) -> tuple[qd.f32, qd.f32, qd.f32, qd.f32]:
        return min(a, b), max(a, b), qd.min(a, b, 2), qd.max(a, b, 2)

    return [k(1, 1.5), k(3, 2.5), k(-1, -2.0)]


def case_min_and_max_of_many():
    @qd.kernel
    def k(a: qd.i32, b: qd.i32, c: qd.i64) -> tuple[qd.i64, qd.i64]:
        return min(a, b, c, 10), max(a, b, c, -10)

    return [k(1, 2, 3), k(-20, -30, -2147483650)]


def case_comparisons():
    @qd.kernel
    def k(a: qd.i32, b: qd.f32) -> qd.i32:
        r = 0
        if a < b:
            r += 1
        if a <= b:
            r += 2
        if a > b:
            r += 4
        if a >= b:
            r += 8
        if a == b:
            r += 16
        if a != b:
            r += 32
        return r

    return [k(1, 2.0), k(2, 2.0), k(3, 2.0)]


def case_comparison_of_signed_and_unsigned():
    @qd.kernel
    def k(a: qd.i32, b: qd.u32, c: qd.u8, d: qd.i8) -> tuple[qd.i32, qd.i32]:
        return a < b, d < c

    return [k(-1, 1, 1, -1), k(1, 2, 2, 1)]


def case_nan_and_inf():
    @qd.kernel
    def k(a: qd.f32) -> tuple[qd.f32, qd.f32]:
        return a * qd.math.inf, min(a, qd.math.inf)

    return [k(1.0), k(-1.0), k(0.0)]


def case_raw_division_of_unsigned():
    @qd.kernel
    def k(a: qd.u64, b: qd.u64, c: qd.u32, d: qd.u32) -> tuple[qd.u64, qd.u64, qd.u32, qd.u32]:
        return qd.raw_div(a, b), qd.raw_mod(a, b), qd.raw_div(c, d), qd.raw_mod(c, d)

    return [k(7, 2, 7, 2), k(2**64 - 1, 10, 2**32 - 1, 10)]


def case_division_of_typed_constants():
    @qd.kernel
    def k() -> tuple[qd.i32, qd.i32, qd.i32]:
        a = qd.cast(8, qd.i32)
        return a % (-5), a // (-5), qd.cast(-8, qd.i32) // 5

    return k()


def case_subnormal_reals():
    @qd.kernel
    def k(a: qd.f64) -> qd.f64:
        return a * 0.5

    return [k(5e-324 * 8), k(1e-310) > 0]
