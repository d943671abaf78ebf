"""Timing by a clock that the test holds: how often launches happen, and what is computed."""

import gc

import pytest
from qd_studio.engine.inspect import timing


class Clock:
    """Time passes only where the test says so."""

    def __init__(self):
        self.now_ns = 0

    def perf_counter_ns(self):
        return self.now_ns

    def perf_counter(self):
        return self.now_ns / 1e9

    def spend(self, us):
        self.now_ns += int(us * 1000)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(timing, "time", clock)
    return clock


def measure(clock, costs, budget_s, prepare_us=0.0, **more):
    """Launches that cost what ``costs`` says, the last cost for ever."""
    left = list(costs)
    calls = []

    def launch():
        cost = left.pop(0) if len(left) > 1 else left[0]
        calls.append(cost)
        clock.spend(cost)

    record = timing.measure("w", launch, lambda: clock.spend(prepare_us), budget_s, **more)
    return record, calls


def test_the_budget_ends_it(clock):
    record, calls = measure(clock, [100.0], 0.01)
    assert record.warmup == 5
    assert record.n == 95
    assert len(calls) == 100
    assert (record.first_us, record.median_us, record.mad_us) == (100.0, 100.0, 0.0)


def test_short_launches_end_by_number(clock):
    record, _ = measure(clock, [1.0], 10.0)
    assert record.n == 200


def test_a_long_launch_is_timed_once_more(clock):
    record, calls = measure(clock, [2e6], 0.4)
    assert (record.warmup, record.n, len(calls)) == (1, 1, 2)


def test_a_launch_made_before_counts_as_the_first(clock):
    record, calls = measure(clock, [100.0], 0.001, first_us=900.0)
    assert record.first_us == 900.0
    assert record.warmup == len(calls) - record.n + 1


def test_preparing_is_not_timed_but_spends_the_budget(clock):
    record, _ = measure(clock, [100.0], 0.01, prepare_us=900.0)
    assert record.median_us == 100.0
    assert record.n < 10


def test_median_deviation_and_rates(clock):
    costs = [50.0, 10.0, 30.0, 20.0]
    record, _ = measure(clock, costs, 60e-6, bytes=2000, flops=40)
    assert record.samples_us == (10.0, 30.0, 20.0)
    assert (record.median_us, record.mad_us, record.min_us, record.max_us) == (20, 10, 10, 30)
    assert (record.gbps, record.gflops) == (pytest.approx(0.1), pytest.approx(0.002))


def test_collecting_garbage_waits(clock):
    assert gc.isenabled()
    measure(clock, [100.0], 0.01)
    assert gc.isenabled()
    with pytest.raises(RuntimeError, match="stop"):

        def stop():
            clock.spend(1)
            if not gc.isenabled():
                raise RuntimeError("stop")

        timing.measure("w", stop, lambda: None, 0.01)
    assert gc.isenabled()
