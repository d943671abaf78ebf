"""Types of scalars: names, literals, promotion, locals, casts."""

import numpy as np
import quadrants as qd

INTS = (qd.i8, qd.i16, qd.i32, qd.i64, qd.u8, qd.u16, qd.u32, qd.u64)
INIT = {
    "case_default_types_of_64_bits": {"default_fp": "f64", "default_ip": "i64"},
    "case_default_fp_f16": {"default_fp": "f16"},
    "case_literal_fits_i64": {"default_ip": "i64"},
}


def case_names_of_types_are_the_same_objects():
    return [
        qd.int8 is qd.i8, qd.int16 is qd.i16, qd.int32 is qd.i32, qd.int64 is qd.i64,
        qd.uint1 is qd.u1, qd.uint8 is qd.u8, qd.uint16 is qd.u16, qd.uint32 is qd.u32,
        qd.uint64 is qd.u64, qd.float16 is qd.f16, qd.float32 is qd.f32, qd.float64 is qd.f64,
        qd.types.f32 is qd.f32, qd.types.int8 is qd.i8,
    ]  # fmt: skip


def case_names_in_print():
    return [str(t) for t in (*INTS, qd.u1, qd.f16, qd.f32, qd.f64)]


def case_equality_of_types():
    return [qd.i32 == qd.i32, qd.i32 == qd.i64, qd.f32 != qd.f64, len({qd.f32, qd.float32})]


def case_return_each_type():
    out = {}
    for t in (*INTS, qd.f16, qd.f32, qd.f64):

        @qd.kernel
        def k(a: qd.f32) -> t:
            return a

        out[str(t)] = [k(0.0), k(1.1), k(100.7)]
    return out


def case_python_types_as_annotations():
    @qd.kernel
    def k(a: int, b: float, c: bool) -> qd.f64:
        return qd.cast(a, qd.f64) + qd.cast(b, qd.f64) * 10.0 + qd.cast(c, qd.f64) * 100.0

    return [k(1, 2.5, True), k(-1, 3, False), k(1, 0.0, 7)]


def case_python_types_as_return():
    @qd.kernel
    def i() -> int:
        return 2.9

    @qd.kernel
    def f() -> float:
        return 3

    @qd.kernel
    def b() -> bool:
        return 3 > 2

    return [i(), f(), b()]


def case_numpy_scalars_as_arguments():
    @qd.kernel
    def k(a: qd.i32, b: qd.f32) -> qd.f32:
        return a * b

    return [k(np.int32(3), np.float32(0.5)), k(np.int64(4), np.float64(0.25)), k(np.uint8(2), 1)]


def case_signed_argument_wraps():
    @qd.kernel
    def k8(a: qd.i8) -> qd.i32:
        return a

    @qd.kernel
    def k32(a: qd.i32) -> qd.i32:
        return a

    return [k8(300), k8(-129), k32(2**40), k32(2**31)]


def case_bool_argument_maps_to_0_and_1():
    @qd.kernel
    def k(a: bool) -> qd.i32:
        return qd.cast(a, qd.i32)

    return [k(5), k(0), k(2), k(True)]


@qd.kernel
def of_default_types() -> tuple[qd.i64, qd.f64]:
    a = 2147483647
    a += 1
    b = 0.1
    return qd.cast(a, qd.i64), qd.cast(b, qd.f64)


def case_default_types():
    return of_default_types()


def case_default_types_of_64_bits():
    return of_default_types()


def case_default_fp_f16():
    @qd.kernel
    def k() -> qd.f64:
        b = 0.1
        return qd.cast(b, qd.f64)

    return k()


def case_literal_fits_i64():
    @qd.kernel
    def k() -> qd.i64:
        return 5000000000

    return k()


def case_typed_literals():
    @qd.kernel
    def k() -> tuple[qd.u64, qd.i64, qd.f64, qd.i8]:
        a = qd.u64(18446744073709551615)
        b = qd.i64(-9223372036854775807)
        c = qd.f64(0.1)
        d = qd.i8(100)
        return a, b, c, d

    return k()


def case_typed_literal_wraps_later():
    @qd.kernel
    def k() -> qd.i32:
        d = qd.i8(100)
        d += qd.i8(100)
        return d

    return k()


def case_calling_a_type_casts_an_expression():
    @qd.kernel
    def k(a: qd.f32) -> tuple[qd.i32, qd.i32, qd.i32, qd.f32]:
        return qd.i8(a), qd.u8(a), qd.i16(a * 10), qd.f16(a)

    return k(127.7)


def case_python_casts():
    @qd.kernel
    def k(a: qd.f32, b: qd.i32) -> tuple[qd.i32, qd.f32, qd.u1]:
        return int(a), float(b), bool(b)

    return [k(-2.7, 3), k(2.7, 0)]


def case_arithmetic_of_python_numbers_is_done_first():
    @qd.kernel
    def k() -> qd.i32:
        return 2**40 // 2**20 - 1000000

    return k()


def case_promotion_of_all_pairs():
    types = (*INTS, qd.f16, qd.f32, qd.f64)
    out = {}
    for s in types:
        for t in types:

            @qd.kernel
            def k(a: s, b: t) -> qd.f64:
                c = a * b + a
                c = c + 1.75
                return qd.cast(c, qd.f64)

            out[f"{s} {t}"] = k(10, 10)
    return out


def case_true_division_of_pairs():
    out = {}
    for s in (qd.i8, qd.i32, qd.i64, qd.u64, qd.f16, qd.f32, qd.f64):
        for t in (qd.i8, qd.i32, qd.i64, qd.u64, qd.f16, qd.f32, qd.f64):

            @qd.kernel
            def k(a: s, b: t) -> qd.f64:
                return qd.cast(a / b, qd.f64)

            out[f"{s} {t}"] = k(1, 3)
    return out


def case_unsigned_wins_at_the_same_width():
    @qd.kernel
    def k(a: qd.i32, b: qd.u32) -> qd.f64:
        return qd.cast(a + b, qd.f64)

    @qd.kernel
    def c(a: qd.i32, b: qd.u32) -> qd.i32:
        return qd.cast(a < b, qd.i32)

    @qd.kernel
    def w(a: qd.i64, b: qd.u32) -> qd.f64:
        return qd.cast(a + b, qd.f64)

    return [k(-2, 1), c(-1, 1), w(-2, 1)]


def case_u1_arithmetic():
    @qd.kernel
    def k(a: qd.i32) -> tuple[qd.i32, qd.i32, qd.i32]:
        t = a > 0
        u = a > 1
        return t + u, t + 1, (a > 5) * 3

    return [k(0), k(2), k(6)]


def case_first_assignment_fixes_the_type():
    @qd.kernel
    def k() -> tuple[qd.f32, qd.f32, qd.f32]:
        a = 1
        a = 2.7
        b = 1
        b *= 2.6
        c = 1.0
        c = 3
        return a, b, c / 2

    return k()


def case_annotated_locals():
    @qd.kernel
    def k(n: qd.i32) -> tuple[qd.f64, qd.i32, qd.f32]:
        x: qd.f64 = 0.1
        y: qd.i8 = 300
        z: qd.f32 = n
        return x, y, z / 2

    return k(3)


def case_annotated_local_converts_later_values():
    @qd.kernel
    def k() -> qd.i32:
        x: qd.i16 = 1
        x = 40000
        return x

    return k()


def case_cast_truncates():
    @qd.kernel
    def k(a: qd.f32) -> tuple[qd.i32, qd.i64, qd.i32, qd.f64]:
        return qd.cast(a, qd.i32), qd.cast(a, qd.i64), qd.cast(a, qd.i16), qd.cast(a, qd.f64)

    return [k(2.9), k(-2.9), k(0.1), k(-0.9)]


def case_cast_of_a_real_to_u1():
    @qd.kernel
    def k(a: qd.f32) -> qd.i32:
        return qd.cast(qd.cast(a, qd.u1), qd.i32)

    return [k(0.0), k(0.25), k(2.0)]


def case_f16_arithmetic():
    @qd.kernel
    def k(a: qd.f16, b: qd.f16) -> tuple[qd.f32, qd.f32, qd.f32]:
        return a + b, a * b, a / b

    return [k(0.1, 0.2), k(1000.0, 3.0)]


def case_dtype_from_the_closure():
    real = qd.f64

    @qd.kernel
    def k(a: real) -> real:
        x: real = 0.1
        return x + a

    return k(0.2)


def mistake_integer_literal_too_large():
    """Integer literal 5000000000 exceeded the range of default_ip: i32"""

    @qd.kernel
    def k() -> qd.i64:
        return 5000000000

    k()


def mistake_constant_sum_too_large():
    """exceeded the range of default_ip: i32"""

    @qd.kernel
    def k() -> qd.i32:
        return 0x7FFFFFFF + 1

    k()


def mistake_float_literal_for_an_int_type():
    """Floating-point literals must be annotated with a floating-point type."""

    @qd.kernel
    def k() -> qd.i32:
        a = qd.i32(1.5)
        return a

    k()


def mistake_second_annotation():
    """Static assign cannot have type overloading"""

    @qd.kernel
    def k():
        x: qd.i32 = 1
        x: qd.f32 = 2

    k()


def mistake_string_value():
    """Invalid constant scalar data type: <class 'str'>"""

    @qd.kernel
    def k():
        a = "text"

    k()


@qd.kernel
def takes_an_int(a: qd.i32) -> qd.i32:
    return a


def mistake_float_for_an_int_argument():
    """cannot be converted into required type i32"""
    takes_an_int(1.5)


def mistake_numpy_float_for_an_int_argument():
    takes_an_int(np.float32(1.0))


def mistake_negative_for_unsigned():
    @qd.kernel
    def k(a: qd.u32) -> qd.u32:
        return a

    k(-1)


def mistake_dtype_given_as_text():
    """Invalid data type i32"""
    qd.field("i32", shape=3)


def mistake_text_for_a_number():
    takes_an_int("3")


def mistake_none_for_a_number():
    @qd.kernel
    def k(a: qd.f32) -> qd.f32:
        return a

    k(None)
