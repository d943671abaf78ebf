"""More of what the reference refuses and we accept, or the other way round."""

import numpy as np
import quadrants as qd

INIT = {"case_and_or_of_bits_without_short_circuit": {"short_circuit_operators": False}}


def case_nested_static():
    @qd.kernel
    def k() -> qd.i32:
        t = 0
        for i in qd.static(qd.static(range(3))):
            t += i + 1
        return t

    return k()


def case_generator_unpacked_in_ndrange():
    @qd.kernel
    def k() -> qd.i32:
        t = 0
        for i, j in qd.ndrange(*(n for n in (2, 3))):
            t += i * 10 + j
        return t

    return k()


def case_fill_with_a_fraction():
    x = qd.field(qd.i32, shape=2)
    x.fill(2.7)
    return x.to_numpy()


def case_fill_with_a_number_that_does_not_fit():
    x = qd.field(qd.u8, shape=2)
    x.fill(300)
    return x.to_numpy()


def case_element_set_to_a_fraction_of_numpy():
    x = qd.field(qd.i32, shape=2)
    x[0] = np.float32(2.5)
    return x[0]


def case_element_set_to_a_whole_number_of_numpy():
    x = qd.field(qd.i32, shape=3)
    v = qd.Vector.ndarray(2, qd.i32, shape=2)
    x[0], x[1], x[2] = np.float32(2), np.array(3.0), np.float16(4)
    v[0] = np.array([5, 6], np.float32)
    v[1][1] = np.float32(7)
    return x.to_numpy(), v.to_numpy()


def mistake_element_set_to_a_fraction():
    """"""
    x = qd.field(qd.i32, shape=2)
    x[0] = 2.5


def case_element_that_does_not_fit():
    x = qd.field(qd.u8, shape=2)
    x[0] = 300
    return x[0]


def case_clamped_indices_of_an_element():
    x = qd.Matrix.ndarray(2, 2, qd.f32, shape=(3, 3))
    x.from_numpy(np.arange(36, dtype=np.float32).reshape(3, 3, 2, 2))
    t = qd.types.ndarray(dtype=qd.types.matrix(2, 2, qd.f32), ndim=2, boundary="clamp")

    @qd.kernel
    def k(x: t, i: qd.i32, j: qd.i32) -> qd.f32:
        return x[1, 2][i, j]

    return k(x, -1, 0), k(x, 0, 1), k(x, 0, 2), k(x, 5, -5)


def case_vectors_of_two_shapes_in_python():
    m = qd.Matrix([[1.0, 2.0], [3.0, 4.0]])
    return (m + qd.Vector([1.0, 2.0])).to_list()


def case_structs_of_equal_members():
    s = qd.types.struct(a=qd.i32, b=qd.f32)
    return s(1, 2.0) == s(1, 2.0), s(1, 2.0) == s(1, 3.0)


def case_vector_compared_with_none():
    return bool(qd.Vector([1, 2]) == None), bool(qd.Vector([1, 2]) != None)  # noqa: E711


def case_arrays_that_share_memory():
    @qd.kernel
    def k(x: qd.types.ndarray(dtype=qd.f32, ndim=2), y: qd.types.ndarray(dtype=qd.f32, ndim=2)):
        for i, j in qd.ndrange(2, 3):
            x[i, j] = i * 10 + j
        y[1, 1] = 99.0

    one, other = np.zeros((2, 3), np.float32, order="F"), np.zeros((3, 3), np.float32)
    k(one, one)
    k(other, other.T)
    return one, other


def case_and_or_of_bits_without_short_circuit():
    @qd.kernel
    def k(a: qd.i32, b: qd.i32) -> qd.i32:
        return (a and b) * 10 + (a or b)

    return k(5, 2), k(6, 3), k(0, 4), k(1, 1)


def case_store_into_a_read_only_array():
    x = np.arange(3, dtype=np.float32)
    x.flags.writeable = False

    @qd.kernel
    def k(x: qd.types.ndarray()):
        x[1] = 5.0

    k(x)
    return x


def case_load_from_a_read_only_array():
    x = np.arange(3, dtype=np.float32)
    x.flags.writeable = False

    @qd.kernel
    def k(x: qd.types.ndarray()) -> qd.f32:
        return x[1] + x[2]

    return k(x)
