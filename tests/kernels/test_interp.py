"""The interpreter: each operation, memory, control flow, checks, prints, limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qd_studio import engine as qd
from qd_studio.engine import ir
from qd_studio.engine.backends import interp
from qd_studio.engine.backends.interp.backend import BACKEND
from qd_studio.engine.backends.messages import assert_text, number_text
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.errors import QuadrantsAssertionError, QuadrantsRuntimeError
from qd_studio.engine.errors import QuadrantsRuntimeTypeError as TypeProblem
from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir.semantics import binary_fn, cast_fn, same_const, unary_fn
from qd_studio.engine.types import PRIMITIVE_TYPES, f16, f32, f64, i32, u1


def kernel(body, params="", results="", stage="ast", tail=""):
    arrow = f" -> ({results})" if results else ""
    return ir.parse(f"kernel k({params}){arrow} stage={stage}{tail} {{\n{body}\n}}\n")


def numbers(t):
    if t.is_real:
        width = {f16: 16, f32: 32}.get(t, 64)
        return st.floats(width=width) | st.sampled_from([0.0, -0.0, math.inf, math.nan, 1.5, -2.5])
    edges = [0, 1] if t is u1 else [t.min, t.max, 0, 1, 2, 31]
    return st.sampled_from(edges) | st.integers(t.min, 1 if t is u1 else t.max)


OPERATIONS = [c for c in range(C.COUNT) if C.UNARY[c] or C.BINARY[c]]


@pytest.mark.parametrize("examples", [20, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("code", OPERATIONS, ids=lambda c: C.NAME[c])
def test_operations_compute_what_semantics_says(code, examples):
    """What the emitter writes out itself agrees with the function it stands for."""
    options = settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    options(given(data=st.data())(lambda data: computes_what_semantics_says(code, data)))()


def computes_what_semantics_says(code, data):
    types = [data.draw(st.sampled_from(PRIMITIVE_TYPES)) for _ in ir.CODES[code].operands]
    target = ir.result_type(code, tuple(types)) or data.draw(st.sampled_from(PRIMITIVE_TYPES))
    try:
        fn = unary_fn(code, types[0], target) if C.UNARY[code] else binary_fn(code, *types, target)
    except TypeError:
        return
    values = [data.draw(numbers(t)) for t in types]
    func = ir.Func("k", tuple(ir.Param(f"a{i}", "scalar", t) for i, t in enumerate(types)))
    func.results = (target,)
    builder = ir.Builder(func, func.body)
    args = tuple(builder.emit(C.ARG_LOAD, (), i, t) for i, t in enumerate(types))
    builder.emit(C.RETURN, (builder.emit(code, args, None, target),))
    (result,) = interp.run(func, values)
    assert same_const(result, fn(*values)), (types, target, values)
    assert isinstance(result, float) == target.is_real


@pytest.mark.parametrize("t", PRIMITIVE_TYPES, ids=str)
def test_every_element_type_loads_stores_and_adds(t):
    func = kernel(
        f"""  <*{t}> $0 = arg_addr [(0, False)]
  <i32> $1 = const 1
  <*{t}> $2 = external_ptr $0, $1 ['unsafe']
  <{t}> $3 = arg_load [1]
  <{t}> $4 = atomic_add $2, $3
  <{t}> $5 = atomic_xchg $2, $4
  <{t}> $6 = global_load $2
  $7 : return $4, $5, $6""",
        f"x: ndarray<{t}, 1>, v: {t}", f"{t}, {t}, {t}",
    )  # fmt: skip
    x = np.array([1, 0 if t is u1 else 5, 1], t.np)
    old, added, last = interp.run(func, [x, 1])
    assert (old, added, last) == ((0, 1, 0) if t is u1 else (5, 6, 5))
    assert x.tolist() == [1, old, 1]


def test_control_flow_of_the_frontend_stage():
    func = kernel(
        """  <i32> $0 = const 0
  <i32> $1 = arg_load [1]
  <i32> $2 = const 3
  <*i32> $3 = arg_addr [(0, False)]
  $4 : range_for $0, $1, $0, $2 {axes=(1, 0)} body {
    <i32> $5 = loop_index $4 [0]
    <i32> $6 = loop_index $4 [1]
    <u1> $7 = cmp_eq $5, $2
    $8 : if $7 then {
      $9 : continue
    } else {
    }
    <u1> $10 = cmp_eq $6, $2
    <i32> $11 = const 2
    <u1> $12 = cmp_eq $6, $11
    <u1> $13 = cmp_eq $5, $11
    <u1> $14 = bit_and $12, $13
    $15 : if $14 then {
      $16 : break
    } else {
    }
    <*i32> $17 = external_ptr $3 ['unsafe']
    <i32> $18 = atomic_add $17, $6
    <i32> $19 = const 10
    <i32> $20 = atomic_mul $17, $19
  }
  <*f32> $21 = alloca ['n']
  $22 : while body {
    <f32> $23 = local_load $21
    <i32> $24 = const 4
    <u1> $25 = cmp_lt $23, $24
    $26 : while_control $25
    <f32> $27 = atomic_add $21, $2
  }
  <f32> $28 = local_load $21
  $29 : return $28""",
        "x: ndarray<i32, 0>, n: i32", "i32",
    )  # fmt: skip
    x = np.zeros((), np.int32)
    assert interp.run(func, [x, 5]) == (6,)
    # Axis 1 is the outer one: rows 0 and 1 run over 0, 1, 2, 4; row 2 stops at 2.
    expected = 0
    for j, i in [(j, i) for j in range(3) for i in (0, 1, 2, 4)]:
        if (j, i) == (2, 2):
            break
        expected = (expected + j) * 10
    assert x == np.array(expected, np.int64).astype(np.int32)


TASKS = """  $0 : offloaded header {
    $1 : bounds
  } body {
    <*i32> $2 = global_tmp [4]
    <i32> $3 = arg_load [1]
    $4 : global_store $2, $3
    <*f64> $5 = global_tmp [8]
    <f64> $6 = global_load $5
    <u64> $7 = launch_seed
    $8 : return $6, $7
  }
  $9 : offloaded {kind='range_for'} header {
    <i32> $10 = const 1
    <*i32> $11 = global_tmp [4]
    <i32> $12 = global_load $11
    $13 : bounds $10, $12
  } body {
    <i32> $14 = loop_index $9 [0]
    <*i32> $15 = alloca ['']
    <i32> $16 = atomic_max $15, $14
    <i32> $17 = local_load $15
    <i64> $18 = linearize $14, $16, $10 [2]
    <*i32> $19 = arg_addr [(0, False)]
    <*i32> $20 = shift_ptr $19, $18
    $21 : global_store $20, $17
  }"""


def test_tasks_temporaries_and_addresses():
    func = kernel(TASKS, "x: ndarray<i32, 1>, n: i32", "f64, u64", "accesses", " global_tmp=16")
    x = np.zeros(6, np.int32)
    assert interp.run(func, [x, 5], seed=-1) == (0.0, 2**64 - 1)
    assert x.tolist() == [0, 1, 2, 3, 4, 0]
    with pytest.raises(QuadrantsRuntimeError, match=r"global_store .* is outside of the memory"):
        interp.run(func, [x, 8])


@pytest.mark.parametrize(
    ("indices", "good"), [((0, 0), True), ((2, 3), True), ((0, 4), False), ((-1, 1), False)]
)
def test_access_outside_of_an_axis(indices, good):
    text = """  <*i32> $0 = arg_addr [(0, False)]
  <i32> $1 = arg_load [1]
  <i32> $2 = arg_load [2]
  <*i32> $3 = external_ptr $0, $1, $2 ['{}']
  <i32> $4 = global_load $3
  $5 : return $4"""
    params = "x: ndarray<i32, 2>, i: i32, j: i32"
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    clamped = kernel(text.format("clamp"), params, "i32")
    assert interp.run(clamped, [x, *indices]) == (
        int(x[np.clip(indices[0], 0, 2), min(indices[1], 3)]),
    )
    func = kernel(text.format("unsafe"), params, "i32")
    if good:
        assert interp.run(func, [x, *indices]) == (x[indices],)
    else:
        func.body.ops[4].loc = ir.get_loc("k.py", 7, 4, 7, 9, "k")
        with pytest.raises(QuadrantsRuntimeError, match="global_load") as caught:
            interp.run(func, [x, *indices])
        assert (caught.value.line, caught.value.kernel) == (7, "k")


def test_pointer_that_is_never_used_may_be_wrong():
    func = kernel(
        """  <*i32> $0 = arg_addr [(0, False)]
  <i32> $1 = const 99
  <*i32> $2 = external_ptr $0, $1 ['unsafe']""",
        "x: ndarray<i32, 1>",
    )
    assert interp.run(func, [np.zeros(0, np.int32)]) == ()


def test_asserts():
    text = """  <i32> $0 = arg_load [0]
  <f32> $1 = const 0.5
  $2 : assert $0, $0, $1 {kind='%s' text='n = %%d, x = %%f, 100%%%%'}
  $3 : return $0"""
    user, bound = (kernel(text % kind, "n: i32", "i32") for kind in ("user", "bound"))
    user.body.ops[2].loc = bound.body.ops[2].loc = ir.get_loc("k.py", 3, 4, 3, 9, "k")
    for func, debug in ((user, True), (bound, True), (bound, False)):
        assert interp.run(func, [2], debug=debug) == (2,)
        with pytest.raises(QuadrantsAssertionError) as caught:
            interp.run(func, [0], debug=debug)
        error = caught.value
        assert error.message == "n = 0, x = 0.500000, 100%"
        assert (error.file, error.line, error.kernel) == ("k.py", 3, "k")
    assert interp.run(user, [0], debug=False) == (0,)


def test_print():
    pieces = ("x=", (), " ", (), " ", (), "|", (), " ", (".2f",), " ", ("08.3e",), "\n")
    func = kernel(
        """  <f32> $0 = arg_load [0]
  <f64> $1 = const 2.5
  <u1> $2 = const true
  <i8> $3 = const -3
  $4 : print $0, $1, $2, $3, $1, $0 [(PIECES)]""".replace("(PIECES)", repr(pieces)),
        "x: f32",
    )
    out = []
    interp.run(func, [1.25], print_fn=out.append)
    assert out == ["x=1.250000 2.500000000000 1|-3 2.50 1.250e+00\n"]
    interp.run(func, [math.inf], print_fn=out.append)
    assert out[1].startswith("x=inf ")
    assert number_text(math.nan, f64) == "nan"
    assert number_text(2.75, f32, "d") == "2"
    assert number_text(7, i32, ".1f") == "7.0"
    assert assert_text("%d of %s %", [7.5], [f32]) == "7 of %s %"


def test_steps_are_limited():
    func = kernel("  $0 : while body {\n    <i32> $1 = const 1\n    $2 : while_control $1\n  }")
    with pytest.raises(QuadrantsRuntimeError, match="step limit"):
        interp.run(func, [], max_steps=500)


def test_alloca_is_zero_each_time_it_is_reached():
    func = kernel(
        """  <i32> $0 = const 0
  <i32> $1 = const 3
  <*i32> $2 = arg_addr [(0, False)]
  $3 : range_for $0, $1 body {
    <i32> $4 = loop_index $3 [0]
    <*i32> $5 = alloca ['a']
    <i32> $6 = local_load $5
    $7 : local_store $5, $1
    <*i32> $8 = external_ptr $2, $4 ['unsafe']
    $9 : global_store $8, $6
  }""",
        "x: ndarray<i32, 1>",
    )
    x = np.ones(3, np.int32)
    interp.run(func, [x])
    assert x.tolist() == [0, 0, 0]


def test_random_numbers():
    for t in PRIMITIVE_TYPES:
        func = kernel(f"  <{t}> $0 = rand\n  $1 : return $0", "", str(t))
        seen = {interp.run(func, [], seed=s)[0] for s in range(200)}
        assert interp.run(func, [], seed=5) == interp.run(func, [], seed=5)
        assert len(seen) > (1 if t is u1 else 60)
        if t.is_real:
            assert all(0.0 <= v < 1.0 and float(t.np(v)) == v for v in seen)
        else:
            assert all(cast_fn(t, t)(v) == v and t.min <= v <= t.max for v in seen)


def test_arguments_are_checked():
    func = kernel("", "x: ndarray<i32, 2>")
    good = np.zeros((2, 2), np.int32)
    interp.run(func, [good])
    for bad in (3, good.astype(np.int64), good[0], good.T[:1], np.zeros((4, 4), np.int32)[::2]):
        with pytest.raises(TypeProblem):
            interp.run(func, [bad])
    with pytest.raises(QuadrantsRuntimeError, match="1 arguments needed, 2 given"):
        interp.run(func, [good, 1])


def test_as_a_backend():
    func = kernel(TASKS, "x: ndarray<i32, 1>, n: i32", "f64, u64", "offloaded", " global_tmp=16")
    assert BACKEND.available() == (True, "")
    artifact = BACKEND.lower(func, CompileConfig())
    meta = artifact.meta
    assert (meta.written, meta.seeded, len(meta.tasks), meta.tasks[1].axes) == ((0,), True, 2, 1)
    assert artifact.text("ir") == ir.to_text(func)
    assert "def kernel" in artifact.text("python")
    x = np.zeros(6, np.int32)
    assert BACKEND.load(artifact).launch([x, 3], 7) == (0.0, 7)
    assert x.tolist() == [0, 1, 2, 0, 0, 0]


@qd.func
def all_functions(a: qd.template()):
    return (
        qd.sin(a) + qd.cos(a) + qd.tan(a) + qd.asin(a) + qd.acos(a) + qd.exp(a) + qd.log(a)
        + qd.tanh(a) + qd.atan2(a, a) + a**a
    )  # fmt: skip


@qd.kernel
def sums(x: qd.types.ndarray(qd.f32, 1), y: qd.types.ndarray(qd.f16, 1)):
    for i in x:
        a, b = qd.cast(x[i], qd.f16), qd.cast(x[i], qd.f64)
        t = qd.cast(all_functions(a), qd.f64) + qd.cast(all_functions(x[i]), qd.f64)
        y[i] = qd.cast(t + all_functions(b), qd.f16)


def test_no_function_has_the_name_of_a_type():
    """Where a loop is run over arrays, the text names their types: f16, f32, f64."""
    qd.init(arch=qd.interp)
    x, y = np.linspace(0.1, 0.9, 3000, dtype=np.float32), np.zeros(3000, np.float16)
    sums(x, y)
    functions = np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.exp, np.log, np.tanh
    one = sum(f(np.float64(x)) for f in functions) + np.pi / 4 + np.float64(x) ** x
    np.testing.assert_allclose(y, 3 * one, rtol=1e-2)
