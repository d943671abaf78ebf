"""Vectors and matrices in kernels: construction, operators, methods."""

import quadrants as qd

vec2, vec3 = qd.types.vector(2, qd.f32), qd.types.vector(3, qd.f32)
ivec3 = qd.types.vector(3, qd.i32)
mat2, mat3 = qd.types.matrix(2, 2, qd.f32), qd.types.matrix(3, 3, qd.f32)
mat23 = qd.types.matrix(2, 3, qd.f32)


def case_literals():
    @qd.kernel
    def k(n: qd.i32) -> tuple[vec3, ivec3, mat23]:
        a = qd.Vector([1.0, n, 2.5])
        b = qd.Vector([1, n, 3])
        c = qd.Matrix([[1.0, 2, 3], [4, 5, n]])
        return a, b, c

    return k(7)


def case_literals_with_a_type():
    @qd.kernel
    def k() -> tuple[vec2, qd.types.vector(2, qd.f64), qd.types.vector(2, qd.i32)]:
        a = qd.Vector([1, 2], dt=qd.f32)
        b = qd.Vector([0.1, 0.2], dt=qd.f64)
        c = qd.Vector([1.9, -1.9], dt=qd.i32)
        return a / 2, b, c

    return k()


def case_type_calls():
    @qd.kernel
    def k() -> tuple[vec3, vec3, vec3, mat2, mat2]:
        return vec3(1, 2, 3), vec3([4, 5, 6]), vec3(7), mat2(1, 2, 3, 4), mat2([[5, 6], [7, 8]])

    return k()


def case_element_type_is_promoted():
    @qd.kernel
    def k(a: qd.i32, b: qd.f64) -> qd.types.vector(2, qd.f64):
        v = qd.Vector([a, b])
        return v / 3

    return k(1, 0.1)


def case_type_of_a_local_is_fixed():
    @qd.kernel
    def k() -> ivec3:
        a = qd.Vector([1, 2, 3])
        a = qd.Vector([1.9, 2.9, 3.9])
        a[0] = 7.9
        return a

    return k()


def case_arithmetic():
    @qd.kernel
    def k(x: vec3, y: vec3) -> qd.types.matrix(6, 3, qd.f32):
        return qd.Matrix.rows([x + y, x - y, x * y, x / y, x // y, x % y])

    return [k([1.5, -2.5, 3.0], [2.0, 2.0, -2.0]), k(qd.Vector([7.0, 8.0, 9.5]), [1.0, 0.5, 2.0])]


def case_arithmetic_with_scalars():
    @qd.kernel
    def k(x: vec3, s: qd.f32) -> qd.types.matrix(8, 3, qd.f32):
        return qd.Matrix.rows([x + s, s + x, x - s, s - x, x * s, s * x, x / s, s / x])

    return k([1.0, 2.0, 4.0], 3.0)


def case_integer_vectors():
    @qd.kernel
    def k(x: ivec3, y: ivec3) -> qd.types.matrix(9, 3, qd.i32):
        return qd.Matrix.rows([
            x + y, x * y, x // y, x % y, x & y, x | y, x ^ y, x << 2, x >> 1
        ])  # fmt: skip

    return k([7, -7, 12], [2, 2, 10])


def case_true_division_of_integer_vectors():
    @qd.kernel
    def k(x: ivec3) -> vec3:
        return x / 2

    return k([1, 2, 3])


def case_power():
    @qd.kernel
    def k(x: vec3, y: ivec3) -> tuple[vec3, ivec3, vec3]:
        return x**2, y**3, x**y

    return k([1.5, 2.0, 3.0], [2, -3, 0])


def case_unary():
    @qd.kernel
    def k(x: vec3, y: ivec3) -> tuple[vec3, vec3, ivec3, ivec3, vec3, ivec3]:
        return -x, +x, -y, ~y, abs(x), abs(y)

    return k([1.5, -2.0, 0.0], [2, -3, 0])


def case_comparisons():
    @qd.kernel
    def k(x: ivec3, y: ivec3) -> qd.types.matrix(6, 3, qd.i32):
        return qd.Matrix.rows([x < y, x <= y, x > y, x >= y, x == y, x != y])

    return k([1, 2, 3], [2, 2, 2])


def case_any_and_all():
    @qd.kernel
    def k(x: ivec3) -> tuple[qd.i32, qd.i32, qd.i32, qd.i32]:
        return (x > 0).any(), (x > 0).all(), x.any(), x.all()

    return [k([1, 2, 3]), k([0, 0, 4]), k([0, -1, 0]), k([0, 0, 0])]


def case_and_or_not_are_elementwise():
    @qd.kernel
    def k(x: ivec3) -> tuple[ivec3, ivec3, ivec3]:
        return (x > 0) and (x < 3), (x == 1) or (x > 2), not (x > 1)

    return k([1, 2, 3])


def case_select():
    @qd.kernel
    def k(x: ivec3, a: vec3, b: vec3) -> tuple[vec3, vec3]:
        return qd.select(x > 1, a, b), qd.select(x > 1, 1.5, a)

    return k([1, 2, 3], [10.0, 20.0, 30.0], [0.5, 0.25, 0.125])


def case_conditional_expression_of_vectors():
    @qd.kernel
    def k(c: qd.i32, a: vec3, b: vec3) -> vec3:
        return a if c > 0 else b

    return [k(1, [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]), k(0, [1.0, 2.0, 3.0], [4.0, 5.0, 6.0])]


def case_min_and_max():
    @qd.kernel
    def k(a: vec3, b: vec3) -> tuple[vec3, vec3, vec3, qd.f32, qd.f32]:
        return min(a, b), qd.max(a, b), qd.max(a, 2.5), a.min(), b.max()

    return k([1.0, 5.0, 3.0], [4.0, 2.0, 6.0])


def case_functions_apply_per_component():
    @qd.kernel
    def k(a: vec3) -> qd.types.matrix(7, 3, qd.f32):
        return qd.Matrix.rows([
            qd.sin(a), qd.exp(a), qd.sqrt(a), qd.floor(a), qd.round(a), qd.pow(a, 2.0),
            qd.atan2(a, qd.Vector([1.0, 2.0, 3.0])),
        ])  # fmt: skip

    return k([0.25, 1.5, 2.75])


def case_bit_cast():
    @qd.kernel
    def k(a: vec2) -> qd.types.vector(2, qd.i32):
        return qd.bit_cast(a, qd.i32)

    return k([1.0, -2.0])


def case_augmented_assignment():
    @qd.kernel
    def k(a: vec3) -> qd.types.matrix(6, 3, qd.f32):
        b = a
        b += 1
        c = a
        c *= qd.Vector([1.0, 2.0, 3.0])
        d = a
        d -= a * 2
        e = a
        e /= 2
        f = a
        f //= 2
        g = a
        g %= 2
        return qd.Matrix.rows([b, c, d, e, f, g])

    return k([1.5, -2.5, 3.0])


def case_matmul():
    @qd.kernel
    def k(a: mat2, b: mat2, v: vec2) -> tuple[mat2, vec2, vec2]:
        return a @ b, a @ v, v @ a

    return k(qd.Matrix([[1, 2], [3, 4]]), qd.Matrix([[5, 6], [7, 8]]), [1, -1])


def case_matmul_of_rectangles():
    @qd.kernel
    def k(a: mat23) -> tuple[mat2, mat3]:
        return a @ a.transpose(), a.transpose() @ a

    return k(qd.Matrix([[1, 2, 3], [4, 5, 6]]))


def case_vector_matmul_is_dot():
    @qd.kernel
    def k(a: vec3, b: vec3) -> qd.f32:
        return a @ b

    return k([1, 2, 3], [4, 5, 6])


def case_dot_cross_outer():
    @qd.kernel
    def k(a: vec3, b: vec3) -> tuple[qd.f32, vec3, mat3]:
        return a.dot(b), a.cross(b), a.outer_product(b)

    return k([1, 2, 3], [-1, 0.5, 2])


def case_cross_of_two():
    @qd.kernel
    def k(a: vec2, b: vec2) -> qd.f32:
        return a.cross(b)

    return k([1, 2], [3, 5])


def case_norms():
    @qd.kernel
    def k(a: vec3) -> tuple[qd.f32, qd.f32, qd.f32, vec3, qd.f32]:
        return a.norm(), a.norm_sqr(), a.norm_inv(), a.normalized(), a.norm(1e-3)

    return [k([1, 2, 2]), k([0.5, 0, 0])]


def case_sum_of_vectors_and_matrices():
    @qd.kernel
    def k(a: vec3, m: mat23) -> tuple[qd.f32, qd.f32, qd.f32, qd.f32]:
        return a.sum(), m.sum(), m.max(), m.min()

    return k([1, 2, 3.5], qd.Matrix([[1, 2, 3], [4, 5, -6]]))


def case_determinant_and_inverse_of_four():
    m4 = qd.types.matrix(4, 4, qd.f32)

    @qd.kernel
    def k(m: m4) -> tuple[qd.f32, m4]:
        return m.determinant(), m.inverse()

    return k(qd.Matrix([[2, 0, 1, 0], [1, 3, 2, 1], [1, 1, 4, 0], [0, 1, 0, 5]]))


def case_frobenius_inner():
    @qd.kernel
    def k(a: mat2, b: mat2) -> qd.f32:
        return a.norm_sqr() + (a * b).sum()

    return k(qd.Matrix([[1, 2], [3, 4]]), qd.Matrix([[5, 6], [7, 8]]))


def case_fill():
    @qd.kernel
    def k() -> vec3:
        a = qd.Vector([1.0, 2.0, 3.0])
        a.fill(7)
        return a

    return k()
