"""What reverse mode keeps, what it computes again, and what it refuses."""

import numpy as np
import pytest
from qd_studio.engine import ir, passes
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.errors import QuadrantsAssertionError, QuadrantsCompilationError
from qd_studio.engine.ir import walk
from qd_studio.engine.pipeline_kind import PipelineKind

from .gradients import compiled, differentiated
from .test_reverse_kernels import SIGNATURE, problem

pytestmark = pytest.mark.usefixtures("interp")


def gradient(body, tmp_path, instruments=()):
    func = differentiated(problem(SIGNATURE + body, tmp_path).source, "reverse")
    watching = (passes.VerifyEach(), *instruments)
    passes.run(func, CompileConfig(fast_math=False), PipelineKind.INTERP, watching, "after_offload")
    return func


def ops(func, name):
    return [op for op in walk(func.body) if op.name == name]


def test_a_carried_value_is_kept_once_an_iteration_and_nothing_else_is(tmp_path):
    func = gradient("""
    for i in range(x.shape[0]):
        a = x[i]
        for j in range(n):
            a = qd.sin(a) * qd.exp(x[j]) * a
        y[i] += a
""", tmp_path)  # fmt: skip
    (stack,) = ops(func, "ad_stack_alloca")
    assert stack.attr.name == "a" and not stack.attr.adjoint and stack.attr.size == "(arg 4)"
    assert len(ops(func, "ad_stack_push")) == len(ops(func, "ad_stack_pop")) == 1
    assert len(ops(func, "ad_stack_load_top")) == 1


@pytest.mark.parametrize("update", ["a += x[j] * z[j]", "a = a + qd.sin(x[j])", "a -= x[j]"])
def test_a_sum_needs_no_stack_and_no_forward_loop(update, tmp_path):
    func = gradient(f"""
    for i in range(x.shape[0]):
        a = z[i]
        for j in range(n):
            {update}
        y[i] += a
""", tmp_path)  # fmt: skip
    assert not ops(func, "ad_stack_alloca")
    (loop,) = ops(func, "range_for")
    assert loop.attr.reversed


def test_integers_and_conditions_have_stacks_of_their_own_types(tmp_path):
    func = gradient("""
    for i in range(x.shape[0]):
        a = x[i]
        m = 0
        for j in range(n):
            if a * z[j] > 0.5:
                m = (m + 1) % 5
                a = a * 0.5
            a = a * x[m]
        y[i] += a
""", tmp_path)  # fmt: skip
    kinds = sorted(op.type.elem.name for op in ops(func, "ad_stack_alloca"))
    assert kinds == ["f64", "i32", "u1"]


def test_values_of_ifs_are_kept_in_variables(tmp_path):
    func = gradient("""
    for i in range(x.shape[0]):
        a = x[i]
        if n > 1:
            if a > 0.5:
                a = a * a
            y[i] += a * a
""", tmp_path)  # fmt: skip
    assert not ops(func, "ad_stack_alloca")
    assert ops(func, "local_store")


def test_independent_loops_need_no_stacks(tmp_path):
    func = gradient("""
    for i in range(x.shape[0]):
        for j in range(n):
            y[j] += qd.sin(x[i] * x[j]) * z[j]
""", tmp_path)  # fmt: skip
    assert not ops(func, "ad_stack_alloca")
    assert len(ops(func, "range_for")) == 1


def test_the_gradient_stores_to_adjoints_only(tmp_path):
    func = gradient("""
    for i in range(x.shape[0]):
        y[i] = x[i] * z[i]
        c[i] = 3
        print(x[i])
""", tmp_path)  # fmt: skip
    adjoints = {p.grad for p in func.params}
    written = {
        op.args[0].args[0].attr[0]
        for op in walk(func.body) if op.name in ("global_store", "atomic_add")
    }  # fmt: skip
    assert written == adjoints - {-1}
    assert not ops(func, "print")


def test_what_nothing_differentiates_leaves_nothing(tmp_path):
    func = gradient("""
    for i in range(x.shape[0]):
        c[i] += qd.cast(x[i], qd.i32)
""", tmp_path)  # fmt: skip
    assert not func.body.ops


def test_remarks_say_why_a_value_is_kept_or_not(tmp_path):
    remarks = passes.Remarks()
    gradient("""
    for i in range(x.shape[0]):
        a = x[i]
        for j in range(n):
            a = qd.sin(a) * x[j]
        y[i] += a
""", tmp_path, (remarks,))  # fmt: skip
    texts = [remark.text for _, remark in remarks.found]
    assert any("stays on a stack: the loop changes 'a'" in text for text in texts)
    assert any("is computed again in the reverse" in text for text in texts)


REFUSED = {
    "depends on their order": """
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
        y[i] += s
""",
    "cannot carry the local array": """
    v = qd.Vector([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    v[c[0]] = x[0]
    for i in range(x.shape[0]):
        y[i] += v[c[i]] * x[i]
""",
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_has_no_gradient_is_refused_at_its_line(message, tmp_path):
    with pytest.raises(QuadrantsCompilationError) as caught:
        gradient(REFUSED[message], tmp_path)
    assert message in caught.value.message
    assert caught.value.source_line.strip() and caught.value.hint


def test_a_variable_without_a_store_is_0_in_each_iteration():
    text = """kernel k(x: ndarray<f64, 1> grad 2, y: ndarray<f64, 1> grad 3, x.grad: ndarray<f64, 1>, y.grad: ndarray<f64, 1>) stage=typed autodiff=reverse {
  <i32> $0 = const 0
  <i32> $1 = const 3
  <*f64> $2 = arg_addr [(0, False)]
  <*f64> $3 = arg_addr [(1, False)]
  $4 : range_for $0, $1 body {
    <i32> $5 = loop_index $4 [0]
    <*f64> $6 = external_ptr $2, $5 ['unsafe']
    <f64> $7 = global_load $6
    $8 : range_for $0, $1 body {
      <*f64> $9 = alloca ['t']
      <f64> $10 = local_load $9
      <f64> $11 = mul $10, $7
      <f64> $12 = add $11, $7
      $13 : local_store $9, $12
      <f64> $14 = local_load $9
      <*f64> $15 = external_ptr $3, $5 ['unsafe']
      <f64> $16 = atomic_add $15, $14
    }
  }
}
"""  # noqa: E501
    launch = compiled(ir.parse(text), "interp")
    values = [np.ones(3), np.ones(3), np.zeros(3), np.ones(3)]
    launch(values)
    assert values[2].tolist() == [3.0, 3.0, 3.0]


def test_checks_guard_the_part_that_fills_cells(tmp_path):
    made = problem(
        SIGNATURE
        + """
    s = 0.0
    for i in range(n):
        s += x[i]
    for i in range(5):
        y[i] += x[i] * s
""",
        tmp_path,
        n=1 << 28,
    )
    func = differentiated(made.source, "reverse")
    launch = compiled(func, "cpu", check_out_of_bound=True)
    with pytest.raises(QuadrantsAssertionError, match="Out of bound access"):
        launch([*made.fresh(), *[np.zeros(5) for _ in range(3)]])
