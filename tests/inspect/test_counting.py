"""What launches move and compute, counted, against what is known of small kernels."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import inspect
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect import counting, measuring
from qd_studio.engine.ir import verify

F32 = qd.types.NDArray[qd.f32, 1]


def reported(kernel, *args, **amounts):
    """The record of the only workload of ``kernel``."""

    @kernel.workload(**amounts)
    def given():
        return args

    found = inspect.capture_kernel(kernel, ("cpu",), CompileConfig(), budget_s=0.002)
    assert found.backends[0].status == "ok" and not found.errors, found
    kernel.workloads.clear()
    return found.workloads[0], found.backends[0].launches[0]


def ones(n):
    return np.ones(n, np.float32)


@qd.kernel
def saxpy(x: F32, y: F32, a: qd.f32):
    for i in range(x.shape[0]):
        y[i] = a * x[i] + y[i]


def test_a_sweep_counts_each_element_once_read_and_once_written():
    workload, launch = reported(saxpy, ones(1000), ones(1000), 2.0)
    assert (workload.bytes, workload.flops) == (12000, 2000)
    assert (workload.by_bytes, workload.by_flops) == ("counted", "counted")
    assert launch.gbps == pytest.approx(12000 / launch.median_us / 1e3)
    assert launch.gflops == pytest.approx(2000 / launch.median_us / 1e3)


def test_what_the_author_declares_wins():
    workload, _launch = reported(saxpy, ones(8), ones(8), 2.0, bytes=lambda: 5, flops=lambda: 7)
    assert (workload.bytes, workload.flops) == (5, 7)
    assert (workload.by_bytes, workload.by_flops) == ("declared", "declared")
    workload, _ = reported(saxpy, ones(8), ones(8), 2.0, bytes=lambda: 5)
    assert (workload.bytes, workload.flops) == (5, 16)
    assert (workload.by_bytes, workload.by_flops) == ("declared", "counted")


@qd.kernel
def collatz(x: qd.types.NDArray[qd.i32, 1], y: F32):
    for i in range(x.shape[0]):
        n = x[i]
        while n > 1:
            n = n // 2
            y[i] += 0.5
            if n == 3:
                y[i] *= 2.0


def test_loops_and_branches_that_depend_on_data_are_counted_as_they_run():
    x = np.array([1, 2, 8, 13, 100], np.int32)
    adds = sum(int(np.log2(n)) for n in x)
    halves = [[n >> k for k in range(1, 8)] for n in x]
    workload, _ = reported(collatz, x, ones(5))
    assert workload.flops == adds + sum(h.count(3) for h in halves) == adds + 2
    # The first needs no y at all.
    assert workload.bytes == 4 * 5 + 4 * 4 + 4 * 4


@qd.kernel
def early(x: F32, y: F32):
    for i in range(x.shape[0]):
        for j in range(10):
            if j > i:
                break
            if j == 2:
                continue
            y[i] += x[j]


def test_iterations_that_end_early_count_as_far_as_they_go():
    workload, _ = reported(early, ones(12), ones(12))
    assert workload.flops == sum(sum(j != 2 for j in range(min(i + 1, 10))) for i in range(12))


@qd.kernel
def scatter(at: qd.types.NDArray[qd.i32, 1], bins: qd.types.NDArray[qd.f64, 1]):
    for i in range(at.shape[0]):
        bins[at[i]] += 1.0


def test_addresses_that_depend_on_data():
    at = np.array([3, 3, 5, 3, 0], np.int32)
    workload, _ = reported(scatter, at, np.zeros(64))
    assert workload.bytes == 4 * 5 + 2 * 8 * 3  # read and written, three different ones
    assert workload.flops == 5


@qd.kernel
def total(x: F32) -> qd.f32:
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
    return s


def test_a_reduction_over_threads_counts_what_it_adds():
    workload, _ = reported(total, ones(50_000))
    assert workload.bytes == 200_000
    assert 50_000 <= workload.flops < 50_100  # and the parts of the threads


@qd.real_func
def bump(x: qd.f32) -> qd.f32:
    return x * 2.0 + 1.0


@qd.kernel
def through_a_function(x: F32):
    for i in range(x.shape[0]):
        x[i] = bump(x[i])


def test_real_functions_count_too():
    workload, _ = reported(through_a_function, ones(100))
    assert (workload.bytes, workload.flops) == (800, 200)


@qd.kernel
def integers(x: qd.types.NDArray[qd.i32, 2]):
    for i, j in qd.ndrange(x.shape[0], x.shape[1]):
        x[i, j] = x[i, j] * 3 + i


def test_integers_are_no_operations_on_floats():
    workload, _launch = reported(integers, np.zeros((6, 7), np.int32))
    assert (workload.bytes, workload.flops) == (2 * 4 * 42, 0)


def test_the_function_with_counters_is_valid_and_the_first_one_stays():
    capture = inspect.KernelCapture(collatz, ("cpu",), CompileConfig())
    capture.compile()
    func = capture.compiled("cpu", capture.spec_keys).func
    before = len(func.params)
    made = counting.instrument(func)
    verify(made.func)
    assert len(func.params) == before and len(made.func.params) > before + 1 + len(made.marks)
    assert not made.no_bytes


def test_why_nothing_was_counted_is_reported(monkeypatch):
    def fails(*_: object):
        raise counting.UncountableError("no counters today\nat all")

    monkeypatch.setattr(measuring, "instrument", fails)
    workload, launch = reported(saxpy, ones(8), ones(8), 2.0, flops=lambda: 16)
    assert (workload.bytes, workload.by_bytes) == (None, "not counted: no counters today")
    assert (workload.flops, workload.by_flops) == (16, "declared")
    assert launch.gbps is None and launch.gflops is not None
