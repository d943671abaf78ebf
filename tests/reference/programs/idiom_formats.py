"""Texts with values of run time: ``format``, ``%``, specs of Python and of C."""

import quadrants as qd

INIT = {
    "mistake_assert_with_a_percent_format": {"debug": True},
    "mistake_assert_with_a_format_call": {"debug": True},
    "mistake_assert_with_several_values": {"debug": True},
    "mistake_assert_with_a_spec": {"debug": True},
}


def case_print_format_call():
    @qd.kernel
    def k(x: qd.f32, n: qd.i32):
        print("{}".format(x))
        print("{} and {}".format(n, x))
        print("{:.2f}|{:d}".format(x, n))
        print("{1} {0}".format(n, x))
        print("{a} {b}".format(a=n, b=x))
        print("{{}} {}".format(n))

    k(1.5, 3)
    return 0


def case_print_format_specs():
    @qd.kernel
    def k(x: qd.f32, n: qd.i32):
        print(f"{x:.10f}")
        print(f"{n:i}")
        print(f"{n:d} {x:f} {x:e} {x:g}")
        print("{:i} {:5d}".format(n, n))

    k(1.5, 3)
    return 0


def case_print_precision_of_integers():
    @qd.kernel
    def k(n: qd.i32):
        print(f"{n:.10d}")
        print(f"{n:.3i}")

    k(3)
    k(-3)
    return 0


def case_print_format_of_vectors():
    @qd.kernel
    def k(v: qd.types.vector(2, qd.f32)):
        print("{}".format(v))
        print(f"{v:.2f}")

    k(qd.Vector([1.5, 2.0]))
    return 0


def case_print_percent():
    name = "depth"

    @qd.kernel
    def k():
        print("%s: %d of %.2f" % (name, 3, 1.5))

    k()
    return 0


def mistake_assert_with_a_percent_format():
    """x[3] of 7"""

    @qd.kernel
    def k(i: qd.i32, n: qd.i32):
        assert i > n, "x[%d] of %d" % (i, n)

    k(3, 7)
    qd.sync()


def mistake_assert_with_a_format_call():
    """x[3] of 7"""

    @qd.kernel
    def k(i: qd.i32, n: qd.i32):
        assert i > n, "x[{}] of {}".format(i, n)

    k(3, 7)
    qd.sync()


def mistake_assert_with_several_values():
    """got 3"""

    @qd.kernel
    def k(i: qd.i32):
        assert i > 7, "got %d" % i

    k(3)
    qd.sync()


def mistake_assert_with_a_spec():
    """got 1.5"""

    @qd.kernel
    def k(x: qd.f32):
        assert x > 7, f"got {x:.2f}"

    k(1.5)
    qd.sync()


def case_print_percent_of_run_time():
    @qd.kernel
    def k(a: qd.i32, x: qd.f32):
        print("%d" % a)
        print("%5d|%-5d|%05d|%.3f|%e|%s|%%" % (a, a, a, x, x, a))
        print("%(a)d %(b)s" % {"a": a, "b": "text"})

    k(4, 1.5)
    return 0


def case_texts_in_variables():
    @qd.kernel
    def k(a: qd.i32, x: qd.f32):
        s = f"{a} {x}"
        print(s)
        print("sum " + str(a + 1) + "!", repr(a), format(x, ".1f"))
        print(", ".join([str(a), str(x), "end"]))

    k(4, 1.5)
    return 0


def case_print_padded():
    @qd.kernel
    def k(a: qd.i32):
        print("{:>5d}|{:<5d}|{:05d}|{:+d}|{:6.3i}|".format(a, a, a, a, a))

    k(4)
    return 0
