"""The text of OpenCL C: readable, deterministic, no more than is needed."""

import clkit
import numpy as np
from qd_studio.engine.ir import parse

SAXPY = """kernel saxpy(a: f32, x: ndarray<f32, 1>, y: ndarray<f32, 1>) stage=accesses {
  $1 : offloaded {kind='range_for' unit='chunk' read_only=(1,)} header {
    <i32> $2 = const 0
    <i32> $3 = const 2
    $4 : bounds $2, $3
  } body {
    <i32> $5 = loop_index $1 [0]
    <i32> $6 = const 8
    <i32> $7 = mul $5, $6
    <i32> $8 = add $7, $6
    <*f32> $9 = arg_addr [(1, False)]
    <f32> $10 = arg_load [0]
    <*f32> $11 = arg_addr [(2, False)]
    $12 : range_for $7, $8 body {
      <i32> $13 = loop_index $12 [0]
      <i64> $14 = linearize $13 [1]
      <*f32> $15 = shift_ptr $9, $14
      <f32> $16 = global_load $15
      <f32> $17 = mul $10, $16
      <*f32> $18 = shift_ptr $11, $14
      <f32> $19 = global_load $18
      <f32> $20 = add $17, $19
      $21 : global_store $18, $20
    }
  }
}
"""


def test_a_loop_reads_as_the_user_wrote_it():
    text = clkit.lower(parse(SAXPY), fast_math=False)
    assert "            y[i] = a * x[i] + y[i];\n" in text.text
    assert "__global const uchar *restrict x_mem, ulong x_at" in text.text
    assert text.tasks[0].symbol == "saxpy_kernel_0_range_for"
    assert text.text == clkit.lower(parse(SAXPY), fast_math=False).text
    assert len(text.ids) == text.text.count("\n")
    line = text.text.split("\n").index("            y[i] = a * x[i] + y[i];")
    assert text.ids[line] == 21


def test_it_runs():
    x, y = np.arange(16, dtype=np.float32), np.ones(16, np.float32)
    kernel = clkit.Loaded(clkit.lower(parse(SAXPY)))
    assert kernel.launch([2.0, x, y]) == ()
    np.testing.assert_array_equal(y, 2 * np.arange(16) + 1)
    assert kernel.meta.written == (2,)


def test_nothing_is_restricted_where_arrays_may_overlap():
    """Compilers take all pointers of a kernel for restricted as soon as one of them is."""
    func = parse(SAXPY)
    assert func.noalias
    assert "restrict" in clkit.lower(func).text
    func.noalias = False
    assert "restrict" not in clkit.lower(func).text
