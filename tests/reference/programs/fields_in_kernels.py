"""Fields in kernels: elements, struct-for, vectors, shapes, mistakes."""

import quadrants as qd

INIT = {"mistake_kernel_index_out_of_range_under_debug": {"debug": True}}


def case_zero_dimensional_in_kernels():
    f = qd.field(qd.f32, shape=())
    g = qd.field(qd.i32, shape=())

    @qd.kernel
    def k():
        f[None] = 2.5
        g[()] = 3
        f[None] += g[None]

    k()
    return [f[None], g[None]]


def case_index_by_a_vector():
    f = qd.field(qd.i32, shape=(3, 4))

    @qd.kernel
    def k():
        for i, j in qd.ndrange(3, 4):
            I = qd.Vector([i, j])
            f[I] = i - j
            J = qd.Vector([0, j])
            f[J] += 1

    k()
    return f.to_numpy()


def case_mixed_index_of_a_vector_and_a_number():
    f = qd.field(qd.i32, shape=(2, 3, 4))

    @qd.kernel
    def k():
        for I in qd.grouped(qd.ndrange(2, 3)):
            for m in range(4):
                f[I, m] = I[0] * 100 + I[1] * 10 + m

    k()
    return f.to_numpy()


def case_shape_is_a_constant_in_kernels():
    f = qd.field(qd.i32, shape=(3, 4))

    @qd.kernel
    def k() -> qd.i32:
        n = 0
        for i in qd.static(range(f.shape[0])):
            n += f.shape[1] + i
        return n * 100 + len(f.shape)

    return k()


def case_struct_for_in_a_function():
    f = qd.field(qd.i32, shape=6)

    @qd.func
    def put(x: qd.template()):
        for i in x:
            x[i] = i * i

    @qd.kernel
    def k(x: qd.template()):
        put(x)

    k(f)
    return f.to_numpy()


def case_struct_for_under_if_is_serial():
    f = qd.field(qd.i32, shape=5)

    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        s = 0
        if n > 0:
            for i in f:
                f[i] = i
                s = s * 10 + i
        return s

    return [k(1), f.to_numpy()]


def case_matrix_field_in_kernels():
    m = qd.Matrix.field(2, 2, qd.f32, shape=3)

    @qd.kernel
    def k():
        for i in m:
            m[i] = qd.Matrix([[1, i], [i, 2]])
            m[i][0, 1] *= 2
        m[2] = m[1] @ m[0]

    k()
    return m.to_numpy()


def case_captured_and_passed():
    f = qd.field(qd.i32, shape=3)
    g = qd.field(qd.i32, shape=3)

    @qd.kernel
    def k(x: qd.template()):
        for i in x:
            x[i] += f[i] + 1

    k(g)
    k(f)
    k(g)
    return [f.to_numpy(), g.to_numpy()]


def case_added_after_a_kernel_ran():
    f = qd.field(qd.i32, shape=3)

    @qd.kernel
    def k(x: qd.template()):
        for i in x:
            x[i] = i + 1

    k(f)
    g = qd.field(qd.i32, shape=5)
    k(g)
    return [f.to_numpy(), g.to_numpy()]


def case_narrow_types_in_kernels():
    a = qd.field(qd.i8, shape=3)
    b = qd.field(qd.u16, shape=3)
    c = qd.field(qd.f16, shape=3)

    @qd.kernel
    def k():
        for i in a:
            a[i] = 100 + 50 * i
            b[i] = -i
            c[i] = i * 0.1

    k()
    return [a.to_numpy(), b.to_numpy(), c.to_numpy()]


def mistake_kernel_index_out_of_range_under_debug():
    f = qd.field(qd.i32, shape=4)

    @qd.kernel
    def k(i: qd.i32):
        f[i] = 1

    k(4)
    qd.sync()


def mistake_index_count_in_a_kernel():
    """Field with dim 2 accessed with indices of dim 1"""
    f = qd.field(qd.i32, shape=(2, 3))

    @qd.kernel
    def k():
        f[1] = 1

    k()


def mistake_real_index():
    """indices must be integers, however 'f32' is provided as index 0"""
    f = qd.field(qd.i32, shape=4)

    @qd.kernel
    def k(x: qd.f32):
        f[x] = 1

    k(1.0)
