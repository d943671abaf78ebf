"""The samples that say `import quadrants as qd`: they run, are right, and agree with Quadrants.

What Quadrants computes for their scenarios is kept in `reference.json` as three sums of each result
(written by `benchmarks/compare_reference.py --record`). Where Quadrants is installed in an
environment of its own, QD_REFERENCE_PYTHON names its interpreter and results are compared element
by element.
"""

import importlib.util
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import alias, inspect

from tests.samples.sample_files import PORTABLE, SAMPLES
from tests.samples.slopes import SLOPES

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from bench import compare

NAMES = [path.stem for path in PORTABLE]
RECORDED = json.loads(Path(__file__).with_name("reference.json").read_text())
CHECKED_BY_THE_INTERPRETER = {
    "mpm88": {"step", "fill_drops", "kinetic_energy"},
    "cloth": {"Cloth.hang", "Cloth.accelerate", "Cloth.move", "Cloth.lowest"},
    "raymarch": {"render", "render_thumbnail"},
    "smoke": {"advect", "rise", "measure_divergence", "relax", "project", "begin"},
    "coral": {"react", "grown"},
    "springs": {"accelerate", "move", "measure"},
    "diffmpm": {"wipe", "scatter", "update", "gather", "start", "measure"},
    "ragged": {"compute", "triangle"},
    "gated": {"fall"},
    "fitting": {"residuals", "squares"},
    "jacobian": {"reach"},
}


# Read now: tests run without variables that steer an engine.
REFERENCE = os.environ.get("QD_REFERENCE_PYTHON")


@cache
def results(name):
    """What the sample's scenario gives here."""
    return compare.run("ours", sys.executable, name)


def test_they_were_all_found():
    assert set(NAMES) == set(compare.STEPS) == set(RECORDED) == set(CHECKED_BY_THE_INTERPRETER)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", NAMES)
def test_it_gives_what_quadrants_gives(name):
    found = compare.fingerprints(results(name))
    assert set(found) == set(RECORDED[name])
    for result, (dtype, shape, *sums) in RECORDED[name].items():
        assert found[result][:2] == [dtype, shape]
        scale = max(map(abs, sums))
        rtol, atol = (1e-8, 1e-8) if name in SLOPES else (1e-4, 1e-5)  # gradients are in f64
        np.testing.assert_allclose(found[result][2:], sums, rtol=rtol, atol=atol * scale)


@pytest.mark.parametrize("name", NAMES)
def test_each_element_is_that_of_quadrants(name):
    reason = compare.why_not(REFERENCE)
    if reason:
        pytest.skip(f"{reason}; QD_REFERENCE_PYTHON names one")
    reference = compare.run("reference", REFERENCE, name)
    found = compare.differences(name, results(name), reference)
    assert [d.text for d in found if d.text] == []


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", NAMES)
def test_it_runs_as_a_script(name):
    options = {"QD_OFFLINE_CACHE": "0", "QD_LOG_LEVEL": "error", "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, "-m", "qd_studio.engine.alias", str(SAMPLES / f"{name}.py")],
        capture_output=True, text=True, timeout=120, env=os.environ | options, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) >= 4


@pytest.fixture
def module(request):
    """A sample, imported by a name of its own, and the calls of one step of its scenario."""
    name = request.param
    alias.install("quadrants")
    path = SAMPLES / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"portable_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    qd.init(arch=qd.cpu, log_level="error", offline_cache=False)
    try:
        spec.loader.exec_module(module)
        with inspect.recorded_calls() as calls:
            module.simulate(2)
            if name == "mpm88":
                module.kinetic_energy()
        yield name, module, calls
    finally:
        qd.reset()
        alias.remove("quadrants")
        del sys.modules[spec.name]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("module", NAMES, indirect=True)
def test_its_kernels_agree_with_the_interpreter(module):
    name, module, calls = module
    wanted = CHECKED_BY_THE_INTERPRETER[name]
    config, _ = inspect.effective_config({})
    subjects = {s.name: s for s in inspect.kernels_in(vars(module), module.__file__)}
    assert wanted <= set(subjects)
    for kernel in sorted(wanted):
        subject = subjects[kernel]
        recorded = calls.get(inspect.call_key(subject.kernel), ())
        assert recorded, kernel
        record = inspect.capture_kernel(subject, config=config, budget_s=0.001, calls=recorded[:1])
        found = record.backend("cpu")
        assert (found.status, found.agreement.state) == ("ok", "ok"), (
            kernel, found.reason, found.agreement,
        )  # fmt: skip


def test_matter_is_neither_made_nor_lost():
    """Each step of the material point method spreads all mass, and gathers all momentum."""
    found = results("mpm88")
    particle = (0.4 / 90) ** 2
    np.testing.assert_allclose(found["mass"].sum(), 8192 * particle, rtol=1e-5)
    assert np.isfinite(found["velocity"]).all()
    assert found["position"].min() > 0.02 and found["position"].max() < 0.98
    # In free fall so far, whatever the drops do to each other.
    falling = -3.0 - 9.8 * 2e-4 * compare.STEPS["mpm88"]
    np.testing.assert_allclose(found["velocity"].mean(axis=0), [0.0, falling], atol=0.02)


def test_the_cloth_rests_on_the_ball_and_not_inside():
    found = results("cloth")
    distance = np.linalg.norm(found["place"], axis=2)
    assert distance.min() > 0.3 - 1e-3
    assert found["lowest"] == found["place"][:, :, 1].min() < 0.35


def test_smoke_rises_and_the_flow_is_nearly_free_of_divergence():
    found = results("smoke")
    flow, smoke = found["flow"], found["smoke"]
    assert 0 < smoke.max() <= 1.0 + 1e-6 and smoke.min() >= 0
    along_x = flow[2:, 1:-1, 0] - flow[:-2, 1:-1, 0]
    along_y = flow[1:-1, 2:, 1] - flow[1:-1, :-2, 1]
    assert np.abs(along_x + along_y).mean() < 0.1 * np.abs(flow).max()
    assert flow[64, 16, 1] > 0.1


def test_the_mirror_reflects_and_the_sky_is_blue():
    picture = results("raymarch")["picture"]
    assert picture.shape == (320, 200, 3)
    assert picture.min() >= 0 and picture.max() <= 1.0 + 1e-6
    assert (picture[:, -1, 2] > picture[:, -1, 0]).all()


def test_the_chemical_spreads():
    found = results("coral")
    assert found["u"].min() > 0 and found["v"].max() < 1
    seeds = 3 * 64
    assert found["grown"] > seeds
    assert found["grown"] == (found["v"] > 0.2).sum()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("module", SLOPES, indirect=True)
def test_its_gradients_are_central_differences(module):
    name, module, _ = module
    # Where additions come in any order, sums near 1000 differ in their last bits from run to run:
    # by 1e-13 each, and divided by a step of 1e-5.
    for what, found, wanted in SLOPES[name](module):
        assert found == pytest.approx(wanted, rel=1e-6, abs=1e-7), what
