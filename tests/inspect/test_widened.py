"""Results in f64 throughout, which tell the interpreter's own rounding from a fault."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import inspect
from qd_studio.engine.inspect import launching
from qd_studio.engine.inspect.agreement import compare

from tests.samples.sample_files import KERNELS, kernel_of


@pytest.mark.parametrize(
    ("ours", "theirs", "exact", "agrees"),
    [
        (3.4977e5, 3.4964e5, 349772.5, True),  # closer than the interpreter
        (3.4950e5, 3.4964e5, 349772.5, False),  # more than twice as far
        (3.4953e5, 3.4964e5, 349772.5, True),
        (3.0e5, 2.0e5, 3.4977e5, False),  # the interpreter is no measure of rounding
        (3.4977e5, 2.0e5, 349772.5, True),
        (np.nan, 3.4964e5, 349772.5, False),
        (3.4977e5, 3.4964e5, np.inf, False),
    ],
)
def test_what_counts_as_rounding(ours, theirs, exact, agrees):
    x, y = (np.array([1.0, v], np.float32) for v in (ours, theirs))
    found = compare(["x"], [x], [y], exact=lambda: [np.array([1.0, exact])])
    assert found.agrees is agrees and bool(found.rounding) is agrees
    assert bool(found.first_difference) is not agrees
    assert not compare(["x"], [x], [y], exact=lambda: None).agrees


def test_integers_get_no_second_chance():
    x, y = np.array([1, 2]), np.array([1, 3])
    assert not compare(["x"], [x], [y], exact=lambda: [np.array([1, 2])]).agrees


@qd.kernel
def total(x: qd.types.NDArray[qd.f32, 1]) -> qd.f32:
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * x[i]
    return s


@total.workload(n=[1 << 20])
def numbers(n):
    return (np.random.default_rng(2).random(n, np.float32),)


def agreement(backend="cpu"):
    (found,) = (
        b.agreement
        for b in inspect.capture_kernel(total, backends=(backend, "interp")).backends
        if b.backend == backend
    )
    return found


def test_a_long_sum_agrees_and_a_wrong_one_does_not(monkeypatch):
    found = agreement()
    assert found.state == "ok" and "the interpreter's own rounding" in found.reason
    assert found.max_abs > 10
    usual = launching.Launcher.outcome

    def wrong(self, compiled, values, results):
        if compiled.artifact.backend == "cpu":
            results = tuple(r * 1.01 for r in results)
        return usual(self, compiled, values, results)

    monkeypatch.setattr(launching.Launcher, "outcome", wrong)
    found = agreement()
    assert found.state == "differs" and found.reason == ""


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("sample", "name"), KERNELS, ids=[f"{s}.{k}" for s, k in KERNELS])
def test_samples_compute_the_same_in_f64(sample, name, monkeypatch):
    seen = []

    def compared(names, ours, theirs, results, exact):
        wide = exact()
        seen.append(wide is not None)
        if wide is not None:
            found = compare(names, wide, theirs, results)
            assert found.agrees or found.max_rel < 0.02, found.first_difference
        return compare(names, ours, theirs, results)

    monkeypatch.setattr(launching, "compare", compared)
    kernel = kernel_of(sample, name)
    record = inspect.capture_kernel(kernel, backends=("cpu", "interp"))
    assert not record.errors and seen
