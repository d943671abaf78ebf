"""Instructions of first-tier text that LLVM's fastest code generator does not know: what they
become gives the bits that they give, in code without passes and in full code."""

import ctypes
import itertools
import math

import numpy as np
import pytest
from qd_studio.engine.backends.cpu import native
from qd_studio.engine.backends.llvm import deadline, toolchain
from qd_studio.engine.backends.llvm.text import constant
from qd_studio.engine.types import f16, f32, f64, i8, i16, i32, i64

pytestmark = [
    pytest.mark.not_on_device("it is about text for processors"),
    pytest.mark.skipif(
        not toolchain.host_target().arch.startswith("x86_64"), reason="the text is for x86"
    ),
]

TYPES = {"half": f16, "float": f32, "double": f64, "i8": i8, "i16": i16, "i32": i32, "i64": i64}
BITS = {"half": "u2", "float": "u4", "double": "u8"}
NANS = {  # signalling, negative with a payload
    "half": (0x7D00, 0xFE01), "float": (0x7FA00000, 0xFFC00001),
    "double": (0x7FF4000000000000, 0xFFF8000000000001),
}  # fmt: skip
REAL = ("minnum", "maxnum", "minimumnum", "maximumnum", "fabs")
INT = ("smin", "smax", "umin", "umax", "abs")
SHORT = {"half": "f16", "float": "f32", "double": "f64"}

TEXT = """\
define void @f(ptr noalias %p, ptr noalias %q, ptr noalias %o, i64 %n) {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %j, %head ]
  %pa = getelementptr {ty}, ptr %p, i64 %i
  %pb = getelementptr {ty}, ptr %q, i64 %i
  %po = getelementptr {ty}, ptr %o, i64 %i
  %a = load {ty}, ptr %pa
  %b = load {ty}, ptr %pb
{line}
  store {ty} %r, ptr %po
  %j = add i64 %i, 1
  %c = icmp slt i64 %j, %n
  br i1 %c, label %head, label %done
done:
  ret void
}}
declare {ty} @llvm.{name}({types})
"""


def values(ty):
    """Signed zeros, NaNs, infinities, denormals and limits."""
    if ty not in BITS:
        limits = np.iinfo(ty.replace("i", "int"))
        least, most = int(limits.min), int(limits.max)
        return np.array([0, 1, -1, least, most, least + 1, 5, -7], limits.dtype)
    of = np.dtype({"half": "f2", "float": "f4", "double": "f8"}[ty])
    limits = np.finfo(of)
    some = [0.0, 1.0, 2.5, math.inf, limits.tiny, limits.smallest_subnormal, limits.max]
    plain = np.array([*some, *(-x for x in some), math.nan], of)
    return np.concatenate([plain, np.array(NANS[ty], BITS[ty]).view(of)])


def lines(ty, op):
    """Calls of ``op``: of two values, and of a value and a constant on either side."""
    name = f"{op}.{SHORT.get(ty, ty)}"
    if op in ("fabs", "abs"):
        rest = ", i1 false" if op == "abs" else ""
        yield name, f"  %r = call {ty} @llvm.{name}({ty} %a{rest})"
        return
    t = TYPES[ty]
    some = (0.0, -0.0, 1.0, math.inf, -math.inf, math.nan) if t.is_real else (0, -1)
    texts = [constant(value, t) for value in some]
    pairs = [("%a", "%b"), *(("%a", x) for x in texts), *((x, "%b") for x in texts)]
    for a, b in pairs:
        flags = "nsz " if "imum" in op else ""
        yield name, f"  %r = call {flags}{ty} @llvm.{name}({ty} {a}, {ty} {b})"


def results(text, level, a, b):
    """What `f` computes, as bits; all NaNs are one."""
    module = toolchain.machine(toolchain.host_target(), level).parse(text)
    if level:
        module.optimise(level)
    code = native.load(native.finish(module.object_code(), ("f",)), ("f",))
    out = np.zeros_like(a)
    f = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(code.addresses["f"])
    f(a.ctypes.data, b.ctypes.data, out.ctypes.data, len(a))
    bits = out.view(f"u{out.itemsize}").copy()
    if a.dtype.kind == "f":
        bits[np.isnan(out)] = 1 << (8 * out.itemsize - 1) | 1
    return bits


@pytest.mark.parametrize(
    ("ty", "op"), [(ty, op) for ty in TYPES for op in (REAL if ty in BITS else INT)]
)
def test_same_bits(ty, op):
    some = values(ty)
    pairs = list(itertools.product(range(len(some)), repeat=2))
    a, b = (np.ascontiguousarray(some[[pair[k] for pair in pairs]]) for k in (0, 1))
    for name, line in lines(ty, op):
        types = {"fabs": ty, "abs": f"{ty}, i1"}.get(op, f"{ty}, {ty}")
        made = deadline.quick(line, "%qd.q7")
        # Numbers of f16 are computed in f32, for which there is no simpler form. A minimum with a
        # constant NaN is not emitted.
        assert (made == [line]) == (ty == "half" or constant(math.nan, f64) in line)
        texts = [
            TEXT.format(ty=ty, name=name, types=types, line=x) for x in (line, "\n".join(made))
        ]
        found = results(texts[1], 0, a, b)
        for level in (0, 2):
            np.testing.assert_array_equal(found, results(texts[0], level, a, b), line)


def test_hidden_zero():
    found = deadline.quick('  %zero.i32 = call i32 asm "", "=r,0"(i32 0)', "%qd.q7")
    assert found == ["  %zero.i32 = add i32 0, 0"]


@pytest.mark.parametrize("line", [
    "  %v1 = call float @llvm.sqrt.f32(float %v0)",
    "  %v1 = call <4 x float> @llvm.minnum.v4f32(<4 x float> %v0, <4 x float> %v2)",
    "  %v1 = call i1 @qd.late(ptr %kernarg, ptr %qd.fuel)",
    "  call void @task(ptr %kernarg)",
])  # fmt: skip
def test_others_stay(line):
    assert deadline.quick(line, "%qd.q7") == [line]


@pytest.mark.parametrize("flags", ["", "nnan reassoc nsz arcp contract afn "])
def test_flags_are_left_out(flags):
    line = f"  %v3 = call {flags}float @llvm.maxnum.f32(float %v1, float 1.000000e+00)"
    assert deadline.quick(line, "%q") == [
        "  %q = fcmp ogt float %v1, 1.000000e+00",
        "  %v3 = select i1 %q, float %v1, float 1.000000e+00",
    ]
