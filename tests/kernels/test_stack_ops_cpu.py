"""Adstacks in compiled code: the same as on the interpreter, and never a write past a row."""

import numpy as np
import pytest
from qd_studio.engine.backends import interp
from qd_studio.engine.errors import AdStackOverflowError, QuadrantsInternalError
from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir import parse, to_text
from qd_studio.engine.types import f32, f64, i32, parse_type

from tests.passes.qdir import arguments
from tests.passes.random_ir import random_func

from .stackkit import PREDICATE, PREDICATED, Heaps, compiled, power


def _arrays(n):
    return [np.linspace(0.5, 1.5, n, dtype=np.float32), np.ones(n, np.float32),
            np.arange(n, dtype=np.float32)]  # fmt: skip


def test_a_full_stack_ends_the_launch_and_not_the_process():
    kernel = compiled(power(), debug=False)
    heaps = Heaps(kernel.meta, 7)
    for n in (1, 100_000 // 5):
        with pytest.raises(AdStackOverflowError, match="stack 'p' of task 0 has 7 entries") as e:
            kernel.launch((*_arrays(20), n), 0, heaps.plan)
        assert (e.value.task, e.value.stack) == (0, 0)
        assert heaps.is_whole()
    arrays = _arrays(3)
    kernel.launch((*arrays, 2), 0, heaps.plan)
    np.testing.assert_allclose(arrays[1], [1, 1 + 4, 1 + 2 * 6 * 1.5**5], rtol=1e-5)


def test_a_launch_without_a_plan_is_refused():
    kernel = compiled(power())
    with pytest.raises(QuadrantsInternalError, match="plan"):
        kernel.launch((*_arrays(3), 1))


@pytest.mark.parametrize("seed", range(12))
def test_random_histories(seed):
    func = random_func(seed, (i32, f32, f64), stacks=True)
    func.stage, func.autodiff = "ast", "none"  # it stands for one that has been differentiated
    for op in func.body.ops:
        if op.code == C.RANGE_FOR:  # its iterations need their order
            op.attr = op.attr._replace(strictly_serialized=True)
    wanted, got = arguments(func, seed), arguments(func, seed)
    results = interp.run(func, wanted)
    kernel = compiled(parse(to_text(func)), debug=False)
    heaps = Heaps(kernel.meta, 40, rows=1)
    found = kernel.launch(got, 0, heaps.plan if kernel.meta.has_stacks else None)
    for a, b in zip([*results, *wanted], [*found, *got], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert heaps.is_whole()


def _predicated_arrays(n, steps=5):
    x = np.where(np.arange(n) % 10 == 3, 0.5, -0.5)
    return [x, np.zeros(n), np.full(n, steps, np.int32)]


def _predicated(**options):
    return compiled(parse(PREDICATED), predicate=PREDICATE, default_cpu_block_dim=4, **options)


@pytest.mark.parametrize("predicated", [True, False])
def test_rows_are_claimed_behind_the_predicate(predicated):
    wanted, got = _predicated_arrays(200), _predicated_arrays(200)
    program = interp.compile_func(parse(PREDICATED))
    program.launch(wanted)
    assert program.claims == 20
    kernel = _predicated()
    heaps = Heaps(kernel.meta, 6, rows=3, predicated=predicated)
    for _ in range(5):  # each launch claims again
        got[1][:] = 0
        kernel.launch(got, 0, heaps.plan)
        np.testing.assert_allclose(got[1], wanted[1])
        assert heaps.is_whole()


def test_fewer_rows_than_threads_serve_as_many_as_pass_the_predicate():
    kernel = _predicated()
    arrays = _predicated_arrays(9)  # one of them passes
    heaps = Heaps(kernel.meta, 6, rows=3, real_rows=1)
    for _ in range(20):
        kernel.launch(arrays, 0, heaps.plan)
    np.testing.assert_allclose(arrays[1][3], 20 * _derivative(0.5, 5))
    assert heaps.is_whole()


def _derivative(x, steps):
    product = 1.0
    for _ in range(steps):
        product *= np.cos(x)
        x = np.sin(x)
    return product


def test_a_claim_beyond_the_rows_is_an_error():
    kernel = compiled(
        parse(PREDICATED), predicate=PREDICATE, default_cpu_block_dim=1, cpu_max_num_threads=2
    )
    n = 4000
    arrays = [np.full(n, 0.5), np.zeros(n), np.full(n, 50, np.int32)]
    heaps = Heaps(kernel.meta, 51, rows=2, real_rows=1)
    for _ in range(50):  # until both threads work at the same time
        try:
            kernel.launch(arrays, 0, heaps.plan)
        except AdStackOverflowError as error:
            assert "task 0 has 1 rows" in error.message
            assert (error.task, error.stack) == (0, -1)
            break
    else:
        pytest.fail("one thread alone did it all")
    assert heaps.is_whole()


def test_a_real_stack_in_front_of_the_claim_is_a_fault_of_a_pass():
    text = PREDICATED.replace("      $20 : ad_stack_push $10, $9\n", "").replace(
        "    $16 :", "    $20 : ad_stack_push $10, $9\n    $16 :"
    )
    with pytest.raises(QuadrantsInternalError, match="is before the ad_stack_claim"):
        compiled(parse(text), predicate=PREDICATE)


def test_fewer_rows_than_threads_end_a_task_without_a_predicate():
    kernel = compiled(power(), default_cpu_block_dim=1)
    heaps = Heaps(kernel.meta, 200)
    plan = heaps.plan._replace(tasks=(heaps.plan.tasks[0]._replace(real_rows=0),))
    with pytest.raises(AdStackOverflowError, match="task 0 has 0 rows"):
        kernel.launch((*_arrays(20), 1), 0, plan)


def test_threads_have_rows_of_their_own():
    kernel = compiled(power(), default_cpu_block_dim=1, cpu_max_num_threads=4)
    heaps = Heaps(kernel.meta, 400, rows=4)
    wanted = _arrays(300)
    interp.run(power(), [*wanted, 1])
    for _ in range(10):
        got = _arrays(300)
        kernel.launch((*got, 1), 0, heaps.plan)
        np.testing.assert_allclose(got[1], wanted[1], rtol=1e-4)
    assert heaps.is_whole()


@pytest.mark.parametrize("t", ["u1", "i8", "u16", "i32", "u64", "f16", "f32", "f64"])
def test_values_of_every_type(t):
    """A kernel that turns an array around."""
    func = parse(f"""\
kernel k(x: ndarray<{t}, 1>) stage=ast {{
  <i32> $0 = const 0
  <i32> $1 = external_tensor_shape_along_axis [(0, 0)]
  <i64> $9 = const 77
  <*{t}> $2 = ad_stack_alloca {{adjoint=False}}
  <*i64> $3 = ad_stack_alloca {{adjoint=False}}
  <*{t}> $4 = arg_addr [(0, False)]
  $5 : range_for $0, $1 {{strictly_serialized=True}} body {{
    <i32> $6 = loop_index $5 [0]
    <*{t}> $7 = external_ptr $4, $6 ['unsafe']
    <{t}> $8 = global_load $7
    $10 : ad_stack_push $2, $8
    $11 : ad_stack_push $3, $9
  }}
  $15 : range_for $0, $1 {{strictly_serialized=True}} body {{
    <i32> $16 = loop_index $15 [0]
    <*{t}> $17 = external_ptr $4, $16 ['unsafe']
    <{t}> $18 = ad_stack_load_top $2
    $19 : global_store $17, $18
    $20 : ad_stack_pop $2
    <i64> $21 = ad_stack_load_top $3
    $22 : ad_stack_pop $3
  }}
}}
""")
    dtype = parse_type(t)
    x = np.arange(-3, 9).astype(dtype.np)
    got = x.copy()
    kernel = compiled(func)
    heaps = Heaps(kernel.meta, 12, rows=1)
    kernel.launch((got,), 0, heaps.plan)
    assert got.tolist() == x.tolist()[::-1]
    assert heaps.is_whole()


def test_serial_tasks_have_stacks_of_their_own():
    """Two of them, with a parallel task between: the first has the larger stack."""
    text = """\
kernel k(x: ndarray<f64, 1>, y: ndarray<f64, 1>) stage=ast {
  <i32> $0 = const 0
  <i32> $1 = const 5
  <i32> $2 = const 2
  <f64> $3 = const 3.0
"""
    for n, trips in ((10, "$1"), (40, "$2")):
        text += f"""\
  <*f64> ${n} = ad_stack_alloca
  ${n + 1} : range_for $0, {trips} {{strictly_serialized=True}} body {{
    <i32> ${n + 2} = loop_index ${n + 1} [0]
    <f64> ${n + 3} = cast_value ${n + 2}
    ${n + 4} : ad_stack_push ${n}, ${n + 3}
    ${n + 5} : ad_stack_acc_adjoint ${n}, $3
  }}
  <f64> ${n + 6} = ad_stack_load_top ${n}
  <f64> ${n + 7} = ad_stack_load_top_adj ${n}
  <f64> ${n + 8} = add ${n + 6}, ${n + 7}
  <*f64> ${n + 9} = arg_addr [(0, False)]
  <*f64> ${n + 10} = external_ptr ${n + 9}, {"$0" if n == 10 else "$2"} ['unsafe']
  ${n + 11} : global_store ${n + 10}, ${n + 8}
"""
        text += f"""\
  ${n + 15} : range_for $0, $1 body {{
    <i32> ${n + 16} = loop_index ${n + 15} [0]
    <*f64> ${n + 17} = arg_addr [(1, False)]
    <*f64> ${n + 18} = external_ptr ${n + 17}, ${n + 16} ['unsafe']
    ${n + 19} : global_store ${n + 18}, $3
  }}
"""
    kernel = compiled(parse(text + "}\n"))
    stacked = [bool(task.stacks) for task in kernel.meta.tasks]
    assert stacked == [True, False, True, False]
    x, y = np.zeros(3), np.zeros(5)
    kernel.launch((x, y), 0, Heaps(kernel.meta, {0: 5, 2: 2}, rows=1).plan)
    assert (x.tolist(), y.tolist()) == ([7.0, 0.0, 4.0], [3.0] * 5)
    for capacities, failed in (({0: 4, 2: 2}, 0), ({0: 5, 2: 1}, 2)):
        with pytest.raises(AdStackOverflowError) as caught:
            kernel.launch((x, y), 0, Heaps(kernel.meta, capacities, rows=1).plan)
        assert caught.value.task == failed
