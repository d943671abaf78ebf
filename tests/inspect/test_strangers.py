"""Faults planted in kernels as users write them: found, and shown by scripts that run alone."""

import random
import subprocess
import sys
from functools import partial

import pytest
from qd_studio import engine as qd
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect import KernelCapture
from qd_studio.engine.inspect.arguments import Call
from qd_studio.engine.inspect.differentiable import gradient_features
from qd_studio.engine.inspect.discover import Subject
from qd_studio.engine.inspect.gradients import GradientCapture
from qd_studio.engine.inspect.reproducer import reproducer_of

from .miscompiles import FAULTS, planted
from .strangers import kernels
from .test_reproducer import run

CASES = [
    ("substep", "wrong_operation", "die", "simplify_III"),
    ("substep", "off_by_one", "alg_simp", "simplify_I"),
    ("damp", "flipped_comparison", "simplify", "simplify_II"),
    ("halve", "swapped_operands", "constant_fold", "simplify_I"),
    ("advance", "dropped_store", "extract_constant", "simplify_II"),
    ("blur", "wrong_constant", "die", "simplify_I"),
    ("blur", "wrong_operation", "loop_invariant_code_motion", "simplify_III"),
    ("weigh", "swapped_operands", "binary_op_simplify", "simplify_II"),
    ("orbit", "wrong_operation", "die", "simplify_II"),
    ("orbit", "wrong_cse", "alg_simp", "simplify_IV"),
    ("attract", "swapped_operands", "loop_invariant_code_motion", "simplify_IV"),
    ("attract", "wrong_operation", "simplify", "simplify_I"),
    ("angles", "wrong_constant", "alg_simp", "simplify_II"),
    ("angles", "dropped_store", "die", "simplify_III"),
    ("copy_scaled", "swapped_operands", "die", "simplify_III"),
    ("copy_scaled", "wrong_operation", "constant_fold", "simplify_IV"),
    ("powers", "wrong_constant", "die", "simplify_II"),
    ("move", "wrong_operation", "die", "simplify_III"),
    ("push", "swapped_operands", "die", "simplify_III"),
    ("push_from_outside", "wrong_operation", "alg_simp", "simplify_II"),
    ("loss", "wrong_operation", "die", "simplify_III"),
    ("loss", "swapped_operands", "alg_simp", "simplify_IV"),
    ("residual", "wrong_operation", "simplify", "simplify_III"),
    ("residual", "wrong_operation", "die", "simplify_II"),
    ("chain", "wrong_constant", "die", "simplify_III"),
    ("loss", "wrong_operation", "make_adjoint", "autodiff"),
    ("loss", "wrong_operation", "coalesce_ad_stack_loads", "autodiff"),
    ("residual", "wrong_operation", "make_adjoint", "autodiff"),
    ("chain", "wrong_operation", "make_adjoint", "autodiff"),
    ("chain", "wrong_constant", "backup_ssa", "autodiff"),
]


def captured(name):
    kernel, instance, args, gradient = kernels.subjects()[name]
    given = args if instance is None else (instance, *args)
    config = CompileConfig(fast_math=False)
    subject = Subject(kernel, kernel.decl.name, instance)
    capture = KernelCapture(subject, ("cpu",), config, calls=[Call(tuple(given))])
    capture.compile()
    if gradient:
        capture = GradientCapture(capture, gradient_features(capture, make=True))
        capture.compile()
    return capture


@pytest.mark.slow
@pytest.mark.parametrize(("name", "fault", "pass_name", "phase"), CASES)
def test_a_fault_is_named_and_its_script_runs(name, fault, pass_name, phase, tmp_path):
    qd.init(arch=qd.cpu)
    for seed in range(12):
        plant = partial(
            planted, pass_name, FAULTS[fault], lambda cx: cx.phase == phase,
            partial(random.Random, seed),
        )  # fmt: skip
        with plant():
            made = reproducer_of(captured(name), "cpu", seconds=0.2)
        if made.bisection.state == "found":
            break
    found = made.bisection
    assert (found.state, found.pass_name, found.stage) == ("found", pass_name, phase), found.reason
    assert made.script, made.reason
    assert made.lines <= 20
    script = tmp_path / "repro.py"
    script.write_text(made.script)
    with plant():
        assert run(script) == 1
    assert run(script) == 0


@pytest.mark.slow
def test_a_script_of_a_method_runs_alone(tmp_path):
    """In a process of its own, where nothing is wrong."""
    qd.init(arch=qd.cpu)
    plant = partial(
        planted, "die", FAULTS["wrong_operation"], lambda cx: cx.phase == "simplify_III",
        partial(random.Random, 0),
    )  # fmt: skip
    with plant():
        made = reproducer_of(captured("substep"), "cpu", seconds=0.0)
    assert made.script, made.reason
    assert "self" not in made.script
    (tmp_path / "repro.py").write_text(made.script)
    done = subprocess.run(
        [sys.executable, "repro.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.splitlines()[:1]) == (
        0, ["substep on cpu: the result is right"],
    ), done.stderr  # fmt: skip
