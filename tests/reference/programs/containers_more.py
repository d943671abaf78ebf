"""Containers at their edges: exchange with NumPy in every order, host access, copies, layouts."""

import numpy as np
import quadrants as qd

vec2 = qd.types.vector(2, qd.f32)
Inner = qd.types.struct(a=qd.i32, v=vec2)
Outer = qd.types.struct(inner=Inner, m=qd.types.matrix(2, 2, qd.f32), b=qd.u8)
DATA = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def read(f):
    @qd.kernel
    def k(f: qd.template(), out: qd.types.NDArray[qd.f32, 3]):
        for I in qd.grouped(out):
            out[I] = f[I]

    out = np.zeros((2, 3, 4), np.float32)
    k(f, out)
    return out


def case_from_numpy_into_each_order():
    out = []
    for order in ("ijk", "ikj", "jik", "jki", "kij", "kji"):
        f = qd.field(qd.f32, shape=(2, 3, 4), order=order)
        f.from_numpy(DATA)
        out.append([bool((f.to_numpy() == DATA).all()), bool((read(f) == DATA).all()), f[1, 2, 3]])
    return out


def case_from_numpy_of_each_order():
    f = qd.field(qd.f32, shape=(2, 3, 4))
    out = []
    for a in (np.asfortranarray(DATA), DATA[::-1], DATA[:, ::-1, :], DATA.transpose(0, 1, 2)):
        f.from_numpy(a)
        out.append(f.to_numpy())
    return out


def case_from_numpy_of_other_types():
    f = qd.field(qd.i16, shape=4)
    out = []
    for a in (np.array([1.9, -1.9, 3, 4]), np.arange(4, dtype=np.uint8), np.array([True] * 4)):
        f.from_numpy(a)
        out.append(f.to_numpy())
    return out


def case_to_numpy_with_a_type():
    f = qd.field(qd.f32, shape=3)
    f.from_numpy(np.array([0.5, 1.5, -2.5], np.float32))
    v = qd.Vector.field(2, qd.i32, shape=2)
    v.fill(3)
    return [f.to_numpy(dtype=np.int32), f.to_numpy(dtype=np.float64), v.to_numpy(dtype=np.float32)]


def case_fields_of_each_type_keep_their_limits():
    out = []
    for t, low, high in (
        (qd.i8, -128, 127), (qd.i16, -32768, 32767), (qd.i32, -(2**31), 2**31 - 1),
        (qd.i64, -(2**63), 2**63 - 1), (qd.u8, 0, 255), (qd.u16, 0, 65535), (qd.u32, 0, 2**32 - 1),
        (qd.u64, 0, 2**64 - 1),
    ):  # fmt: skip
        f = qd.field(t, shape=2)
        f[0], f[1] = low, high
        out.append([f[0], f[1], f.to_numpy()])
    return out


def case_host_writes_are_seen_by_kernels_and_back():
    f = qd.field(qd.i32, shape=3)

    @qd.kernel
    def k():
        for i in f:
            f[i] = f[i] * 2 + 1

    out = []
    for i in range(3):
        f[i] = i
        k()
        out.append([f[j] for j in range(3)])
    return out


def case_struct_field_to_numpy():
    f = Outer.field(shape=(2,))

    @qd.kernel
    def k():
        for i in f:
            f[i].inner.a = i
            f[i].inner.v = vec2(i, 0.5)
            f[i].m = qd.Matrix([[i, 1], [2, 3]])
            f[i].b = i + 250

    k()
    return f.to_numpy()


def case_struct_field_from_numpy():
    f = Outer.field(shape=(2,))
    f.from_numpy({
        "inner": {"a": np.array([5, 6], np.int32), "v": np.ones((2, 2), np.float32)},
        "m": np.arange(8, dtype=np.float32).reshape(2, 2, 2),
        "b": np.array([1, 2], np.uint8),
    })  # fmt: skip
    return [f[0].inner.a, f[1].m, f[1].b, f[0].inner.v]


def case_struct_field_host_access():
    f = Outer.field(shape=(2, 2))
    f[1, 0].inner.v[1] = 2.5
    f[0, 1].m[1, 0] = 4.5
    f[1, 1].b = 200
    f[1, 1].inner = Inner(a=3, v=[1, 2])
    return [f[1, 0].inner.v, f[0, 1].m, f[1, 1].b, f[1, 1].inner.a, f.inner.v.to_numpy()]


def case_struct_field_of_shape_nothing():
    f = Inner.field(shape=())
    f[None].a = 4
    f[None].v = [1, 2]

    @qd.kernel
    def k() -> qd.f32:
        f[None].a += 1
        return f[None].a + f[None].v.sum()

    return [k(), f[None].a, f.to_numpy()]


def case_copy_between_layouts():
    a = qd.field(qd.f32, shape=(2, 3))
    b = qd.field(qd.f32, shape=(2, 3), order="ji")
    c = qd.field(qd.f32)
    qd.root.dense(qd.j, 3).dense(qd.i, 2).place(c)
    a.from_numpy(DATA[0, :2, :3])
    b.copy_from(a)
    c.copy_from(b)
    return [b.to_numpy(), c.to_numpy(), c.shape]


def case_copy_of_vectors_and_matrices():
    a, b = qd.Vector.field(2, qd.f32, shape=2), qd.Vector.field(2, qd.f32, shape=2)
    m, n = qd.Matrix.field(2, 2, qd.i32, shape=()), qd.Matrix.field(2, 2, qd.i32, shape=())
    a[1] = [1, 2]
    m[None] = [[1, 2], [3, 4]]
    b.copy_from(a)
    n.copy_from(m)
    return [b.to_numpy(), n.to_numpy()]


def case_fill_of_matrices():
    m = qd.Matrix.field(2, 2, qd.f32, shape=2)
    m.fill(qd.Matrix([[1, 2], [3, 4]]))
    first = m.to_numpy()
    m.fill([[5, 6], [7, 8]])
    return [first, m.to_numpy()]


def case_fill_of_vectors_in_a_kernel():
    v = qd.Vector.field(2, qd.f32, shape=3)

    @qd.kernel
    def k():
        for i in v:
            v[i].fill(2.5)

    k()
    return v.to_numpy()


def case_scalar_field_of_a_vector_field():
    v = qd.Vector.field(3, qd.f32, shape=2)
    v.get_scalar_field(1).fill(4)

    @qd.kernel
    def k(c: qd.template()):
        for i in c:
            c[i] += i

    k(v.get_scalar_field(2))
    return v.to_numpy()


def case_offset_and_order_together():
    f = qd.field(qd.i32, shape=(3, 2), offset=(-1, 4), order="ji")

    @qd.kernel
    def k():
        for i, j in f:
            f[i, j] = i * 10 + j

    k()
    return [f.to_numpy(), f[1, 5], f[-1, 4]]


def case_offset_of_matrices_and_structs():
    m = qd.Matrix.field(2, 2, qd.f32, shape=2, offset=-1)
    s = Inner.field(shape=(2, 2), offset=(1, -1))

    @qd.kernel
    def k():
        for i in m:
            m[i] = qd.Matrix([[i, 0], [0, 1]])
        for I in qd.grouped(s):
            s[I].a = I[0] * 10 + I[1]

    k()
    return [m.to_numpy(), s.a.to_numpy(), s[2, -1].a]


def case_large_blocks_of_small_extent():
    f, g = qd.field(qd.i32), qd.field(qd.i8)
    block = qd.root.dense(qd.ij, (3, 2)).dense(qd.ij, (4, 8))
    block.place(f, g)

    @qd.kernel
    def k():
        for i, j in f:
            f[i, j] = i * 100 + j
            g[i, j] = i - j

    k()
    return [f.to_numpy(), g.to_numpy(), f[11, 15]]


def case_loop_bound_from_a_field():
    n, total = qd.field(qd.i32, shape=()), qd.field(qd.i32, shape=())
    n[None] = 7

    @qd.kernel
    def k():
        for i in range(n[None]):
            total[None] += i
        for i in range(total[None] // 10, n[None]):
            total[None] += 100

    k()
    return total[None]


def case_fields_by_list_and_dict():
    fields = {"a": qd.field(qd.i32, shape=2), "b": qd.field(qd.i32, shape=2)}
    many = [qd.field(qd.i32, shape=2) for _ in range(2)]

    @qd.kernel
    def k():
        for i in range(2):
            fields["a"][i] = i + 1
            fields["b"][i] = fields["a"][i] * 10
            for j in qd.static(range(2)):
                many[j][i] = i + j * 100

    k()
    return [fields["b"].to_numpy(), [f.to_numpy() for f in many]]


def case_ndarray_shapes_of_one_kernel():
    @qd.kernel
    def k(a: qd.types.NDArray[qd.i32, 2]) -> qd.i32:
        for i, j in a:
            a[i, j] = i * a.shape[1] + j
        return a.shape[0] * a.shape[1]

    out = []
    for shape in ((1, 1), (3, 2), (2, 5)):
        a = np.zeros(shape, np.int32)
        out.append([k(a), a])
    return out


def case_fortran_arrays_of_three_axes():
    @qd.kernel
    def k(a: qd.types.NDArray[qd.f32, 3], b: qd.types.NDArray[qd.f32, 3]):
        for I in qd.grouped(a):
            b[I] = a[I] * 2 + I[2]

    a, b = np.asfortranarray(DATA.copy()), np.zeros((2, 3, 4), np.float32, order="F")
    k(a, b)
    return [np.ascontiguousarray(b), b.flags.f_contiguous]


def case_read_only_arrays():
    @qd.kernel
    def k(a: qd.types.NDArray[qd.f32, 1]) -> qd.f32:
        s = 0.0
        for i in a:
            s += a[i]
        return s

    a = np.ones(4, np.float32)
    a.setflags(write=False)
    return k(a)


def case_ndarray_host_access_of_elements():
    v = qd.Vector.ndarray(2, qd.f32, 3)
    m = qd.Matrix.ndarray(2, 2, qd.i32, (2, 2))
    v[1] = [1, 2]
    v[2][0] = 5
    m[1, 0][1, 1] = 7
    m[0, 1] = [[1, 2], [3, 4]]
    return [v.to_numpy(), v[1], v[2].x, m[1, 0], m.to_numpy()]


def case_ndarray_from_numpy_with_elements():
    v = qd.Vector.ndarray(2, qd.f32, 3)
    v.from_numpy(np.arange(6, dtype=np.float32).reshape(3, 2))
    w = qd.Vector.ndarray(2, qd.f32, 3)
    w.copy_from(v)
    return [v[2], w.to_numpy()]


def case_repr_and_str():
    f = qd.field(qd.i32, shape=3)
    f[1] = 2
    return str(f)


def mistake_negative_host_index():
    qd.field(qd.i32, shape=3)[3, 4]


def mistake_vector_of_other_length_into_a_field():
    v = qd.Vector.field(3, qd.f32, shape=2)
    v[0] = [1, 2]


def mistake_from_numpy_of_vectors():
    qd.Vector.field(3, qd.f32, shape=2).from_numpy(np.zeros((2, 2), np.float32))


def mistake_fill_with_text():
    qd.field(qd.i32, shape=3).fill("x")


def mistake_set_text():
    qd.field(qd.i32, shape=3)[0] = "x"


def mistake_copy_from_an_array():
    qd.field(qd.i32, shape=3).copy_from(np.zeros(3, np.int32))


def mistake_struct_of_unknown_member_from_numpy():
    f = Inner.field(shape=2)
    f.from_numpy({"zzz": np.zeros(2)})


def mistake_order_with_a_letter_twice():
    qd.field(qd.i32, shape=(2, 3), order="ii")


def mistake_layout_without_elements():
    qd.field(qd.i32, shape=-3)
