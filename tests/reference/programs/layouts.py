"""Layouts of fields: qd.root, nested dense, place, builders, several trees, SOA and AOS."""

import numpy as np
import quadrants as qd


def filled(f):
    @qd.kernel
    def k(f: qd.template()):
        for I in qd.grouped(f):
            f[I] = 0
            for d in qd.static(range(len(f.shape))):
                f[I] = f[I] * 10 + I[d]

    k(f)
    return [f.to_numpy(), f.shape]


def case_levels():
    def places():
        root, i, j, ij = qd.root, qd.i, qd.j, qd.ij
        yield root.dense(i, 4)
        yield root.dense(ij, (2, 3))
        yield root.dense(ij, 3)
        yield root.dense(i, 2).dense(j, 3)
        yield root.dense(j, 3).dense(i, 2)
        yield root.dense(i, 3).dense(i, 2)
        yield root.dense(ij, (2, 3)).dense(ij, (2, 2))
        yield root.dense(i, 2).dense(ij, (3, 2)).dense(j, 2)
        yield root.dense(qd.ijk, (2, 3, 2))
        yield root.dense(qd.axes(0, 1), (2, 3))
        yield root.dense(i, 2).dense(qd.jk, (2, 3))

    out = []
    for place in places():
        f = qd.field(qd.i32)
        place.place(f)
        out.append(filled(f))
    return out


def case_zero_dimensional():
    f = qd.field(qd.i32)
    qd.root.place(f)
    f[None] = 4
    return [f[None], f.shape, f.to_numpy()]


def case_interleaved_fields_of_different_sizes():
    x, y, z = qd.field(qd.i8), qd.field(qd.f64), qd.field(qd.i16)
    qd.root.dense(qd.i, 3).place(x, y, z)

    @qd.kernel
    def k():
        for i in range(3):
            x[i] = i
            y[i] = i * 0.5
            z[i] = -i

    k()
    return [x.to_numpy(), y.to_numpy(), z.to_numpy()]


def case_place_after_place():
    x, y = qd.field(qd.i32), qd.field(qd.i32)
    node = qd.root.dense(qd.i, 3)
    node.place(x)
    node.place(y)
    x[1] = 5
    y[2] = 6
    return [x.to_numpy(), y.to_numpy()]


def case_vector_placed():
    v = qd.Vector.field(3, qd.f32)
    qd.root.dense(qd.i, 2).place(v)
    v[1] = [1, 2, 3]
    return [v.to_numpy(), v.shape]


def case_components_placed_apart():
    v = qd.Vector.field(2, qd.f32)
    for c in range(2):
        qd.root.dense(qd.i, 3).place(v.get_scalar_field(c))
    v[1] = [1, 2]

    @qd.kernel
    def k():
        for i in range(3):
            v[i] += qd.Vector([i, 10.0])

    k()
    return v.to_numpy()


def case_matrix_placed():
    m = qd.Matrix.field(2, 2, qd.i32)
    qd.root.dense(qd.i, 2).dense(qd.j, 2).place(m)

    @qd.kernel
    def k():
        for i, j in m:
            m[i, j] = qd.Matrix([[i, j], [i + j, 1]])

    k()
    return m.to_numpy()


def case_placed_with_an_offset():
    f = qd.field(qd.i32)
    qd.root.dense(qd.ij, (2, 3)).place(f, offset=(-1, 2))

    @qd.kernel
    def k():
        for i, j in f:
            f[i, j] = i * 10 + j

    k()
    return [f.to_numpy(), f[-1, 4]]


def case_struct_for_over_a_node():
    f = qd.field(qd.i32)
    node = qd.root.dense(qd.i, 5)
    node.place(f)

    @qd.kernel
    def k():
        for i in node:
            f[i] = i * 3

    k()
    return f.to_numpy()


def case_builder():
    b = qd.FieldsBuilder()
    x, y = qd.field(qd.i32), qd.field(qd.f32)
    b.dense(qd.ij, (2, 2)).place(x)
    b.dense(qd.i, 3).place(y)
    b.finalize()

    @qd.kernel
    def k():
        for i, j in x:
            x[i, j] = i + j
        for i in y:
            y[i] = i * 0.5

    k()
    return [x.to_numpy(), y.to_numpy()]


def case_several_builders():
    out = []
    for n in range(1, 4):
        b = qd.FieldsBuilder()
        x = qd.field(qd.i32)
        b.dense(qd.i, n).place(x)
        b.finalize()
        x[n - 1] = n
        out.append(x.to_numpy())
    return out


def case_destroyed_tree():
    b = qd.FieldsBuilder()
    x = qd.field(qd.i32)
    b.dense(qd.i, 3).place(x)
    tree = b.finalize()
    x[1] = 4
    first = x.to_numpy()
    tree.destroy()
    return first


def case_structs_aos_and_soa():
    s = qd.types.struct(a=qd.i32, v=qd.types.vector(2, qd.f32))
    x = s.field(shape=3, layout=qd.Layout.AOS)
    y = s.field(shape=3, layout=qd.Layout.SOA)

    @qd.kernel
    def k():
        for i in x:
            x[i].a = i
            x[i].v = qd.Vector([i, 0.5])
            y[i] = x[i]
            y[i].v[1] += i

    k()
    return [x.to_numpy(), y.to_numpy()]


def case_struct_placed():
    s = qd.types.struct(a=qd.i32, b=qd.f32)
    x = s.field()
    qd.root.dense(qd.ij, (2, 2)).place(x)
    x[1, 0].a = 5
    x[1, 1] = s(a=1, b=2.5)
    return [x.a.to_numpy(), x.b.to_numpy(), x.shape]


def case_gradients_placed_by_lazy_grad():
    x = qd.field(qd.f32)
    qd.root.dense(qd.i, 3).place(x)
    qd.root.lazy_grad()
    x.grad[1] = 2.0
    return [x.grad.to_numpy(), x.grad.shape]


def case_gradient_placed_by_hand():
    x = qd.field(qd.f32, needs_grad=True)
    qd.root.dense(qd.i, 3).place(x, x.grad)
    x[0] = 1.0
    x.grad[1] = 2.0
    return [x.to_numpy(), x.grad.to_numpy()]


def case_column_and_row_order_agree():
    a = qd.field(qd.f32, shape=(3, 4), order="ij")
    b = qd.field(qd.f32, shape=(3, 4), order="ji")
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    a.from_numpy(data)
    b.from_numpy(data)

    @qd.kernel
    def k() -> qd.f32:
        s = 0.0
        for i, j in a:
            s += qd.abs(a[i, j] - b[i, j])
        return s

    return k()


def case_odd_extents():
    f = qd.field(qd.i32)
    qd.root.dense(qd.ij, (3, 5)).dense(qd.ij, (3, 7)).place(f)

    @qd.kernel
    def k() -> qd.i32:
        n = 0
        for i, j in f:
            f[i, j] = i * 1000 + j
            n += 1
        return n

    return [k(), f.shape, f.to_numpy()]


def mistake_placed_twice():
    """has been placed"""
    f = qd.field(qd.i32)
    qd.root.dense(qd.i, 3).place(f)
    qd.root.dense(qd.i, 3).place(f)


def mistake_builder_not_finalized():
    f = qd.field(qd.i32)
    b = qd.FieldsBuilder()
    b.dense(qd.i, 3).place(f)
    f[0] = 1


def mistake_builder_used_after_finalize():
    b = qd.FieldsBuilder()
    f, g = qd.field(qd.i32), qd.field(qd.i32)
    b.dense(qd.i, 3).place(f)
    b.finalize()
    b.dense(qd.i, 3).place(g)


def mistake_dense_of_zero():
    f = qd.field(qd.i32)
    qd.root.dense(qd.i, 0).place(f)


def mistake_extents_of_other_length():
    f = qd.field(qd.i32)
    qd.root.dense(qd.ij, (2, 3, 4)).place(f)


def mistake_host_access_of_an_unplaced_field():
    f = qd.field(qd.f32)
    f[0]


def mistake_unplaced_struct():
    """These field(s) are not placed"""
    s = qd.types.struct(a=qd.i32)
    f = s.field()

    @qd.kernel
    def k():
        f[0].a = 1

    k()
