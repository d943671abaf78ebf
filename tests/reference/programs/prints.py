"""Print and assert in kernels."""

import quadrants as qd

CONSTANT = 7
INIT = {
    "mistake_assert_under_debug": {"debug": True},
    "case_assert_that_holds": {"debug": True},
    "mistake_assert_with_values": {"debug": True},
}


def case_static_print():
    @qd.kernel
    def k():
        qd.static_print("seen", 3)

    k()
    return 0


def case_print_values():
    @qd.kernel
    def k(a: qd.i32, b: qd.f32, c: qd.f64, d: qd.u8):
        print(a, b, c, d, a > 1)

    k(-3, 1.25, 2.5, 200)
    return 0


def case_print_sep_and_end():
    @qd.kernel
    def k(c: qd.f64):
        print("a", -3, 1.25, c, True, sep="|", end="!\n")
        print()
        print("b", end="")
        print("c")

    k(2.5)
    return 0


def case_print_vectors():
    @qd.kernel
    def k():
        print(qd.Vector([1, 2]), qd.Vector([1.5]))
        print(qd.Matrix([[1.5, 2.0], [3.0, 4.0]]))

    k()
    return 0


def case_print_formatted():
    @qd.kernel
    def k(a: qd.i32, b: qd.f32):
        print(f"{a=} {b:.2f} {a:05d}|{b}")
        print(f"text {a + 1} {b * 2:e}")

    k(42, 3.14159)
    return 0


def case_print_wide_and_unsigned():
    @qd.kernel
    def k(a: qd.i64, b: qd.u64, c: qd.u32, d: qd.i8, e: qd.f16):
        print(a, b, c, d, e)

    k(-(2**40), 2**63, 2**32 - 1, -5, 0.5)
    return 0


def case_print_strings_and_constants():
    @qd.kernel
    def k():
        print("100%", CONSTANT, "tab\tend", "{braces}")

    k()
    return 0


def case_print_a_struct():
    s = qd.types.struct(a=qd.i32, b=qd.f32)

    @qd.kernel
    def k():
        x = s(a=1, b=2.5)
        print(x.a, x.b)

    k()
    return 0


def case_assert_that_holds():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        assert n > 0, "must be positive"
        assert n > 0
        return n

    return k(3)


def case_assert_in_release():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        assert n > 0, "must be positive"
        return n + 1

    return k(0)


def mistake_assert_under_debug():
    """must be positive"""

    @qd.kernel
    def k(n: qd.i32):
        assert n > 0, "must be positive"

    k(0)
    qd.sync()


def mistake_assert_with_values():
    """n was -4"""

    @qd.kernel
    def k(n: qd.i32):
        assert n > 0, f"n was {n}"

    k(-4)
    qd.sync()


def mistake_real_assert():
    @qd.kernel
    def k(a: qd.f32):
        assert a

    k(1.0)
