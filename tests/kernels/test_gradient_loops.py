"""What gradients need of loops and memory beside stacks, after all passes, on every backend."""

import numpy as np
import pytest
from qd_studio.engine import passes
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir import parse, walk
from qd_studio.engine.pipeline_kind import PipelineKind

from .stackkit import compiled

TARGETS = ["interp", "cpu"]

ORDER = """\
kernel order(x: ndarray<i32, 3>, n: i32, m: i32, p: i32) stage=ast {
  <i32> $0 = const 1
  <i32> $1 = arg_load [1]
  <i32> $2 = arg_load [2]
  <i32> $3 = arg_load [3]
  <i32> $4 = const 0
  <i32> $5 = const 2
  $6 : range_for $4, $5 body {
    <i32> $7 = loop_index $6 [0]
    <*i32> $8 = alloca ['count']
    $9 : range_for $0, $1, $4, $2, $0, $3 {AXES reversed=True} body {
      <i32> $10 = loop_index $9 [0]
      <i32> $11 = loop_index $9 [1]
      <i32> $12 = loop_index $9 [2]
      <i32> $13 = local_load $8
      <i32> $14 = add $13, $0
      $15 : local_store $8, $14
      <*i32> $16 = arg_addr [(0, False)]
      <*i32> $17 = external_ptr $16, $10, $11, $12 ['unsafe']
      <i32> $18 = mul $14, $5
      <i32> $19 = add $18, $7
      $20 : global_store $17, $19
    }
  }
}
"""
"""Numbers the elements of a box in the order of a reversed loop over three axes; the last of two
iterations of the task wins."""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_a_reversed_loop_over_several_axes_is_the_loop_backwards(target, axes):
    text = ORDER.replace("AXES", "" if axes == (0, 1, 2) else f"axes={axes}")
    kernel = compiled(parse(text), target, cpu_max_num_threads=1)
    box = [range(1, 4), range(3), range(1, 5)]
    x = np.zeros((4, 3, 5), np.int32)
    kernel.launch((x, 4, 3, 5))
    found = sorted(
        (int(x[i, j, k]) // 2, (i, j, k)) for i in box[0] for j in box[1] for k in box[2]
    )
    order = [place for _, place in found]
    assert [number for number, _ in found] == list(range(1, 37))
    assert order == sorted(order, key=lambda at: [at[a] for a in axes], reverse=True)


SERIAL = """\
kernel serial(x: ndarray<f64, 1>, n: i32) stage=ast {
  <i32> $0 = const 1
  <i32> $1 = arg_load [1]
  <*f64> $2 = arg_addr [(0, False)]
  $3 : range_for $0, $1 {strictly_serialized=True reversed=True} body {
    <i32> $4 = loop_index $3 [0]
    <i32> $5 = sub $4, $0
    <*f64> $6 = external_ptr $2, $4 ['unsafe']
    <*f64> $7 = external_ptr $2, $5 ['unsafe']
    <f64> $8 = global_load $6
    <f64> $9 = atomic_add $7, $8
  }
}
"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n", [0, 1, 2, 9])
def test_a_reversed_root_loop_carries_values_down(target, n):
    kernel = compiled(parse(SERIAL), target)
    x = np.arange(1.0, n + 1)
    kernel.launch((x, n))
    assert x.tolist() == np.cumsum(np.arange(1.0, n + 1)[::-1])[::-1].tolist()


EARLY = """\
kernel early(x: ndarray<i32, 1>, n: i32) stage=ast {
  <i32> $0 = const 0
  <i32> $1 = arg_load [1]
  <i32> $9 = const 3
  <i32> $20 = const -2147483648
  <i32> $21 = const -2147483646
  <*i32> $2 = arg_addr [(0, False)]
  <*i32> $18 = external_ptr $2, $0 ['unsafe']
  $3 : range_for $0, $1 {strictly_serialized=True reversed=True} body {
    <i32> $4 = loop_index $3 [0]
    <u1> $5 = cmp_eq $4, $9
    $6 : if $5 then {
      $7 : continue
    } else {
    }
    <*i32> $8 = external_ptr $2, $4 ['unsafe']
    $10 : global_store $8, $9
  }
  $11 : range_for $20, $21 {strictly_serialized=True reversed=True} body {
    <i32> $12 = loop_index $11 [0]
    <i32> $13 = sub $12, $20
    <i32> $14 = atomic_add $18, $13
  }
}
"""


@pytest.mark.parametrize("target", TARGETS)
def test_a_reversed_loop_goes_on_and_ends_at_the_least_integer(target):
    kernel = compiled(parse(EARLY), target)
    x = np.zeros(6, np.int32)
    kernel.launch((x, 6))
    assert x.tolist() == [4, 3, 3, 0, 3, 3]


ROOT = """\
kernel root(x: ndarray<f64, 1>, gx: ndarray<f64, 1>, gs: ndarray<f64, 1>, s: f64) stage=ast {
  <i32> $0 = const 0
  <i32> $1 = external_tensor_shape_along_axis [(0, 0)]
  <f64> $2 = arg_load [3]
  <*f64> $3 = arg_addr [(1, False)]
  <*f64> $4 = arg_addr [(0, False)]
  <*f64> $5 = arg_addr [(2, False)]
  <*f64> $6 = alloca ['s.adj']
  $7 : range_for $0, $1 body {
    <i32> $8 = loop_index $7 [0]
    <*f64> $9 = external_ptr $3, $8 ['unsafe']
    <f64> $10 = global_load $9
    <*f64> $11 = external_ptr $4, $8 ['unsafe']
    <f64> $12 = global_load $11
    <f64> $13 = mul $10, $12
    <f64> $14 = atomic_add $6, $13
    <f64> $15 = mul $10, $2
    $16 : global_store $9, $15
    <*f64> $17 = external_ptr $5, $0 ['unsafe']
    <f64> $18 = atomic_add $17, $12
  }
  <f64> $20 = local_load $6
  <i32> $21 = const 1
  <*f64> $22 = external_ptr $5, $21 ['unsafe']
  <f64> $23 = atomic_add $22, $20
}
"""
"""The gradient of ``y[i] = x[i] * s`` by hand: the adjoint of ``s`` is a variable of the root, to
which iterations add. Element 0 of ``gs`` is the sum of ``x``, a reduction of a gradient array."""


@pytest.mark.parametrize("target", TARGETS)
def test_iterations_add_to_the_adjoint_of_a_root_variable(target):
    kernel = compiled(parse(ROOT), target, default_cpu_block_dim=16)
    x, gx, gs = np.arange(1000.0), np.linspace(0, 1, 1000), np.ones(2)
    wanted = [1 + x.sum(), 1 + (x * gx).sum()]
    kernel.launch((x, gx, gs, 2.5))
    np.testing.assert_allclose(gs, wanted)
    np.testing.assert_allclose(gx, 2.5 * np.linspace(0, 1, 1000))
    assert kernel.meta.written == (1, 2)


def test_a_reduction_of_adjoints_has_an_accumulator_for_each_thread():
    func = passes.run(parse(ROOT), CompileConfig(), PipelineKind.CPU)
    body = func.tasks()[0].regions[1]
    (loop,) = [op for op in body.ops if op.code == C.RANGE_FOR]
    assert sum(op.code == C.ATOMIC_ADD for op in body.ops) == 2
    assert not any(C.ATOMIC[op.code] for op in walk(loop.regions[0]))


def test_a_gradient_array_must_not_overlap_another_array():
    kernel = compiled(parse(ROOT), "cpu")
    x = np.arange(10.0)
    with pytest.raises(ValueError, match="overlaps"):
        kernel.launch((x, x[5:], np.ones(2), 1.0))
