"""What the adstack ops do, on the interpreter."""

import numpy as np
import pytest
from qd_studio.engine.backends import interp
from qd_studio.engine.backends.base import StackPlan, TaskPlan
from qd_studio.engine.errors import AdStackOverflowError, QuadrantsRuntimeError
from qd_studio.engine.ir import parse

from .stackkit import power


def _plan(*capacities):
    return StackPlan((TaskPlan(1, 1, 0, 0, capacities, (0,) * len(capacities)),))


def test_a_stack_gives_back_what_was_pushed_in_the_reverse_order():
    x = np.array([1.5, 0.5, -1.25], np.float32)
    gx, gy = np.ones(3, np.float32), np.array([1, 2, 3], np.float32)
    interp.run(power(), [x, gx, gy, 2])
    exponents = 2 * np.arange(1, 4)
    np.testing.assert_allclose(gx, 1 + gy * exponents * x ** (exponents - 1.0), rtol=1e-5)


@pytest.mark.parametrize("size", ["", "max_size=5"])
def test_a_push_on_a_full_stack_is_an_error_that_names_it(size):
    arrays = [np.ones(2, np.float32) for _ in range(3)]
    if size:
        interp.run(power(size), [*arrays, 2])
    else:
        interp.run(power(size), [*arrays, 2], stacks=_plan(5))
    with pytest.raises(AdStackOverflowError, match="stack 'p' has 5 entries") as caught:
        interp.run(power(size), [*arrays, 3], stacks=None if size else _plan(5))
    assert (caught.value.task, caught.value.stack) == (-1, 0)


def test_a_stack_is_empty_again_where_its_op_is_executed_again():
    func = parse("""\
kernel k(x: ndarray<i32, 1>) stage=lowered {
  <i32> $0 = const 0
  <i32> $1 = const 4
  $2 : range_for $0, $1 {strictly_serialized=True} body {
    <i32> $3 = loop_index $2 [0]
    <*i32> $4 = ad_stack_alloca {max_size=1 adjoint=False}
    $5 : ad_stack_push $4, $3
    <i32> $6 = ad_stack_load_top $4
    <*i32> $7 = arg_addr [(0, False)]
    <*i32> $8 = external_ptr $7, $3 ['unsafe']
    $9 : global_store $8, $6
  }
}
""")
    x = np.full(4, -1, np.int32)
    interp.run(func, [x])
    assert x.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("op", ["$5 : ad_stack_pop $4", "<f32> $5 = ad_stack_load_top_adj $4"])
def test_an_empty_stack_has_no_top(op):
    func = parse(f"""\
kernel k() stage=lowered {{
  <*f32> $4 = ad_stack_alloca
  {op}
}}
""")
    with pytest.raises(QuadrantsRuntimeError, match="finds its stack empty"):
        interp.run(func, [])
