"""Functions of vectors and numbers: `qd.math` and what is next to it.

Each expression prints in a kernel what Quadrants prints for it, and gives the same in Python.
"""

import math
import re

import numpy as np
import pytest
from qd_studio import engine as qd

from tests.frontend.harness import load

HEAD = """
m = qd.math
vec2, vec3, vec4, mat2, mat3, mat4, ivec2 = (
    m.vec2, m.vec3, m.vec4, m.mat2, m.mat3, m.mat4, m.ivec2
)


@qd.kernel
def k(one: qd.f32, i1: qd.i32):
    v2 = vec2(one, 2)
    v3 = vec3(one, 2, 3)
    w3 = vec3(0.5 * one, -1, 2)
    n3 = m.normalize(w3)
"""

PRINTED = {
    "m.length(v2)": "2.236068",
    "m.dot(v2, v2)": "5.000000",
    "m.cross(v2, vec2(3, 4))": "-2.000000",
    "m.reflect(v3, n3)": "[0.142857, 3.714286, -0.428571]",
    "m.reflect(v2, m.normalize(v2))": "[-1.000000, -2.000000]",
    "m.refract(m.normalize(v3), n3, 0.5)": "[-0.121109, 0.776741, -0.618067]",
    "m.refract(m.normalize(v3), n3, 1.5)": "[0.000000, 0.000000, 0.000000]",
    "m.refract(m.normalize(-w3+vec3(1, 0, 0)), n3, 0.9)": "[0.172539, 0.440507, -0.881013]",
    "m.refract(m.normalize(v3), n3, 3.5)": "[0.000000, 0.000000, 0.000000]",
    "m.eye(3)":
        "[[1.000000, 0.000000, 0.000000], [0.000000, 1.000000, 0.000000], "
        "[0.000000, 0.000000, 1.000000]]",
    "m.eye(2)": "[[1.000000, 0.000000], [0.000000, 1.000000]]",
    "m.inverse(mat2(one, 2, 3, 4))": "[[-2.000000, 1.000000], [1.500000, -0.500000]]",
    "m.determinant(mat3(one, 2, 3, 4, 5, 6, 7, 8, 10))": "-3.000000",
    "m.inverse(mat3(one, 2, 3, 4, 5, 6, 7, 8, 10))":
        "[[-0.666667, -1.333333, 1.000000], [-0.666667, 3.666667, -2.000000], "
        "[1.000000, -2.000000, 1.000000]]",
    "m.inverse(mat4(one, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 12, 13, 14, 15, 26))":
        "[[-0.100000, -2.100000, 1.000000, 0.200000], "
        "[-1.350000, 4.650000, -2.000000, -0.300000], "
        "[1.000000, -2.000000, 1.000000, 0.000000], "
        "[0.200000, -0.300000, 0.000000, 0.100000]]",
    "m.rotation2d(0.5*one)": "[[0.877583, -0.479426], [0.479426, 0.877583]]",
    "m.rotation3d(0.1*one, 0.2, 0.3)":
        "[[0.942155, 0.197677, -0.270682, 0.000000], "
        "[-0.160881, 0.975170, 0.152184, 0.000000], "
        "[0.294044, -0.099833, 0.950564, 0.000000], [0.000000, 0.000000, 0.000000, 1.000000]]",
    "m.rot_by_axis(v3, 0.5*one)":
        "[[0.886327, 0.401884, -0.230031, 0.000000], "
        "[-0.366907, 0.912559, 0.180596, 0.000000], "
        "[0.282496, -0.075667, 0.956279, 0.000000], [0.000000, 0.000000, 0.000000, 1.000000]]",
    "m.rot_yaw_pitch_roll(0.1*one, 0.2, 0.3)":
        "[[0.956425, 0.289629, -0.036957, 0.000000], "
        "[-0.275096, 0.936293, 0.218351, 0.000000], "
        "[0.097843, -0.198669, 0.975170, 0.000000], [0.000000, 0.000000, 0.000000, 1.000000]]",
    "m.translate(1*one, 2, 3)":
        "[[1.000000, 0.000000, 0.000000, 1.000000], "
        "[0.000000, 1.000000, 0.000000, 2.000000], [0.000000, 0.000000, 1.000000, 3.000000], "
        "[0.000000, 0.000000, 0.000000, 1.000000]]",
    "m.scale(1*one, 2, 3)":
        "[[1.000000, 0.000000, 0.000000, 0.000000], "
        "[0.000000, 2.000000, 0.000000, 0.000000], [0.000000, 0.000000, 3.000000, 0.000000], "
        "[0.000000, 0.000000, 0.000000, 1.000000]]",
    "m.cmul(v2, vec2(3, 4))": "[-5.000000, 10.000000]",
    "m.cconj(v2)": "[1.000000, -2.000000]",
    "m.cdiv(v2, vec2(3, 4))": "[0.440000, 0.080000]",
    "m.csqrt(v2)": "[1.272020, 0.786151]",
    "m.csqrt(vec2(-1*one, -0.5))": "[0.242934, -1.029086]",
    "m.csqrt(vec2(0*one, 0))": "[0.000000, 0.000000]",
    "m.csqrt(vec2(4*one, 0))": "[2.000000, 0.000000]",
    "m.cinv(v2)": "[0.200000, -0.400000]",
    "m.cpow(v2, 2)": "[-3.000000, 4.000000]",
    "m.cpow(v2, 0.5*one)": "[1.272020, 0.786151]",
    "m.cpow(v2, -1)": "[0.200000, -0.400000]",
    "m.cpow(vec2(0*one, 0), 2)": "[0.000000, 0.000000]",
    "m.cexp(v2)": "[-1.131204, 2.471727]",
    "m.clog(v2)": "[0.804719, 1.107149]",
    "m.clog(vec2(-1*one, 0))": "[0.000000, 3.141593]",
    "m.vdir(0.5*one)": "[0.877583, 0.479426]",
    "m.log2(8.0*one)": "3.000000",
    "m.log2(v3)": "[0.000000, 1.000000, 1.584962]",
    "m.log2(i1+7)": "3.000000",
    "m.fract(v3*1.3)": "[0.300000, 0.600000, 0.900000]",
    "m.fract(-1.25*one)": "0.750000",
    "m.mix(v3, w3, 0.25*one)": "[0.875000, 1.250000, 2.750000]",
    "m.mix(v3, w3, vec3(0, 0.5, 1))": "[1.000000, 0.500000, 2.000000]",
    "m.mix(i1, i1+5, 0.5)": "3.500000",
    "m.clamp(v3, 0, 2)": "[1.000000, 2.000000, 2.000000]",
    "m.clamp(v3, w3, w3+1)": "[1.000000, 0.000000, 3.000000]",
    "m.step(0.5*one, v3)": "[1.000000, 1.000000, 1.000000]",
    "m.step(v3, w3)": "[0.000000, 0.000000, 0.000000]",
    "m.step(v3, 1.5)": "[1.000000, 0.000000, 0.000000]",
    "m.smoothstep(0.0, 5.0, v3)": "[0.104000, 0.352000, 0.648000]",
    "m.sign(w3)": "[1.000000, -1.000000, 1.000000]",
    "m.sign(i1-3)": "-1.000000",
    "m.sign(ivec2(i1-3, 2))": "[-1.000000, 1.000000]",
    "m.radians(v3)": "[0.017453, 0.034907, 0.052360]",
    "m.mod(v3, 2)": "[1.000000, 0.000000, 1.000000]",
    "m.mod(w3, 2)": "[0.500000, 1.000000, 0.000000]",
    "m.mod(i1-8, 3)": "2.000000",
    "m.isnan(v3)": "[0, 0, 0]",
    "m.isinf(one)": "0",
    "m.popcnt(i1+4)": "2",
    "m.clz(i1)": "31",
    "m.ffs(i1*8)": "4",
    "m.fns(i1*5, 0, 2)": "2",
    "m.atan2(v3, w3)": "[1.107149, 2.034444, 0.982794]",
    "m.pow(v3, 2)": "[1.000000, 4.000000, 9.000000]",
    "m.pow(v3, w3)": "[1.000000, 0.500000, 9.000000]",
    "m.round(v3*0.5)": "[1.000000, 1.000000, 2.000000]",
    "m.round(v3*0.5, qd.i32)": "[1, 1, 2]",
    "m.tanh(v3)": "[0.761594, 0.964028, 0.995055]",
    "qd.zero(v3)": "[0.000000, 0.000000, 0.000000]",
    "qd.one(v3)": "[1.000000, 1.000000, 1.000000]",
    "qd.zero(i1)": "0",
    "qd.one(one)": "1.000000",
    "qd.one(mat2(one, 2, 3, 4))": "[[1.000000, 1.000000], [1.000000, 1.000000]]",
    "qd.select(v3>1.5, v3, w3)": "[0.500000, 2.000000, 3.000000]",
    "qd.select(i1, v3, w3)": "[1.000000, 2.000000, 3.000000]",
    "v3 if i1 else w3": "[1.000000, 2.000000, 3.000000]",
    "qd.bit_cast(v3, qd.i32)": "[1065353216, 1073741824, 1077936128]",
    "v3.norm(1e-2)": "3.742994",
    "v3.normalized(0.5)": "[0.235757, 0.471514, 0.707271]",
    "v3@w3": "4.500000",
    "mat2(one, 2, 3, 4).frobenius_inner(mat2(1, 1, 1, 1))": "10.000000",
    "v3.zx.yx": "[1.000000, 3.000000]",
    "m.inf": "inf",
    "mat3(1)*one":
        "[[1.000000, 1.000000, 1.000000], [1.000000, 1.000000, 1.000000], "
        "[1.000000, 1.000000, 1.000000]]",
    "m.ivec3(1.7*one, 2, 3)": "[1, 2, 3]",
    "m.uvec2(i1, 2)": "[1, 2]",
    "vec3(1, v2)": "[1.000000, 1.000000, 2.000000]",
    "m.vec4(v3, 1)": "[1.000000, 2.000000, 3.000000, 1.000000]",
    "mat2(v2, v2)": "[[1.000000, 2.000000], [1.000000, 2.000000]]",
    "mat2([v2, v2])": "[[1.000000, 2.000000], [1.000000, 2.000000]]",
    "vec3(w3)": "[0.500000, -1.000000, 2.000000]",
    "vec3(0)": "[0.000000, 0.000000, 0.000000]",
}  # fmt: skip


ONLY_IN_KERNELS = {"m.popcnt(i1+4)", "m.clz(i1)", "m.ffs(i1*8)", "qd.bit_cast(v3, qd.i32)"}


@pytest.mark.parametrize("arch", ["cpu", "interp"])
def test_what_expressions_print(arch, tmp_path, capfd):
    body = "".join(f"    print({text!r}, {text}, sep=' -> ')\n" for text in PRINTED)
    qd.init(arch=getattr(qd, arch), log_level="error")
    try:
        load(HEAD + body, tmp_path)["k"](1.0, 1)
        qd.sync()
    finally:
        qd.reset()
    lines = capfd.readouterr().out.replace("-0.000000", "0.000000").splitlines()
    found = dict(line.split(" -> ", 1) for line in lines)
    wrong = {
        text: found.get(text) for text, want in PRINTED.items() if not alike(found[text], want)
    }
    assert not wrong


def alike(found, want):
    """Whether two printed texts differ in the last digits of floats at most, which machines do."""
    a, b = (re.split(r"(-?\d+\.\d+)", text) for text in (found, want))
    if len(a) != len(b) or a[::2] != b[::2]:
        return False
    return np.allclose([float(x) for x in a[1::2]], [float(x) for x in b[1::2]], 2e-6, 2e-6)


@pytest.mark.parametrize("text", [text for text in PRINTED if text not in ONLY_IN_KERNELS])
def test_python_scope_gives_the_same(text, tmp_path):
    names = load(HEAD.split("@qd.kernel")[0], tmp_path)
    names.update(one=1.0, i1=1, v2=names["vec2"](1, 2), v3=names["vec3"](1, 2, 3))
    names["w3"] = names["vec3"](0.5, -1, 2)
    names["n3"] = qd.math.normalize(names["w3"])
    found = eval(text, names)
    want = eval(PRINTED[text], {"inf": float("inf")})
    np.testing.assert_allclose(np.asarray(found), np.asarray(want), rtol=2e-6, atol=2e-6)


@qd.kernel
def parts(x: qd.types.ndarray(dtype=qd.f64, ndim=2), out: qd.types.ndarray(dtype=qd.f64, ndim=2)):
    for i in range(x.shape[0]):
        f, e = qd.frexp(x[i, 0])
        out[i, 0] = f
        out[i, 1] = e
        g, d = qd.frexp(qd.cast(x[i, 0], qd.f32))
        out[i, 2] = g
        out[i, 3] = d
        both = qd.frexp(qd.Vector([x[i, 0], 1.0]))
        out[i, 4] = both[0][0]
        out[i, 5] = both[1][1]


@pytest.mark.parametrize("arch", ["cpu", "interp"])
def test_frexp(arch):
    values = [10.0, -0.0001, 0.0, 1.0, 0.5, -1e300, 5e-324, 1e-310, 3e-39, 2.0**-149, 1e-30]
    qd.init(arch=getattr(qd, arch), log_level="error")
    try:
        x, out = np.array(values)[:, None].copy(), np.zeros((len(values), 6))
        parts(x, out)
    finally:
        qd.reset()
    assert [tuple(row) for row in out[:, :2].tolist()] == [math.frexp(v) for v in values]
    with np.errstate(over="ignore"):
        single = [float(np.float32(v)) for v in values]
    want = [math.frexp(v) if math.isfinite(v) else (v, 0) for v in single]
    assert [tuple(row) for row in out[:, 2:4].tolist()] == want
    assert out[:, 4].tolist() == out[:, 0].tolist() and set(out[:, 5]) == {1.0}


def test_exponentials_of_floats_are_right_to_the_last_place_but_one():
    qd.init(arch=qd.cpu)

    @qd.kernel
    def exponentials(x: qd.types.ndarray(dtype=qd.f32, ndim=1)):
        for i in x:
            x[i] = qd.exp(x[i])

    rng = np.random.default_rng(1)
    x = np.concatenate([rng.uniform(-87, 88.7, 200_000), rng.uniform(-1, 1, 50_000)], dtype="f4")
    y = x.copy()
    exponentials(y)
    exact = np.exp(x.astype(np.float64))
    assert np.max(np.abs(y - exact) / np.spacing(exact.astype(np.float32))) < 1.5
    ends = np.array([np.inf, -np.inf, np.nan, 0, 88.73, 1e30, -110, -1e30, 1e-40], np.float32)
    exponentials(ends)
    wanted = [np.inf, 0, np.nan, 1, np.inf, np.inf, 0, 0, 1]
    assert np.array_equal(ends, np.array(wanted, np.float32), equal_nan=True)
