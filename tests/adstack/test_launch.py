"""Launches of kernels with adstacks: sized before each, and only as often as needed."""

from qd_studio import engine as qd
from qd_studio.engine.runtime import program

from .launchkit import Case


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


def test_memory_of_others_is_looked_at_each_time(arch):
    case = Case(qd, [3, 0, 5, 1], array=False)
    stacks = program.current().stacks
    case.check()
    assert stacks.dispatched == 1
    case.a[0] = 30
    case.check()
    assert stacks.dispatched == 2
    assert case.sizer.plan_made.tasks[0].capacities == (31,)
