"""Rules about tasks and passes, requirements, and the statements that failures name."""

from __future__ import annotations

import pytest
from qd_studio.app.core.rules import RuleError, evaluate, parse_rule
from qd_studio.engine import inspect
from qd_studio.engine import kernel as qd_kernel
from qd_studio.engine import types as qd_types
from qd_studio.engine.inspect import record as rec
from qd_studio.engine.inspect.ir_counts import KINDS, listing_after, statements, task_count
from qd_studio.engine.types import f32


@qd_kernel
def two(x: qd_types.NDArray[f32, 1], y: qd_types.NDArray[f32, 1]):
    for i in range(x.shape[0]):
        y[i] = x[i] * 2.0
    for i in range(x.shape[0]):
        y[i] = y[i] + x[i]


LOADING = 20
"""The line of the last loop's body."""


@pytest.fixture(scope="module")
def record():
    return rec.Record(kernels=(inspect.capture_kernel(two, backends=("cpu",)),))


def states(record, rule, baseline=None):
    return [f.state for f in evaluate(record, [rule], baseline)]


def test_counts_are_those_of_the_record(record):
    (backend,) = record.kernels[0].backends
    compiled = backend.compile
    shot = listing_after(compiled)
    for kind in KINDS:
        assert len(statements(compiled, shot, kind)) == compiled.metrics[kind]
    assert len(statements(compiled, shot, "statements")) == shot.ops
    assert task_count(shot) == len(compiled.tasks) == 2
    for task in compiled.tasks:
        assert len(statements(compiled, shot, "statements", task.index)) == task.ops


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("task.0.loads>0", ["failed"]),
        ("task.0.loads>1", ["passed"]),
        ("task.1.loads<=2@cfg_optimization", ["failed"]),
        ("task.1.loads@cfg<=2", ["failed"]),
        ("require task.1.loads<=2@cfg", ["passed"]),
        ("require task.1.loads<=1@cfg@simplify_IV", ["failed"]),
        ("task.cpu.1.op.global_load>1", ["failed"]),
        ("task.*.loads>1", ["passed", "failed"]),
        ("task.*.loads>1 in tw?", ["passed", "failed"]),
        ("task.*.loads>1 in other", ["unknown"]),
        ("task.*.loads>1 in other?", ["unknown"]),
        ("task.*.loads>1? in other", ["skipped"]),
        ("task.7.loads>0", ["skipped", "unknown"]),
        ("task.0.loads>0@lower", ["unknown"]),
        ("task.0.loads>0@no_such_pass?", ["skipped"]),
        ("task.0.loads>0@merge_global_ptrs", ["unknown"]),
        ("ir.loads>2@offload", ["failed"]),
        ("task.opencl.0.loads>0", ["unknown"]),
    ],
)
def test_rules_about_tasks_and_passes(record, rule, found):
    assert states(record, rule) == found


def test_a_failure_names_the_statements_and_their_lines(record):
    (found,) = evaluate(record, ["require task.1.loads<=1"])
    assert [place.line for place in found.places] == [LOADING, LOADING]
    assert all("global_load" in p.text and p.file == __file__ for p in found.places)
    assert f"{__file__}:{LOADING}: <f32> $" in found.text()
    (plain,) = evaluate(record, ["ir.loads>2"])
    assert len(plain.places) == 3
    (passed,) = evaluate(record, ["ir.loads>3"])
    assert passed.places == ()


def test_counts_are_compared_with_a_baseline(record):
    assert states(record, "task.0.loads>+0%", record) == ["passed"]
    assert states(record, "require task.1.loads<=+10%", record) == ["passed"]
    with pytest.raises(RuleError, match="give --baseline"):
        evaluate(record, ["task.0.loads>+0%"])


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("task.loads>1", "number of a task"),
        ("task.1.lods>1", "'lods' is none of statements"),
        ("task.opncl.1.loads>1", "opncl"),
        ("ir.loads@a@b@c>1", "METRIC@PASS@STAGE"),
        ("ir.loads>1@", "METRIC@PASS"),
        ("task.0.loads>many", "is not a number"),
    ],
)
def test_rules_that_cannot_be_read_say_why(rule, words):
    with pytest.raises(RuleError) as caught:
        parse_rule(rule)
    assert words in str(caught.value)


def test_a_pass_that_did_not_run_is_named_with_the_nearest(record):
    (found,) = evaluate(record, ["task.0.loads>0@cfg_optimisation"])
    assert 'did you mean "cfg_optimization"?' in found.message
