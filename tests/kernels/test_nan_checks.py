"""debug_nan: a launch raises at the op that made the first NaN or infinity that it stored."""

import sys
from pathlib import Path

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.passes.insert_nan_checks import FINAL, Site, decoded
from qd_studio.engine.runtime import nan_checks

from tests.samples.sample_files import KERNELS, kernel_of

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from nan_cases import FORMS, case, fault

N = 64


def started(**options):
    qd.init(arch=qd.cpu, debug_nan=True, offline_cache=False, **options)


def vector(data):
    array = qd.ndarray(qd.f32, len(data))
    array.from_numpy(np.asarray(data, np.float32))
    return array


@qd.kernel
def roots(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1]):
    for i in x:
        y[i] = qd.sqrt(x[i]) + 1.0


@pytest.mark.parametrize("start", range(0, len(FORMS), 6))
def test_the_origin_of_seeded_cases(start, tmp_path):
    started(fast_math=start % 12 == 0)
    for seed in range(start, start + 6):
        wrong = fault(qd, case(seed), tmp_path)
        assert not wrong, f"{case(seed).label}: {wrong}"


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 108, 18))
def test_the_origin_of_all_seeded_cases(start, tmp_path):
    started(fast_math=start % 36 > 0)
    for seed in range(start, start + 18):
        wrong = fault(qd, case(seed), tmp_path)
        assert not wrong, f"{case(seed).label}: {wrong}"


@pytest.mark.parametrize("start", range(0, len(FORMS), 6))
def test_one_iteration_is_run_where_all_are_too_many(start, tmp_path, monkeypatch):
    monkeypatch.setattr(nan_checks, "_IN_ORDER", 20)
    started()
    for seed in range(start, start + 6):
        wrong = fault(qd, case(seed), tmp_path)
        assert not wrong, f"{case(seed).label}: {wrong}"


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("sample", "name"), KERNELS, ids=[f"{s}.{k}" for s, k in KERNELS])
def test_samples_have_the_same_bits_and_no_report(sample, name):
    results = []
    for checked in (False, True):
        # With fast_math LLVM may group the terms of a sum otherwise around a check.
        qd.init(arch=qd.cpu, debug_nan=checked, offline_cache=False, fast_math=False)
        kernel = kernel_of(sample, name)
        args = kernel.workloads[0].cases()[0].make()
        returned = kernel(*args)
        arrays = [a if isinstance(a, np.ndarray) else a.to_numpy() for a in args
                  if isinstance(a, np.ndarray) or hasattr(a, "to_numpy")]  # fmt: skip
        results.append([a.tobytes() for a in arrays] + [returned])
    assert results[0] == results[1]


def test_the_error_has_the_op_the_iteration_and_the_values():
    started()
    x, y = vector(np.arange(N) - 5.5), vector(np.zeros(N))
    for _ in range(3):  # no launch stub goes past the check
        with pytest.raises(qd.NanError) as caught:
            roots(x, y)
    error = caught.value
    assert error.source_line.strip() == "y[i] = qd.sqrt(x[i]) + 1.0"
    assert error.iteration == (0,)
    assert error.task == 0
    text = str(error)
    for part in ("sqrt(-5.5) makes a NaN", "x[0] = -5.5", "nan + 1 = nan", "stored to y[0]"):
        assert part in text, text
    assert isinstance(error, ArithmeticError)
    # The launch has written what it computed, and the program goes on.
    assert np.isnan(y.to_numpy()[:6]).all()
    roots(vector(np.ones(N)), y)
    np.testing.assert_array_equal(y.to_numpy(), 2.0)


def test_an_earlier_launch_that_raised_is_named():
    @qd.kernel
    def double(y: qd.types.NDArray[qd.f32, 1], z: qd.types.NDArray[qd.f32, 1]):
        for i in y:
            z[i] = y[i] * 2.0

    started()
    y = vector(np.zeros(4))
    with pytest.raises(qd.NanError):
        roots(vector([1.0, -1.0, 1.0, 1.0]), y)
    with pytest.raises(qd.NanError, match=r"y\[1\] was a NaN already at the launch") as caught:
        double(y, vector(np.zeros(4)))
    assert "an earlier launch of roots raised, and stored to it" in str(caught.value)
    held = vector([0.0, np.nan])
    with pytest.raises(qd.NanError) as caught:
        double(held, vector([0.0, 0.0]))
    assert "earlier launch" not in str(caught.value)


def test_results_of_kernels_are_as_without_checks():
    @qd.kernel
    def total(x: qd.types.NDArray[qd.f32, 1]) -> qd.f32:
        s = 0.0
        for i in x:
            s += x[i]
        return s

    @qd.kernel
    def pair(a: qd.f32) -> qd.types.vector(2, qd.f32):
        return qd.Vector([a, 1.0 / a])

    started()
    assert total(vector(np.ones(N))) == N
    assert list(pair(4.0)) == [4.0, 0.25]
    with pytest.raises(qd.NanError, match=r"1 / 0|inv\(0\)"):
        pair(0.0)
    with pytest.raises(qd.NanError, match="x\\[3\\] was a NaN already at the launch"):
        total(vector([1.0, 2.0, 3.0, np.nan]))


@pytest.mark.parametrize("steps", [20, 1 << 20], ids=["one iteration", "all"])
def test_values_put_in_on_purpose_are_no_fault(steps, monkeypatch):
    monkeypatch.setattr(nan_checks, "_IN_ORDER", steps)

    @qd.kernel
    def fill(x: qd.types.NDArray[qd.f32, 1], big: qd.f32):
        for i in x:
            x[i] = qd.math.inf
        for i in x:
            x[i] = big
        for i in x:
            if i > 3:
                x[i] = qd.math.nan if i > 5 else -qd.math.inf

    started()
    x = vector(np.zeros(8))
    fill(x, np.inf)
    np.testing.assert_array_equal(
        x.to_numpy(), [np.inf] * 4 + [-np.inf] * 2 + [np.nan] * 2
    )  # fmt: skip


def test_what_constants_make_is_found():
    @qd.kernel
    def roots_of(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1]):
        for i in x:
            y[i] = qd.sqrt(x[i] - x[i] - 1e-6)

    @qd.kernel
    def powers(y: qd.types.NDArray[qd.f32, 1]):
        for i in y:
            big = 1e38
            y[i] = (big * 1e4 - big * 1e4) * i

    for fast in (True, False):
        started(fast_math=fast)
        x, y = vector(np.ones(8)), vector(np.ones(8))
        with pytest.raises(qd.NanError, match=r"sqrt\(-9.99999997e-07\) makes a NaN"):
            roots_of(x, y)
    with pytest.raises(qd.NanError, match="makes an infinity"):
        powers(y)


def test_an_infinity_on_purpose_does_not_hide_what_is_made_of_it():
    @qd.kernel
    def nearest(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1]):
        for i in x:
            best = qd.math.inf
            for k in range(4):
                if x[i] > k:
                    best = qd.min(best, x[i])
            y[i] = qd.sin(best)

    started()
    y = vector(np.ones(8))
    nearest(vector(np.full(8, 2.0)), y)
    with pytest.raises(qd.NanError, match="sin\\(inf\\) makes a NaN") as caught:
        nearest(vector([2.0, 2.0, -1.0, -1.0, 2.0, 2.0, 2.0, 2.0]), y)
    assert caught.value.iteration == (2,)


def test_masked_and_unused_values_are_no_fault():
    @qd.kernel
    def masked(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1]):
        for i in x:
            root = qd.sqrt(x[i])
            y[i] = qd.select(x[i] >= 0.0, root, 0.0)
            lost = qd.log(x[i])
            if lost > 1e30:
                y[i] = 1.0

    started()
    masked(vector([-1.0, 4.0]), vector([0.0, 0.0]))


def test_a_sum_that_overflows_is_found_at_its_update():
    @qd.kernel
    def collect(x: qd.types.NDArray[qd.f32, 1], s: qd.types.NDArray[qd.f32, 1]):
        for i in x:
            s[0] += x[i]

    started()
    with pytest.raises(qd.NanError, match="makes an infinity") as caught:
        collect(vector(np.full(8, 1e38)), vector([0.0]))
    assert caught.value.kind == "made"
    assert caught.value.iteration == (3,)


def test_a_value_of_an_earlier_task_is_followed_there():
    @qd.kernel
    def steps(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1]) -> qd.f32:
        s = 0.0
        for i in x:
            s += qd.log(x[i])
        for i in y:
            y[i] = s
        return s

    started()
    with pytest.raises(qd.NanError, match="log\\(-1\\) makes a NaN") as caught:
        steps(vector([1.0, 2.0, -1.0]), vector(np.zeros(3)))
    assert caught.value.iteration == (2,)


def test_the_option_is_part_of_the_key(tmp_path):
    for checked in (False, True, False):
        qd.init(arch=qd.cpu, debug_nan=checked, offline_cache=True,
                offline_cache_file_path=str(tmp_path))  # fmt: skip
        y = vector(np.zeros(2))
        if checked:
            with pytest.raises(qd.NanError):
                roots(vector([-1.0, 1.0]), y)
        else:
            roots(vector([-1.0, 1.0]), y)
            assert np.isnan(y.to_numpy()[0])


def test_the_order_of_sites():
    def key(task, iteration, store):
        return (1 << 64) - 1 - (task << 54) - (iteration << 12) - store

    sites = [Site(0, 0, 1), Site(0, 7, 0), Site(0, FINAL, 3), Site(1, 0, 0), Site(4, 1 << 40, 9)]
    keys = [key(*site) for site in sites]
    assert keys == sorted(keys, reverse=True)
    assert [decoded(k) for k in keys] == sites
