"""Generated kernels have right gradients; and the machinery finds wrong ones and makes them small.

`python -m tests.fuzz.gradients --count 2000` runs the big job; these are the first seeds of it.
"""

from __future__ import annotations

import numpy as np
import pytest
from qd_studio.engine.ir import codes as C
from qd_studio.engine.passes.autodiff import derivatives

from . import gradients
from .slope_model import source_of, statements, values, without
from .slopes import generate


@pytest.fixture(autouse=True)
def _quiet(capsys):
    yield
    capsys.readouterr()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("start", [0, 6])
def test_gradients_are_right(start):
    tally, failures = gradients.run(range(start, start + 6), lambda text: None, small=False)
    assert not failures, "\n".join(failures)
    assert tally.kinds["ok"] >= 5 and tally.compared > 120


def test_gradients_in_f32_agree_between_backends():
    tally, failures = gradients.run(range(7, 9), lambda text: None, small=False, real="f32")
    assert not failures, "\n".join(failures)
    assert tally.kinds["ok"] == 2


def test_kernels_depend_on_the_seed_alone():
    for seed in range(5):
        assert generate(seed) == generate(seed)
        np.testing.assert_equal(values(seed, "f64"), values(seed, "f64"))
    assert len({source_of(generate(seed)) for seed in range(50)}) == 50


def test_the_generator_reaches_the_language():
    text = "\n".join(source_of(generate(seed)) for seed in range(300))
    for piece in (
        "continue", "while ", "qd.static", "qd.ndrange", "range(c[", "range(q[", "range(n)",
        "x.shape[0]", "range(0)", "qd.Vector([", "% 3] = ", "qd.select", "qd.atomic_max", "qd.func",
        "else:", "loss[None] +=", "+= qd.sin", " ** ", "qd.atan2", "qd.floor", "% 1.7", "qd.cast",
        "qd.asin", "qd.acos", "qd.rsqrt", "qd.tan(", "g1 = ", "loss[None] += qd.sin(r", "in p:",
        "in w:", "o[", "-= ", "/= ", "*= ", "qd.min", "qd.max",
    ):  # fmt: skip
        assert piece in text, piece


def test_a_wrong_derivative_is_found_and_made_small(monkeypatch, tmp_path):
    """The derivative of sine without the cosine: some kernel shows it, a small one."""
    wrong = derivatives.Partial((), lambda b, op, value, g: g)
    monkeypatch.setitem(derivatives.RULES, C.SIN, (wrong,))
    gradients.start("f64")
    for seed in range(100, 120):
        made = generate(seed)
        found = gradients.check_one(made, gradients.loaded(made, tmp_path, made.name), False)
        if found.kind == "failed":
            break
    assert found.kind == "failed" and "differences" in found.what
    small = gradients.shrunk(made, found, tmp_path, limit=30)
    assert len(list(statements(small.body))) < len(list(statements(made.body)))
    assert "qd.sin(" in source_of(small)
    assert "gradients.check_one" in gradients.report_of(made, found, None)


def test_trees_lose_statements():
    made = generate(3)
    paths = list(statements(made.body))
    assert len(paths) > 5
    for path in paths:
        body = without(made.body, path, False)
        assert len(list(statements(body))) < len(paths)
