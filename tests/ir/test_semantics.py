"""Scalar semantics against NumPy where machines agree, against the table's words elsewhere."""

import math
import random

import numpy as np
import pytest
from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir.semantics import binary_fn, cast_fn, const_key, same_const, unary_fn
from qd_studio.engine.types import (
    INTEGER_TYPES,
    REAL_TYPES,
    ROUND_REAL,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    normalize,
    u1,
    u8,
    u16,
    u32,
    u64,
)  # fmt: skip

INTS = [t for t in INTEGER_TYPES if t is not u1]


def integers(t, rng, n=200):
    edge = [t.min, t.max, 0, 1, t.max - 1, t.min + 1, t.max // 2]
    return edge + [rng.randint(t.min, t.max) >> rng.randrange(t.bits) for _ in range(n)]


def floats(t, rng, n=300):
    edge = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, -0.5, 2.5]
    top = 4 if t is f16 else 30
    free = [rng.uniform(-1, 1) * 10.0 ** rng.randint(-top, top) for _ in range(n)]
    return [normalize(x, t) for x in edge + free]


def same(a, b):
    return (a != a and b != b) or (a == b and math.copysign(1, a) == math.copysign(1, b))


@pytest.mark.parametrize("t", INTS, ids=str)
def test_integer_arithmetic_wraps_as_numpy(t):
    rng = random.Random(1)
    values = integers(t, rng)
    ops = {C.ADD: np.add, C.SUB: np.subtract, C.MUL: np.multiply, C.BIT_AND: np.bitwise_and,
           C.BIT_OR: np.bitwise_or, C.BIT_XOR: np.bitwise_xor, C.MAX: np.maximum, C.MIN: np.minimum,
           C.CMP_LT: np.less, C.CMP_GE: np.greater_equal, C.CMP_EQ: np.equal}  # fmt: skip
    for code, np_op in ops.items():
        fn = binary_fn(code, t, t, u1 if C.COMPARE[code] else t)
        for a, b in zip(values, rng.sample(values, len(values)), strict=True):
            x, y = np.array([a], t.np), np.array([b], t.np)
            assert fn(a, b) == int(np_op(x, y)[0]), (C.NAME[code], a, b)


@pytest.mark.parametrize("t", INTS, ids=str)
def test_integer_division(t):
    rng = random.Random(2)
    div, mod = binary_fn(C.DIV, t, t, t), binary_fn(C.MOD, t, t, t)
    floordiv, floormod = binary_fn(C.FLOORDIV, t, t, t), binary_fn(C.FLOORMOD, t, t, t)
    values = integers(t, rng)
    for a, b in zip(values, rng.sample(values, len(values)), strict=True):
        if b == 0:
            assert div(a, b) == mod(a, b) == floordiv(a, b) == floormod(a, b) == 0
        elif a == t.min and b == -1:
            assert div(a, b) == floordiv(a, b) == t.min
            assert mod(a, b) == floormod(a, b) == 0
        else:
            assert div(a, b) * b + mod(a, b) == a
            assert abs(mod(a, b)) < abs(b)
            assert mod(a, b) == 0 or (mod(a, b) < 0) == (a < 0)
            assert (floordiv(a, b), floormod(a, b)) == divmod(a, b)


def test_shift_amounts_are_taken_modulo_the_width():
    assert binary_fn(C.BIT_SHL, i32, i32, i32)(1, 33) == 2
    assert binary_fn(C.BIT_SHL, i8, i8, i8)(1, 7) == -128
    assert binary_fn(C.BIT_SHR, i32, i32, i32)(-1, 28) == 15
    assert binary_fn(C.BIT_SAR, i32, i32, i32)(-16, 2) == -4
    assert binary_fn(C.BIT_SAR, u32, u32, u32)(1 << 31, 31) == 1
    assert binary_fn(C.BIT_SHR, i64, i64, i64)(-1, -1) == 1
    assert binary_fn(C.BIT_SHL, u1, u1, u1)(1, 1) == 1


def test_bit_counts():
    assert unary_fn(C.POPCNT, i8, i32)(-1) == 8
    assert unary_fn(C.CLZ, u16, i32)(0) == 16
    assert unary_fn(C.CLZ, i32, i32)(-1) == 0
    assert unary_fn(C.FFS, i64, i32)(-8) == 4
    assert unary_fn(C.FFS, i64, i32)(0) == 0
    assert unary_fn(C.BIT_NOT, u1, u1)(1) == 0


def test_integer_power():
    power = binary_fn(C.POW, i32, i32, i32)
    assert [power(3, 4), power(2, 31), power(0, 0)] == [81, -(2**31), 1]
    assert [power(2, -1), power(1, -5), power(-1, -5), power(-1, -4), power(0, -1)] == [
        0, 1, -1, 1, 0,
    ]  # fmt: skip
    assert binary_fn(C.POW, f64, i32, f64)(0.5, -3) == 8.0


@pytest.mark.parametrize("t", REAL_TYPES, ids=str)
def test_real_arithmetic_rounds_as_numpy(t):
    rng = random.Random(3)
    values = floats(t, rng)
    ops = {C.ADD: np.add, C.SUB: np.subtract, C.MUL: np.multiply, C.DIV: np.divide, C.MOD: np.fmod}
    with np.errstate(all="ignore"):
        for code, np_op in ops.items():
            fn = binary_fn(code, t, t, t)
            for a, b in zip(values, rng.sample(values, len(values)), strict=True):
                want = float(np_op(t.np(a), t.np(b)))
                assert same(fn(a, b), want), (C.NAME[code], a, b)
        for code, np_op in {C.FLOOR: np.floor, C.CEIL: np.ceil, C.SQRT: np.sqrt}.items():
            fn = unary_fn(code, t, t)
            for a in values:
                assert same(fn(a), float(np_op(t.np(a)))), (C.NAME[code], a)


def test_real_edges():
    assert binary_fn(C.MAX, f32, f32, f32)(math.nan, 1.0) == 1.0
    assert binary_fn(C.MIN, f32, f32, f32)(1.0, math.nan) == 1.0
    assert math.isnan(binary_fn(C.MIN, f32, f32, f32)(math.nan, math.nan))
    rounded = unary_fn(C.ROUND, f64, f64)
    assert [rounded(x) for x in (0.5, -0.5, 1.5, 2.5, -2.5, 0.49999999999999994)] == [
        1, -1, 2, 3, -3, 0,
    ]  # fmt: skip
    assert same(rounded(-0.25), -0.0)
    assert unary_fn(C.LOG, f32, f32)(0.0) == -math.inf
    assert math.isnan(unary_fn(C.LOG, f32, f32)(-1.0))
    assert unary_fn(C.EXP, f32, f32)(89.0) == math.inf
    assert math.isnan(unary_fn(C.SIN, f64, f64)(math.inf))
    assert binary_fn(C.POW, f64, f64, f64)(-0.0, -1.0) == -math.inf
    assert binary_fn(C.POW, f64, f64, f64)(-10.0, 401.0) == -math.inf
    assert math.isnan(binary_fn(C.POW, f64, f64, f64)(-8.0, 1 / 3))
    assert unary_fn(C.SGN, f32, f32)(math.nan) == 0.0
    assert unary_fn(C.LOGIC_NOT, f32, u1)(math.nan) == 0


def test_float_mod_has_the_sign_of_the_divisor():
    floormod = binary_fn(C.FLOORMOD, f64, f64, f64)
    assert [floormod(-7.0, 3.0), floormod(7.0, -3.0), floormod(7.5, 2.0)] == [2.0, -2.0, 1.5]
    assert binary_fn(C.FLOORDIV, f64, f64, f64)(-7.0, 2.0) == -4.0


def test_float_mod_fits_to_float_floor_division():
    """20 is a little less than 25 times the f32 next to 0.8, but the quotient rounds to 25."""
    b = ROUND_REAL[f32](0.8)
    assert binary_fn(C.FLOORDIV, f32, f32, f32)(20.0, b) == 25.0
    assert binary_fn(C.FLOORMOD, f32, f32, f32)(20.0, b) == 0.0


@pytest.mark.parametrize("source", [i64, u64, i32], ids=str)
@pytest.mark.parametrize("target", REAL_TYPES, ids=str)
def test_integer_to_real_rounds_once(source, target):
    rng = random.Random(4)
    cast = cast_fn(source, target)
    for x in integers(source, rng, 500):
        with np.errstate(all="ignore"):
            array = np.array([x], source.np)
            want = array.astype(f32.np).astype(f16.np) if target is f16 else array.astype(target.np)
        if target is not f16 or abs(x) < 1 << 24:
            assert cast(x) == float(want[0]), x
    # A tie in f32 that going through f64 would round the wrong way.
    assert cast_fn(i64, f32)((1 << 60) + (1 << 36) + 1) == float((1 << 60) + (1 << 37))


def test_real_to_integer_saturates():
    assert cast_fn(f64, u8)(300.7) == 255
    assert cast_fn(f64, u8)(-3.0) == 0
    assert cast_fn(f32, i32)(math.inf) == i32.max
    assert cast_fn(f32, i64)(-math.inf) == i64.min
    assert cast_fn(f32, i8)(math.nan) == 0
    assert cast_fn(f64, i16)(-2.9) == -2
    assert cast_fn(f64, u1)(0.25) == cast_fn(f64, u1)(math.nan) == cast_fn(i32, u1)(256) == 1
    assert cast_fn(i32, u16)(-1) == 65535


def test_bits():
    assert unary_fn(C.CAST_BITS, f32, i32)(1.0) == 0x3F800000
    assert unary_fn(C.CAST_BITS, i64, f64)(-(1 << 63)) == 0.0
    assert math.copysign(1, unary_fn(C.CAST_BITS, u16, f16)(0x8000)) == -1
    assert unary_fn(C.CAST_BITS, i8, u8)(-1) == 255
    with pytest.raises(TypeError, match="sizes differ"):
        unary_fn(C.CAST_BITS, i32, f64)


def test_mixed_operands_are_converted_first():
    assert binary_fn(C.ADD, i32, f64, f64)(1, 0.5) == 1.5
    assert binary_fn(C.CMP_LT, i32, u32, u1)(-1, 1) == 0
    assert binary_fn(C.TRUEDIV, i32, i32, f32)(1, 4) == 0.25
    assert unary_fn(C.SQRT, i32, f32)(9) == 3.0


def test_meaningless_types_are_refused():
    with pytest.raises(TypeError, match="bit_and is not defined for f32"):
        binary_fn(C.BIT_AND, f32, f32, f32)
    with pytest.raises(TypeError, match="sin is not defined for i32"):
        unary_fn(C.SIN, i32, i32)


def test_constants_are_distinguished():
    assert not same_const(0.0, -0.0)
    assert same_const(math.nan, float("nan"))
    assert same_const(1, 1.0)
    assert len({const_key(x) for x in (0.0, -0.0, math.nan, 1.0, 0)}) == 4


def test_overflowing_constants_become_infinite_without_a_warning():
    assert normalize(1e300, f32) == f32(1e300) == math.inf
    assert normalize(-70000.0, f16) == -math.inf
    assert normalize(300, u8) == 44
    assert normalize(-1, u32) == u32.max
    assert i8(200) == -56
    assert u16(1.5) == 1
