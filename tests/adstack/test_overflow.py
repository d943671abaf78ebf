"""A full adstack is an error in release too; it says what may have caused it."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.errors import AdStackOverflowError
from qd_studio.engine.runtime import program

from .launchkit import RAGGED, Case, compiled, launch
from .test_predicates import text as predicated_text

I32 = qd.types.ndarray(dtype=qd.i32, ndim=1)
F32 = qd.types.ndarray(dtype=qd.f32, ndim=1)


@pytest.mark.parametrize("arch", ["interp", "cpu"])
@pytest.mark.parametrize("n", [5, 100_000])
def test_a_fixed_size_that_is_too_small(arch, n):
    qd.init(arch=arch, offline_cache=False, ad_stack_experimental_enabled=True, ad_stack_size=2)

    @qd.kernel
    def k(x: F32, y: F32, n: qd.i32):
        for i in range(x.shape[0]):
            v = x[i]
            for _ in range(n):
                v = v * v * 0.5
            y[i] += v

    x, y = (qd.ndarray(qd.f32, (3,), needs_grad=True) for _ in range(2))
    x.fill(1.0)
    y.grad.fill(1.0)
    for _ in range(4):  # the launch stub too
        with pytest.raises(AdStackOverflowError) as caught:
            k.grad(x, y, n)
        text = str(caught.value)
        assert "Adstack overflow: a reverse-mode autodiff kernel pushed more elements" in text
        assert "offload task #0; per-stack allocated max_size = [2]" in text
        assert "Offending stack: 'v' (entries: n; forced by the loop over _ at line" in text
        assert f"required max_size = [{n}]" in text
        assert "ad_stack_size=2 sets the entries of every adstack" in text
        assert (caught.value.task, caught.value.stack) == (0, 0)
    x.grad.fill(0)
    k.grad(x, y, 2)
    np.testing.assert_allclose(x.grad.to_numpy(), 0.5, rtol=1e-5)
    qd.reset()


def test_a_bound_that_was_changed_unseen(arch):
    case = Case(qd, [3, 2])
    case.check()
    case.a._memory.write(4, np.array([7], np.int32))  # the engine does not see it
    with pytest.raises(AdStackOverflowError) as caught:
        case.run()
    text = str(caught.value)
    assert "kernel `ragged` offload task #0; per-stack allocated max_size = [4]" in text
    assert "Synchronous sizer rerun: required max_size = [8]" in text
    assert "has other contents now than when the launch was sized (a)" in text
    assert "clear them" in text
    case.check()
    assert case.sizer.plan_made.tasks[0].capacities == (8,)


def test_a_formula_that_is_wrong_is_a_fault_of_the_engine(arch):
    case = Case(qd, [3, 2], "(maxover 0 0 (shape 3 0) (read 3 (var 0)))")
    for _ in range(2):
        with pytest.raises(AdStackOverflowError) as caught:
            case.run()
        text = str(caught.value)
        assert "required max_size = [3]" in text
        assert "fault of the engine: please report it" in text and "other contents" not in text


def test_without_knowing_who_writes_it_may_be_either(arch):
    case = Case(qd, [3, 2], "(maxover 0 0 (shape 3 0) (read 3 (var 0)))", array=False)
    with pytest.raises(AdStackOverflowError, match="either an array or field"):
        case.run()


def test_a_kernel_that_changes_its_own_bound(arch):
    """``a[1]`` is 9 when the loop over it begins; it was 1 when the launch was sized."""
    text = RAGGED.replace("SIZE", "size='(add 1 (maxover 0 0 (shape 3 0) (read 3 (var 0))))'")
    text = text.replace(" {LOOP}", " {strictly_serialized=True}").replace(
        "    <i32> $42 = global_load $40\n",
        "    <i32> $80 = const 9\n    <*i32> $81 = external_ptr $39, $1 ['unsafe']\n"
        "    $82 : global_store $81, $80\n    <i32> $42 = global_load $40\n",
    )
    kernel = compiled(text)
    a = qd.ndarray(qd.i32, (2,))
    a.fill(1)
    args = [np.ones(2, np.float32) for _ in range(3)]
    with pytest.raises(AdStackOverflowError) as caught:
        launch(kernel, *args, a, 0)
    assert "allocated max_size = [2]" in str(caught.value)
    assert "required max_size = [10]" in str(caught.value)
    assert "was sized (a)" in str(caught.value)
    launch(kernel, *args, a, 0)


def test_the_state_of_an_overflow_is_kept_for_people(arch):
    case = Case(qd, [3, 2], "(arg 4)")
    with pytest.raises(AdStackOverflowError):
        case.run(2)
    assert case.sizer.overflow.startswith("Adstack overflow")
    assert program.current().stacks.sizer(case.kernel) is case.sizer


def test_more_iterations_pass_a_predicate_than_were_counted():
    qd.init(
        arch=qd.cpu, offline_cache=False, cpu_max_num_threads=4, ad_stack_sparse_threshold_bytes=0
    )
    kernel = compiled(predicated_text(), predicates=True)
    x, mask = np.ones(50, np.float32), qd.ndarray(qd.f32, (50,))
    launch(kernel, x, np.zeros(50, np.float32), mask, 3)
    stacks = program.current().stacks
    sizer = stacks.sizer(kernel)
    assert sizer.plan_made.tasks[0].real_rows == 1
    mask._memory.write(0, np.ones(50, np.float32))  # the engine does not see it
    error = AdStackOverflowError("rows", kernel="predicated")
    error.task = 0
    reported = stacks.diagnosed(sizer, [x, x, mask._live(), 3], sizer.plan_made, error)
    text = str(reported)
    assert "more threads passed the predicate than the launch was given rows for, 1." in text
    assert "other contents now than when the launch was sized (mask)" in text
    launch(kernel, x, np.zeros(50, np.float32), mask, 3)
    assert sizer.plan_made.tasks[0].real_rows == 4
    qd.reset()
