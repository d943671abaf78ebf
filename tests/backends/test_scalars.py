"""Every scalar operation, on every type, against `ir.semantics`."""

import math
import struct

import numpy as np
import pytest
from irkit import Kernel, array, filled
from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir.semantics import binary_fn, cast_fn, unary_fn
from qd_studio.engine.ir.typerules import result_type
from qd_studio.engine.types import PRIMITIVE_TYPES, f16, f32, f64, i32, u1

FLOATS = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -7.0, 0.1, 100.25, -1e-3, 6.1e4, 1e30,
    -1e30, 2.0**31, -(2.0**31), 2.0**40, 1e-40, math.inf, -math.inf, math.nan, 2049.0, 0.49999997,
    1.0009765625 + 2.0**-30,
]  # fmt: skip
UNARY = [c for c in range(C.COUNT) if C.UNARY[c] and c not in (C.CAST_VALUE, C.CAST_BITS)]
BINARY = [c for c in range(C.COUNT) if C.BINARY[c] and c != C.TRUEDIV]
EXACT = (C.SQRT, C.FLOOR, C.CEIL, C.ROUND)
ROUGH = {C.RSQRT} | {c for c in range(C.COUNT) if C.LIBM[c] and c not in EXACT}
ULPS = {f16: 2, f32: 4, f64: 4}


def samples(t):
    if t.is_real:
        return [float(t.np(x)) for x in FLOATS] if t is not f16 else halves()
    if t is u1:
        return [0, 1]
    edge = [t.min, t.min + 1, t.max, t.max - 1, t.max // 2, 0, 1, 2, 3, 5, 7, 31, 33, 100]
    return edge + ([-1, -2, -3, -7, -100] if t.is_signed else [])


def halves():
    with np.errstate(all="ignore"):
        return [float(np.float16(x)) for x in FLOATS]


def bits(value, t):
    form = {16: "<e", 32: "<f", 64: "<d"}[t.bits]
    raw = int.from_bytes(struct.pack(form, value), "little", signed=True)
    return raw if raw >= 0 else -(raw & ((1 << (t.bits - 1)) - 1))


def same(got, want, t, ulps=0):
    got, want = float(got) if t.is_real else int(got), want
    if not t.is_real or got == want:
        return got == want and (
            not t.is_real or ulps or math.copysign(1, got) == math.copysign(1, want)
        )
    if math.isnan(want) or math.isnan(got):
        return math.isnan(want) and math.isnan(got)
    return abs(bits(got, t) - bits(want, t)) <= ulps


def run_all(build, inputs, outs):
    """Run a kernel whose loop body ``build(kernel)`` gives one value for each output."""
    params = [array(f"x{n}", t) for n, (t, _) in enumerate(inputs)]
    params += [array(f"out{n}", t) for n, t in enumerate(outs)]
    kernel = Kernel(params)
    count = len(inputs[0][1])
    with kernel.loop(kernel.extent(0)):
        for n, value in enumerate(build(kernel)):
            kernel.store(len(inputs) + n, value)
    results = [np.zeros(count, t.np) for t in outs]
    kernel.run(*(filled(v, t) for t, v in inputs), *results, fast_math=False)
    return results


def defined(maker, *key):
    try:
        return maker(*key)
    except TypeError:
        return None


@pytest.mark.parametrize("t", PRIMITIVE_TYPES, ids=str)
def test_unary(t):
    cases = []
    for code in UNARY:
        result = result_type(code, (t,), f32)
        fn = defined(unary_fn, code, t, result)
        if fn is not None:
            cases.append((code, result, fn))
    values = samples(t)

    def build(kernel):
        x = kernel.load(0)
        return [kernel.b.emit(code, (x,), None, result) for code, result, _ in cases]

    got = run_all(build, [(t, values)], [result for _, result, _ in cases])
    for (code, result, fn), column in zip(cases, got, strict=True):
        for x, y in zip(values, column, strict=True):
            ulps = ULPS.get(result, 0) if code in ROUGH else 0
            assert same(y, fn(x), result, ulps), (C.NAME[code], x, y, fn(x))


@pytest.mark.parametrize("t", PRIMITIVE_TYPES, ids=str)
def test_binary(t):
    cases = []
    for code in BINARY:
        result = result_type(code, (t, t), f32)
        if code == C.ATAN2 and result is not t:
            continue
        fn = defined(binary_fn, code, t, t, result)
        if fn is not None:
            cases.append((code, result, fn))
    pairs = [(a, b) for a in samples(t) for b in samples(t)]

    def build(kernel):
        a, b = kernel.load(0), kernel.load(1)
        return [kernel.b.emit(code, (a, b), None, result) for code, result, _ in cases]

    inputs = [(t, [a for a, _ in pairs]), (t, [b for _, b in pairs])]
    got = run_all(build, inputs, [result for _, result, _ in cases])
    for (code, result, fn), column in zip(cases, got, strict=True):
        for (a, b), y in zip(pairs, column, strict=True):
            if code in (C.MIN, C.MAX) and a == b == 0:
                continue  # either zero
            ulps = ULPS.get(result, 0) if code in ROUGH else 0
            assert same(y, fn(a, b), result, ulps), (C.NAME[code], a, b, y, fn(a, b))


@pytest.mark.parametrize("source", PRIMITIVE_TYPES, ids=str)
def test_casts(source):
    values = samples(source)
    if source is f64:
        values = [*values, 65519.99, 65520.0, 2.0**-25, 2.0**-24 * 1.5 + 1e-20, 5.9604645e-08]
    if source.is_int and source.bits == 64:
        values = [*values, (1 << 53) + 1, (1 << 24) + 1, 2049, 2051, 65519, 65520]
    same_bits = [t for t in PRIMITIVE_TYPES if t.bits == source.bits]

    def build(kernel):
        x = kernel.load(0)
        out = [kernel.b.emit(C.CAST_VALUE, (x,), None, t) for t in PRIMITIVE_TYPES]
        return out + [kernel.b.emit(C.CAST_BITS, (x,), None, t) for t in same_bits]

    got = run_all(build, [(source, values)], [*PRIMITIVE_TYPES, *same_bits])
    makers = [(cast_fn(source, t), t) for t in PRIMITIVE_TYPES]
    makers += [(unary_fn(C.CAST_BITS, source, t), t) for t in same_bits]
    for (fn, t), column in zip(makers, got, strict=True):
        for x, y in zip(values, column, strict=True):
            if x != x and fn is not makers[PRIMITIVE_TYPES.index(t)][0]:
                continue  # the bits of a NaN are not defined
            assert same(y, fn(x), t), (str(source), str(t), x, y, fn(x))


@pytest.mark.parametrize("t", [t for t in PRIMITIVE_TYPES if t.is_int and t is not u1], ids=str)
def test_division_and_shifts_by_constants(t):
    codes = [C.DIV, C.MOD, C.FLOORDIV, C.FLOORMOD, C.BIT_SHL, C.BIT_SHR, C.BIT_SAR]
    constants = [0, 1, 2, 3, 7, t.max, t.bits, t.bits + 1] + ([-1, -3, t.min] * t.is_signed)
    cases = [
        (code, c)
        for code in codes
        for c in constants
        if t.min <= c <= t.max and not (C.SHIFT[code] and c < 0)
    ]
    values = samples(t)

    def build(kernel):
        x = kernel.load(0)
        return [kernel.b.emit(code, (x, kernel.b.const(c, t)), None, t) for code, c in cases]

    got = run_all(build, [(t, values)], [t] * len(cases))
    for (code, c), column in zip(cases, got, strict=True):
        fn = binary_fn(code, t, t, t)
        for x, y in zip(values, column, strict=True):
            assert int(y) == fn(x, c), (C.NAME[code], x, c)


@pytest.mark.parametrize("t", PRIMITIVE_TYPES, ids=str)
def test_select_and_constants(t):
    values = samples(t)
    constants = values[:6]

    def build(kernel):
        b = kernel.b
        x = kernel.load(0)
        positive = b.emit(C.CMP_GT, (x, b.const(0, t)), None, u1)
        chosen = [b.select(positive, x, b.const(c, t)) for c in constants]
        return chosen + [b.const(c, t) for c in constants]

    got = run_all(build, [(t, values)], [t] * (2 * len(constants)))
    for c, column in zip(constants, got, strict=False):
        for x, y in zip(values, column, strict=True):
            assert same(y, x if x > 0 else c, t)
    for c, column in zip(constants, got[len(constants) :], strict=True):
        assert all(same(y, c, t) for y in column)


def test_integer_powers_of_other_types():
    """The exponent of an integer power keeps its own type."""
    pairs = [(b, n) for b in (-3, -1, 0, 1, 2, 7) for n in (-3, -2, -1, 0, 1, 2, 5, 63)]
    from qd_studio.engine.types import i8, i64, u64

    for base_type, exponent in ((i32, i8), (i64, i32), (i32, i64), (f32, i32), (f64, i64)):
        fn = binary_fn(C.POW, base_type, exponent, base_type)
        inputs = [(base_type, [b for b, _ in pairs]), (exponent, [n for _, n in pairs])]
        (got,) = run_all(
            lambda k, t=base_type: [k.b.emit(C.POW, (k.load(0), k.load(1)), None, t)],
            inputs,
            [base_type],
        )
        for (b, n), y in zip(pairs, got, strict=True):
            b = float(b) if base_type.is_real else b
            assert same(y, fn(b, n), base_type, 4 if base_type.is_real else 0), (b, n)
    big = (1 << 64) - 1
    (got,) = run_all(
        lambda k: [k.b.emit(C.POW, (k.load(0), k.load(1)), None, u64)],
        [(u64, [3, 2]), (u64, [big, 64])],
        [u64],
    )
    assert [int(y) for y in got] == [pow(3, big, 1 << 64), 0]
