"""Vectors and matrices at their edges: rows, columns, mixed types, run-time indices, slices."""

import numpy as np
import quadrants as qd

vec2, vec3, vec4 = (qd.types.vector(n, qd.f32) for n in (2, 3, 4))
ivec3 = qd.types.vector(3, qd.i32)
mat2, mat3 = qd.types.matrix(2, 2, qd.f32), qd.types.matrix(3, 3, qd.f32)
mat23 = qd.types.matrix(2, 3, qd.f32)
INIT = {
    "case_default_fp_of_literals": {"default_fp": "f64"},
    "case_default_ip_of_literals": {"default_ip": "i64"},
}


def case_default_fp_of_literals():
    @qd.kernel
    def k() -> qd.types.vector(2, qd.f64):
        return qd.Vector([0.1, 0.2]) * 3

    return k()


def case_default_ip_of_literals():
    @qd.kernel
    def k() -> qd.types.vector(2, qd.i64):
        return qd.Vector([2147483647, 1]) * 2

    return k()


def case_vector_with_a_wider_scalar():
    @qd.kernel
    def k(s: qd.f64) -> qd.types.vector(2, qd.f64):
        v = qd.Vector([1.0, 2.0])
        return v * s

    return k(0.1)


def case_integer_vector_with_a_real():
    @qd.kernel
    def k(s: qd.f32) -> tuple[vec3, ivec3]:
        v = qd.Vector([1, 2, 3])
        w = v
        w *= s
        return v * s, w

    return k(1.5)


def case_vectors_of_unlike_types():
    @qd.kernel
    def k() -> vec2:
        return qd.Vector([1, 2]) + qd.Vector([0.5, 0.25])

    return k()


def case_literal_of_unlike_types():
    @qd.kernel
    def k(n: qd.i32, x: qd.f32) -> vec4:
        return qd.Vector([n, x, n / 2, n // 2])

    return k(5, 0.25)


def case_matrix_of_expressions():
    @qd.kernel
    def k(a: qd.f32) -> mat2:
        c, s = qd.cos(a), qd.sin(a)
        return qd.Matrix([[c, -s], [s, c]])

    return k(0.5)


def case_swizzle_of_an_expression():
    @qd.kernel
    def k(a: vec3, b: vec3) -> vec2:
        return (a + b).zx * a.yy

    return k([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])


def case_run_time_index_of_a_field_element():
    f = qd.Matrix.field(2, 3, qd.i32, shape=2)

    @qd.kernel
    def k() -> qd.i32:
        s = 0
        for i in range(2):
            for r in range(2):
                for c in range(3):
                    f[i][r, c] = i * 100 + r * 10 + c
        for r in range(2):
            for c in range(3):
                s += f[1][r, c] * (r + c)
        return s

    return [k(), f.to_numpy()]


def case_run_time_index_with_atomics():
    f = qd.Vector.field(4, qd.i32, shape=())

    @qd.kernel
    def k():
        for i in range(100):
            f[None][i % 4] += i

    k()
    return f.to_numpy()


def case_run_time_index_of_an_expression():
    @qd.kernel
    def k(i: qd.i32) -> qd.f32:
        v = vec3(1.0, 2.0, 3.0)
        return (v * 2 + 1)[i]

    return [k(0), k(2)]


def case_run_time_index_of_an_argument():
    @qd.kernel
    def k(v: vec3, m: mat23, i: qd.i32) -> qd.f32:
        return v[i] + m[i % 2, i]

    m = qd.Matrix([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    return [k([10.0, 20.0, 30.0], m, i) for i in range(3)]


def case_matrix_indexed_at_run_time_in_a_loop():
    @qd.kernel
    def k(n: qd.i32) -> mat3:
        m = qd.Matrix.identity(qd.f32, 3)
        for _ in range(1):
            for i in range(n):
                m[i % 3, (i + 1) % 3] += i
                m[i % 3, i % 3] *= 2
        return m

    return k(7)


def case_static_loop_over_a_vector():
    @qd.kernel
    def k() -> qd.f32:
        v = vec3(1.0, 2.0, 3.0)
        s = 0.0
        for i in qd.static(range(v.n)):
            s = s * 10 + v[i]
        return s

    return k()


def case_list_of_vectors():
    @qd.kernel
    def k(n: qd.i32) -> vec2:
        corners = [vec2(0.0, 0.0), vec2(n, 0.0), vec2(0.0, n)]
        s = vec2(0.0)
        for c in qd.static(corners):
            s += c + 1
        corners[1] = vec2(100.0, 100.0)
        return s + corners[1]

    return k(5)


def case_comprehension_of_vectors():
    @qd.kernel
    def k() -> vec3:
        parts = [vec3(i, i * 2, 1.0) for i in qd.static(range(3))]
        return parts[0] + parts[1] * 10 + parts[2] * 100

    return k()


def case_quadratic_weights():
    @qd.kernel
    def k(x: qd.f32) -> vec3:
        fx = vec2(x, x + 0.25)
        w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
        return vec3(w[0][0], w[1][1], w[2][0] * w[2][1])

    return k(0.8)


def case_comparison_of_matrices():
    @qd.kernel
    def k(a: mat2, b: mat2) -> tuple[qd.i32, qd.i32, qd.types.matrix(2, 2, qd.i32)]:
        return (a == b).all(), (a == b).any(), a < b

    return k(qd.Matrix([[1.0, 2.0], [3.0, 4.0]]), qd.Matrix([[1.0, 3.0], [2.0, 4.0]]))


def case_scalar_condition_selects_vectors():
    @qd.kernel
    def k(c: qd.i32) -> vec2:
        return qd.select(c, vec2(1.0, 2.0), vec2(3.0, 4.0))

    return [k(0), k(1)]


def case_max_of_many_vectors():
    @qd.kernel
    def k(a: vec3, b: vec3) -> vec3:
        return qd.max(a, b, 2.0) - qd.min(a, b, 0.5)

    return k([1.0, 5.0, 0.25], [3.0, 0.0, 1.0])


def case_matrix_power_and_functions():
    @qd.kernel
    def k(m: mat2) -> tuple[mat2, mat2, mat2]:
        return m**2, qd.exp(m), -m / 2

    return k(qd.Matrix([[0.5, 1.0], [1.5, 2.0]]))


def case_chains_of_products():
    @qd.kernel
    def k(m: mat2, v: vec2) -> vec2:
        r = m @ m.transpose() @ v
        r @= m
        return r

    return k(qd.Matrix([[1.0, 2.0], [3.0, 4.0]]), [1.0, 0.5])


def case_norm_of_integers():
    @qd.kernel
    def k(v: ivec3) -> tuple[qd.i32, qd.i32, qd.i32]:
        return v.norm_sqr(), v.dot(v), v.sum()

    return k([1, 2, 2])


def case_vector_of_one_element():
    @qd.kernel
    def k() -> tuple[qd.types.vector(1, qd.f32), qd.f32]:
        v = qd.Vector([2.5])
        return v * 2, v.norm()

    return k()


def case_field_of_one_by_one_matrices():
    f = qd.Matrix.field(1, 1, qd.f32, shape=2)
    g = qd.Matrix.field(3, 1, qd.f32, shape=2)
    f[1][0, 0] = 2.5
    g.from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3))
    whole = g.to_numpy(keep_dims=True)
    g.from_numpy(whole * 2)
    v = qd.Vector.field(3, qd.f32, shape=2)
    return [f.to_numpy(), g.to_numpy(), g.n, g.m, whole, v.to_numpy(keep_dims=True).shape]


def case_grouped_indices_as_reals():
    f = qd.field(qd.f32, shape=(3, 3))

    @qd.kernel
    def k():
        for I in qd.grouped(f):
            p = (I + 0.5) / 3
            f[I] = p.norm() + I.cast(float).x

    k()
    return f.to_numpy()


def case_index_vectors_of_other_types():
    f = qd.field(qd.i32, shape=(4, 4))

    @qd.kernel
    def k(x: vec2):
        base = (x * 4).cast(int)
        wide = qd.cast(x * 4, qd.i64)
        f[base] = 1
        f[base + qd.Vector([1, 0])] = 2
        f[wide[1], wide[0]] += 10

    k([0.3, 0.6])
    return f.to_numpy()


def case_bounds_by_vectors():
    @qd.kernel
    def k(lo: ivec3, hi: ivec3) -> qd.i32:
        n = 0
        for i, j, m in qd.ndrange((lo.x, hi.x), (lo.y, hi.y), (lo[2], hi[2])):
            n += i + j * 10 + m * 100
        return n

    return k([0, 1, -1], [2, 3, 1])


def case_print_of_expressions():
    @qd.kernel
    def k(v: vec2):
        print(v * 2, v.sum(), "x", (v > 1.2))
        print(f"v = {v} {v[0]:.1f}")

    k([1.0, 1.5])
    return 0


def mistake_row_by_one_index():
    @qd.kernel
    def k() -> qd.f32:
        m = qd.Matrix([[1.0, 2.0], [3.0, 4.0]])
        return m[0]

    k()


def case_vector_assigned_a_number():
    @qd.kernel
    def k() -> vec2:
        v = vec2(1.0, 2.0)
        v = 3.0
        return v

    return k()


def mistake_number_assigned_a_vector():
    @qd.kernel
    def k() -> qd.f32:
        v = 3.0
        v = vec2(1.0, 2.0)
        return v

    k()


def mistake_swizzle_assigned_another_length():
    @qd.kernel
    def k():
        v = vec3(1.0, 2.0, 3.0)
        v.xy = vec3(1.0, 2.0, 3.0)

    k()


def mistake_element_assigned_another_length():
    f = qd.Vector.field(2, qd.f32, shape=2)

    @qd.kernel
    def k():
        f[0] = vec3(1.0, 2.0, 3.0)

    k()


def mistake_dot_of_unlike_lengths():
    @qd.kernel
    def k() -> qd.f32:
        return vec2(1.0, 2.0).dot(vec3(1.0, 2.0, 3.0))

    k()


def mistake_bits_of_a_real_vector():
    @qd.kernel
    def k():
        v = vec2(1.0, 2.0) & 1

    k()


def mistake_real_index_of_a_vector():
    @qd.kernel
    def k(x: qd.f32) -> qd.f32:
        v = vec2(1.0, 2.0)
        return v[x]

    k(1.0)


def mistake_vector_type_called_with_too_many():
    @qd.kernel
    def k():
        v = vec2(1.0, 2.0, 3.0)

    k()
