"""Arrays, fields of each layout, tensors, and their exchange with NumPy."""

import numpy as np

from .... import engine as qd
from ..feature import Group
from .kit import F32, I32, filled, of, zeros

arrays = Group("arrays", "Arrays and tensors")


@arrays("NumPy arrays are written in place", [[0, 2, 4]])
def host_arrays():
    @qd.kernel
    def k(x: I32):
        for i in x:
            x[i] = 2 * i

    return [filled(k, zeros(qd.i32, 3))]


@arrays("arrays with no axes up to four", [7, [0, 1], [[0, 1], [10, 11]], 123, 1110])
def axes():
    types = qd.types

    @qd.kernel
    def k(a: types.NDArray[qd.i32, 0], b: I32, c: types.NDArray[qd.i32, 2],
          d: types.NDArray[qd.i32, 3], e: types.NDArray[qd.i32, 4]):  # fmt: skip
        a[None] = 7
        for i in b:
            b[i] = i
        for i, j in c:
            c[i, j] = i * 10 + j
        for i, j, n in d:
            d[i, j, n] = i * 100 + j * 10 + n
        for i, j, n, m in e:
            e[i, j, n, m] = i * 1000 + j * 100 + n * 10 + m

    a, b, c = qd.ndarray(qd.i32, ()), zeros(qd.i32, 2), zeros(qd.i32, 2, 2)
    d, e = zeros(qd.i32, 2, 3, 4), zeros(qd.i32, 2, 2, 2, 2)
    k(a, b, c, d, e)
    return [a.to_numpy(), b, c, d[1, 2, 3], e[1, 1, 1, 0]]


@arrays("qd.ndarray: shape, fill, elements, copies", [[5, 5, 9], [5, 5, 5], 9, [3]])
def ndarrays():
    x, y = qd.ndarray(qd.i32, 3), qd.ndarray(qd.i32, 3)
    x.fill(5)
    y.copy_from(x)
    x[2] = 9
    return [x.to_numpy(), y.to_numpy(), x[2], list(x.shape)]


@arrays("extents in kernels", [[3, 4, 2, 12]])
def extents():
    @qd.kernel
    def k(x: qd.types.NDArray[qd.f32, 2], out: I32):
        out[0] = x.shape[0]
        out[1] = x.shape[1]
        out[2] = len(x.shape)
        out[3] = x.shape[0] * x.shape[1]

    return [filled(k, zeros(qd.f32, 3, 4), zeros(qd.i32, 4))]


@arrays("arrays without elements", [0, [7]])
def empty_arrays():
    @qd.kernel
    def k(x: I32, y: I32) -> qd.i32:
        for i in x:
            y[0] = i
        return x.shape[0]

    y = of(qd.i32, 7)
    return [k(zeros(qd.i32, 0), y), y]


@arrays("one array for two parameters", [6, 6])
def same_array():
    @qd.kernel
    def k(x: I32, y: I32) -> qd.i32:
        before = x[0]
        y[0] = before + 1
        return x[0]

    x = of(qd.i32, 5)
    return [k(x, x), x[0]]


@arrays("arrays of vectors and of matrices", [[[3.0, 6.0], [0.0, 0.0]], [[1.0, 2.0], [3.0, 4.0]]])
def compound_arrays():
    vec, mat = qd.types.vector(2, qd.f32), qd.types.matrix(2, 2, qd.f32)

    @qd.kernel
    def k(v: qd.types.ndarray(dtype=vec, ndim=1), m: qd.types.ndarray(dtype=mat, ndim=1)):
        for i in range(1):
            v[0] += vec(1.0, 2.0) * 3.0
            m[1] = mat(1.0, 2.0, 3.0, 4.0)

    v, m = qd.Vector.ndarray(2, qd.f32, 2), qd.Matrix.ndarray(2, 2, qd.f32, 2)
    k(v, m)
    return [v.to_numpy(), m.to_numpy()[1]]


@arrays("indices out of range are clamped where the annotation says so", [[10, 10, 12, 12]])
def clamped():
    @qd.kernel
    def k(x: qd.types.ndarray(dtype=qd.i32, ndim=1, boundary="clamp"), at: I32, out: I32):
        for i in out:
            out[i] = x[at[i]]

    return [filled(k, of(qd.i32, 10, 11, 12), of(qd.i32, -5, 0, 2, 99), zeros(qd.i32, 4))]


@arrays("tensors of both backends for one parameter, and None", [[-1, -1], [0, 0]])
def tensors():
    @qd.kernel
    def k(x: qd.Tensor, y: qd.Tensor):
        for i in range(x.shape[0]):
            if qd.static(y is not None):
                x[i] = y[i] + 1
            else:
                x[i] = -1

    a = qd.tensor(qd.i32, 2, backend=qd.Backend.FIELD)
    b = qd.tensor(qd.i32, 2, backend=qd.Backend.NDARRAY)
    k(b, None)
    k(a, b)
    return [b.to_numpy(), a.to_numpy()]


@arrays("tensors whose axes are in another order", [[[0, 1, 2], [10, 11, 12]], [1, 0]])
def ordered_tensors():
    t = qd.tensor(qd.i32, (2, 3), layout=(1, 0))

    @qd.kernel
    def k(x: qd.Tensor):
        for i, j in qd.ndrange(2, 3):
            x[i, j] = i * 10 + j

    k(t)
    return [t.to_numpy(), list(t.layout)]


@arrays("arrays with Fortran's order and parts of arrays", [[[0, 10], [1, 11]], [2, 0, 2, 0]])
def strange_arrays():
    @qd.kernel
    def plane(x: qd.types.NDArray[qd.i32, 2]):
        for i, j in x:
            x[i, j] = i + 10 * j

    @qd.kernel
    def line(x: I32):
        for i in x:
            x[i] = 2

    x = np.zeros((2, 2), np.int32, order="F")
    plane(x)
    y = zeros(qd.i32, 4)
    part = np.ascontiguousarray(y[::2])
    line(part)
    y[::2] = part
    return [x, y]


# ---- fields

fields = Group("fields", "Fields")


@fields("fields of every data type", [[1, 2]] * 11, ("f64", "f16"))
def every_field():
    names = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64")
    made = [qd.field(getattr(qd, name), shape=2) for name in names]

    @qd.kernel
    def k(x: qd.template()):
        for i in x:
            x[i] = qd.cast(i + 1, x.dtype)

    for field in made:
        k(field)
    return [field.to_numpy() for field in made]


@fields("a field of one element", 12)
def single_element():
    n = qd.field(qd.i32, shape=())

    @qd.kernel
    def k():
        for _ in range(4):
            n[None] += 3

    k()
    return n[None]


@fields("axes in another order", [[[0, 1, 2], [10, 11, 12]], [1, 0]])
def ordered():
    x = qd.field(qd.i32, shape=(2, 3), order="ji")

    @qd.kernel
    def k():
        for i, j in x:
            x[i, j] = i * 10 + j

    k()
    return [x.to_numpy(), list(x.layout)]


@fields("a field with an offset", [[-2, -1, 0, 1]])
def offset():
    x = qd.field(qd.i32, shape=4, offset=-2)

    @qd.kernel
    def k():
        for i in x:
            x[i] = i

    k()
    return [[x[i] for i in range(-2, 2)]]


@fields(
    "members side by side, and in blocks of their own", [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [4, 4]]
)
def layouts():
    out = []
    for layout in (qd.Layout.AOS, qd.Layout.SOA):
        v = qd.Vector.field(3, qd.f32, shape=4, layout=layout)

        @qd.kernel
        def k(x: qd.template()):
            for i in x:
                x[i] = qd.Vector([1.0, 2.0, 3.0]) * i

        k(v)
        out.append(v.to_numpy()[1])
    return [*out, [4, len(v.to_numpy())]]


@fields(
    "nested blocks of cells", [[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]], 120]
)
def blocks_of_cells():
    x, y = qd.field(qd.i32), qd.field(qd.i32)
    qd.root.dense(qd.ij, (2, 2)).dense(qd.ij, 2).place(x, y)

    @qd.kernel
    def k() -> qd.i32:
        total = 0
        for i, j in x:
            x[i, j] = i * 4 + j
        for I in qd.grouped(y):
            y[I] = x[I]
        for i, j in y:
            total += y[i, j]
        return total

    total = k()
    return [x.to_numpy(), total]


@fields("several fields placed in one tree at different depths", [[1, 1], [[2, 3], [4, 5]]])
def placed():
    a, b = qd.field(qd.i32), qd.field(qd.i32)
    row = qd.root.dense(qd.i, 2)
    row.place(a)
    row.dense(qd.j, 2).place(b)

    @qd.kernel
    def k():
        for i in a:
            a[i] = 1
        for i, j in b:
            b[i, j] = 2 * i + j + 2

    k()
    return [a.to_numpy(), b.to_numpy()]


@fields("a tree of its own, destroyed afterwards", [[0.0, 0.5, 1.0], True])
def builders():
    builder = qd.FieldsBuilder()
    x = qd.field(qd.f32)
    builder.dense(qd.i, 3).place(x)
    tree = builder.finalize()

    @qd.kernel
    def k():
        for i in x:
            x[i] = i * 0.5

    k()
    found = x.to_numpy()
    tree.destroy()
    try:
        return [found, x[0] < 0]
    except qd.QuadrantsRuntimeError:
        return [found, True]


@fields("loops over nodes of fields", [3, 6])
def nodes():
    x = qd.field(qd.i32)
    block = qd.root.dense(qd.i, 3)
    block.dense(qd.i, 2).place(x)

    @qd.kernel
    def k() -> tuple[qd.i32, qd.i32]:
        blocks = 0
        cells = 0
        for _i in block:
            blocks += 1
        for _i in x:
            cells += 1
        return blocks, cells

    return k()


@fields(
    "fields of matrices and of structs",
    [[[0.0, 2.0], [0.0, 0.0]], [0.0, 7.0], [[1.0, 2.0], [0.0, 0.0]]],
)
def compound_fields():
    m = qd.Matrix.field(2, 2, qd.f32, shape=2)
    s = qd.types.struct(pos=qd.types.vector(2, qd.f32), mass=qd.f32).field(shape=2)

    @qd.kernel
    def k():
        for i in range(1):
            m[1][0, 1] = 2.0
            s[1].mass = 7.0
            s[0].pos = qd.Vector([1.0, 2.0])

    k()
    return [m[1].to_list(), s.mass.to_numpy(), s.pos.to_numpy()]


@fields(
    "from_numpy, to_numpy, fill, copy_from, fill in kernels",
    [[1.0, 2.0, 3.0], [9.0, 2.0, 3.0], [4.0, 4.0, 4.0]],
)
def exchange():
    x, y, z = (qd.field(qd.f32, shape=3) for _ in range(3))
    x.from_numpy(np.array([1, 2, 3]))
    y.copy_from(x)
    y[0] = 9

    @qd.kernel
    def k():
        z.fill(4.0)

    k()
    return [x.to_numpy(), y.to_numpy(), z.to_numpy()]


@fields("fields as template arguments, each for itself", [[0, 10], [0, 20]])
def templates():
    x, y = qd.field(qd.i32, shape=2), qd.field(qd.i32, shape=2)

    @qd.kernel
    def k(f: qd.template(), step: qd.template()):
        for i in f:
            f[i] = i * step

    k(x, 10)
    k(y, 20)
    return [x.to_numpy(), y.to_numpy()]


@fields("rescale_index between a fine and a coarse field", [4, [2, 6]])
def rescaled():
    fine, coarse = qd.field(qd.i32, shape=(8, 8)), qd.field(qd.i32, shape=(4, 4))

    @qd.kernel
    def k():
        for at in qd.grouped(fine):
            coarse[qd.rescale_index(fine, coarse, at)] += 1

    k()
    return [coarse[3, 0], list(qd.rescale_index(coarse, fine, [1, 3]))]


@fields("a field and an array in one kernel", [[1.0, 3.0, 5.0]])
def together():
    x = qd.field(qd.f32, shape=3)

    @qd.kernel
    def k(y: F32):
        for i in x:
            x[i] = y[i] + i + 1

    k(of(qd.f32, 0, 1, 2))
    return [x.to_numpy()]
