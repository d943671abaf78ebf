"""Vectors and matrices in Python: construction, operators, methods, types, conversions."""

import numpy as np
import quadrants as qd


def case_construction():
    return [
        qd.Vector([1, 2, 3]), qd.Vector([1.5, 2]), qd.Matrix([[1, 2], [3, 4]]),
        qd.Vector(np.array([1.0, 2.0])), qd.Matrix(np.eye(2)), qd.Vector([1, 2], dt=qd.f32),
    ]  # fmt: skip


def case_shape_and_sizes():
    m = qd.Matrix([[1, 2, 3], [4, 5, 6]])
    v = qd.Vector([1, 2])
    return [m.n, m.m, v.n, v.m, m.get_shape(), len(v), len(m)]


def case_indexing():
    m = qd.Matrix([[1, 2, 3], [4, 5, 6]])
    v = qd.Vector([1.5, 2.5, 3.5])
    m[0, 1] = 20
    v[2] = 7.0
    return [m[1, 2], m[0, 1], v[0], v[2], list(v), v.to_list(), m.to_list()]


def case_to_numpy():
    a = qd.Matrix([[1, 2, 3], [4, 5, 6]]).to_numpy()
    b = qd.Vector([1.5, 2.5]).to_numpy()
    return [a, b]


def case_arithmetic():
    a, b = qd.Vector([1.0, 2.0, 3.5]), qd.Vector([4.0, -5.0, 2.0])
    return [a + b, a - b, a * b, a / b, a // b, a % b, a**b, -a, abs(b)]


def case_unary_plus():
    return +qd.Vector([1.0, -2.0])


def case_arithmetic_with_scalars():
    a = qd.Vector([1.0, 2.0, 4.0])
    return [a + 1, 1 + a, a - 1, 1 - a, a * 2, 2 * a, a / 2, 2 / a, a // 2, a % 3, a**2, 2**a]


def case_integers():
    a, b = qd.Vector([7, -7, 12]), qd.Vector([2, 2, 10])
    return [a + b, a // b, a % b, a & b, a | b, a ^ b, a << b, a >> 1, ~a, a / b]


def case_comparisons():
    a, b = qd.Vector([1, 2, 3]), qd.Vector([2, 2, 2])
    return [[list(x) for x in (a < b, a <= b, a > b, a >= b, a == b, a != b)]]


def case_any_and_all():
    a = qd.Vector([1, 0, 3])
    return [bool(a.any()), bool(a.all()), bool((a > -1).all()), bool((a > 5).any())]


def case_augmented():
    a = qd.Vector([1.0, 2.0])
    a += 1
    b = qd.Vector([1.0, 2.0])
    b *= qd.Vector([3.0, 4.0])
    c = qd.Vector([1.0, 2.0])
    c /= 2
    return [a, b, c]


def case_matmul():
    a, b = qd.Matrix([[1, 2], [3, 4]]), qd.Matrix([[5, 6], [7, 8]])
    v = qd.Vector([1, -1])
    return [a @ b, a @ v]


def case_reductions():
    v, m = qd.Vector([1.5, -2.0, 3.0]), qd.Matrix([[1, 2], [3, 4]])
    return [v.sum(), v.max(), v.min(), m.sum(), m.max(), m.min()]


def case_norms():
    v = qd.Vector([1.0, 2.0, 2.0])
    return [v.norm(), v.norm_sqr(), v.norm_inv(), v.normalized()]


def case_products():
    a, b = qd.Vector([1.0, 2.0, 3.0]), qd.Vector([-1.0, 0.5, 2.0])
    return [a.dot(b), a.cross(b), a.outer_product(b)]


def case_square_matrices():
    m = qd.Matrix([[2.0, 0.0, 1.0], [1.0, 3.0, 2.0], [1.0, 1.0, 4.0]])
    n = qd.Matrix([[1.0, 2.0], [3.0, 4.0]])
    return [
        m.transpose(), m.trace(), n.transpose(), n.trace()
    ]  # fmt: skip


def case_determinants():
    m = qd.Matrix([[2.0, 0.0, 1.0], [1.0, 3.0, 2.0], [1.0, 1.0, 4.0]])
    return [m.determinant(), qd.Matrix([[1.0, 2.0], [3.0, 4.0]]).determinant()]


def case_inverses():
    m = qd.Matrix([[2.0, 0.0, 1.0], [1.0, 3.0, 2.0], [1.0, 1.0, 4.0]])
    return [m.inverse(), qd.Matrix([[1.0, 2.0], [3.0, 4.0]]).inverse()]


def case_identity():
    return qd.Matrix.identity(qd.f32, 2)


def case_makers():
    return [
        qd.Matrix.zero(qd.i32, 2, 3), qd.Matrix.one(qd.f32, 2, 2),
        qd.Vector.zero(qd.f32, 3), qd.Vector.one(qd.i32, 2), qd.Vector.unit(3, 1, qd.i32),
        qd.Matrix.diag(2, 3.5),
    ]  # fmt: skip


def case_rows_and_cols():
    a, b = qd.Vector([1, 2, 3]), qd.Vector([4, 5, 6])
    return [qd.Matrix.rows([a, b]), qd.Matrix.cols([a, b])]


def case_cast():
    v = qd.Vector([1.9, -1.9])
    return [v.cast(qd.i32), v.cast(int), qd.Vector([1, 2]).cast(float)]


def case_fill():
    v, m = qd.Vector([1, 2, 3]), qd.Matrix([[1, 2], [3, 4]])
    v.fill(7)
    m.fill(0)
    return [v, m]


def case_swizzles():
    v = qd.Vector([1, 2, 3, 4])
    first = [v.x, v.w, v.xy, v.zyx, v.rgb, v.stpq, v.wzyx]
    v.x = 10
    v.yz = [20, 30]
    return [*first, v]


def case_types():
    vec3 = qd.types.vector(3, qd.f32)
    mat2 = qd.types.matrix(2, 2, qd.i32)
    return [
        vec3(1, 2, 3), vec3([4, 5, 6]), vec3(7), mat2(1, 2, 3, 4), mat2([[5, 6], [7, 8]]), mat2(9),
        vec3(qd.Vector([1, 2]), 3), vec3(1.5, 2, np.float32(3)),
    ]  # fmt: skip


def case_types_convert():
    ivec2 = qd.types.vector(2, qd.i32)
    return [ivec2(1.9, -1.9), ivec2(3)]


def case_math_types():
    m = qd.math
    return [
        m.vec2(1, 2), m.vec3(1.5), m.vec4(m.vec2(1, 2), 3, 4), m.ivec3(1, 2, 3), m.uvec2(1, 2),
        m.mat2(1, 2, 3, 4), m.vec3(m.vec2(1, 2), 5), m.vec4(m.vec3(1, 2, 3), 4).wzyx,
    ]  # fmt: skip


def case_functions():
    v = qd.Vector([0.25, 1.5])
    return [
        qd.sin(v),
        qd.exp(v),
        qd.sqrt(v),
        qd.floor(v),
        qd.max(v, 1.0),
        qd.min(v, qd.Vector([1.0, 1.0])),
    ]


def case_functions_of_scalars():
    return [
        qd.sin(0.5), qd.cos(0.5), qd.sqrt(2.0), qd.floor(1.7), qd.ceil(1.2), qd.exp(1.0),
        qd.log(2.0), qd.max(1, 2.5, 2), qd.min(3, 2), qd.abs(-3), qd.pow(2, 10), qd.tanh(0.5),
        qd.atan2(1.0, 2.0), qd.tan(0.3), qd.asin(0.3), qd.acos(0.3), qd.rsqrt(4.0),
    ]  # fmt: skip


def case_round_of_scalars():
    return [qd.round(x) for x in (2.5, -2.5, 0.5, 1.4, 1.6)]


def case_casts_of_scalars():
    return [qd.cast(2.7, qd.i32), qd.cast(3, qd.f32)]


def case_math_functions():
    m = qd.math
    return [
        m.clamp(5.0, 0.0, 1.0), m.mix(1.0, 3.0, 0.25), m.fract(1.75), m.sign(-2.0),
        m.step(0.5, 1.0), m.smoothstep(0.0, 2.0, 1.0), m.degrees(1.0), m.radians(90.0),
        m.mod(7.5, 2.0),
    ]  # fmt: skip


def case_math_functions_of_vectors():
    m = qd.math
    a, b = m.vec3(1, 2, 2), m.vec3(-1, 0.5, 2)
    return [m.dot(a, b), m.cross(a, b)]


def case_length_and_normalize():
    m = qd.math
    a, b = m.vec3(1, 2, 2), m.vec3(-1, 0.5, 2)
    return [m.length(a), m.normalize(a), m.distance(a, b)]


def case_equality_of_types():
    a, b = qd.types.vector(3, qd.f32), qd.types.vector(3, qd.f32)
    return [
        a.n,
        a.get_shape() if hasattr(a, "get_shape") else a.shape,
        str(a.dtype),
        a is b or True,
    ]


def case_printing():
    print(qd.Vector([1, 2, 3]), qd.Matrix([[1, 2], [3, 4]]))
    print(qd.Vector([1.5, 2.0]))
    return 0


def case_iteration_and_unpacking():
    a, b, c = qd.Vector([1, 2, 3])
    return [a, b, c, [x * 2 for x in qd.Vector([4, 5])], sum(qd.Vector([1, 2, 3]))]


def case_copies():
    a = qd.Vector([1, 2])
    b = qd.Vector(a)
    b[0] = 5
    return [a, b]


def case_result_of_a_kernel():
    @qd.kernel
    def k() -> qd.types.vector(3, qd.f32):
        return qd.Vector([1.0, 2.0, 3.0])

    v = k()
    return [v, v.x, v.sum(), v + 1, list(v.to_numpy()), str(v.to_numpy().dtype)]


def case_element_of_a_field_is_live():
    f = qd.Vector.field(2, qd.i32, shape=2)
    f[0] = [1, 2]
    f[0].x += 5
    f[0][1] = 9
    v = f[0]
    return [f[0], v + 1, f[0].norm_sqr(), f.to_numpy()]


def mistake_type_called_with_a_number():
    """cannot be called outside Quadrants kernels"""
    qd.i32(2.7)


def mistake_shapes_differ():
    return qd.Vector([1, 2]) + qd.Vector([1, 2, 3])


def mistake_matmul_shapes():
    return qd.Matrix([[1, 2], [3, 4]]) @ qd.Vector([1, 2, 3])


def mistake_ragged():
    qd.Matrix([[1, 2], [3]])


def mistake_index_out_of_range():
    qd.Vector([1, 2, 3])[3]


def mistake_wrong_number_for_a_type():
    qd.types.vector(3, qd.f32)(1, 2)


def mistake_swizzle_missing():
    qd.Vector([1, 2]).z


def mistake_inverse_of_a_rectangle():
    qd.Matrix([[1, 2, 3], [4, 5, 6]]).inverse()


def mistake_vector_type_of_text():
    qd.types.vector(3, "f32")
