"""The table of derivatives: every operation, against calculus and differences, and at the edges."""

import math

import numpy as np
import pytest
from qd_studio.engine import passes
from qd_studio.engine.backends.base import find
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.ir import Builder, ForAttr, Func, Param, parse, to_text, verify
from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir.semantics import binary_fn, unary_fn
from qd_studio.engine.passes.autodiff.derivatives import (
    RESULT,
    RULES,
    contribution,
    flows,
    needs,
    tangent,
)
from qd_studio.engine.types import f16, f32, f64, i32, u8

FLOATS = (f64, f32, f16)
INF, NAN = math.inf, math.nan

# By each operand, from the operands.
CALCULUS = {
    C.NEG: (lambda x: -1.0,),
    C.ABS: (lambda x: math.copysign(1.0, x),),
    C.SQRT: (lambda x: 0.5 / math.sqrt(x),),
    C.RSQRT: (lambda x: -0.5 * x**-1.5,),
    C.EXP: (math.exp,),
    C.LOG: (lambda x: 1 / x,),
    C.SIN: (math.cos,),
    C.COS: (lambda x: -math.sin(x),),
    C.TAN: (lambda x: 1 / math.cos(x) ** 2,),
    C.ASIN: (lambda x: 1 / math.sqrt(1 - x * x),),
    C.ACOS: (lambda x: -1 / math.sqrt(1 - x * x),),
    C.TANH: (lambda x: 1 / math.cosh(x) ** 2,),
    C.INV: (lambda x: -1 / x**2,),
    C.ADD: (lambda a, b: 1.0, lambda a, b: 1.0),
    C.SUB: (lambda a, b: 1.0, lambda a, b: -1.0),
    C.MUL: (lambda a, b: b, lambda a, b: a),
    C.DIV: (lambda a, b: 1 / b, lambda a, b: -a / b**2),
    C.MOD: (lambda a, b: 1.0, lambda a, b: -float(math.trunc(a / b))),
    C.FLOORMOD: (lambda a, b: 1.0, lambda a, b: -float(math.floor(a / b))),
    C.MAX: (lambda a, b: float(a > b), lambda a, b: float(a <= b)),
    C.MIN: (lambda a, b: float(a < b), lambda a, b: float(a >= b)),
    C.POW: (lambda a, b: b * a ** (b - 1), lambda a, b: a**b * math.log(a)),
    C.ATAN2: (lambda a, b: b / (a * a + b * b), lambda a, b: -a / (a * a + b * b)),
}
STEPS = {C.SGN, C.FLOOR, C.CEIL, C.ROUND, C.FLOORDIV}
INTEGERS = {C.LOGIC_NOT, C.BIT_NOT, C.POPCNT, C.CLZ, C.FFS, C.CAST_BITS} | {
    c for c in range(C.COUNT) if C.BITWISE[c] or C.COMPARE[c]
}
POINTS = ((0.3, 0.7), (0.9, 0.2), (0.55, 0.5), (0.125, 0.75), (0.6, 0.25))


def derivative_kernel(t, codes):
    """Contribution of 1.5 by each operand, and by both: rows of ``out``, three for each code."""
    params = (Param("a", "ndarray", t, 1), Param("b", "ndarray", t, 1),
              Param("out", "ndarray", t, 2))  # fmt: skip
    func = Func("k", params)
    b = Builder(func, func.body)
    zero, n = b.const(0, i32), b.emit(C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, (), (0, 0), i32)
    bases = [b.emit(C.ARG_ADDR, (), (i, False), _pointer(t)) for i in range(3)]
    loop = b.range_for((zero, n), ForAttr())
    with b.inside(loop.regions[0]):
        i = b.loop_index(loop, 0)

        def element(base, *at):
            return b.emit(C.EXTERNAL_PTR, (base, *at), "unsafe", base.type)

        x, y = (b.load(element(base, i)) for base in bases[:2])
        g = b.const(1.5, t)
        for row, code in enumerate(codes):
            args = (x,) if C.UNARY[code] else (x, y)
            op = b.emit(code, args)
            made = [contribution(b, op, k, g, lambda v: v) for k in range(len(args))]
            made += [None] * (2 - len(made))
            both = tangent(b, op, [g, None] if len(args) == 2 else [g])
            for k, value in enumerate([*made, both]):
                if value is not None:
                    at = b.const(3 * row + k, i32)
                    b.store(element(bases[2], at, i), b.cast(value, t))
    assert not verify(func)
    return func


def _pointer(t):
    from qd_studio.engine.types import pointer_to

    return pointer_to(t)


def run_derivatives(t, codes, points, backend):
    func = parse(to_text(derivative_kernel(t, codes)))
    config = CompileConfig(fast_math=False, default_fp=t.name if t is not f16 else "f32")
    found = find(backend)
    passes.run(func, config, found.pipeline(config))
    a, b = (np.array(column, t.np) for column in zip(*points, strict=True))
    out = np.zeros((3 * len(codes), len(points)), t.np)
    found.load(found.lower(func, config)).launch([a, b, out])
    return out.astype(float).reshape(len(codes), 3, len(points)) / 1.5


def derivative(code, points, t=f64):
    return run_derivatives(t, [code], points, "interp")[0]


def test_every_operation_that_computes_has_a_rule():
    computing = {c for c in range(C.COUNT) if C.UNARY[c] or C.BINARY[c]} | {C.SELECT}
    assert set(RULES) == computing - {C.TRUEDIV}, "truediv has become div before"
    for code, row in RULES.items():
        assert len(row) == (1 if C.UNARY[code] else 3 if code == C.SELECT else 2)
    smooth = set(CALCULUS) | {C.CAST_VALUE, C.SELECT}
    assert smooth | STEPS | INTEGERS == set(RULES)
    for code in STEPS | INTEGERS:
        assert not any(RULES[code]), C.NAME[code]


@pytest.mark.parametrize("backend", ["interp", "cpu"])
@pytest.mark.parametrize("t", FLOATS, ids=str)
def test_derivatives_are_those_of_calculus(t, backend):
    codes = [c for c in CALCULUS if not (t is f16 and c == C.ATAN2)]
    found = run_derivatives(t, codes, POINTS, backend)
    points = [[float(t.np(v)) for v in p] for p in POINTS]
    eps = float(np.finfo(t.np).eps)
    for code, rows in zip(codes, found, strict=True):
        count = 1 if C.UNARY[code] else 2
        for k, fn in enumerate(CALCULUS[code]):
            want = [fn(*p[:count]) for p in points]
            np.testing.assert_allclose(rows[k], want, rtol=40 * eps, err_msg=C.NAME[code])
        np.testing.assert_array_equal(rows[2], rows[0], err_msg=f"tangent of {C.NAME[code]}")


@pytest.mark.parametrize("code", CALCULUS, ids=lambda c: C.NAME[c])
def test_derivatives_are_those_of_differences(code):
    h = 1e-6
    rows = derivative(code, POINTS)
    for at, (a, b) in enumerate(POINTS):
        if C.UNARY[code]:
            fn = unary_fn(code, f64, f64)
            want = [(fn(a + h) - fn(a - h)) / (2 * h)]
        else:
            two = binary_fn(code, f64, f64, f64)
            want = [(two(a + h, b) - two(a - h, b)) / (2 * h),
                    (two(a, b + h) - two(a, b - h)) / (2 * h)]  # fmt: skip
        np.testing.assert_allclose(rows[: len(want), at], want, rtol=1e-7, atol=1e-8)


EDGES = [
    # operation, operands, derivative by each
    (C.ABS, (0.0, 0), (0.0,)),
    (C.ABS, (-0.0, 0), (0.0,)),
    (C.ABS, (-INF, 0), (-1.0,)),
    (C.SQRT, (0.0, 0), (INF,)),
    (C.SQRT, (-1.0, 0), (NAN,)),
    (C.RSQRT, (0.0, 0), (-INF,)),
    (C.INV, (0.0, 0), (-INF,)),
    (C.INV, (INF, 0), (0.0,)),
    (C.LOG, (0.0, 0), (INF,)),
    (C.EXP, (-INF, 0), (0.0,)),
    (C.EXP, (INF, 0), (INF,)),
    (C.TANH, (50.0, 0), (0.0,)),
    (C.TANH, (-INF, 0), (0.0,)),
    (C.SIN, (INF, 0), (NAN,)),
    (C.ASIN, (1.0, 0), (INF,)),
    (C.ASIN, (-1.0, 0), (INF,)),
    (C.ACOS, (1.0, 0), (-INF,)),
    (C.ASIN, (2.0, 0), (NAN,)),
    (C.MAX, (2.0, 2.0), (0.0, 1.0)),
    (C.MIN, (2.0, 2.0), (0.0, 1.0)),
    (C.MAX, (0.0, -0.0), (0.0, 1.0)),
    (C.MAX, (NAN, 1.0), (0.0, 1.0)),
    (C.MAX, (1.0, NAN), (1.0, 0.0)),
    (C.MIN, (NAN, 1.0), (0.0, 1.0)),
    (C.MIN, (1.0, NAN), (1.0, 0.0)),
    (C.MAX, (INF, INF), (0.0, 1.0)),
    (C.DIV, (1.0, INF), (0.0, 0.0)),
    (C.DIV, (1.0, 0.0), (INF, -INF)),
    (C.MUL, (0.0, 3.0), (3.0, 0.0)),
    (C.POW, (0.0, 0.0), (0.0, 0.0)),
    (C.POW, (0.0, 1.0), (1.0, 0.0)),
    (C.POW, (0.0, 2.0), (0.0, 0.0)),
    (C.POW, (0.0, 0.5), (INF, 0.0)),
    (C.POW, (-2.0, 3.0), (12.0, NAN)),
    (C.POW, (-2.0, 0.0), (0.0, NAN)),
    (C.POW, (5.0, 0.0), (0.0, math.log(5.0))),
    (C.MOD, (-7.5, 2.0), (1.0, 3.0)),
    (C.MOD, (7.5, -2.0), (1.0, 3.0)),
    (C.FLOORMOD, (-7.5, 2.0), (1.0, 4.0)),
    (C.FLOORMOD, (7.5, -2.0), (1.0, 4.0)),
    (C.MOD, (6.0, 2.0), (1.0, -3.0)),
    (C.ATAN2, (0.0, 0.0), (NAN, NAN)),
    (C.ATAN2, (0.0, -1.0), (-1.0, -0.0)),
]


@pytest.mark.parametrize("code", sorted({e[0] for e in EDGES}), ids=lambda c: C.NAME[c])
def test_edge_values(code):
    points = [p for c, p, _ in EDGES if c == code]
    wants = [w for c, _, w in EDGES if c == code]
    rows = derivative(code, points)
    for at, want in enumerate(wants):
        np.testing.assert_allclose(
            rows[: len(want), at], want, rtol=1e-15, err_msg=f"{C.NAME[code]}{points[at]}"
        )


@pytest.mark.parametrize("code", CALCULUS, ids=lambda c: C.NAME[c])
def test_nan_comes_out_as_nan(code):
    """Of what depends on the operand; ``abs`` has no slope there, ``min`` and ``max`` choose."""
    rows = derivative(code, [(NAN, 0.5)])
    linear = code in (C.NEG, C.ADD, C.SUB)
    if not linear and code not in (C.ABS, C.MIN, C.MAX):
        assert np.isnan(rows[: len(CALCULUS[code]), 0]).any()
    if linear:
        assert np.isfinite(rows[:2, 0]).all()


POWERS = [(3.0, 2), (-3.0, 3), (0.0, 0), (0.0, 1), (0.0, 2), (2.0, -2), (-2.0, 1), (5.0, 0)]


@pytest.mark.parametrize("backend", ["interp", "cpu"])
@pytest.mark.parametrize(("t", "n"), [(f64, i32), (f32, i32), (f16, i32), (f32, u8)], ids=str)
def test_powers_with_an_integer_exponent(t, n, backend):
    """At run time, where ``n - 1`` must not wrap, and with the constants 0 and 3."""
    text = f"""kernel k(x: ndarray<{t}, 1> grad 2, n: ndarray<{n}, 1>, x.grad: ndarray<{t}, 1>,
        y: ndarray<{t}, 2> grad 4, y.grad: ndarray<{t}, 2>) stage=typed autodiff=forward {{
      <i32> $0 = const 0
      <i32> $1 = external_tensor_shape_along_axis [(0, 0)]
      <*{t}> $2 = arg_addr [(0, False)]
      <*{n}> $3 = arg_addr [(1, False)]
      <*{t}> $4 = arg_addr [(3, False)]
      <{n}> $5 = const 0
      <{n}> $6 = const 3
      <i32> $7 = const 1
      <i32> $8 = const 2
      $10 : range_for $0, $1 body {{
        <i32> $11 = loop_index $10 [0]
        <*{t}> $12 = external_ptr $2, $11 ['unsafe']
        <{t}> $13 = global_load $12
        <*{n}> $14 = external_ptr $3, $11 ['unsafe']
        <{n}> $15 = global_load $14
        <{t}> $16 = pow $13, $15
        <{t}> $17 = pow $13, $5
        <{t}> $18 = pow $13, $6
        <*{t}> $19 = external_ptr $4, $0, $11 ['unsafe']
        <*{t}> $20 = external_ptr $4, $7, $11 ['unsafe']
        <*{t}> $21 = external_ptr $4, $8, $11 ['unsafe']
        $22 : global_store $19, $16
        $23 : global_store $20, $17
        $24 : global_store $21, $18
      }}
    }}""".replace("\n        y", " y")
    func = parse(text)
    config = CompileConfig(fast_math=False)
    found = find(backend)
    passes.run(func, config, found.pipeline(config))
    powers = [p for p in POWERS if n.is_signed or p[1] >= 0]
    x = np.array([p[0] for p in powers], t.np)
    e = np.array([p[1] for p in powers], n.np)
    y, dy = np.zeros((3, len(powers)), t.np), np.zeros((3, len(powers)), t.np)
    found.load(found.lower(func, config)).launch([x, e, np.ones_like(x), y, dy])
    want = [k * a ** (k - 1) if k else 0.0 for a, k in powers]
    np.testing.assert_allclose(dy[0], np.array(want), rtol=1e-3 if t is f16 else 1e-6)
    np.testing.assert_array_equal(dy[1], 0.0)
    np.testing.assert_allclose(dy[2], 3 * x.astype(float) ** 2, rtol=1e-3 if t is f16 else 1e-6)


def _values(*types):
    func = Func("k", tuple(Param(f"p{i}", "scalar", t) for i, t in enumerate(types)))
    b = Builder(func, func.body)
    return b, [b.emit(C.ARG_LOAD, (), i, t) for i, t in enumerate(types)]


def test_select_hands_on_to_what_it_gave():
    from qd_studio.engine.types import u1

    b, (cond, x, y) = _values(u1, f32, f32)
    op = b.select(cond, x, y)
    assert flows(op) == (1, 2)
    assert needs(op, 1) == needs(op, 2) == (cond,)
    assert contribution(b, op, 0, x, lambda v: v) is None
    first = contribution(b, op, 1, x, lambda v: v)
    second = contribution(b, op, 2, x, lambda v: v)
    assert (first.args[1], first.args[2].attr) == (x, 0.0)
    assert (second.args[1].attr, second.args[2]) == (0.0, x)
    both = tangent(b, op, [None, y, x])
    assert both.args == (cond, y, x)


def test_casts_cast_the_derivative_and_integers_end_it():
    b, (x, n, g) = _values(f32, i32, f64)
    wide = b.cast(x, f64)
    down = contribution(b, wide, 0, g, lambda v: v)
    assert (down.code, down.type, down.args) == (C.CAST_VALUE, f32, (g,))
    assert tangent(b, wide, [x]).type is f64
    for op in (b.cast(n, f32), b.cast(x, i32), b.binary(C.ADD, n, n), b.binary(C.MUL, n, n)):
        assert flows(op) == ()
        assert contribution(b, op, 0, g, lambda v: v) is None
        assert tangent(b, op, [None] * len(op.args)) is None


def test_only_the_values_that_are_needed_are_asked_for():
    b, (x, y, g) = _values(f64, f64, f64)
    for code, row in RULES.items():
        if code in INTEGERS or code in (C.SELECT, C.CAST_BITS):
            continue
        args = (x,) if C.UNARY[code] else (x, y)
        op = b.emit(code, args, None, f64 if code == C.CAST_VALUE else None)
        for k, partial in enumerate(row):
            asked = []
            contribution(b, op, k, g, lambda v, asked=asked: asked.append(v) or v)
            assert set(asked) <= set(needs(op, k))
            if partial is not None:
                assert all(i == RESULT or 0 <= i < len(args) for i in partial.needs)
                assert set(asked) == set(needs(op, k)), C.NAME[code]


def test_a_difference_of_two_tangents_is_one_operation():
    b, (x, y, g) = _values(f64, f64, f64)
    before = len(b.ops)
    op = b.binary(C.SUB, x, y)
    assert tangent(b, op, [g, x]).code == C.SUB
    assert len(b.ops) == before + 2
