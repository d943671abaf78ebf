"""Times of launches: what is counted, printed and forgotten."""

from __future__ import annotations

import pytest
from qd_studio import engine as qd
from qd_studio.engine.runtime import program


@qd.kernel
def fill(x: qd.types.NDArray[qd.f32, 1]):
    for i in range(x.shape[0]):
        x[i] = i


@qd.kernel
def twice(x: qd.types.NDArray[qd.f32, 1]) -> qd.f32:
    for i in range(x.shape[0]):
        x[i] *= 2
    qd.loop_config(name="shift")
    for i in range(x.shape[0]):
        x[i] += 1
    return x[1]


@pytest.fixture(params=["cpu", "interp"])
def arch(request):
    return getattr(qd, request.param)


def test_launches_are_counted_and_timed(arch):
    qd.init(arch=arch, kernel_profiler=True, log_level="error")
    x = qd.ndarray(qd.f32, 100)
    for _ in range(3):
        fill(x)
    assert twice(x) == 3.0
    found = qd.profiler.query_kernel_profiler_info("fill")
    assert found.counter == 3
    assert 0 < found.min <= found.avg <= found.max
    assert qd.profiler.query_kernel_profiler_info("twice").counter == 1
    assert qd.profiler.query_kernel_profiler_info("fil").counter == 0
    total = qd.profiler.get_kernel_profiler_total_time()
    times = [3 * found.avg, qd.profiler.query_kernel_profiler_info("twice").avg]
    assert total == pytest.approx(sum(times) / 1e3)
    qd.profiler.clear_kernel_profiler_info()
    assert qd.profiler.query_kernel_profiler_info("fill").counter == 0
    assert qd.profiler.get_kernel_profiler_total_time() == 0.0


def test_tasks_are_printed_one_by_one(capsys):
    qd.init(arch=qd.cpu, kernel_profiler=True, log_level="error")
    x = qd.ndarray(qd.f32, 100)
    twice(x)
    twice(x)
    qd.profiler.print_kernel_profiler_info()
    text = capsys.readouterr().out
    assert "Kernel profiler (count) on cpu" in text
    rows = [line for line in text.splitlines() if "2x |" in line]
    assert len(rows) == 3, text
    assert any("twice" in row and row.endswith("_shift") for row in rows)
    qd.profiler.print_kernel_profiler_info("trace")
    text = capsys.readouterr().out
    assert "Number of records: 6" in text
    starts = [float(line[1:].split("ms")[0]) for line in text.splitlines() if " ms | " in line]
    assert starts == sorted(starts)
    assert starts[0] == 0.0
    with pytest.raises(ValueError, match="'count' or 'trace'"):
        qd.profiler.print_kernel_profiler_info("sum")


@qd.kernel
def stopped(n: qd.i32) -> qd.i32:
    assert n > 0
    return n


def test_a_launch_that_fails_leaves_no_times(arch):
    qd.init(arch=arch, kernel_profiler=True, debug=True, log_level="error")
    with pytest.raises(qd.QuadrantsAssertionError):
        stopped(0)
    assert qd.profiler.query_kernel_profiler_info("stopped").counter == 0
    assert stopped(2) == 2
    assert qd.profiler.query_kernel_profiler_info("stopped").counter == 1


def test_without_the_option_nothing_is_measured(capsys):
    qd.init(arch=qd.cpu)
    fill(qd.ndarray(qd.f32, 4))
    assert qd.profiler.query_kernel_profiler_info("fill").counter == 0
    qd.profiler.print_kernel_profiler_info()
    captured = capsys.readouterr()
    assert "kernel_profiler=True" in captured.out + captured.err


def test_the_mean_of_equal_times_is_that_time():
    """Although their sum, rounded, is more than three times as much."""
    qd.init(arch=qd.cpu, kernel_profiler=True)
    ns = next(n for n in range(1, 10_000) if sum([n / 1e6] * 3) / 3 > n / 1e6)
    for _ in range(3):
        program.current().profiler.record("equal", ("task",), (0, ns))
    found = qd.profiler.query_kernel_profiler_info("equal")
    assert (found.counter, found.min, found.max, found.avg) == (3, ns / 1e6, ns / 1e6, ns / 1e6)
