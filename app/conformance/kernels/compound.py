"""Vectors, matrices, structs, dataclasses and data-oriented classes."""

import dataclasses

import numpy as np

from .... import engine as qd
from ..feature import Group
from .kit import F32, I32, filled, zeros

feature = Group("compound", "Vectors, matrices, structs")


@feature("operators work on each element", [[4.0, 6.0], [2.0, 4.0], [-1.0, -2.0], [1, 0]])
def elementwise():
    vec = qd.types.vector(2, qd.f32)

    @qd.kernel
    def k(a: vec, b: vec) -> tuple[vec, vec, vec, qd.types.vector(2, qd.i32)]:
        return a + b, a * 2.0, -a, qd.cast(a == qd.Vector([1.0, 9.0]), qd.i32)

    return [v.to_list() for v in k([1, 2], [3, 4])]


@feature("swizzles, slices, elements", [[3.0, 2.0, 1.0], [2.0, 3.0], 5.0])
def swizzles():
    vec = qd.types.vector(3, qd.f32)

    @qd.kernel
    def k(v: vec) -> tuple[vec, qd.types.vector(2, qd.f32), qd.f32]:
        w = v
        w.x = 5.0
        return v.zyx, v[1:3], w.r

    a, b, c = k([1, 2, 3])
    return [a.to_list(), b.to_list(), c]


@feature("sum, min, max, any, all, norm, dot, cross, outer product",
         [[6.0, 1.0, 3.0, 1, 0, 5.0, 10.0, 4.0], [-8.0, 16.0, -8.0]], rtol=1e-6)  # fmt: skip
def methods():
    vec = qd.types.vector(3, qd.f32)

    @qd.kernel
    def k(v: vec, w: vec, out: F32) -> vec:
        out[0] = v.sum()
        out[1] = v.min()
        out[2] = v.max()
        out[3] = (v > 2.0).any()
        out[4] = (v > 2.0).all()
        out[5] = qd.Vector([3.0, v.y * 2.0]).norm()
        out[6] = v.dot(qd.Vector([3.0, 2.0, 1.0]))
        out[7] = v.outer_product(v)[1, 1]
        return v.cross(w)

    out = zeros(qd.f32, 8)
    cross = k([1, 2, 3], [5, 2, -1], out)
    return [out, cross.to_list()]


@feature(
    "matrix products, transpose, trace",
    [[3.0, 7.0], [[7.0, 10.0], [15.0, 22.0]], [[1.0, 3.0], [2.0, 4.0]], 5.0],
)
def products():
    mat, vec = qd.types.matrix(2, 2, qd.f32), qd.types.vector(2, qd.f32)

    @qd.kernel
    def k(m: mat) -> tuple[vec, mat, mat, qd.f32]:
        return m @ vec(1.0, 1.0), m @ m, m.transpose(), m.trace()

    a, b, c, d = k(mat(1, 2, 3, 4))
    return [a.to_list(), b.to_list(), c.to_list(), d]


@feature("determinant and inverse of 2, 3 and 4 rows", [-2.0, 24.0, 120.0, 0.0], rtol=1e-5)
def inverses():
    @qd.kernel
    def k(x: qd.f32) -> tuple[qd.f32, qd.f32, qd.f32, qd.f32]:
        a = qd.Matrix([[x, 2.0], [3.0, 4.0]])
        b = qd.Matrix([[2.0, x, 0.0], [0.0, 3.0, x], [0.0, 0.0, 4.0]])
        c = qd.Matrix([[2.0, 0, 0, 0], [x, 3.0, 0, 0], [0, x, 4.0, 0], [0, 0, x, 5.0]])
        worst = 0.0
        for i, j in qd.static(qd.ndrange(4, 4)):
            one = 1.0 if qd.static(i == j) else 0.0
            worst = qd.max(worst, qd.abs((c @ c.inverse())[i, j] - one))
            if qd.static(i < 3 and j < 3):
                worst = qd.max(worst, qd.abs((b.inverse() @ b)[i, j] - one))
        return a.determinant(), b.determinant(), c.determinant(), qd.floor(worst * 1000.0)

    return k(1.0)


@feature("elements at indices of run time", [[0.0, 0.0, 7.0], 6.0])
def run_time_indices():
    @qd.kernel
    def k(n: qd.i32) -> tuple[qd.types.vector(3, qd.f32), qd.f32]:
        v = qd.Vector([0.0, 0.0, 0.0])
        v[n] = 7.0
        m = qd.Matrix([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        return v, m[n - 1, n]

    v, x = k(2)
    return [v.to_list(), x]


@feature(
    "makers: zero, one, unit, identity, rows, cols, diag",
    [[0, 1, 0], [[1, 0], [0, 1]], [[1, 3], [2, 4]], [5, 2]],
)
def makers():
    @qd.kernel
    def k(
        out: I32,
    ) -> tuple[
        qd.types.vector(3, qd.i32), qd.types.matrix(2, 2, qd.i32), qd.types.matrix(2, 2, qd.i32)
    ]:
        out[0] = qd.Matrix.diag(2, 5)[1, 1]
        out[1] = (qd.Vector.zero(qd.i32, 2) + qd.Vector.one(qd.i32, 2)).sum()
        a, b = qd.Vector([1, 2]), qd.Vector([3, 4])
        return qd.Vector.unit(3, 1), qd.Matrix.identity(qd.i32, 2), qd.Matrix.cols([a, b])

    out = zeros(qd.i32, 2)
    a, b, c = k(out)
    return [a.to_list(), b.to_list(), c.to_list(), out]


@feature("vectors of f64, i64 and u8", [[1.5, 2.5], [2**40, 2**41], [254, 0]], ("f64",))
def other_elements():
    types = qd.types

    @qd.kernel
    def k(
        a: types.vector(2, qd.f64), b: types.vector(2, qd.i64), c: types.vector(2, qd.u8)
    ) -> tuple[types.vector(2, qd.f64), types.vector(2, qd.i64), types.vector(2, qd.u8)]:
        return a + 1.0, b * 2, c + c

    return [v.to_list() for v in k([0.5, 1.5], [2**39, 2**40], [127, 128])]


@feature("functions on each element, select, cast", [[1.0, 2.0], [-1, 2, 3], [1, -2]])
def mapped():
    @qd.kernel
    def k(
        v: qd.types.vector(2, qd.f32), n: qd.types.vector(3, qd.i32)
    ) -> tuple[qd.types.vector(2, qd.f32), qd.types.vector(3, qd.i32), qd.types.vector(2, qd.i32)]:
        return qd.sqrt(v), qd.select(n > 1, n, -n), qd.cast(v * qd.Vector([1.7, -0.7]), qd.i32)

    return [v.to_list() for v in k([1.0, 4.0], [1, 2, 3])]


@feature(
    "decompositions: svd, polar, eigenvalues, solve", [0, 0, [1.0, 3.0], [0.5, 0.25]], rtol=1e-5
)
def decompositions():
    @qd.kernel
    def k(
        m: qd.types.matrix(2, 2, qd.f32),
    ) -> tuple[qd.f32, qd.f32, qd.types.vector(2, qd.f32), qd.types.vector(2, qd.f32)]:
        U, S, V = qd.svd(m)
        R, P = qd.polar_decompose(m)
        values, _ = qd.sym_eig(qd.Matrix([[2.0, 1.0], [1.0, 2.0]]))
        x = qd.solve(qd.Matrix([[2.0, 0.0], [0.0, 4.0]]), qd.Vector([1.0, 1.0]))
        return (U @ S @ V.transpose() - m).norm(), (R @ P - m).norm(), values, x

    a, b, values, x = k(qd.Matrix([[2.0, 1.0], [0.0, 3.0]]))
    return [int(a > 1e-5), int(b > 1e-5), sorted(values.to_list()), x.to_list()]


@feature("decompositions of 3 rows", [0, 0], rtol=1e-5)
def larger_decompositions():
    @qd.kernel
    def k(m: qd.types.matrix(3, 3, qd.f32)) -> tuple[qd.f32, qd.f32]:
        U, S, V = qd.svd(m)
        values, vectors = qd.sym_eig(m + m.transpose())
        worst = 0.0
        for i in qd.static(range(3)):
            v = qd.Vector([vectors[0, i], vectors[1, i], vectors[2, i]])
            worst = qd.max(worst, ((m + m.transpose()) @ v - values[i] * v).norm())
        return (U @ S @ V.transpose() - m).norm(), worst

    a, b = k(qd.Matrix([[2.0, 1.0, 0.5], [0.0, 3.0, 0.25], [1.0, 0.0, 4.0]]))
    return [int(a > 1e-4), int(b > 1e-3)]


@feature("structs: members, copies, nesting", [1.5, 9.0, 1.0])
def structs():
    Body = qd.types.struct(pos=qd.types.vector(2, qd.f32), mass=qd.f32)
    Pair = qd.types.struct(a=Body, b=Body)

    @qd.kernel
    def k(b: Body) -> tuple[qd.f32, qd.f32, qd.f32]:
        pair = Pair(a=b, b=b)
        pair.b.mass = 9.0
        copy = pair.a
        copy.pos.x = 100.0
        return b.pos.sum() * b.mass, pair.b.mass, pair.a.pos.x

    return k(Body(pos=[1, 2], mass=0.5))


@feature(
    "struct types with methods: of kernels, of Python as well, static ones",
    [[1, 1.5, 9.0, 2.5], [0, 1.5, 9.0, 2.5], 8.0],
)
def struct_methods():
    @qd.dataclass
    class Circle:
        center: qd.types.vector(2, qd.f32)
        r: qd.f32

        @qd.func
        def contains(self, p):
            return (p - self.center).norm() < self.r

        @qd.func
        def grow(self, by):
            self.r += by
            self.center.x *= 2.0
            return self.r

        @qd.pyfunc
        def right(self, by):
            return self.center.x + self.r + by

        @staticmethod
        @qd.func
        def half(x):
            return x * 0.5

    @qd.kernel
    def k(x: qd.f32) -> tuple[qd.u1, qd.f32, qd.f32, qd.f32]:
        c = Circle(center=qd.Vector([1.0, 1.0]), r=0.5)
        inside = c.contains(qd.Vector([x, 1.0]))
        return inside, c.grow(1.0), c.right(5.5), c.half(5.0)

    return [list(k(1.2)), list(k(3.0)), Circle(center=[2.0, 0.0], r=1.0).right(5.0)]


@feature("swizzles and slices are written", [[7, 7, 13, 28], [[1, 2, 4], [10, 20, 32]], [1, 1, 2]])
def swizzles_and_slices():
    @qd.kernel
    def k() -> tuple[
        qd.types.vector(4, qd.i32), qd.types.matrix(2, 3, qd.i32), qd.types.vector(3, qd.i32)
    ]:
        v = qd.Vector([1, 2, 3, 4])
        v.xy = v.yx
        v.zw += 10
        v.a *= 2
        v.rg = 7
        m = qd.Matrix([[1, 2, 3], [4, 5, 6]])
        m[1, :] = m[0, :] * 10
        m[:, 2] += [1, 2]
        w = qd.Vector([1, 2, 3])
        w[1:3] = w[:2]
        return v, m, w

    return [x.to_list() for x in k()]


@feature("functions get copies of vectors and structs, or references", [[1, 2, 9], [1, 8, 77]])
def copies_and_references():
    Part = qd.types.struct(a=qd.i32)

    @qd.func
    def changed(v, p):
        v[0] = 9
        p.a = 8
        return v[0], p.a

    @qd.func
    def change(v: qd.template(), p: qd.template()):
        v[1] = 9
        p.a = 77

    @qd.kernel
    def k(out: I32):
        v = qd.Vector([1, 2])
        p = Part(1)
        _, a = changed(v, p)
        out[0] = v[0]
        out[1] = v[1]
        out[3] = p.a
        out[4] = a
        change(v, p)
        out[2] = v[1]
        out[5] = p.a

    out = filled(k, zeros(qd.i32, 6))
    return [out[:3], out[3:]]


@feature(
    "elements of fields of vectors are updated in place", [[0.5, 1.5], [6.5, 1.5], [12.5, 1.5]]
)
def elements_in_place():
    v = qd.Vector.field(2, qd.f32, shape=3, layout=qd.Layout.SOA)

    @qd.kernel
    def k(element: qd.i32):
        for i in v:
            v[i] = [i, 2 * i]
            v[i].x += 1
            v[i][1] *= 3
            v[i] += 0.5
            v[i].yx = v[i].xy
            v[i][element] -= i

    k(1)
    return v.to_numpy()


@feature("dataclasses of arrays and numbers as arguments", [[2, 4, 6]])
def dataclasses_as_arguments():
    @dataclasses.dataclass
    class State:
        x: I32
        step: qd.i32

    @qd.kernel
    def k(state: State):
        for i in state.x:
            state.x[i] = (i + 1) * state.step

    x = qd.ndarray(qd.i32, 3)
    k(State(x, 2))
    return [x.to_numpy()]


@feature(
    "data-oriented classes: methods, fields, numbers fixed at compile time", [[100, 103, 106], 3]
)
def data_oriented():
    @qd.data_oriented
    class Line:
        def __init__(self, n):
            self.n = n
            self.x = qd.field(qd.i32, shape=n)

        @qd.func
        def scaled(self, i):
            return i * self.n

        @qd.kernel
        def fill(self, start: qd.i32):
            for i in self.x:
                self.x[i] = start + self.scaled(i)

    line = Line(3)
    line.fill(100)
    return [line.x.to_numpy(), line.n]


@feature("qd.math types and rotations", [[0.0, 1.0], [2.0, 3.0, 4.0, 1.0]], rtol=1e-5)
def rotations():
    m = qd.math

    @qd.kernel
    def k() -> tuple[m.vec2, m.vec4]:
        turned = m.rotation2d(m.pi / 2) @ m.vec2(1.0, 0.0)
        return turned, m.translate(1.0, 1.0, 1.0) @ m.vec4(1.0, 2.0, 3.0, 1.0)

    turned, moved = k()
    return [(np.round(turned.to_numpy(), 5) + 0.0).tolist(), moved.to_list()]


@feature("vectors in loops: particles that move", [[1.5, 3.0], [1.5, 2.0]])
def particles():
    x, v = qd.Vector.field(2, qd.f32, shape=2), qd.Vector.field(2, qd.f32, shape=2)

    @qd.kernel
    def k(dt: qd.f32):
        for i in x:
            x[i] = qd.Vector([1.0, 2.0 - i])
            v[i] = qd.Vector([1.0, 2.0])
        for i in x:
            x[i] += v[i] * dt

    k(0.5)
    return x.to_numpy()


@feature("arguments: nested lists, arrays and values for vectors", [6.0, 6.0, 6.0])
def vector_arguments():
    @qd.kernel
    def k(v: qd.types.vector(3, qd.f32)) -> qd.f32:
        return v.sum()

    return [k([1, 2, 3]), k(np.array([1, 2, 3], np.float32)), k(qd.Vector([1.0, 2.0, 3.0]))]
