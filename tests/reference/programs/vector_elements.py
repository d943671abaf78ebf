"""Vectors and matrices in kernels: swizzles, slices, indices, arguments, mistakes."""

import numpy as np
import quadrants as qd

vec2, vec3 = qd.types.vector(2, qd.f32), qd.types.vector(3, qd.f32)
mat2, mat3 = qd.types.matrix(2, 2, qd.f32), qd.types.matrix(3, 3, qd.f32)


def case_swizzles_are_read():
    @qd.kernel
    def k(v: qd.types.vector(4, qd.f32)) -> tuple[vec2, vec3, vec3, vec2, qd.f32]:
        return v.xy, v.zyx, v.bgr, v.st, v.w + v.a + v.q

    return k([1, 2, 3, 4])


def case_slices():
    @qd.kernel
    def k(v: qd.types.vector(6, qd.f32)) -> tuple[vec2, vec3, vec3, vec2]:
        return v[1:3], v[::2], v[:3], v[4:]

    return k([0, 1, 2, 3, 4, 5])


def case_slices_of_matrices():
    @qd.kernel
    def k(m: mat3) -> tuple[mat2, vec3, vec3]:
        return m[0:2, 1:3], m[1, :], m[:, 2]

    return k(qd.Matrix([[1, 2, 3], [4, 5, 6], [7, 8, 9]]))


def case_index_in_a_loop():
    @qd.kernel
    def k() -> qd.i32:
        v = qd.Vector([3, 1, 4, 1, 5, 9, 2, 6])
        for _ in range(1):
            for i in range(8):
                for j in range(7 - i):
                    if v[j] > v[j + 1]:
                        t = v[j]
                        v[j] = v[j + 1]
                        v[j + 1] = t
        s = 0
        for i in qd.static(range(8)):
            s = s * 10 + v[i]
        return s

    return k()


def case_large_local_array():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        v = qd.Vector.zero(qd.i32, 64)
        for _ in range(1):
            for i in range(64):
                v[i] = i * n
        s = 0
        for _ in range(1):
            for i in range(64):
                s += v[63 - i] * (i % 3)
        return s

    return k(3)


def case_sizes():
    @qd.kernel
    def k() -> tuple[qd.i32, qd.i32, qd.i32]:
        m = qd.Matrix.zero(qd.f32, 2, 3)
        v = qd.Vector([1, 2, 3, 4])
        return m.n, m.m, v.n

    return k()


def case_vector_of_expressions():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        v = qd.Vector([i * n for i in range(5)])
        m = qd.Matrix([[i + j for j in range(3)] for i in range(2)])
        return v.sum() * 100 + m.sum()

    return k(3)


def case_vector_arguments():
    @qd.kernel
    def k(a: vec2, b: qd.types.vector(2, qd.i32), m: mat2) -> qd.f32:
        return a.sum() + b.sum() * 10 + m[1, 0] * 100

    return [
        k(qd.Vector([0.5, 1.0]), [1, 2], qd.Matrix([[1, 2], [3, 4]])),
        k(np.array([0.5, 1.0], np.float32), (3, 4), qd.Matrix([[1.0, 2.0], [3.0, 4.0]])),
        k([1, 2], qd.Vector([1, 1]), np.zeros((2, 2), np.float32)),
    ]


def case_captured_vector_constant():
    c = qd.Vector([1.0, 2.0])
    m = qd.Matrix([[1, 2], [3, 4]])

    @qd.kernel
    def k(x: qd.f32) -> tuple[vec2, qd.i32]:
        return c * x, m[1, 0] + m.sum()

    return k(3.0)


def case_template_vector():
    @qd.kernel
    def k(c: qd.template()) -> vec2:
        return c * 2

    return k(qd.Vector([1.0, 2.0]))


def case_matrix_argument_as_rows():
    @qd.kernel
    def k(m: mat2) -> qd.f32:
        return m[0, 1] - m[1, 0]

    return k([[1, 2], [3, 5]])


def case_linear_algebra():
    @qd.kernel
    def sym() -> tuple[vec2, mat2]:
        return qd.sym_eig(qd.Matrix([[2.0, 1.0], [1.0, 3.0]]))

    @qd.kernel
    def polar() -> tuple[mat2, mat2]:
        return qd.polar_decompose(qd.Matrix([[2.0, 1.0], [0.5, 3.0]]))

    @qd.kernel
    def solve() -> vec2:
        return qd.solve(qd.Matrix([[2.0, 1.0], [1.0, 3.0]]), qd.Vector([1.0, 2.0]))

    @qd.kernel
    def solve3() -> vec3:
        a = qd.Matrix([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]])
        return qd.solve(a, qd.Vector([1.0, 2.0, 3.0]))

    return [sym(), polar(), solve(), solve3()]


def case_svd_rebuilds_the_matrix():
    @qd.kernel
    def two() -> tuple[mat2, qd.f32, qd.f32]:
        u, s, v = qd.svd(qd.Matrix([[2.0, 1.0], [0.5, 3.0]]))
        return u @ s @ v.transpose(), s[0, 0], s[1, 1]

    @qd.kernel
    def three() -> tuple[mat3, qd.f32, qd.f32, qd.f32]:
        u, s, v = qd.svd(qd.Matrix([[2.0, 1.0, 0.0], [0.5, 3.0, 1.0], [0.0, -1.0, 4.0]]))
        return u @ s @ v.transpose(), s[0, 0], s[1, 1], s[2, 2]

    return [[round(x, 4) for x in _flat(r)] for r in (two(), three())]


def case_eig():
    @qd.kernel
    def k() -> tuple[mat2, qd.types.matrix(4, 2, qd.f32)]:
        return qd.eig(qd.Matrix([[2.0, 1.0], [1.0, 3.0]]))

    return k()


def case_sym_eig_of_three():
    @qd.kernel
    def k() -> vec3:
        values, vectors = qd.sym_eig(qd.Matrix([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]]))
        return values

    return [round(x, 4) for x in sorted(k().to_list())]


def mistake_shapes_of_an_operation():
    """unsupported operand type(s) for '+'"""

    @qd.kernel
    def k():
        a = qd.Vector([1.0, 2.0]) + qd.Vector([1.0, 2.0, 3.0])

    k()


def mistake_shapes_of_a_matmul():
    @qd.kernel
    def k():
        a = qd.Matrix([[1.0, 2.0], [3.0, 4.0]]) @ qd.Vector([1.0, 2.0, 3.0])

    k()


def mistake_assigned_another_shape():
    @qd.kernel
    def k():
        a = qd.Vector([1.0, 2.0])
        a = qd.Vector([1.0, 2.0, 3.0])

    k()


def mistake_run_time_slice():
    @qd.kernel
    def k(n: qd.i32):
        a = qd.Vector([1.0, 2.0, 3.0])
        b = a[0:n]

    k(2)


def mistake_swizzle_of_a_missing_component():
    @qd.kernel
    def k():
        a = qd.Vector([1.0, 2.0])
        b = a.z

    k()


def mistake_unknown_method():
    @qd.kernel
    def k():
        a = qd.Vector([1.0, 2.0])
        b = a.length()

    k()


def mistake_too_many_indices():
    @qd.kernel
    def k():
        a = qd.Vector([1.0, 2.0])
        b = a[0, 0, 0]

    k()


def mistake_determinant_of_a_rectangle():
    @qd.kernel
    def k():
        a = qd.Matrix([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]])
        b = a.determinant()

    k()


def mistake_vector_as_a_condition():
    @qd.kernel
    def k():
        a = qd.Vector([1, 2])
        if a:
            pass

    k()


def mistake_wrong_number_of_components_for_an_argument():
    @qd.kernel
    def k(a: vec3) -> qd.f32:
        return a.sum()

    k([1.0, 2.0])


def mistake_ragged_rows():
    @qd.kernel
    def k():
        a = qd.Matrix([[1, 2], [3]])

    k()


def mistake_cross_of_four():
    @qd.kernel
    def k():
        a = qd.Vector([1.0, 2.0, 3.0, 4.0])
        b = a.cross(a)

    k()


def _flat(result):
    out = []
    for item in result:
        out += np.asarray(item.to_list()).ravel().tolist() if hasattr(item, "to_list") else [item]
    return out
