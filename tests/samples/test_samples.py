"""Every kernel of every sample runs, is right, and has a check that would notice otherwise."""

import os
import subprocess
import sys

import numpy as np
import pytest
from qd_studio import engine as qd

from tests.samples.sample_files import KERNELS, kernel_of


@pytest.fixture(params=["cpu", "interp"])
def backend(request):
    qd.init(arch=getattr(qd, request.param), offline_cache=False)
    yield request.param
    qd.reset()


def smallest_case(kernel):
    """The first case of the first workload: one that the interpreter can run, too."""
    _label, _sizes, make = next(iter(kernel.workloads[0].cases()))
    return make


def copies(args):
    return tuple(arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args)


@pytest.mark.sampled(3)
def test_passes_its_check(backend, sample, kernel_name):
    kernel = kernel_of(sample, kernel_name)
    args = smallest_case(kernel)()
    before = copies(args)
    result = kernel(*args)
    for check in kernel.checks:
        check(before, args, result)


@pytest.mark.sampled(3)
def test_backends_agree(sample, kernel_name):
    kernel = kernel_of(sample, kernel_name)
    make = smallest_case(kernel)
    outcomes = []
    for arch in (qd.cpu, qd.interp):
        qd.init(arch=arch, offline_cache=False)
        args = make()
        result = kernel(*args)
        arrays = [arg for arg in args if isinstance(arg, np.ndarray)]
        outcomes.append(arrays if result is None else [*arrays, np.array(result)])
        qd.reset()
    for ours, oracle in zip(*outcomes, strict=True):
        if np.issubdtype(ours.dtype, np.floating):
            np.testing.assert_allclose(ours, oracle, rtol=1e-4, atol=1e-5)
        else:
            np.testing.assert_array_equal(ours, oracle)


@pytest.mark.sampled(3)
def test_check_rejects_a_wrong_result(sample, kernel_name):
    """A kernel that did nothing, or returned something else, must not pass."""
    kernel = kernel_of(sample, kernel_name)
    before = copies(smallest_case(kernel)())
    assert kernel.checks
    for check in kernel.checks:
        with pytest.raises((AssertionError, TypeError)):
            check(before, copies(before), None)
        with pytest.raises(AssertionError):
            check(before, copies(before), -12345)


def test_workloads_grow(sample, kernel_name):
    """Each kernel has a small case and a realistic one, and reports its traffic and operations."""
    kernel = kernel_of(sample, kernel_name)
    assert kernel.workloads
    for workload in kernel.workloads:
        labels = [label for label, _sizes, _make in workload.cases()]
        assert len(labels) == len(set(labels)) >= 2


def test_all_kernels_were_found():
    """The list that the other tests run over is not empty, and holds what the README promises."""
    named = {sample for sample, _ in KERNELS}
    assert named >= {
        "saxpy", "reduction", "jacobi", "nbody", "matmul", "mandelbrot", "life", "histogram",
        "prefix_sum", "geometry", "heat", "poly",
    }  # fmt: skip
    assert len(KERNELS) >= 25


@pytest.mark.sampled(6)
def test_runs_as_a_script(script):
    """`python sample_kernels/x.py` prints a few lines and nothing on stderr."""
    options = {"QD_OFFLINE_CACHE": "0", "QD_LOG_LEVEL": "error", "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True, text=True, timeout=120, env=os.environ | options, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert done.stderr == ""
