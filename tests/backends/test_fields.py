"""Fields and elements of several components: the CPU agrees with the interpreter, and what a frame
knows of them from its beginning."""

import random

import numpy as np
import pytest
from qd_studio.engine import passes
from qd_studio.engine.backends import base, interp
from qd_studio.engine.backends.llvm.text import names_of
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.errors import (
    QuadrantsAssertionError,
    QuadrantsInternalError,
    QuadrantsRuntimeTypeError,
)
from qd_studio.engine.ir import Builder, ForAttr, Func, Param, parse, to_text
from qd_studio.engine.ir import codes as C
from qd_studio.engine.types import ElementLayout, f32, f64, i32, pointer_to

from tests.passes.qdir import _assert_close, arguments
from tests.passes.random_ir import random_func, random_terms


def sweep(seed):
    """A loop over a field of any layout that fills it, and another field, from its indices."""
    rng = random.Random(seed)
    ndim = rng.randrange(1, 4)
    shape = tuple(rng.choice((1, 4, 6, 8, 12)) for _ in range(ndim))
    origin = tuple(rng.choice((0, 0, -3, 5)) for _ in range(ndim))
    params = [
        Param(
            name, "field", i32, ndim, layout=ElementLayout(shape, origin, random_terms(rng, shape))
        )
        for name in "xy"
    ]
    func = Func("sweep", tuple(params))
    b = Builder(func, func.body)
    bases = [b.emit(C.ARG_ADDR, (), (i, False), pointer_to(i32)) for i in range(2)]
    bounds = [b.const(k, i32) for o, n in zip(origin, shape, strict=True) for k in (o, o + n)]
    order = tuple(rng.sample(range(ndim), ndim)) if rng.random() < 0.5 else None
    loop = b.range_for(tuple(bounds), ForAttr(axes=order))
    with b.inside(loop.regions[0]):
        index = [b.loop_index(loop, axis) for axis in range(ndim)]
        value = index[0]
        for other in index[1:]:
            value = b.binary(C.ADD, b.binary(C.MUL, value, b.const(100, i32)), other)
        x, y = (b.emit(C.EXTERNAL_PTR, (base, *index), "unsafe", pointer_to(i32)) for base in bases)
        b.store(y, b.binary(C.SUB, value, b.load(x)))
        b.store(x, value)
    return func


SHIFT = """\
kernel shift(x: ndarray<f32, 1>, field a: f32[8], s: f32, field b: f32[8; 2]) stage=ast {
  <i32> $0 = const 0
  <i32> $1 = const 8
  <i32> $2 = const 1
  <*f32> $3 = arg_addr [(0, False)]
  <*f32> $4 = arg_addr [(1, False)]
  <*f32> $5 = arg_addr [(3, False)]
  <f32> $6 = arg_load [2]
  $7 : range_for $0, $1 body {
    <i32> $8 = loop_index $7 [0]
    <*f32> $9 = external_ptr $3, $8 ['unsafe']
    <*f32> $10 = external_ptr $4, $8 ['unsafe']
    <*f32> $11 = external_ptr $5, $8, $2 ['unsafe']
    <f32> $12 = global_load $9
    <f32> $13 = add $12, $6
    $14 : global_store $10, $13
    $15 : global_store $11, $12
  }
}
"""


def compiled(text, target="cpu", **options):
    func = parse(text)
    config = CompileConfig().replace(**options)
    backend = base.find(target)
    passes.run(func, config, backend.pipeline(config))
    return backend.load(backend.lower(func, config))


def flat(values):
    return np.array(values, np.float32)


def test_random_functions_agree_with_the_interpreter():
    config = CompileConfig().replace(fast_math=False)
    for seed in range(25):
        func = random_func(600 + seed, (i32, f32, f64), ops=80, fields=True)
        func.stage = "ast"
        for op in func.body.ops:
            if op.code == C.RANGE_FOR:
                op.attr = op.attr._replace(strictly_serialized=True)
        expected = arguments(func, seed)
        wanted = interp.run(func, expected)
        text = to_text(func)
        for options in ({}, {"check_out_of_bound": True}, {"advanced_optimization": False}):
            values = arguments(func, seed)
            executable = compiled(text, fast_math=config.fast_math, **options)
            _assert_close(list(wanted), list(executable.launch(values)), True)
            for a, b in zip(expected, values, strict=True):
                if isinstance(a, np.ndarray):
                    _assert_close(a.ravel().tolist(), b.ravel().tolist(), True)


def test_sweeps_over_fields_of_any_layout():
    for seed in range(40):
        func = sweep(seed)
        expected = arguments(func, seed)
        interp.run(func, expected)
        values = arguments(func, seed)
        compiled(to_text(func), check_out_of_bound=seed % 4 == 0).launch(values)
        for a, b in zip(expected, values, strict=True):
            assert np.array_equal(a, b), to_text(func)


@pytest.mark.parametrize("target", ["cpu", "interp"])
def test_a_launch_takes_the_fields_it_is_given(target):
    executable = compiled(SHIFT, target)
    for _ in range(3):
        a, b = np.zeros(8, np.float32), np.zeros(16, np.float32)
        executable.launch((flat(range(8)), a, 10.0, b))
        assert a.tolist() == list(range(10, 18))
        assert b[1::2].tolist() == list(range(8))
        assert not b[::2].any()


def test_bound_fields_are_in_every_new_argument_buffer():
    executable = compiled(SHIFT)
    pool = executable.arguments()
    a, b = np.zeros(8, np.float32), np.zeros(16, np.float32)
    pool.bind_fields((a.ctypes.data, b.ctypes.data))
    other = np.zeros(8, np.float32)
    executable.launch((flat([5.0] * 8), other, 1.0, np.zeros(16, np.float32)))
    assert not a.any()
    assert other.tolist() == [6.0] * 8
    for s in (1.0, 2.0):
        args = pool.free.pop() if pool.free else pool.new()
        x = flat(range(8))
        pool.pack(args.view, pool.start, x.ctypes.data, 8, s)
        assert pool.enter(args) == 0
        pool.free.append(args)
        assert a.tolist() == [i + s for i in range(8)]
        assert b[1::2].tolist() == list(range(8))


def test_argument_buffers_are_not_made_before_the_fields_are_known():
    with pytest.raises(QuadrantsInternalError, match="does not know its fields"):
        compiled(SHIFT).arguments().new()


def test_a_written_field_and_an_array_that_overlap_are_seen_before_anything_runs():
    memory = np.zeros(40, np.float32)
    executable = compiled(SHIFT)
    b = np.zeros(16, np.float32)
    for start, clash in ((0, False), (1, True), (8, True), (15, True), (16, False)):
        memory[:] = 7
        values = (memory[start : start + 8], memory[8:16], 1.0, b)
        if clash:
            with pytest.raises(ValueError, match="overlaps"):
                executable.launch(values)
            assert (memory == 7).all()
        else:
            executable.launch(values)
            assert (memory[8:16] == 8).all()
    # Only the memory between its base and its end counts, and an empty array overlaps nothing.
    executable.launch((memory[:8], memory[8:16], 1.0, memory[16:32]))


def test_fields_may_share_their_cells():
    text = """\
kernel k(field a: f32[4] layout(0*3), field b: f32[4] layout(0*3), field v: f32[2; 2]) stage=ast {
  <i32> $0 = const 0
  <i32> $1 = const 4
  <*f32> $2 = arg_addr [(0, False)]
  <*f32> $3 = arg_addr [(1, False)]
  $4 : range_for $0, $1 body {
    <i32> $5 = loop_index $4 [0]
    <*f32> $6 = external_ptr $2, $5 ['unsafe']
    <*f32> $7 = external_ptr $3, $5 ['unsafe']
    <f32> $8 = cast_value $5
    $9 : global_store $6, $8
    <f32> $10 = global_load $6
    <f32> $11 = mul $10, $10
    $12 : global_store $7, $11
  }
}
"""
    cells = np.full(12, -1.0, np.float32)
    compiled(text).launch((cells[:10], cells[1:11], np.zeros(4, np.float32)))
    assert cells.reshape(4, 3).tolist() == [[i, i * i, -1.0] for i in range(4)]
    # No check: fields never overlap.
    executable = compiled(text)
    assert executable.meta.written == (0, 1)
    executable.launch((cells[:10], cells[:10], cells[:4]))


@pytest.mark.parametrize("target", ["cpu", "interp"])
def test_an_index_outside_is_reported_as_the_user_wrote_it(target):
    text = """\
kernel k(field grid: i32[-4:4, 8; 3], v: ndarray<i32, 1; 2>, i: i32, j: i32, c: i32) stage=ast {
  <i32> $0 = arg_load [2]
  <i32> $1 = arg_load [3]
  <i32> $2 = arg_load [4]
  <*i32> $3 = arg_addr [(0, False)]
  <*i32> $4 = external_ptr $3, $0, $1, $2 ['unsafe']
  $5 : global_store $4, $0
  <*i32> $6 = arg_addr [(1, False)]
  <*i32> $7 = external_ptr $6, $1, $2 ['unsafe']
  $8 : global_store $7, $1
}
"""
    executable = compiled(text, target, check_out_of_bound=True)
    field, v = np.zeros(8 * 8 * 3, np.int32), np.zeros((9, 2), np.int32)
    executable.launch((field, v, -4, 7, 1))
    assert field[7 * 3 + 1] == -4
    assert v[7, 1] == 7
    start = "(kernel=k) Accessing field (grid) of size (8, 8) offset (-4, 0) with indices"
    end = "of an element of shape (3)"
    for i, j, c in ((-5, 0, 0), (4, 0, 0), (0, 8, 1), (0, 0, 3), (0, 0, -1)):
        with pytest.raises(QuadrantsAssertionError) as error:
            executable.launch((field, v, i, j, c))
        assert error.value.message == f"{start} ({i}, {j}) and component ({c}) {end}"
    with pytest.raises(QuadrantsAssertionError) as error:
        executable.launch((field, v, 0, 0, 2))
    assert error.value.message == (
        "[kernel=k] Out of bound access to ndarray at arg 1 with indices [0] and component [2] "
        "(parameter v, shape [9], elements of shape [2])"
    )


def test_the_interpreter_looks_at_what_it_is_given():
    executable = compiled(SHIFT, "interp")
    x, a, b = flat(range(8)), np.zeros(8, np.float32), np.zeros(16, np.float32)
    for values, message in (
        ((x, a.reshape(2, 4), 0.0, b), "a must have 1 axes"),
        ((x, a, 0.0, b[:15]), "field b spans 16 scalars, not 15"),
        ((x.reshape(8, 1), a, 0.0, b), "x must have 1 axes"),
    ):
        with pytest.raises(QuadrantsRuntimeTypeError, match=message):
            executable.launch(values)
    vectors = compiled("kernel k(v: ndarray<f32, 1; 3>) stage=ast {\n}\n", "interp")
    vectors.launch((np.zeros((5, 3), np.float32),))
    with pytest.raises(QuadrantsRuntimeTypeError, match=r"elements of shape \(3,\)"):
        vectors.launch((np.zeros((5, 2), np.float32),))


def test_names_in_generated_code_are_unique():
    names = names_of(["x", "p.vel[1]", "p_vel_1", "x", "", "größe", "[0]", "0"])
    assert names[:2] == ["x", "p_vel_1"]
    assert len(set(names)) == len(names)
    assert all("." not in name for name in names)
