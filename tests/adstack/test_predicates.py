"""Predicates: conditions that decide which iterations use their stacks of floats."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import passes
from qd_studio.engine.adstack import predicate as predicates
from qd_studio.engine.adstack.host_eval import Env
from qd_studio.engine.adstack.size_expr import Binary, Const, SizeExprError, Var
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.errors import QuadrantsRuntimeError
from qd_studio.engine.ir import Param, codes, parse, walk
from qd_studio.engine.runtime import program
from qd_studio.engine.types import f32, i32, row_major

from .launchkit import compiled, launch

PREDICATED = """\
kernel predicated(x: ndarray<f32, 1>, gx: ndarray<f32, 1>, mask: MASK, n: i32) stage=ast {
  <i32> $0 = const 0
  <i32> $1 = const 1
  <f32> $2 = const 1.0
  <i32> $3 = arg_load [3]
  <i32> $4 = external_tensor_shape_along_axis [(0, 0)]
  $5 : range_for $0, $4 body {
    <i32> $6 = loop_index $5 [0]
    <*f32> $7 = arg_addr [(0, False)]
    <*f32> $8 = external_ptr $7, $6 ['unsafe']
    <f32> $9 = global_load $8
    <*f32> $10 = ad_stack_alloca {name='p' max_size=40}
    $11 : ad_stack_push $10, $2
    CONDITION
    $60 : if $59 then {
      FIRST
    } else {
      OTHER1
    }
    $61 : if $59 then {
      SECOND
    } else {
      OTHER2
    }
    $34 : ad_stack_pop $10
  }
}
"""

FORWARD = """\
$12 : range_for $0, $3 body {
        <f32> $13 = ad_stack_load_top $10
        <f32> $14 = mul $13, $9
        $15 : ad_stack_push $10, $14
      }"""

REVERSE = """\
$23 : ad_stack_acc_adjoint $10, $2
      <*f32> $24 = arg_addr [(1, False)]
      <*f32> $25 = external_ptr $24, $6 ['unsafe']
      $26 : range_for $0, $3 {reversed=True} body {
        <f32> $27 = ad_stack_load_top_adj $10
        $28 : ad_stack_pop $10
        <f32> $29 = mul $27, $9
        $30 : ad_stack_acc_adjoint $10, $29
        <f32> $31 = ad_stack_load_top $10
        <f32> $32 = mul $27, $31
        <f32> $33 = atomic_add $25, $32
      }"""

ABOVE = """\
<*f32> $50 = arg_addr [(2, False)]
    <*f32> $51 = external_ptr $50, $6 ['unsafe']
    <f32> $52 = global_load $51
    <f32> $53 = const 0.5
    <u1> $59 = cmp_gt $52, $53"""


def text(condition=ABOVE, mask="ndarray<f32, 1>", negated=False, first=FORWARD, second=REVERSE):
    out = PREDICATED.replace("CONDITION", condition).replace("MASK", mask)
    parts = {"FIRST": first, "SECOND": second, "OTHER1": "", "OTHER2": ""}
    if negated:
        parts = {"FIRST": "", "SECOND": "", "OTHER1": first, "OTHER2": second}
    for name, part in parts.items():
        out = out.replace(name, part)
    return "\n".join([line for line in out.splitlines() if line.strip()]) + "\n"


def recognised(source, threshold=0, remarks=None):
    """The text of the predicate of the only task, after the first half of the pipeline."""
    func = parse(source)
    config = CompileConfig().replace(ad_stack_sparse_threshold_bytes=threshold)
    watching = passes.Remarks()
    cx = passes.PassCx(func, config, [watching])
    for name in ("lower_ast", "type_check", "offload", "simplify", "recognize_predicates"):
        cx.run_pass(name)
    if remarks is not None:
        remarks += watching.found
    (task,) = func.tasks()
    return task.attr.predicate, func


def test_text():
    predicate = predicates.Predicate("le", -2.5, True, 3, (Var(1), Binary("mod", Var(0), Const(4))))
    source = "(predicate le -2.5 1 3 (var 1) (mod (var 0) 4))"
    assert predicates.text(predicate) == source
    assert predicates.parse(source) == predicate
    assert predicates.parse("(predicate eq 7 0 2)") == predicates.Predicate("eq", 7, False, 2, ())
    for wrong in (
        "",
        "(predicate)",
        "(predicate xx 1 0 0)",
        "(predicate eq 1 0 0 (var 0)",
        "(max 1 2)",
    ):
        with pytest.raises(SizeExprError, match="is no predicate"):
            predicates.parse(wrong)


def test_formula():
    params = (Param("x", "scalar", i32), Param("mask", "ndarray", f32, 2))
    assert predicates.formula(
        predicates.parse("(predicate gt 0.5 0 1 (var 0) (arg 0))"), params
    ) == ("mask[i, x] > 0.5")
    assert predicates.formula(predicates.parse("(predicate eq 0.5 1 1 (var 1) 3)"), params) == (
        "not mask[i, 3] == 0.5"
    )


@pytest.mark.parametrize("axes", [None, (1, 0)])
def test_count_of_an_array(axes):
    params = (Param("m", "ndarray", f32, 2, axes=axes), Param("k", "scalar", i32))
    m = np.arange(6, dtype=np.float32).reshape(2, 3)
    memory = m if axes is None else np.ascontiguousarray(m.T)
    env = Env(params, [memory, 1])
    assert (
        predicates.count(predicates.parse("(predicate gt 2.5 0 0 (var 0) (var 1))"), env, 100) == 3
    )
    assert (
        predicates.count(predicates.parse("(predicate gt 2.5 1 0 (var 1) (var 0))"), env, 100) == 3
    )
    assert (
        predicates.count(predicates.parse("(predicate gt 2.5 0 0 (var 0) (arg 1))"), env, 100) == 1
    )
    assert predicates.count(predicates.parse("(predicate ge 0 0 0 (var 0) (var 1))"), env, 4) == 4
    with pytest.raises(QuadrantsRuntimeError, match=r"index 3 of m\[i, 3\] > 2 is out of range"):
        predicates.count(predicates.parse("(predicate gt 2 0 0 (var 0) 3)"), env, 4)


def test_count_of_a_field():
    plain = row_major((3, 4), (-1, 0))
    nested = plain._replace(terms=((0, 1, 0, 1), (1, 2, 0, 6), (1, 1, 2, 3)))
    m = np.arange(12).reshape(3, 4)
    for layout in (plain, nested):
        flat = np.zeros(12, np.int32)
        for i in range(3):
            for j in range(4):
                parts = {0: i, 1: j}
                at = sum(
                    (parts[a] // d % mod if mod else parts[a] // d) * s
                    for a, d, mod, s in layout.terms
                )
                flat[at] = m[i, j]
        env = Env((Param("m", "field", i32, 2, layout=layout),), [flat])
        assert (
            predicates.count(predicates.parse("(predicate ge 9 0 0 (var 0) (var 1))"), env, 99) == 3
        )
        assert predicates.count(predicates.parse("(predicate ge 9 0 0 1 (var 1))"), env, 99) == 3
        assert predicates.count(predicates.parse("(predicate ge 9 0 0 (var 0) 1)"), env, 99) == 1


def test_a_long_array_is_not_looked_at_further_than_needed():
    m = np.ones(1 << 20, np.float32)
    m[: 1 << 19] = 0
    env = Env((Param("m", "ndarray", f32, 1),), [m])
    predicate = predicates.parse("(predicate gt 0.5 0 0 (var 0))")
    assert predicates.count(predicate, env, 5) == 5
    assert predicates.count(predicate, env, 1 << 21) == 1 << 19


def test_nothing_passes_a_comparison_with_nan():
    m = np.array([np.nan, 1.0], np.float32)
    env = Env((Param("m", "ndarray", f32, 1),), [m])
    assert predicates.count(predicates.parse("(predicate lt 2.0 0 0 (var 0))"), env, 5) == 1
    assert predicates.count(predicates.parse("(predicate lt 2.0 1 0 (var 0))"), env, 5) == 1


# --- recognition ----------------------------------------------------------------------------------


def test_a_condition_before_and_behind():
    found, func = recognised(text())
    assert found == "(predicate gt 0.5 0 2 (var 0))"
    body = func.tasks()[0].regions[1]
    ifs = [op for op in body.ops if op.code == codes.IF]
    for one in ifs:
        assert one.regions[0].ops[0].code == codes.AD_STACK_CLAIM
    assert ifs[0].regions[0].ops[1].code == codes.AD_STACK_PUSH, "the first push moves along"
    beside = [op for op in body.ops if codes.STACK[op.code]]
    assert beside == [], "the last pop is not needed"


def test_the_other_branch():
    assert recognised(text(negated=True))[0] == "(predicate gt 0.5 1 2 (var 0))"


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq", "ne"])
@pytest.mark.parametrize("kind, literal", [("f32", "0.5"), ("f64", "0.1"), ("i32", "3")])
def test_comparisons_and_types(name, kind, literal):
    condition = ABOVE.replace("cmp_gt", f"cmp_{name}").replace("f32", kind).replace("0.5", literal)
    found, _ = recognised(text(condition, f"ndarray<{kind}, 1>"))
    assert found == f"(predicate {name} {literal} 0 2 (var 0))"


def test_a_number_on_the_left():
    found, _ = recognised(text(ABOVE.replace("$52, $53", "$53, $52")))
    assert found == "(predicate lt 0.5 0 2 (var 0))"


def test_an_integer_as_condition():
    condition = ABOVE.splitlines()
    condition = "\n".join(condition[:2]).replace("f32", "i32") + "\n    <i32> $59 = global_load $51"
    assert recognised(text(condition, "ndarray<i32, 1>"))[0] == "(predicate ne 0 0 2 (var 0))"


def indexed(*indices, extra="", mask=None):
    """A condition on an element with these indices."""
    lines = ABOVE.replace("$50, $6", f"$50, {', '.join(indices)}").splitlines()
    return text("\n".join([lines[0], extra or "    <i32> $70 = const 0", *lines[1:]]),
                mask or f"ndarray<f32, {len(indices)}>")  # fmt: skip


DIGITS = """\
    <i32> $70 = const 8
    <i32> $71 = floordiv $6, $70
    <i32> $72 = floormod $6, $70"""


@pytest.mark.parametrize("source, predicate", [
    (indexed("$6", "$70"), "(var 0) 0"),
    (indexed("$70", "$6"), "0 (var 0)"),
    (indexed("$6", "$3"), "(var 0) (arg 3)"),
    (indexed("$71", "$72", extra=DIGITS), "(floordiv (var 0) 8) (mod (var 0) 8)"),
    (indexed("$72", "$71", extra=DIGITS), "(mod (var 0) 8) (floordiv (var 0) 8)"),
    (indexed("$6", mask="field[64]"), None),
])  # fmt: skip
def test_indices_that_belong_to_one_iteration(source, predicate):
    if predicate is None:
        source = source.replace("mask: field[64]", "field mask: f32[64]")
        predicate = "(var 0)"
    assert recognised(source)[0] == f"(predicate gt 0.5 0 2 {predicate})"


INDIRECT = """\
    <i32> $70 = const 0
    <*f32> $71 = external_ptr $7, $70 ['unsafe']
    <f32> $72 = global_load $71
    <i32> $73 = cast_value $72"""
ARITHMETIC = """\
    <i32> $70 = add $6, $1"""


@pytest.mark.parametrize("source, why", [
    (indexed("$6", "$6"), "several indices of mask are the same variable"),
    (indexed("$70"), "no index of mask is a variable of the loop"),
    (indexed("$71", extra=DIGITS), "several indices of mask are the same variable"),
    (indexed("$72", extra=DIGITS), "several iterations look at the same element of mask"),
    (indexed("$73", extra=INDIRECT), "mask is indexed indirectly"),
    (indexed("$70", extra=ARITHMETIC), "an index of mask is arithmetic on the loop's variables"),
    (text(first=FORWARD.replace("$12", "$19 : ad_stack_push $10, $9\n      $12")
          + "\n    } else {\n    }\n    <f32> $77 = ad_stack_load_top $10\n"
          "    $78 : ad_stack_push $10, $77\n"
          "    $79 : if $59 then {\n"), "outside of any one condition"),
    (text(ABOVE.replace("<f32> $53 = const 0.5", "<f32> $53 = global_load $8")),
     "compares an element with something else than a number"),
    (text(ABOVE.replace("global_load $51", "mul $9, $9")),
     "compares something else than an element"),
    (text(ABOVE.replace("[(2, False)]", "[(1, False)]")), "the kernel writes to gx"),
])  # fmt: skip
def test_what_is_not_captured_and_why(source, why):
    remarks = []
    found, func = recognised(source, remarks=remarks)
    assert found == ""
    assert [r.text for _, r in remarks if why in r.text], remarks
    assert not [op for op in walk(func.tasks()[0].regions[1]) if op.code == codes.AD_STACK_CLAIM]


def test_small_stacks_are_left_alone():
    remarks = []
    assert recognised(text(), threshold=104857600, remarks=remarks)[0] == ""
    assert "320 bytes" in remarks[-1][1].text
    assert "below ad_stack_sparse_threshold_bytes=104857600" in remarks[-1][1].text
    assert recognised(text(), threshold=320 * 131072)[0] != ""


# --- launches -------------------------------------------------------------------------------------


@pytest.fixture(params=["interp", "cpu"])
def many(request):
    qd.init(
        arch=request.param, offline_cache=False, cpu_max_num_threads=4,
        ad_stack_sparse_threshold_bytes=0,
    )  # fmt: skip
    yield request.param
    qd.reset()


@pytest.mark.parametrize("passing", [0, 1, 3, 2000])
def test_rows_are_as_many_as_iterations_that_pass(many, passing):
    n = 20000
    rng = np.random.default_rng(passing)
    mask = qd.ndarray(qd.f32, (n,))
    chosen = rng.permutation(n)[:passing]
    values = np.zeros(n, np.float32)
    values[chosen] = 1
    mask.from_numpy(values)
    kernel = compiled(text(), predicates=True)
    x = rng.uniform(0.5, 1.5, n).astype(np.float32)
    gx = np.zeros(n, np.float32)
    launch(kernel, x, gx, mask, 3)
    np.testing.assert_allclose(gx, np.where(values > 0, 3 * x**2, 0), rtol=1e-5)
    stacks = program.current().stacks
    (task,) = stacks.sizer(kernel).plan_made.tasks
    rows = 1 if many == "interp" else min(max(passing, 1), 4)
    assert task.real_rows == rows
    assert stacks.real.size >= rows * 320
    before = stacks.evaluated
    launch(kernel, x, gx, mask, 3)
    assert stacks.evaluated == before
    mask.fill(1)
    launch(kernel, x, gx, mask, 3)
    assert stacks.evaluated == before + (many == "cpu")
