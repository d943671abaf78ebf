"""Arrays as arguments: qd.ndarray and NumPy, annotations, element types, orders, host access."""

import numpy as np
import quadrants as qd

vec3 = qd.types.vector(3, qd.f32)
mat2 = qd.types.matrix(2, 2, qd.f32)
INIT = {"mistake_index_out_of_range_under_debug": {"debug": True}}


@qd.kernel
def double(a: qd.types.ndarray()):
    for I in qd.grouped(a):
        a[I] = a[I] * 2


@qd.kernel
def takes_floats(a: qd.types.NDArray[qd.f32, 1]):
    pass


def case_host_access():
    a = qd.ndarray(qd.i32, (2, 3))
    a[1, 2] = 5
    a[0, 0] = True
    b = qd.ndarray(qd.f32, 2)
    b[1] = 2
    return [a[1, 2], a[0, 0], a[0, 1], b[1], a.shape, str(a.dtype), a.to_numpy()]


def case_values_of_each_type():
    out = []
    for t in (qd.i8, qd.i16, qd.i32, qd.i64, qd.u8, qd.u16, qd.u32, qd.u64, qd.f16, qd.f32, qd.f64):
        a = qd.ndarray(t, 3)
        a.fill(3)
        double(a)
        out.append([a[0], a.to_numpy()])
    return out


def case_numpy_of_each_type():
    out = []
    for t in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"):
        a = np.arange(3).astype(t)
        double(a)
        out.append(a)
    return out


def case_annotations():
    @qd.kernel
    def a(x: qd.types.NDArray) -> qd.i32:
        return x.shape[0]

    @qd.kernel
    def b(x: qd.types.ndarray) -> qd.i32:
        return x.shape[0]

    @qd.kernel
    def c(x: qd.types.ndarray(dtype=qd.f32, ndim=1)) -> qd.f32:
        return x[0]

    @qd.kernel
    def d(x: qd.types.NDArray[qd.f32, 1]) -> qd.f32:
        return x[0]

    x = np.array([2.5, 1.0], np.float32)
    return [a(x), b(x), c(x), d(x)]


def case_vector_ndarray():
    v = qd.Vector.ndarray(3, qd.f32, shape=4)

    @qd.kernel
    def k(v: qd.types.ndarray(dtype=vec3, ndim=1)):
        for i in v:
            v[i] = qd.Vector([i, 1.0, 0.5])
            v[i][2] += i
            v[i].x *= 2

    k(v)
    return [v.to_numpy(), v.shape, v.element_shape, v[2], v[1][2]]


def case_matrix_ndarray():
    m = qd.Matrix.ndarray(2, 2, qd.f32, shape=(2, 1))

    @qd.kernel
    def k(m: qd.types.ndarray(dtype=mat2)):
        for i, j in m:
            m[i, j] = qd.Matrix([[1, i], [j, 2]])
            m[i, j] = m[i, j] @ m[i, j]

    k(m)
    return [m.to_numpy(), m.shape, m.element_shape, m[1, 0]]


def case_ndarray_of_a_type():
    v = qd.ndarray(vec3, 3)
    v[1] = [1, 2, 3]
    v[2] = qd.Vector([4, 5, 6])
    v[0][1] = 7
    return [v.to_numpy(), v[1], v[2][0]]


def case_numpy_with_vector_elements():
    a = np.arange(12, dtype=np.float32).reshape(4, 3)

    @qd.kernel
    def k(v: qd.types.ndarray(dtype=vec3, ndim=1)) -> qd.f32:
        s = 0.0
        for i in v:
            v[i] = v[i] + qd.Vector([100.0, 0.0, 1.0])
            s += v[i].norm_sqr()
        return s

    return [k(a), a]


def case_numpy_with_matrix_elements():
    a = np.arange(8, dtype=np.float32).reshape(2, 2, 2)

    @qd.kernel
    def k(m: qd.types.ndarray(dtype=mat2, ndim=1)):
        for i in m:
            m[i] = m[i].transpose()

    k(a)
    return a


def case_run_time_index_of_an_element():
    v = qd.Vector.ndarray(4, qd.i32, shape=2)

    @qd.kernel
    def k(v: qd.types.ndarray(dtype=qd.types.vector(4, qd.i32))) -> qd.i32:
        s = 0
        for i in range(2):
            for j in range(4):
                v[i][j] = i * 10 + j
                s += v[i][3 - j] * j
        return s

    return [k(v), v.to_numpy()]


def case_atomics_on_vector_elements():
    v = qd.Vector.ndarray(2, qd.f32, shape=2)

    @qd.kernel
    def k(v: qd.types.ndarray(dtype=qd.types.vector(2, qd.f32))):
        for i in range(100):
            v[i % 2] += qd.Vector([1.0, i])

    k(v)
    return v.to_numpy()


def case_fill_and_copy():
    a, b = qd.ndarray(qd.f32, (2, 2)), qd.ndarray(qd.f32, (2, 2))
    a.fill(2.5)
    b.copy_from(a)
    a.fill(1)
    v = qd.Vector.ndarray(2, qd.i32, 3)
    v.fill(4)
    return [a.to_numpy(), b.to_numpy(), v.to_numpy()]


def case_from_numpy():
    a = qd.ndarray(qd.f32, (2, 3))
    a.from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3))
    first = a.to_numpy()
    a.from_numpy(np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)) * 2)
    return [first, a.to_numpy()]


def case_gradients():
    a = qd.ndarray(qd.f32, 3, needs_grad=True)
    b = qd.ndarray(qd.f32, 3)
    a.grad.fill(2.0)

    @qd.kernel
    def k(a: qd.types.ndarray(qd.f32, 1, needs_grad=True)):
        for i in a:
            a.grad[i] += i
            a[i] = a.grad[i] * 10

    k(a)
    return [a.to_numpy(), a.grad.to_numpy(), a.grad.shape, b.grad is None]


def case_len_and_index_by_vector():
    a = np.arange(6, dtype=np.int32).reshape(2, 3)

    @qd.kernel
    def k(a: qd.types.ndarray(ndim=2)) -> qd.i32:
        I = qd.Vector([1, 2])
        return a[I] + len(a.shape) * 100

    return k(a)


def case_same_array_twice():
    @qd.kernel
    def k(a: qd.types.NDArray[qd.i32, 1], b: qd.types.NDArray[qd.i32, 1]):
        for i in range(3):
            a[i] = i
            b[i] += 10

    a = np.zeros(3, np.int32)
    k(a, a)
    return a


def case_unsigned_elements():
    @qd.kernel
    def k(a: qd.types.NDArray[qd.u8, 1], b: qd.types.NDArray[qd.u32, 1]):
        for i in a:
            a[i] = a[i] + 200
            b[i] = a[i] - 250

    a, b = np.arange(4, dtype=np.uint8) * 20, np.zeros(4, np.uint32)
    k(a, b)
    return [a, b]


def mistake_dtype_of_numpy():
    """required array has dtype=f32, array with dtype=f64 is provided"""
    takes_floats(np.zeros(3))


def mistake_dtype_of_an_ndarray():
    """Expect element type f32 for argument a, but get i32"""
    takes_floats(qd.ndarray(qd.i32, 3))


def mistake_ndim():
    """ndim=1"""
    takes_floats(np.zeros((4, 3), np.float32))


def mistake_ndim_of_an_ndarray():
    """required ndim=1, but 2d"""
    takes_floats(qd.ndarray(qd.f32, (4, 3)))


def mistake_gradient_required():
    """required needs_grad=True, but False is provided"""

    @qd.kernel
    def k(a: qd.types.ndarray(qd.f32, 1, needs_grad=True)):
        pass

    k(qd.ndarray(qd.f32, 3))


def mistake_number_for_an_array():
    """Invalid type for argument a, got 3"""
    takes_floats(3)


def mistake_list_for_an_array():
    """Invalid type for argument a"""
    takes_floats([1.0, 2.0])


def mistake_array_for_a_number():
    @qd.kernel
    def k(a: qd.f32):
        pass

    k(np.zeros(3, np.float32))


def mistake_strided_numpy():
    takes_floats(np.zeros(6, np.float32)[::2])


def mistake_ndarray_by_template():
    """please annotate your kernel using"""

    @qd.kernel
    def k(a: qd.template()):
        pass

    k(qd.ndarray(qd.i32, 3))


def mistake_shape_of_zero():
    """is not a valid shape for ndarray"""
    qd.ndarray(qd.i32, (3, 0))


def mistake_dtype_as_text():
    qd.ndarray("i32", 3)


def mistake_gradient_of_an_int():
    """i32 is not supported for ndarray with `needs_grad=True`"""
    qd.ndarray(qd.i32, 3, needs_grad=True)


def mistake_from_numpy_shape():
    qd.ndarray(qd.i32, 3).from_numpy(np.zeros(4, np.int32))


def mistake_copy_from_shape():
    qd.ndarray(qd.i32, 3).copy_from(qd.ndarray(qd.i32, 4))


def mistake_copy_from_a_field():
    qd.ndarray(qd.i32, 3).copy_from(qd.field(qd.i32, 3))


def mistake_negative_constant_index():
    """Negative indices are not supported in Quadrants kernels."""

    @qd.kernel
    def k(a: qd.types.NDArray[qd.i32, 1]) -> qd.i32:
        return a[-1]

    k(np.zeros(3, np.int32))


def mistake_too_few_indices():
    """accessed with indices of dim 1"""

    @qd.kernel
    def k(a: qd.types.NDArray[qd.i32, 2]) -> qd.i32:
        return a[0]

    k(np.zeros((3, 2), np.int32))


def mistake_ndarray_assigned_to_a_local():
    """Invalid constant scalar data type"""

    @qd.kernel
    def k(a: qd.types.NDArray[qd.i32, 1]):
        b = a

    k(np.zeros(3, np.int32))


def mistake_element_shape():
    @qd.kernel
    def k(a: qd.types.ndarray(dtype=vec3, ndim=1)):
        pass

    k(np.zeros((4, 2), np.float32))


def mistake_vector_ndarray_of_other_length():
    @qd.kernel
    def k(a: qd.types.ndarray(dtype=vec3, ndim=1)):
        pass

    k(qd.Vector.ndarray(2, qd.f32, 3))


def mistake_index_out_of_range_under_debug():
    @qd.kernel
    def k(a: qd.types.NDArray[qd.i32, 1], i: qd.i32):
        a[i] = 1

    k(np.zeros(3, np.int32), 3)
    qd.sync()


def mistake_numpy_of_text():
    @qd.kernel
    def k(a: qd.types.ndarray()):
        pass

    k(np.array(["a", "b"]))


def mistake_captured_ndarray():
    a = qd.ndarray(qd.i32, 3)

    @qd.kernel
    def k():
        a[0] = 1

    k()
