"""Fields: declaration, access from Python, layouts, offsets, fill, copies, gradients."""

import numpy as np
import quadrants as qd

INIT = {"mistake_host_index_out_of_range_under_debug": {"debug": True}}


def case_shapes():
    a = qd.field(qd.i32, shape=4)
    b = qd.field(qd.f32, shape=(2, 3))
    c = qd.field(qd.u8, shape=())
    return [a.shape, b.shape, c.shape, str(a.dtype), str(b.dtype), a.layout, b.layout]


def case_zero_initialised():
    f = qd.field(qd.f32, shape=(2, 3))
    return f.to_numpy()


def case_host_access():
    f = qd.field(qd.i32, shape=(2, 3))
    g = qd.field(qd.f32, shape=4)
    z = qd.field(qd.f64, shape=())
    f[1, 2] = 7
    f[0, 0] = True
    g[3] = 2
    z[None] = 0.1
    first = z[None]
    z[()] = 0.2
    return [f[1, 2], f[0, 0], f[0, 1], g[3], first, z[()], f.to_numpy()]


def case_host_values_of_each_type():
    out = []
    for t in (qd.i8, qd.i16, qd.i32, qd.i64, qd.u8, qd.u16, qd.u32, qd.u64):
        f = qd.field(t, shape=2)
        f[1] = 100
        out.append([f[0], f[1], f.to_numpy()])
    for t in (qd.f16, qd.f32, qd.f64):
        f = qd.field(t, shape=2)
        f[1] = 1.1
        out.append([f[0], f[1], f.to_numpy()])
    return out


def case_host_u1():
    f = qd.field(qd.u1, shape=3)
    f[1] = True
    f[2] = 1
    return [f[0], f[1], f[2]]


def case_host_index_types():
    f = qd.field(qd.i32, shape=(2, 3))
    f[np.int64(1), np.int32(2)] = 5
    return [f[1, 2], f[(1, 2)]]


def case_fill():
    f = qd.field(qd.i32, shape=(2, 2))
    g = qd.field(qd.f32, shape=3)
    v = qd.Vector.field(2, qd.f32, shape=2)
    m = qd.Matrix.field(2, 2, qd.i32, shape=())
    f.fill(7)
    g.fill(1.5)
    v.fill(2.5)
    m.fill(3)
    first = v.to_numpy()
    v.fill(qd.Vector([1.0, 2.0]))
    return [f.to_numpy(), g.to_numpy(), first, v.to_numpy(), m.to_numpy()]


def case_from_and_to_numpy():
    f = qd.field(qd.f32, shape=(2, 3))
    f.from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3))
    first = f.to_numpy()
    f.from_numpy(np.arange(6).reshape(2, 3) * 2)
    return [first, f.to_numpy(), f.to_numpy(dtype=np.float64), f.to_numpy(np.int32)]


def case_from_numpy_of_other_orders():
    f = qd.field(qd.f32, shape=(2, 3))
    f.from_numpy(np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)))
    first = f.to_numpy()
    f.from_numpy(np.arange(12, dtype=np.float32).reshape(2, 6)[:, ::2])
    return [first, f.to_numpy()]


def case_from_and_to_numpy_of_vectors():
    v = qd.Vector.field(3, qd.f32, shape=2)
    m = qd.Matrix.field(2, 3, qd.i32, shape=(2, 1))
    v.from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3))
    m.from_numpy(np.arange(12, dtype=np.int32).reshape(2, 1, 2, 3))
    return [v.to_numpy(), m.to_numpy(), v[1], m[1, 0]]


def case_copy_from_other_type():
    a, b = qd.field(qd.f32, shape=3), qd.field(qd.i32, shape=3)
    a.from_numpy(np.array([1.9, -1.9, 3], np.float32))
    b.copy_from(a)
    return b.to_numpy()


def case_vector_field_host_access():
    v = qd.Vector.field(3, qd.f32, shape=(2, 2))
    v[0, 1] = [1, 2, 3]
    v[1, 1] = qd.Vector([4.0, 5.0, 6.0])
    v[1, 0][2] = 9.5
    v[0, 0].y = 2.5
    return [v[0, 1], v[1, 1][1], v[1, 0], v[0, 0].y, v.to_numpy(), v.shape, v.n, v.m]


def case_matrix_field_host_access():
    m = qd.Matrix.field(2, 3, qd.f32, shape=2)
    m[0] = [[1, 2, 3], [4, 5, 6]]
    m[1][0, 2] = 7.5
    return [m[0], m[0][1, 2], m.to_numpy(), m.n, m.m]


def case_matrix_field_of_shape_nothing():
    m = qd.Matrix.field(2, 2, qd.f32, shape=())
    v = qd.Vector.field(2, qd.i32, shape=())
    m[None] = [[1, 2], [3, 4]]
    v[None] = [5, 6]
    return [m[None], v[None], m[None][1, 0], v.to_numpy()]


def case_order_of_three_axes():
    f = qd.field(qd.i32, shape=(2, 3, 4), order="kij")

    @qd.kernel
    def k():
        for I in qd.grouped(f):
            f[I] = I[0] * 100 + I[1] * 10 + I[2]

    k()
    return [f.to_numpy(), f.layout]


def case_offset_of_two_axes():
    f = qd.field(qd.i32, shape=(2, 3), offset=(-1, 5))
    v = qd.Vector.field(2, qd.f32, shape=(2, 2), offset=(3, -1))

    @qd.kernel
    def k():
        for i, j in f:
            f[i, j] = i * 100 + j
        for I in qd.grouped(v):
            v[I] = I * 1.5

    k()
    return [f.to_numpy(), f[-1, 7], v.to_numpy(), v[4, -1]]


def case_offset_from_numpy():
    f = qd.field(qd.f32, shape=3, offset=10)
    f.from_numpy(np.array([1, 2, 3], np.float32))
    return [f[10], f[12]]


def case_gradient_fields():
    x = qd.field(qd.f32, shape=3, needs_grad=True)
    y = qd.field(qd.f32, shape=3)
    x.grad[1] = 2.5

    @qd.kernel
    def k():
        for i in x:
            x.grad[i] += i

    k()
    return [x.grad.to_numpy(), x.grad.shape, x.has_grad() if hasattr(x, "has_grad") else None]


def mistake_shape_of_zero():
    """Every dimension of a Quadrants field should be positive"""
    qd.field(qd.i32, shape=(3, 0))


def mistake_unplaced():
    """These field(s) are not placed"""
    f = qd.field(qd.i32)

    @qd.kernel
    def k():
        f[0] = 1

    k()


def mistake_too_many_dimensions():
    """Too many dimensions"""
    qd.field(qd.i32, shape=(1,) * 13)


def mistake_host_index_count():
    """Slicing is not supported on qd.field"""
    f = qd.field(qd.i32, shape=(2, 3))
    f[1]


def mistake_host_slice():
    f = qd.field(qd.i32, shape=4)
    f[1:2]


def mistake_host_float_index():
    f = qd.field(qd.i32, shape=4)
    f[1.5]


def mistake_host_float_into_an_int():
    f = qd.field(qd.i32, shape=4)
    f[0] = 1.5


def mistake_host_index_out_of_range_under_debug():
    f = qd.field(qd.i32, shape=4)
    f[4]


def mistake_host_loop():
    """Struct for is only available in Quadrants scope"""
    f = qd.field(qd.i32, shape=4)
    for _ in f:
        pass


def mistake_from_numpy_shape():
    f = qd.field(qd.i32, shape=4)
    f.from_numpy(np.zeros(5, np.int32))


def mistake_copy_from_shape():
    a, b = qd.field(qd.i32, shape=4), qd.field(qd.i32, shape=5)
    a.copy_from(b)


def mistake_gradient_of_an_int():
    """i32 is not supported for field with `needs_grad=True`"""
    qd.field(qd.i32, shape=3, needs_grad=True)


def mistake_offset_without_shape():
    qd.field(qd.i32, offset=3)


def mistake_offset_of_other_length():
    qd.field(qd.i32, shape=(3, 4), offset=3)


def mistake_order_of_other_length():
    qd.field(qd.i32, shape=(3, 4), order="i")


def mistake_real_dimension():
    qd.field(qd.i32, shape=(3.5,))


def mistake_field_as_a_number():
    f = qd.field(qd.i32, shape=())

    @qd.kernel
    def k(a: qd.i32):
        pass

    k(f)
