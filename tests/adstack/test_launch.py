"""Launches of kernels with adstacks: sized before each, and only as often as needed."""

import numpy as np
from qd_studio import engine as qd
from qd_studio.engine.runtime import program

from .launchkit import Case

REAL = qd.types.ndarray(dtype=qd.f64, ndim=1)
PAIRS = qd.types.ndarray(dtype=qd.types.vector(2, qd.i32), ndim=1)


def test_each_stack_gets_what_its_formula_says(arch):
    case = Case(qd, [3, 0, 5, 1])
    case.check()
    assert case.sizer.plan_made.tasks[0].capacities == (6,)
    case.check(2)
    assert case.sizer.plan_made.tasks[0].capacities == (8,)
    case.check(-9)
    assert case.sizer.plan_made.tasks[0].capacities == (1,), "a size below 1 means 1"


def test_nothing_is_evaluated_while_nothing_changes(arch):
    case = Case(qd, [3, 0, 5, 1])
    stacks = program.current().stacks
    case.check()
    before = stacks.evaluated, stacks.dispatched
    plan = case.sizer.plan_made
    for _ in range(5):
        case.check()
    assert (stacks.evaluated, stacks.dispatched) == before
    assert case.sizer.plan_made is plan
    assert stacks.reused == 5
    facts = {fact.name: fact for fact in case.sizer.caches.facts()}
    assert (facts["last_plan"].hits, facts["last_plan"].misses) == (5, 1)
    assert facts["size_expr"].hits == 0, "not asked while the last plan is right"


def test_memory_of_others_is_looked_at_each_time(arch):
    case = Case(qd, [3, 0, 5, 1], array=False)
    stacks = program.current().stacks
    case.check()
    assert stacks.dispatched == 1
    case.a[0] = 30
    case.check()
    assert stacks.dispatched == 2
    assert case.sizer.plan_made.tasks[0].capacities == (31,)


def test_components_of_vectors_in_an_array_bound_loops(arch):
    qd.init(arch=arch, offline_cache=False, ad_stack_experimental_enabled=True)

    @qd.kernel
    def k(ranges: PAIRS, x: REAL, y: REAL):
        for i in ranges:
            v = x[i]
            for _ in range(ranges[i][0], ranges[i][1]):
                v = v * v
            y[i] += v

    ranges = qd.Vector.ndarray(2, qd.i32, shape=(3,))
    x, y = (qd.ndarray(qd.f64, (3,), needs_grad=True) for _ in range(2))
    x.fill(1.0)
    for last in (4, 9, 9):  # the launch stub too
        ranges.from_numpy(np.array([[0, 2], [5, 1], [-2, last]], np.int32))
        x.grad.fill(0)
        y.grad.fill(1)
        k.grad(ranges, x, y)
        assert x.grad.to_numpy().tolist() == [4, 1, 2.0 ** (last + 2)]
    qd.reset()
