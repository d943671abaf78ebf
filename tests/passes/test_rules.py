"""Every rule against the definition: all operations on a value and constants, before and after.

An expression of one parameter is simplified and evaluated, as it was and as it became, for every
8-bit value, or for floats for values with all kinds of edges. Nothing may differ in any bit, with
``fast_math`` for integers and without for floats.
"""

import itertools
import math

import pytest
from qd_studio.engine import passes
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.ir import Builder, Func, Param, result_type
from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir.semantics import binary_fn, same_const, select, unary_fn
from qd_studio.engine.types import PRIMITIVE_TYPES, f16, f32, f64, i8, i32, normalize, u1, u8

RULES = ("binary_op_simplify", "constant_fold", "alg_simp")
EDGES = [-128, -127, -64, -8, -3, -2, -1, 0, 1, 2, 3, 4, 7, 8, 9, 64, 127, 128, 255]
REAL_EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0, 4.0, 0.1, 1e-30, 1e30, -1e38, 65504.0]
REAL_EDGES += [math.inf, -math.inf, math.nan, 2.5, -0.5, 1e-45]
BINARY = [c for c in range(C.COUNT) if C.BINARY[c] and c != C.TRUEDIV]


def constants(t):
    """Edge values of type ``t``, each once."""
    values = [normalize(x, t) for x in (REAL_EDGES if t.is_real else EDGES)]
    return list({repr(x): x for x in values}.values())


def inputs(t, step=1):
    if t.is_real or t.bits > 8:
        return constants(t)
    return sorted({*range(t.min, t.max + 1, step), *constants(t)})


def defined(code, t):
    try:
        binary_fn(code, t, t, result_type(code, (t, t)))
    except TypeError:
        return False
    return code != C.ATAN2 or t in (f32, f64)


def simplified(make, t, config):
    """The result ops of ``make(builder, x)`` before and after the rules."""
    funcs = []
    for rounds in (0, 3):
        func = Func("k", (Param("x", "scalar", t),))
        func.stage = "typed"
        b = Builder(func, func.body)
        results = make(b, b.emit(C.ARG_LOAD, (), 0, t))
        end = b.emit(C.RETURN, tuple(results))
        cx = passes.PassCx(func, config)
        for _ in range(rounds):
            for name in RULES:
                cx.run_pass(name)
        funcs.append(end.args)
    return zip(*funcs, strict=True)


def evaluate(op, x, known):
    """The value of ``op`` when the parameter is ``x``."""
    if op in known:
        return known[op]
    args = [evaluate(a, x, known) for a in op.args]
    types = [a.type for a in op.args]
    if op.code == C.ARG_LOAD:
        value = x
    elif op.code == C.CONST:
        value = op.attr
    elif op.code == C.SELECT:
        value = select(*args)
    elif C.UNARY[op.code]:
        value = unary_fn(op.code, types[0], op.type)(args[0])
    else:
        value = binary_fn(op.code, *types, op.type)(*args)
    known[op] = value
    return value


def assert_equal(make, t, fast_math=False, step=1):
    config = CompileConfig().replace(fast_math=fast_math)
    pairs = list(simplified(make, t, config))
    for x in inputs(t, step):
        old_values, new_values = {}, {}
        for before, after in pairs:
            old, new = evaluate(before, x, old_values), evaluate(after, x, new_values)
            assert same_const(old, new), f"x = {x}: {old} became {new}\n{before!r}\n{after!r}"


@pytest.mark.parametrize("t", [i8, u8, u1, i32, f16, f32], ids=str)
@pytest.mark.parametrize("code", BINARY, ids=C.NAME.__getitem__)
def test_one_operation_with_a_constant(code, t):
    if not defined(code, t):
        return

    def make(b, x):
        yield b.binary(code, x, x)
        for c in constants(t):
            const = b.const(c, t)
            if not (code == C.POW and t.is_int and c < 0):
                yield b.binary(code, x, const)
            if not (code == C.POW and t.is_int):
                yield b.binary(code, const, x)

    assert_equal(make, t, fast_math=t.is_int)


CHAINS = [C.ADD, C.SUB, C.MUL, C.DIV, C.BIT_AND, C.BIT_OR, C.BIT_XOR, C.BIT_SHL, C.BIT_SHR,
          C.BIT_SAR]  # fmt: skip


@pytest.mark.sampled(5)
@pytest.mark.parametrize("t", [i8, u8, f32], ids=str)
@pytest.mark.parametrize("first", CHAINS, ids=C.NAME.__getitem__)
def test_two_operations_with_constants(first, t):
    some = constants(t)[1::2] if t.is_int else constants(t)[:8]

    def make(b, x):
        for second in CHAINS:
            if defined(first, t) and defined(second, t):
                for c, d in itertools.product(some, some):
                    inner = b.binary(first, x, b.const(c, t))
                    yield b.binary(second, inner, b.const(d, t))

    assert_equal(make, t, fast_math=t.is_int, step=17)


@pytest.mark.parametrize("a", PRIMITIVE_TYPES, ids=str)
def test_casts_of_casts(a):
    def make(b, x):
        for inner, outer in itertools.product(PRIMITIVE_TYPES, PRIMITIVE_TYPES):
            yield b.emit(C.CAST_VALUE, (b.emit(C.CAST_VALUE, (x,), None, inner),), None, outer)

    assert_equal(make, a, fast_math=True, step=7)


@pytest.mark.parametrize("t", [i8, u8, u1, f32], ids=str)
def test_conditions(t):
    def make(b, x):
        zero, one = b.const(0, t), b.const(1, t)
        for code in (c for c in range(C.COUNT) if C.COMPARE[c]):
            for other in (zero, one, x):
                cond = b.binary(code, x, other)
                yield b.unary(C.LOGIC_NOT, cond)
                yield b.unary(C.LOGIC_NOT, b.unary(C.LOGIC_NOT, cond))
                for wide in (u8, i32, i8):
                    back = b.cast(cond, wide)
                    yield b.binary(C.CMP_NE, back, b.const(0, wide))
                    yield b.binary(C.CMP_EQ, b.const(0, wide), back)
                for p, q in itertools.product((0, 1), (0, 1)):
                    yield b.select(cond, b.const(p, u1), b.const(q, u1))
                yield b.select(cond, x, x)

    assert_equal(make, t)


@pytest.mark.parametrize("t", [i8, u8, u1], ids=str)
def test_identities_of_two_operations(t):
    def make(b, x):
        y = b.unary(C.BIT_NOT, x)
        yield b.binary(C.SUB, x, b.binary(C.BIT_AND, x, y))
        yield b.binary(C.SUB, x, b.binary(C.BIT_AND, b.const(9, t), x))
        yield b.unary(C.BIT_NOT, y)
        yield b.unary(C.NEG, b.unary(C.NEG, x))
        yield b.binary(C.DIV, x, x)
        yield b.binary(C.BIT_SHL, b.binary(C.BIT_SHR, x, b.const(3, t)), b.const(3, t))

    assert_equal(make, t, fast_math=True)


@pytest.mark.parametrize("exponent", [i32, f32], ids=str)
@pytest.mark.parametrize("fast_math", [False, True])
def test_powers(exponent, fast_math):
    """Multiplications and `pow` round differently; beyond that the value is the power."""
    config = CompileConfig().replace(fast_math=fast_math)
    powers = list(range(-40, 41))
    pairs = simplified(
        lambda b, x: [b.binary(C.POW, x, b.const(n, exponent)) for n in powers], f32, config
    )
    left = 0
    for n, (before, after) in zip(powers, pairs, strict=True):
        left += after.code == C.POW
        for x in (1.5, -0.75, 1.25, -2.0):
            old, new = evaluate(before, x, {}), evaluate(after, x, {})
            exact = not fast_math or n in (0, 1, 2, -1)
            assert old == new if exact else math.isclose(old, new, rel_tol=1e-5), (x, n)
    assert left == (16 if fast_math else 77)
