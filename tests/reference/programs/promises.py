"""What the reference's documents promise and its code does not keep."""

import numpy as np
import quadrants as qd

INIT = {
    "mistake_index_out_of_range_when_checked": {"check_out_of_bound": True},
    "mistake_field_index_out_of_range_when_checked": {"check_out_of_bound": True},
    "mistake_negative_index_when_checked": {"check_out_of_bound": True},
    "mistake_division_by_zero_under_debug": {"debug": True},
    "mistake_negative_exponent_under_debug": {"debug": True},
}


def mistake_index_out_of_range_when_checked():
    @qd.kernel
    def k(a: qd.types.NDArray[qd.i32, 1], i: qd.i32) -> qd.i32:
        return a[i]

    k(np.zeros(3, np.int32), 3)
    qd.sync()


def mistake_field_index_out_of_range_when_checked():
    f = qd.field(qd.i32, shape=(3, 3))

    @qd.kernel
    def k(i: qd.i32) -> qd.i32:
        return f[1, i]

    k(3)
    qd.sync()


def mistake_negative_index_when_checked():
    @qd.kernel
    def k(a: qd.types.NDArray[qd.i32, 1], i: qd.i32) -> qd.i32:
        return a[i]

    k(np.zeros(3, np.int32), -1)
    qd.sync()


def mistake_host_index_of_an_ndarray():
    a = qd.ndarray(qd.i32, 3)
    a[3]


def mistake_host_index_of_a_field():
    f = qd.field(qd.i32, shape=3)
    f[3]


def mistake_negative_host_index_of_a_field():
    f = qd.field(qd.i32, shape=3)
    f[-1]


def mistake_division_by_a_constant_zero():
    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        return a // 0

    k(3)


def mistake_modulo_of_a_constant_zero():
    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        return a % 0

    k(3)


def mistake_division_by_zero_under_debug():
    @qd.kernel
    def k(a: qd.i32, b: qd.i32) -> qd.i32:
        return a // b

    k(3, 0)
    qd.sync()


def mistake_negative_exponent_under_debug():
    @qd.kernel
    def k(a: qd.i32, b: qd.i32) -> qd.i32:
        return a**b

    k(3, -1)
    qd.sync()


def case_overlapping_arrays():
    @qd.kernel
    def k(a: qd.types.NDArray[qd.i32, 1], b: qd.types.NDArray[qd.i32, 1]):
        qd.loop_config(serialize=True)
        for i in range(b.shape[0]):
            b[i] = a[i] + 1

    a = np.zeros(65, np.int32)
    k(a[:-1], a[1:])
    return a


def case_sparse_structures_are_named():
    out = []
    for make in ("pointer", "bitmasked"):
        x = qd.field(qd.i32)
        try:
            getattr(qd.root, make)(qd.i, 4).place(x)
            x[1] = 3
            out.append(x[1])
        except Exception as error:
            out.append(make in str(error))
    return out


def case_kernel_changes_a_captured_global_after_its_compile():
    table = {"n": 3}

    @qd.kernel
    def k() -> qd.i32:
        return table["n"]

    first = k()
    table["n"] = 5
    return [first, k()]
