"""`inspect.bisect` names the pass, the operation and the line that made a result wrong."""

import math
import random
import sys
from functools import partial

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends import base
from qd_studio.engine.inspect import bisect
from qd_studio.engine.inspect.bisect import bisect_kernel
from qd_studio.engine.inspect.predicates import command_predicate

from .miscompiles import FAULTS, planted

F32 = qd.types.NDArray[qd.f32, 1]


@pytest.fixture(autouse=True)
def program():
    qd.init(arch=qd.cpu)


@qd.kernel
def mixed(x: F32, y: F32, s: F32, factor: qd.f32):
    for i in x:
        d = y[i] - x[i]
        x[i] = x[i] * (factor * 2.5) - d
        s[0] += d
        if x[i] > 0.5:
            y[i] = d
        for j in range(3):
            y[i] += factor * (j + 1)


@mixed.workload(n=[64])
def arguments(n):
    rng = np.random.default_rng(1)
    values = [rng.random(n).astype(np.float32) for _ in range(2)]
    return [*values, np.zeros(1, np.float32), 1.25]


def line_of(text):
    import inspect

    lines, start = inspect.getsourcelines(mixed.decl.fn)
    return start + next(i for i, line in enumerate(lines) if text in line)


CASES = [
    ("dropped_store", "die", "simplify_III", "y[i] = d"),
    ("swapped_operands", "alg_simp", "simplify_II", "d = y[i]"),
    ("wrong_constant", "constant_fold", "simplify_I", "2.5"),
    ("off_by_one", "extract_constant", "simplify_I", "range(3)"),
    ("lost_atomic", "demote_atomics", "offload_to_executable", "s[0] += d"),
]


@pytest.mark.parametrize(("fault", "name", "phase", "text"), CASES)
def test_names_the_pass_and_the_line(fault, name, phase, text, monkeypatch):
    judged, judge = [], bisect._Bisector._state_at
    monkeypatch.setattr(
        bisect._Bisector, "_state_at", lambda self, *a: judged.append(a[1]) or judge(self, *a)
    )
    for seed in range(20):
        judged.clear()
        make = partial(random.Random, seed)
        with planted(name, FAULTS[fault], lambda cx: cx.phase == phase, make):
            found = bisect_kernel(mixed)
        if found.state == "found" and found.changes[0].line == line_of(text):
            break
    assert (found.state, found.part, found.pass_name, found.stage) == ("found", "pass", name, phase)
    assert found.changes[0].line == line_of(text)
    assert found.changes[0].file == __file__
    assert found.trials <= 14 or fault == "lost_atomic"
    # The search itself; the operation inside of the pass is looked for with further trials.
    assert len(judged) <= math.ceil(math.log2(found.states)) + 1
    assert found.evidence == ("race" if fault == "lost_atomic" else "ir")


def test_a_right_result_is_not_blamed():
    found = bisect_kernel(mixed)
    assert (found.state, found.part, found.difference) == ("agrees", "", "")


@pytest.mark.parametrize("only_fast", [False, True])
def test_a_wrong_code_generation_is_named(monkeypatch, only_fast):
    """All IR is right; the code stays wrong without optional passes. only_fast: and is right
    without fast_math."""
    backend = base.find("cpu")
    lower = type(backend).lower

    def wrong(self, func, config, *rest):
        from qd_studio.engine.ir import codes as C
        from qd_studio.engine.ir import parse, to_text, walk

        func = parse(to_text(func))
        for op in walk(func.body):
            if op.code == C.SUB and op.type.is_real and (config.fast_math or not only_fast):
                op.args = op.args[::-1]
        return lower(self, func, config, *rest)

    monkeypatch.setattr(type(backend), "lower", wrong)
    found = bisect_kernel(mixed)
    assert (found.state, found.part, found.pass_name) == ("found", "code", "")
    assert found.settings == (("fast_math",) if only_fast else ())
    assert found.title() == "code generation of cpu" + " under fast_math" * only_fast
    assert found.observed.startswith("x[0]: got")


def test_a_pass_that_misleads_the_code_generation_is_named(monkeypatch):
    """All IR is right; the code is wrong with what one optional pass makes of it."""
    backend = base.find("cpu")
    lower = type(backend).lower
    from qd_studio.engine.ir import codes as C
    from qd_studio.engine.ir import parse, to_text, walk

    optimised = []

    def wrong(self, func, *rest):
        func = parse(to_text(func))
        ops = walk(func.body)
        optimised.append(len(ops))
        if len(ops) <= optimised[0]:
            sub = next(op for op in ops if op.code == C.SUB and op.type.is_real)
            sub.args = sub.args[::-1]
        return lower(self, func, *rest)

    monkeypatch.setattr(type(backend), "lower", wrong)
    found = bisect_kernel(mixed)
    assert (found.state, found.part, found.evidence) == ("found", "pass", "exposed")
    assert found.pass_name and "right after every pass" in found.reason


def test_a_predicate_judges_in_place_of_the_interpreter():
    found = bisect_kernel(mixed, predicate=lambda values: values["s"][0] > 1e9)
    assert (found.state, found.part) == ("found", "frontend")
    assert "before any pass" in found.reason
    good = bisect_kernel(mixed, predicate=lambda values: bool(np.isfinite(values["x"]).all()))
    assert good.state == "agrees"
    with planted(
        "die", FAULTS["dropped_store"], lambda cx: cx.phase == "simplify_II",
        lambda: random.Random(1),
    ):  # fmt: skip
        right = bisect_kernel(mixed, predicate=lambda values: values["y"][0] != arguments(64)[1][0])
    assert right.pass_name in ("die", "")


def test_the_command_of_a_predicate(tmp_path):
    script = tmp_path / "judge.py"
    script.write_text(
        "import sys, numpy as np\nsys.exit(0 if np.load(sys.argv[1])['s'].size == 1 else 1)\n"
    )
    assert command_predicate(f"{sys.executable} {script}")({"s": np.zeros(1)})
    assert not command_predicate(f"{sys.executable} {script}")({"s": np.zeros(2)})
    found = bisect_kernel(mixed, predicate=command_predicate("/no/such/judge"))
    assert found.state == "unknown"
    assert "/no/such/judge cannot be run" in found.reason
    with pytest.raises(ValueError, match="the predicate is empty"):
        command_predicate(" ")
