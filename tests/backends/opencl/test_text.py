"""The text of OpenCL C: readable, deterministic, no more than is needed."""

import clkit
import numpy as np
import pytest
from qd_studio.engine.backends.opencl import headerless
from qd_studio.engine.errors import QuadrantsUnsupportedError
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


LARGEST = """kernel largest(x: ndarray<f32, 1>, out: ndarray<f32, 1>) stage=accesses {
  $1 : offloaded header {
    $2 : bounds
  } body {
    <i32> $3 = const 0
    <i32> $4 = external_tensor_shape_along_axis [(0, 0)]
    <*f32> $5 = arg_addr [(0, False)]
    <*f32> $6 = arg_addr [(1, False)]
    <f32> $7 = const -inf
    <*f32> $8 = alloca ['largest']
    $9 : local_store $8, $7
    $10 : range_for $3, $4 body {
      <i32> $11 = loop_index $10 [0]
      <i64> $12 = linearize $11 [1]
      <*f32> $13 = shift_ptr $5, $12
      <f32> $14 = global_load $13
      <f32> $15 = local_load $8
      <f32> $16 = max $15, $14
      $17 : local_store $8, $16
    }
    <f32> $18 = local_load $8
    $19 : global_store $6, $18
  }
}
"""


@pytest.mark.parametrize("fast", [False, True])
def test_a_running_maximum_is_an_integer(fast):
    text = clkit.lower(parse(LARGEST), fast_math=fast)
    assert "largest = qd_max_i32(largest, qd_" in text.text
    cases = [[-3.5, -1.25, -7.0], [-0.0, 0.0], [2.0, np.inf, 5.0], [-np.inf], []]
    if not fast:
        cases += [[np.nan, -2.0, np.nan], [3.0, np.nan]]
    kernel = clkit.Loaded(text)
    for case in cases:
        out = np.zeros(1, np.float32)
        kernel.launch([np.array(case, np.float32), out])
        assert out[0] == np.nanmax([-np.inf, *case])


def test_a_cheap_branch_is_a_choice_and_a_dear_one_stays():
    body = """kernel k(a: i32, b: f32) -> (f32) stage=accesses {
  $1 : offloaded header {
    $2 : bounds
  } body {
    <i32> $3 = arg_load [0]
    <f32> $4 = arg_load [1]
    <i32> $5 = const 3
    <u1> $6 = cmp_gt $3, $5
    <*f32> $7 = alloca ['picked']
    $8 : if $6 then {
      <f32> $9 = WHAT $4
      $10 : local_store $7, $9
    } else {
      $11 : local_store $7, $4
    }
    <f32> $12 = local_load $7
    $13 : return $12
  }
}
"""
    for what, branches in (("neg", False), ("exp", True)):
        text = clkit.lower(parse(body.replace("WHAT", what)))
        assert text.text.count("if (") == 1 + branches  # one looks if a launch has failed
        kernel = clkit.Loaded(text)
        changed = -2.0 if what == "neg" else float(np.exp(np.float32(2.0)))
        assert kernel.launch([4, 2.0])[0] == pytest.approx(changed, rel=1e-6)
        assert kernel.launch([3, 2.0]) == (2.0,)


def test_names_of_the_user_mean_nothing_to_c():
    renamed = SAXPY.replace("(a: f32, x:", "('float4': f32, 'kernel':").replace(", y:", ", 'sin':")
    x, y = np.arange(16, dtype=np.float32), np.ones(16, np.float32)
    clkit.Loaded(clkit.lower(parse(renamed))).launch([2.0, x, y])
    np.testing.assert_array_equal(y, 2 * np.arange(16) + 1)


def test_recursion_is_refused_by_name():
    func = parse("""kernel k(n: i32) -> (i32) stage=accesses {
  $1 : offloaded header {
    $2 : bounds
  } body {
    <i32> $3 = arg_load [0]
    <i32> $4 = call $3 ['fact']
    $5 : return $4
  }
}
function fact(n: i32) -> (i32) stage=accesses {
  <i32> $10 = call_arg [0]
  <i32> $11 = call $10 ['fact']
  $12 : return $11
}
""")
    with pytest.raises(QuadrantsUnsupportedError, match="'fact' calls itself"):
        clkit.lower(func)


def test_there_is_no_clock():
    func = parse("""kernel k() -> (i64) stage=accesses {
  $1 : offloaded header {
    $2 : bounds
  } body {
    <i64> $3 = clock
    $4 : return $3
  }
}
""")
    with pytest.raises(QuadrantsUnsupportedError, match="has none without an extension"):
        clkit.lower(func)


def test_programs_declare_what_they_call_or_take_the_header():
    text = clkit.lower(parse(LARGEST)).text
    head = headerless.declarations(text)
    assert head is not None and "as_int" in head and head.endswith("#line 1\n")
    assert len(head) < 4000
    assert headerless.declarations(text + "\nstatic float f(float x) { return erfc(x); }\n") is None
    import pyopencl as cl

    here = clkit.Cl.get()
    cl.Program(here.context, head + text).build(headerless.OPTIONS.split())
