"""Loops, branches, locals, temporaries, returns: hand-written IR on the CPU."""

import numpy as np
import pytest
from irkit import Kernel, array, execute, filled, scalar
from qd_studio.engine.ir import ForAttr, parse
from qd_studio.engine.ir import codes as C
from qd_studio.engine.types import PRIMITIVE_TYPES, f32, f64, i32, i64, pointer_to, u1, u64


def order_of(axes, reverse, bounds):
    """The index tuples a nest visits, in order."""
    k = Kernel([array("out", i32, 2), array("count", i32)])
    b = k.b
    flat = tuple(b.const(x, i32) for pair in bounds for x in pair)
    loop = b.range_for(flat, ForAttr(axes=axes, reversed=reverse))
    with b.inside(loop.regions[0]):
        zero = b.const(0, i32)
        at = k.load(1, zero)
        for axis in range(len(bounds)):
            pointer = b.emit(
                C.SHIFT_PTR,
                (
                    b.emit(C.ARG_ADDR, (), (0, False), pointer_to(i32)),
                    b.emit(C.LINEARIZE, (at, b.const(axis, i32), k.extent(0, 1)), 2),
                ),
                None,
                pointer_to(i32),
            )
            b.store(pointer, b.loop_index(loop, axis))
        k.store(1, b.binary(C.ADD, at, b.const(1, i32)), zero)
    out, count = np.full((64, len(bounds)), -99, np.int32), np.zeros(1, np.int32)
    k.run(out, count)
    return [tuple(map(int, row)) for row in out[: count[0]]]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axes", [None, (0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_nests_visit_every_index_in_the_order_of_their_axes(axes, reverse):
    bounds = [(0, 2), (-1, 2), (5, 7)]
    step = -1 if reverse else 1
    ranges = [list(range(*b))[::step] for b in bounds]
    order = axes or (0, 1, 2)
    want = []
    for x in ranges[order[0]]:
        for y in ranges[order[1]]:
            for z in ranges[order[2]]:
                by_axis = dict(zip(order, (x, y, z), strict=True))
                want.append((by_axis[0], by_axis[1], by_axis[2]))
    assert order_of(axes, reverse, bounds) == want


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "pair", [(3, 3), (5, 2), (i32.max, i32.min), (i32.min, i32.min), (i32.max - 2, i32.max),
             (i32.min, i32.min + 2)]
)  # fmt: skip
def test_empty_and_extreme_ranges(pair, reverse):
    step = -1 if reverse else 1
    assert order_of(None, reverse, [pair]) == [(i,) for i in list(range(*pair))[::step]]


def test_while_and_continue():
    """Sum of the odd numbers below n, with `continue` in a `while` and in a loop."""
    text = """
    kernel k(n: i32) -> (i32, i32) stage=accesses {
      $0 : offloaded header {
        $1 : bounds
      } body {
        <*i32> $2 = alloca ['i']
        <*i32> $3 = alloca ['sum']
        <i32> $4 = arg_load [0]
        <i32> $5 = const 1
        <i32> $6 = const 0
        $7 : while body {
          <i32> $8 = local_load $2
          <u1> $9 = cmp_lt $8, $4
          $10 : while_control $9
          <i32> $11 = add $8, $5
          $12 : local_store $2, $11
          <i32> $13 = bit_and $8, $5
          <u1> $14 = cmp_eq $13, $6
          $15 : if $14 then {
            $16 : continue
          } else {
          }
          <i32> $17 = local_load $3
          <i32> $18 = add $17, $8
          $19 : local_store $3, $18
        }
        <*i32> $20 = alloca ['other']
        $21 : range_for $6, $4 body {
          <i32> $22 = loop_index $21 [0]
          <i32> $23 = bit_and $22, $5
          <u1> $24 = cmp_eq $23, $6
          $25 : if $24 then {
            $26 : continue
          } else {
          }
          <i32> $27 = local_load $20
          <i32> $28 = add $27, $22
          $29 : local_store $20, $28
        }
        <i32> $30 = local_load $3
        <i32> $31 = local_load $20
        $32 : return $30, $31
      }
    }
    """
    for n in (0, 1, 2, 9, 10):
        want = sum(range(1, n, 2))
        assert execute(parse(text), (n,)) == (want, want)


def test_a_local_is_zero_whenever_it_comes_into_being():
    k = Kernel([array("out", i32)])
    b = k.b
    with k.loop(5) as i:
        local = b.alloca(i32, "x")
        b.store(local, b.binary(C.ADD, b.load(local), i))
        k.store(0, b.load(local))
    out = np.zeros(5, np.int32)
    k.run(out)
    assert out.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("t", PRIMITIVE_TYPES, ids=str)
def test_arguments_locals_and_results_of_every_type(t):
    """A scalar argument through a local variable and an array, and back as a result."""
    k = Kernel([scalar("a", t), array("x", t)], (t, t))
    b = k.b
    local = b.alloca(t, "v")
    b.store(local, b.emit(C.ARG_LOAD, (), 0, t))
    old = k.load(1, b.const(0, i32))
    k.store(1, b.load(local), b.const(1, i32))
    b.emit(C.RETURN, (b.load(local), old), None)
    edge = [0, 1] if t is u1 else [t.min, t.max, 1] if t.is_int else [0.5, -1.25, float("inf")]
    for value in edge:
        x = filled([1, 0], t)
        results = k.run(value, x)
        assert results == (value, 1)
        assert x[1] == value
        assert type(results[0]) is (float if t.is_real else int)


def test_global_temporaries_are_zero_at_every_launch():
    text = """
    kernel k() -> (i32) stage=accesses global_tmp=8 {
      $0 : offloaded header {
        $1 : bounds
      } body {
        <*i32> $2 = global_tmp [4]
        <i32> $3 = global_load $2
        <i32> $4 = const 7
        <i32> $5 = add $3, $4
        $6 : global_store $2, $5
      }
      $7 : offloaded header {
        $8 : bounds
      } body {
        <*i32> $9 = global_tmp [4]
        <i32> $10 = global_load $9
        $11 : return $10
      }
    }
    """
    from irkit import config
    from qd_studio.engine.backends import base

    backend = base.find("cpu")
    executable = backend.load(backend.lower(parse(text), config()))
    assert [executable.launch(()) for _ in range(3)] == [(7,)] * 3


def test_a_cell_task_runs_all_axes_on_one_thread():
    text = """
    kernel k(x: ndarray<i64, 2>) stage=accesses {
      $0 : offloaded {kind='range_for' axes=(1, 0)} header {
        <i32> $1 = const 0
        <i32> $2 = external_tensor_shape_along_axis [(0, 0)]
        <i32> $3 = external_tensor_shape_along_axis [(1, 0)]
        $4 : bounds $1, $2, $1, $3
      } body {
        <i32> $5 = loop_index $0 [0]
        <i32> $6 = loop_index $0 [1]
        <i32> $7 = const 2
        <u1> $8 = cmp_eq $6, $7
        $9 : if $8 then {
          $10 : continue
        } else {
        }
        <i32> $11 = external_tensor_shape_along_axis [(1, 0)]
        <i64> $12 = linearize $5, $6, $11 [2]
        <*i64> $13 = arg_addr [(0, False)]
        <*i64> $14 = shift_ptr $13, $12
        $15 : global_store $14, $12
      }
    }
    """
    x = np.full((3, 4), -1, np.int64)
    execute(parse(text), (x,))
    want = np.arange(12).reshape(3, 4)
    want[:, 2] = -1
    np.testing.assert_array_equal(x, want)


def test_index_sums_are_right_beyond_what_vectors_see():
    """Sums of indices, constants, extents and arguments as addresses, and as numbers too."""
    k = Kernel([array("x", i32), array("out", i64), scalar("shift", i32)])
    b = k.b
    n = k.extent(0)
    with k.loop(k.extent(1)) as i:
        shift = b.emit(C.ARG_LOAD, (), 2, i32)
        mirrored = b.binary(C.SUB, b.binary(C.SUB, n, b.const(1, i32)), i)
        moved = b.binary(C.ADD, b.binary(C.ADD, i, shift), b.const(-1, i32))
        value = b.binary(C.ADD, k.load(0, mirrored), k.load(0, moved))
        k.store(1, b.cast(b.binary(C.ADD, value, moved), i64))
    x = np.arange(100, 120, dtype=np.int32)
    out = np.zeros(15, np.int64)
    k.run(x, out, 3)
    want = [x[19 - i] + x[i + 2] + i + 2 for i in range(15)]
    assert out.tolist() == want


def test_the_seed_reaches_the_kernel():
    k = Kernel([scalar("a", f32)], (u64, f32))
    b = k.b
    seed = b.emit(C.LAUNCH_SEED, (), None, u64)
    b.emit(C.RETURN, (seed, b.emit(C.ARG_LOAD, (), 0, f32)), None)
    assert k.run(1.5, seed=(1 << 63) + 5) == ((1 << 63) + 5, 1.5)


def test_levels_of_the_pipeline_agree():
    k = Kernel([array("x", f64), array("y", f64)])
    b = k.b
    with k.loop(k.extent(0)):
        k.store(1, b.binary(C.MUL, b.unary(C.SQRT, k.load(0)), b.const(3.0, f64)))
    x = np.linspace(0, 9, 37)
    for options in ({"external_optimization_level": n} for n in range(4)):
        y = np.zeros(37)
        k.run(x, y, fast_math=False, **options)
        np.testing.assert_array_equal(y, np.sqrt(x) * 3)
    y = np.zeros(37)
    k.run(x, y, opt_level=0, fast_math=False, max_vector_width=4)
    np.testing.assert_array_equal(y, np.sqrt(x) * 3)
