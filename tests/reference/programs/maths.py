"""Mathematical functions on scalars, bits, random numbers, qd.math."""

import math

import quadrants as qd

INIT = {
    "case_isnan_and_isinf": {"fast_math": False},
    "case_functions_in_f64_by_default": {"default_fp": "f64"},
}
REAL = (-2.5, -1.0, -0.3, 0.0, 0.5, 0.9, 1.5, 2.5)


def case_trigonometry():
    @qd.kernel
    def k(a: qd.f32) -> tuple[qd.f32, qd.f32, qd.f32, qd.f32]:
        return qd.sin(a), qd.cos(a), qd.tan(a), qd.tanh(a)

    return [k(a) for a in REAL]


def case_atan2_promotes():
    @qd.kernel
    def k(a: qd.f64, b: qd.f32) -> qd.f64:
        return qd.atan2(a, b)

    @qd.kernel
    def i(a: qd.i32, b: qd.i32) -> qd.f32:
        return qd.atan2(a, b)

    return [k(0.1, 1.0), i(1, 2)]


def case_exp_log_sqrt_of_ints():
    @qd.kernel
    def k(a: qd.i32) -> tuple[qd.f32, qd.f32, qd.f32]:
        return qd.exp(a), qd.log(a), qd.sqrt(a)

    return [k(1), k(4)]


def case_functions_in_f64_by_default():
    @qd.kernel
    def k(a: qd.i32) -> tuple[qd.f64, qd.f64, qd.f64]:
        return qd.exp(a), qd.log(a), qd.sqrt(a)

    return [k(1), k(4)]


def case_floor_and_ceil():
    @qd.kernel
    def k(a: qd.f32) -> tuple[qd.f32, qd.f32, qd.i32, qd.i32]:
        return qd.floor(a), qd.ceil(a), qd.floor(a, qd.i32), qd.ceil(a, qd.i32)

    return [k(a) for a in REAL]


def case_round():
    @qd.kernel
    def k(a: qd.f32, b: qd.f64) -> tuple[qd.f32, qd.i32, qd.f64]:
        return qd.round(a), qd.round(a, qd.i32), qd.round(b)

    return [k(a, a) for a in (2.5, -2.5, 0.5, -0.5, 1.4, 1.6, -1.5)]


def case_abs_of_each_type():
    @qd.kernel
    def k(a: qd.i32, b: qd.f32, c: qd.i64) -> tuple[qd.i32, qd.f32, qd.i64]:
        return qd.abs(a), abs(b), abs(c)

    return [k(-3, -2.5, -(2**40)), k(3, 2.5, 2**40)]


def case_pow_function():
    @qd.kernel
    def k(a: qd.f32, b: qd.i32) -> tuple[qd.f32, qd.f32, qd.i32]:
        return qd.pow(a, b), pow(a, 0.5), qd.pow(b, 2)

    return [k(2.0, 3), k(9.0, 2)]


def case_functions_of_python_numbers():
    @qd.kernel
    def k() -> tuple[qd.f32, qd.f32, qd.f32, qd.f32]:
        return qd.sin(1), qd.floor(2), qd.sqrt(2), qd.max(1, 2.5)

    return k()


def case_python_math_of_constants():
    n = 5

    @qd.kernel
    def k() -> tuple[qd.f32, qd.i32]:
        return math.sqrt(2.0) * math.pi, math.factorial(n)

    return k()


def case_constants():
    @qd.kernel
    def k() -> tuple[qd.f64, qd.f64, qd.f32]:
        return qd.math.pi, qd.math.e, qd.math.inf

    return [k(), qd.math.pi, qd.math.e, qd.math.inf, math.isnan(qd.math.nan)]


def case_popcnt():
    @qd.kernel
    def k(a: qd.i32, b: qd.u64, c: qd.u8) -> tuple[qd.i32, qd.i32, qd.i32]:
        return qd.math.popcnt(a), qd.math.popcnt(b), qd.math.popcnt(c)

    return [k(0, 0, 0), k(7, 2**63 + 1, 255), k(-1, 2**64 - 1, 16)]


def case_clz():
    @qd.kernel
    def k(a: qd.i32, b: qd.i64) -> tuple[qd.i32, qd.i32]:
        return qd.math.clz(a), qd.math.clz(b)

    return [k(0, 0), k(1, 1), k(-1, -1), k(255, 2**40)]


def case_ffs():
    @qd.kernel
    def k(a: qd.i32, b: qd.i64) -> tuple[qd.i32, qd.i32]:
        return qd.math.ffs(a), qd.math.ffs(b)

    return [k(0, 0), k(1, 1), k(-8, 2**40)]


def case_fns():
    @qd.kernel
    def k(mask: qd.u32, base: qd.i32, offset: qd.i32) -> qd.i32:
        return qd.math.fns(mask, base, offset)

    return [k(0b10110, 0, 1), k(0b10110, 0, 2), k(0b10110, 0, 3), k(0b10110, 4, -1)]


def case_clamp_mix_step():
    @qd.kernel
    def k(a: qd.f32) -> tuple[qd.f32, qd.f32, qd.f32, qd.f32]:
        return (
            qd.math.clamp(a, -1.0, 1.0), qd.math.mix(2.0, 4.0, a), qd.math.step(0.5, a),
            qd.math.smoothstep(0.0, 2.0, a),
        )  # fmt: skip

    return [k(a) for a in REAL]


def case_clamp_of_ints():
    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        return qd.math.clamp(a, -3, 7)

    return [k(-10), k(0), k(100)]


def case_fract_sign_mod():
    @qd.kernel
    def k(a: qd.f32) -> tuple[qd.f32, qd.f32, qd.f32]:
        return qd.math.fract(a), qd.math.sign(a), qd.math.mod(a, 2.0)

    return [k(a) for a in REAL]


def case_isnan_and_isinf():
    @qd.kernel
    def k(a: qd.f32) -> tuple[qd.i32, qd.i32]:
        return qd.math.isnan(a), qd.math.isinf(a)

    return [k(1.0), k(math.nan), k(math.inf), k(-math.inf)]


def case_functions_of_qd_math_that_are_those_of_qd():
    @qd.kernel
    def k(a: qd.f32) -> tuple[qd.f32, qd.f32, qd.f32, qd.f32, qd.f32, qd.f32]:
        return (
            qd.math.sin(a), qd.math.exp(a), qd.math.sqrt(a), qd.math.floor(a),
            qd.math.max(a, 0.7), qd.math.pow(a, 2.0),
        )  # fmt: skip

    return [k(0.3), k(1.7)]


def case_qd_math_with_vectors():
    @qd.kernel
    def k() -> tuple[qd.f32, qd.f32, qd.f32]:
        a = qd.math.vec3(1.0, 2.0, 3.0)
        b = qd.math.vec3(-1.0, 0.5, 2.0)
        return qd.math.dot(a, b), qd.math.length(a), qd.math.distance(a, b)

    return k()


def case_vector_functions():
    @qd.kernel
    def cross() -> qd.math.vec3:
        return qd.math.cross(qd.math.vec3(1.0, 2.0, 3.0), qd.math.vec3(-1.0, 0.5, 2.0))

    @qd.kernel
    def normalize() -> qd.math.vec3:
        return qd.math.normalize(qd.math.vec3(1.0, 2.0, 2.0))

    @qd.kernel
    def reflect() -> qd.math.vec2:
        return qd.math.reflect(qd.math.vec2(1.0, -1.0), qd.math.vec2(0.0, 1.0))

    @qd.kernel
    def refract() -> qd.math.vec2:
        return qd.math.refract(qd.math.vec2(0.6, -0.8), qd.math.vec2(0.0, 1.0), 1.0 / 1.5)

    return [cross(), normalize(), reflect(), refract()]


def case_componentwise_with_vectors():
    @qd.kernel
    def k() -> qd.types.matrix(4, 3, qd.f32):
        a = qd.math.vec3(-0.5, 0.25, 2.5)
        return qd.Matrix.rows([
            qd.math.clamp(a, 0.0, 1.0), qd.math.fract(a), qd.math.sign(a),
            qd.math.mix(a, qd.math.vec3(1.0), 0.5),
        ])  # fmt: skip

    return k()


def case_vector_types_of_qd_math():
    @qd.kernel
    def k() -> tuple[qd.math.ivec2, qd.math.uvec3, qd.math.vec4, qd.math.mat2]:
        return (
            qd.math.ivec2(1.7, -2), qd.math.uvec3(1, 2, 3), qd.math.vec4(1, 2, 3, 4),
            qd.math.mat2(1, 2, 3, 4),
        )  # fmt: skip

    return k()


def case_vector_constructors():
    @qd.kernel
    def k() -> tuple[qd.math.vec3, qd.math.vec3, qd.math.vec4]:
        a = qd.math.vec2(1.0, 2.0)
        return qd.math.vec3(a, 3.0), qd.math.vec3(5.0), qd.math.vec4(a, a)

    return k()


def case_determinant_and_inverse():
    @qd.kernel
    def k() -> tuple[qd.f32, qd.math.mat2]:
        m = qd.math.mat2(4.0, 7.0, 2.0, 6.0)
        return qd.math.determinant(m), qd.math.inverse(m)

    return k()


def case_eye():
    @qd.kernel
    def k() -> qd.math.mat3:
        return qd.math.eye(3)

    return k()


def case_rotations():
    @qd.kernel
    def r2() -> qd.math.mat2:
        return qd.math.rotation2d(0.5)

    @qd.kernel
    def r3() -> qd.math.mat4:
        return qd.math.rotation3d(0.1, 0.2, 0.3)

    @qd.kernel
    def axis() -> qd.math.mat4:
        return qd.math.rot_by_axis(qd.math.vec3(0.0, 0.6, 0.8), 0.7)

    @qd.kernel
    def yaw() -> qd.math.mat4:
        return qd.math.rot_yaw_pitch_roll(0.1, 0.2, 0.3)

    return [r2(), r3(), axis(), yaw()]


def case_translate_and_scale():
    @qd.kernel
    def t() -> qd.math.mat4:
        return qd.math.translate(1.0, 2.0, 3.0)

    @qd.kernel
    def s() -> qd.math.mat4:
        return qd.math.scale(1.0, 2.0, 3.0)

    return [t(), s()]


def case_complex_numbers():
    @qd.kernel
    def k(a: qd.math.vec2, b: qd.math.vec2) -> qd.types.matrix(8, 2, qd.f32):
        return qd.Matrix.rows([
            qd.math.cconj(a), qd.math.cmul(a, b), qd.math.cdiv(a, b), qd.math.cinv(a),
            qd.math.csqrt(a), qd.math.cexp(a), qd.math.clog(a), qd.math.cpow(a, 3),
        ])  # fmt: skip

    return k(qd.Vector([1.0, 2.0]), qd.Vector([0.5, -1.5]))


def case_vdir():
    @qd.kernel
    def k() -> qd.math.vec2:
        return qd.math.vdir(0.75)

    return k()


def case_zero_and_one():
    @qd.kernel
    def k(a: qd.f32, b: qd.i32) -> tuple[qd.f32, qd.i32, qd.f32]:
        return qd.zero(a), qd.one(b), qd.one(a) / 2

    return k(3.0, 4)


def mistake_floor_of_an_int():
    """'floor' takes real inputs only, however 'i32' is provided"""

    @qd.kernel
    def k(a: qd.i32) -> qd.f32:
        return qd.floor(a)

    k(1)


def mistake_sin_of_an_int():
    """'sin' takes real inputs only, however 'i32' is provided"""

    @qd.kernel
    def k(a: qd.i32) -> qd.f32:
        return qd.sin(a)

    k(1)


def mistake_sin_of_two():
    @qd.kernel
    def k(a: qd.f32) -> qd.f32:
        return qd.sin(a, a)

    k(1.0)


def mistake_unknown_function():
    @qd.kernel
    def k(a: qd.f32) -> qd.f32:
        return qd.sinus(a)

    k(1.0)
