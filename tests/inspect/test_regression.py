"""`inspect.regression` names the option, the pass and its round that made a kernel worse."""

import random
from functools import partial

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect import KernelCapture
from qd_studio.engine.inspect.metrics import Side, check_metric, parse_side
from qd_studio.engine.inspect.regression import bisect_metric

from .miscompiles import WASTE, planted

F32 = qd.types.NDArray[qd.f32, 1]
F32_2D = qd.types.NDArray[qd.f32, 2]


@pytest.fixture(autouse=True)
def program():
    qd.init(arch=qd.cpu)


@qd.kernel
def diffuse(u: F32_2D, v: F32_2D, rate: qd.f32):
    for i, j in u:
        total = 0.0
        if i > 0 and j > 0 and i < u.shape[0] - 1 and j < u.shape[1] - 1:
            total = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
        v[i, j] = u[i, j] + rate * total


@qd.kernel
def springs(x: F32, v: F32, k: qd.f32, dt: qd.f32):
    for i in range(1, x.shape[0] - 1):
        f = k * (x[i + 1] - 2.0 * x[i] + x[i - 1])
        v[i] = (v[i] + dt * f) * 0.99
    for i in x:
        x[i] += dt * v[i]


@qd.kernel
def energy(x: F32, v: F32, out: F32):
    for i in x:
        e = 0.5 * v[i] * v[i]
        if x[i] < 0.0:
            e += x[i] * x[i] * 100.0
        out[0] += e


@qd.func
def clamp(a, low, high):
    return qd.max(low, qd.min(a, high))


@qd.kernel
def tone(x: F32, y: F32, gain: qd.f32):
    for i in x:
        a = clamp(x[i] * gain, 0.0, 1.0)
        for _ in range(3):
            a = a * a * (3.0 - 2.0 * a)
        y[i] = a


def vector(n=64):
    return np.linspace(-1, 1, n, dtype=np.float32)


def captured(kernel, backend="cpu"):
    found = KernelCapture(kernel, (backend,), CompileConfig(fast_math=False, flatten_if=False))
    found.compile()
    return found


TABLE = [
    (energy, "computed_in_steps", "loop_invariant_code_motion", "simplify_IV", "statements"),
    (tone, "loaded_again", "simplify", "simplify_IV", "loads"),
    (springs, "loaded_again", "die", "simplify_IV", "loads"),
    (springs, "computed_in_steps", "die", "simplify_III", "instructions"),
    (springs, "computed_in_steps", "alg_simp", "simplify_IV", "statements"),
    (energy, "computed_in_steps", "extract_constant", "simplify_II", "statements"),
    (tone, "computed_in_steps", "constant_fold", "before_lower_access", "statements"),
    (tone, "computed_in_steps", "simplify", "simplify_IV", "statements"),
    (springs, "computed_in_steps", "unreachable_code_elimination", "simplify_III", "statements"),
    (diffuse, "idle_atomic", "loop_invariant_code_motion", "simplify_IV", "atomics"),
    (springs, "idle_atomic", "die", "simplify_IV", "atomics"),
    (tone, "idle_atomic", "binary_op_simplify", "simplify_IV", "atomics"),
]


GOOD = parse_side("make_block_local=1,detect_read_only=1")
BAD = parse_side("make_block_local=0,quant_opt_store_fusion=0,make_mesh_block_local=0")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "kind", "name", "phase", "metric"), TABLE, ids=lambda v: getattr(v, "name", v)
)  # fmt: skip
def test_waste_under_an_option_is_named(kernel, kind, name, phase, metric):
    """The one of three options, and the pass."""
    when = partial(_planted_here, phase, lambda config: not config.quant_opt_store_fusion)
    with planted(name, WASTE[kind], when, partial(random.Random, 1)):
        found = bisect_metric(captured(kernel), "cpu", metric, GOOD, BAD)
    assert found.state == "found", found.reason
    assert found.settings == ("quant_opt_store_fusion: True -> False",)
    assert (found.part, found.pass_name, found.stage) == ("pass", name, phase)


def _planted_here(phase, option, cx):
    return cx.phase == phase and option(cx.config)


@pytest.mark.slow
def test_waste_without_a_good_side_is_named():
    """Nothing to compare with: each optional run is left out in turn."""
    when = partial(_planted_here, "simplify_IV", lambda config: True)
    with planted("die", WASTE["computed_in_steps"], when, partial(random.Random, 1)):
        found = bisect_metric(captured(springs), "cpu", "statements")
    assert (found.state, found.pass_name, found.stage) == ("found", "die", "simplify_IV")
    line = springs.decl.line + 3
    assert any(change.line == line for change in found.changes), found.changes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("speed", "there is no metric 'speed'; there are: statements, loads"),
        ("without=nothing", "there is no pass 'nothing'"),
        ("without=offload", "the pass 'offload' cannot be left out"),
        ("fast=1", "there is no option 'fast'"),
    ],
)
def test_what_cannot_be_asked(text, said):
    with pytest.raises(ValueError, match=said):
        parse_side(text) if "=" in text else check_metric(text)


@qd.kernel
def flagged(x: F32, v: F32, out: F32):
    """The index of the element is an offset again in the branch, which only this pass merges."""
    for i in x:
        e = x[i] * v[i]
        if e < 0.0:
            out[i] = 3.0
        out[0] += e


def test_a_pass_that_is_left_out_is_named_with_its_run():
    found = bisect_metric(
        captured(flagged), "cpu", "statements", Side(), parse_side("without=per_task_cse")
    )
    assert (found.state, found.pass_name, found.settings) == (
        "found", "per_task_cse", ("without per_task_cse",),
    )  # fmt: skip
    assert (found.stage, found.round) == ("simplify_IV", 1)
