"""Generated kernels of vectors, matrices and structs have right gradients, however they are called.

`python -m tests.fuzz.gradients --parts` and `python -m tests.fuzz.slope_calls` run the big jobs.
"""

from __future__ import annotations

import numpy as np
import pytest
from qd_studio.engine.ir import codes as C
from qd_studio.engine.passes.autodiff import derivatives

from . import gradients, slope_calls
from .slope_model import source_of
from .slope_parts import generate


@pytest.fixture(autouse=True)
def _quiet(capsys):
    yield
    capsys.readouterr()


@pytest.mark.slow
def test_gradients_of_parts_are_right():
    tally, failures = gradients.run(range(4), lambda text: None, small=False, parts=True)
    assert not failures, "\n".join(failures)
    assert tally.kinds["ok"] >= 3 and tally.compared > 300


@pytest.mark.sampled(3)
@pytest.mark.parametrize("start", [0, 3])
def test_gradients_are_right_at_every_launch(start):
    found = slope_calls.check_batch(start, 3)
    assert not found.failures, "\n".join(found.failures)
    assert found.launches >= 2 * 2 * slope_calls.STEPS


def test_wrong_gradients_of_a_launch_are_found():
    want = {"x": np.array([1.0, 2.0]), "x2": np.array([0.5, 0.0])}
    use = slope_calls.Use(True, frozenset(), frozenset())
    assert not slope_calls.differs(want, {"x": np.array([1.5, 2.0])}, use, 1e-9)
    assert "x.grad is" in slope_calls.differs(want, {"x": np.array([1.0, 2.0])}, use, 1e-9)
    assert "x.grad is" in slope_calls.differs(want, {"x": np.array([1.5, np.nan])}, use, 1e-9)


def test_a_wrong_derivative_shows_in_a_kernel_of_parts(monkeypatch, tmp_path):
    wrong = derivatives.Partial((), lambda b, op, value, g: g)
    monkeypatch.setitem(derivatives.RULES, C.SIN, (wrong,))
    gradients.start("f64")
    for seed in range(10):
        made = generate(seed)
        found = gradients.check_one(made, gradients.loaded(made, tmp_path, made.name))
        if found.kind == "failed":
            break
    assert found.kind == "failed" and "differences" in found.what


def test_the_generator_reaches_the_language():
    text = "\n".join(source_of(generate(seed)) for seed in range(300))
    for piece in (
        "qd.Vector([", "qd.Matrix([[", ".cross(", ".dot(", ".norm(", ".normalized()", " @ ",
        ".transpose()", ".inverse()", ".outer_product(", ".determinant()", ".trace()", ".zxy",
        ".yxy", "[1:3]", ".yx = ", "S(a=", ".v[0] *= ", "% 2] = ", "% 3] += ", "qd.template()",
        "kv", "ov[", "yv[", "qs[", "block_dim=32", "serialize=True", "if x[i", "if c[i", "if u[i",
        " == ", " != ", " >= ", " <= ",
    ):  # fmt: skip
        assert piece in text, piece


def test_kernels_depend_on_the_seed_alone():
    assert [generate(seed) for seed in range(5)] == [generate(seed) for seed in range(5)]
    assert len({source_of(generate(seed)) for seed in range(50)}) == 50
