"""What the record reports of adstacks: formulas, and totals that are the allocator's own."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.inspect.autodiff import described, links_of, sides_of
from qd_studio.engine.inspect.record import CompileRecord, PassRun, Snapshot
from qd_studio.engine.inspect.stack_facts import facts_of_launch
from qd_studio.engine.runtime import program
from qd_studio.engine.runtime.sizer import bytes_of

from tests.adstack.launchkit import EXACT, Case


@pytest.fixture(autouse=True)
def cpu():
    qd.init(arch=qd.cpu, offline_cache=False, cpu_max_num_threads=2)
    yield
    qd.reset()


def reported(case, n=0):
    """The record of `Case`, and the plan of its launch."""
    case.run(n)
    meta = case.kernel.meta
    stacks = program.current().stacks
    values = [case.x, np.zeros(case.n, np.float32), case.gy, np.asarray(case.counts), n]
    plan = stacks.sizer(case.kernel).plan(values)
    record = described(CompileRecord(), "reverse", meta)
    return record, facts_of_launch(record, stacks, case.kernel, plan, values, "few"), plan


def test_a_compile_states_formulas_and_no_sizes():
    record, _, _ = reported(Case(qd, [3, 0, 5, 1]))
    (task,) = record.tasks
    (stack,) = task.stacks
    assert (stack.name, stack.dtype, stack.adjoint, stack.real) == ("p", "f32", True, True)
    assert stack.entry == 8 and stack.size == EXACT
    assert "a.shape[0]" in stack.formula and "n" in stack.formula
    assert not record.sized and stack.slots == stack.total == 0
    assert all(leaf.value is None for leaf in stack.leaves)


@pytest.mark.parametrize("n", [0, 4, -9])
def test_totals_are_the_allocators_own(n):
    _, record, plan = reported(Case(qd, [3, 0, 5, 1]), n)
    stacks = program.current().stacks
    (task,) = record.tasks
    (stack,) = task.stacks
    slots = max(1, max(0, 5 + n) + 1)
    assert stack.slots == slots == plan.tasks[0].capacities[0]
    assert stack.rows == plan.tasks[0].real_rows
    assert stack.total == stack.rows * slots * stack.entry
    real, integer = bytes_of(plan.tasks)
    assert record.bytes == task.bytes == real + integer == stack.total
    needed = {heap.kind: (heap.needed, heap.size) for heap in record.heaps}
    assert needed == {"real": (real, stacks.real.size), "integer": (0, stacks.integer.size)}
    assert real <= stacks.real.size
    assert stack.peak and record.workload == "few"


def test_the_values_of_the_last_launch_are_in_the_tree_and_at_the_leaves():
    _, record, _ = reported(Case(qd, [3, 0, 5, 1]), 2)
    (stack,) = record.tasks[0].stacks
    assert stack.tree[0].value == 8 == stack.slots
    leaves = {leaf.text: leaf.value for leaf in stack.leaves}
    assert leaves == {"a.shape[0]": 4, "n": 2, "largest in a": 5}
    assert stack.tree[0].depth == 0 < stack.tree[-1].depth
    assert any(row.value is None for row in stack.tree), "below a maximum there is no one value"


def test_maxima_caches_and_dispatches_are_reported():
    _, record, _ = reported(Case(qd, [3, 0, 5, 1]))
    (found,) = record.reducers
    assert (found.task, found.stack, found.axes, found.round, found.value) == (0, "p", (4,), 1, 5)
    assert found.how == "numpy" and found.formula.startswith("max over i < a.shape[0]")
    assert record.rounds == record.dispatches == 1
    layers = {x.name: (x.hits, x.misses) for x in record.layers}
    assert list(layers) == [
        "last_plan",
        "size_expr",
        "reducer_code",
        "task_metadata",
        "max_reducer",
    ]
    assert record.evaluations == layers["size_expr"][1] + layers["max_reducer"][1] > 0


def test_a_size_known_when_compiled_needs_no_expression():
    record, sized, plan = reported(Case(qd, [3, 0, 5, 1], size=12))
    (stack,) = record.tasks[0].stacks
    assert (stack.max_size, stack.formula, stack.tree) == (12, "12", ())
    assert sized.tasks[0].stacks[0].slots == 12 and sized.reducers == ()
    assert sized.bytes == sum(bytes_of(plan.tasks))


# --- what belongs together --------------------------------------------------------------------


def shot(*rows):
    return Snapshot(
        lines=tuple(f"${op}" for op, _ in rows),
        ids=tuple(op for op, _ in rows),
        locs=tuple(loc for _, loc in rows),
    )


def test_an_op_belongs_to_itself_to_what_it_replaces_and_to_its_place():
    before = shot((1, 0), (2, 1), (3, 1), (-1, -1))
    after = shot((1, 0), (10, 5), (11, 1), (12, 7), (-1, -1))
    # 10 replaced 9, which is gone, and that replaced 2.
    links = links_of(before, after, {10: 9, 9: 2})
    assert [(x.forward, x.reverse, x.by) for x in links] == [
        (1, 1, "same"), (2, 10, "made"), (3, 11, "place"),
    ]  # fmt: skip


def run(index, stage, name, before, after, state="changed"):
    return PassRun(index=index, stage=stage, name=name, before=before, after=after, state=state)


def test_the_two_sides_are_around_the_passes_that_differentiate():
    runs = (
        run(0, "simplify_II", "die", 0, 1),
        run(1, "autodiff", "make_dual", 1, 2),
        run(2, "post_autodiff", "die", 2, 3),
        run(3, "offload", "offload", 3, 4),
    )
    assert sides_of(runs) == (1, 3)
    assert sides_of(runs[:1]) == (-1, -1)
    assert sides_of((runs[0], run(1, "autodiff", "make_dual", 1, 1, "failed"))) == (1, -1)
