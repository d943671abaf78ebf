"""Timing by a clock that the test holds: how often launches happen, and what is computed."""

import gc
import random

import msgspec
import pytest
from qd_studio.engine.inspect import clocks, machine_load, placing, timing
from qd_studio.engine.inspect.verdicts import Rival, merged, noise_of, verdicts_of


class Clock:
    """Time passes only where the test says so."""

    def __init__(self):
        self.now_ns = 0

    def perf_counter_ns(self):
        return self.now_ns

    def process_time_ns(self):
        return self.now_ns

    def perf_counter(self):
        return self.now_ns / 1e9

    def spend(self, us):
        self.now_ns += int(us * 1000)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    for module in (timing, clocks):
        monkeypatch.setattr(module, "time", clock)
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


def contenders(clock, costs, budget_s=0.01, order=None):
    """One for each cost in ``costs``; ``order`` takes the name of each launch."""
    order = [] if order is None else order

    def one(name, cost):
        def launch():
            order.append(name)
            clock.spend(cost)

        return timing.Contender(launch, lambda: order.append("restore"), budget_s, cost)

    return {name: one(name, cost) for name, cost in costs.items()}


def test_backends_take_turns_and_arguments_are_restored_before_each(clock):
    order = []
    found = contenders(clock, {"a": 1000.0, "b": 1000.0, "c": 1000.0}, order=order)
    timing.measure_together(list(found.values()))
    assert order[::2] == ["restore"] * (len(order) // 2)
    launches = order[1::2]
    rounds = [launches[i : i + 3] for i in range(0, len(launches), 3)]
    assert all(sorted(r) == ["a", "b", "c"] for r in rounds)
    assert {r[0] for r in rounds} == {"a", "b", "c"}  # the one that begins changes
    records = [one.record("w") for one in found.values()]
    assert {(r.n, r.warmup, r.first_us) for r in records} == {(8, 3, 1000.0)}


def test_who_has_spent_the_budget_leaves_and_the_others_go_on(clock):
    found = contenders(clock, {"fast": 10.0, "slow": 4000.0, "too slow": 20_000.0})
    timing.measure_together(list(found.values()))
    n = {name: one.record("w").n for name, one in found.items()}
    assert n == {"fast": 200, "slow": 3, "too slow": 1}


def uneven(clock, cost, spread, budget_s=0.4):
    """A launch that is longer by up to twice ``spread`` us."""
    rng = random.Random(cost)

    def launch():
        clock.spend(cost + spread * 2 * rng.random())

    return timing.Contender(launch, lambda: None, budget_s, cost)


def test_those_that_are_compared_go_on_until_the_ratio_is_known_and_records_do_not_grow(clock):
    both = [uneven(clock, 100.0, 9.0), uneven(clock, 101.0, 9.0)]
    timing.measure_together(both)
    first, second = (one.record("w") for one in both)
    assert first.n == second.n > 1000 and first.burst == second.burst == -(-second.n // 200)
    assert 150 <= len(second.samples_us) <= 200
    # Of single launches, not of the medians.
    middle = (second.min_us, second.median_us, second.max_us, second.mad_us)
    assert middle == pytest.approx((101.0, 110.0, 119.0, 4.5), abs=0.5)
    far = [uneven(clock, 100.0, 9.0), uneven(clock, 150.0, 9.0)]
    timing.measure_together(far)
    assert [one.record("w").n for one in far] == [200, 200]


def test_one_that_is_compared_with_none_does_not_go_on(clock):
    found = [uneven(clock, 100.0 + i, 9.0) for i in range(3)]
    timing.measure_together(found, [(found[0], found[1])])
    assert [one.record("w").n > 200 for one in found] == [True, True, False]
    record, _ = measure(clock, [100.0, 109.0] * 200, 10.0)
    assert (record.n, record.burst) == (200, 1)


def test_samples_of_longer_bursts_are_compared_with_as_many_launches():
    from .test_verdicts import launch

    short = launch([float(i % 4) + 100.0 for i in range(80)])
    long_ = msgspec.structs.replace(launch([203.0] * 20), burst=4, n=80)
    for rivals, ratio in (((short, long_), 2.0), ((long_, short), 0.5)):
        (found,) = verdicts_of([Rival(str(i), one) for i, one in enumerate(rivals)])
        assert found.ratio == pytest.approx(ratio)


def test_two_runs_have_the_noise_of_single_launches_whatever_a_sample_is():
    single = [100.0 + i % 9 for i in range(1800)]
    bursts = merged(single, 9)
    assert len(set(bursts)) == 1 and noise_of(bursts, 9) == 0.02
    rng = random.Random(1)
    wide = [rng.gauss(100.0, 5.0) for _ in range(1800)]
    assert noise_of(merged(wide, 9), 9) == pytest.approx(noise_of(wide), rel=0.35)


def test_waking_threads_is_no_load_and_waiting_for_others_is():
    before = {"1": (0, 0), "2": (5_000_000, 10)}
    woken = {"1": (0, 0), "2": (6_000_000, 60), "3": (20_000, 1)}
    assert machine_load._in_excess(before, woken) == 0.0
    kept_waiting = {"1": (8_000_000, 2), "2": (5_000_000, 10)}
    assert machine_load._in_excess(before, kept_waiting) == pytest.approx(0.0078)


def test_a_stall_makes_no_launch_a_slow_one(clock):
    stalls = iter([20_000.0])
    one = timing.Contender(lambda: clock.spend(next(stalls, 100.0)), lambda: None, 0.01)
    timing.measure_together([one])
    record = one.record("w")
    assert record.n >= 3 and record.median_us == 100.0


def test_a_first_launch_that_had_to_make_something_is_no_slow_one(clock):
    spent = []

    def launch():
        spent.append(100.0)
        clock.spend(100.0)

    one = timing.Contender(launch, lambda: None, 0.01, 300_000.0)
    assert one.slow
    one.settle()
    assert not one.slow and one.record("w") is None
    timing.measure_together([one])
    record = one.record("w")
    assert (record.first_us, record.median_us) == (300_000.0, 100.0)
    assert record.warmup == 5 and record.n == len(spent) - 4 > 90


def test_who_fails_leaves_with_the_error(clock):
    found = contenders(clock, {"a": 1000.0, "b": 1000.0})
    bad = timing.Contender(lambda: 1 / 0, lambda: None, 0.01, 5.0)
    timing.measure_together([found["a"], bad, found["b"]])
    assert isinstance(bad.error, ZeroDivisionError) and bad.record("w") is None
    assert found["a"].record("w").n == found["b"].record("w").n == 8


def test_budgets_are_shared():
    assert timing.share(0.4, 1) == timing.share(0.4, 0) == 0.4
    for n in range(2, 9):
        assert timing.share(0.4, n) < timing.share(0.4, n - 1)
        assert n * timing.share(0.4, n) <= 0.8


class Gpu:
    """A CUDA device as far as the clock looks: it does what it is given as soon as it is free.

    Each call of the host costs it 4 us.
    """

    def __init__(self, clock):
        self.clock = clock
        self.free_us = 0.0
        self.events = []
        self.held = []
        self.syncs = 0

    def put(self, us):
        self.clock.spend(4)
        self.free_us = max(self.free_us, self.clock.now_ns / 1e3) + us

    def call(self, doing, function, *args):
        if function == "cuEventCreate":
            self.events.append(None)
            return len(self.events) - 1
        if function == "cuEventRecord":
            self.put(0.0)
            self.events[args[0]] = self.free_us
            return None
        assert function == "cuEventElapsedTime"
        return (self.events[args[1]] - self.events[args[0]]) / 1e3

    def hold(self, us):
        if self.held is None:
            return False
        self.held.append(us)
        self.put(us)
        return True

    def sync(self):
        self.syncs += 1
        self.clock.now_ns = max(self.clock.now_ns, int(self.free_us * 1e3))


def event_clock(clock, names=()):
    gpu = Gpu(clock)
    executable = type("Executable", (), {"sources": [dict(names)]})
    return gpu, executable.sources[0], clocks.EventClock(gpu, executable)


def test_events_state_what_the_device_was_busy_and_not_what_it_waited_for_the_host(clock):
    gpu, _, found = event_clock(clock)
    order = []

    def launch():
        order.append("launch")
        gpu.put(2.0)
        gpu.put(3.0)

    def prepare():
        order.append("prepare")

    # Nothing is known yet: the device waits for each call of the host.
    assert found.took(launch, prepare)[:3] == (4 + 4 + 4, 8, 12)
    assert order == ["launch"] and gpu.held == []
    assert found.took(launch, prepare)[:3] == (5, 8, 11)
    assert order == ["launch"] * 2 + ["prepare", "launch"]
    assert gpu.held == [1.5 * 12 + 20] and gpu.syncs == 6


def test_a_long_launch_is_made_once(clock):
    gpu, _, found = event_clock(clock)
    launches = []

    def launch():
        launches.append(1)
        gpu.put(1500.0)

    for n in (1, 2, 3):
        assert found.took(launch, lambda: None)[:3] == (1504, 4, 1504)
        assert len(launches) == n
    assert gpu.held == []


def test_a_launch_that_only_the_host_makes_long_is_held_up(clock):
    gpu, _, found = event_clock(clock)

    def launch():
        for _ in range(300):
            gpu.put(1.0)

    assert found.took(launch).us == 1204
    assert found.took(launch)[:3] == (300, 1200, 1201)
    assert gpu.held == [1.5 * 1204 + 20] and "before the first began" in found.method


def test_a_launch_that_waits_for_the_device_is_given_up(clock):
    gpu, _, found = event_clock(clock)

    def launch():
        for _ in range(5):
            gpu.put(2.0)
            gpu.sync()  # a flag is looked at

    times = [found.took(launch, lambda: None)[:3] for _ in range(8)]
    assert len(gpu.held) == 3 and max(gpu.held) < 250
    assert times[0] == times[4] == times[7] and "waited for the host" in found.method


def test_a_device_that_cannot_be_held_up_says_so(clock):
    gpu, _, found = event_clock(clock)
    gpu.held = None
    times = [found.took(lambda: gpu.put(2.0))[:3] for _ in range(3)]
    assert times == [(8, 4, 8), (8, 4, 6), (8, 4, 8)] and "waited for the host" in found.method


def test_a_slow_moment_of_the_host_changes_nothing(clock):
    gpu, _, found = event_clock(clock)
    slow = iter([0, 0, 0, 0, 500, 0, 0, 0, 0])

    def launch():
        clock.spend(next(slow))
        gpu.put(2.0)

    times = [found.took(launch).us for _ in range(5)]
    assert times[1] == times[3] == times[4] == 2.0 and times[2] > 400
    assert "before the first began" in found.method and len(gpu.held) == 4


def test_fetching_what_a_kernel_returns_is_not_the_time_of_its_launch(clock):
    def finish(buffer):
        gpu.put(50.0)
        gpu.sync()
        return 7

    gpu, names, found = event_clock(clock, {"finish": finish})

    def launch():
        gpu.put(1.0)
        assert names["finish"]("buffer") == 7

    found.took(launch, lambda: None)
    assert names["finish"] is finish
    # The wall clock holds it: 4 us for each call of the host, and the copy.
    assert found.took(launch, lambda: None)[:3] == (1, 58, 58)


class Event:
    def __init__(self, start, end):
        self.profile = type("Profile", (), {"start": start, "end": end})


class Queue:
    """An OpenCL device with a queue that keeps times, as far as the clock looks."""

    def __init__(self, properties=2):
        self.cl = self.queue = self.command_queue_properties = self
        self.PROFILING_ENABLE = 2
        self.properties = properties
        self.waits = 0

    def sync(self):
        self.waits += 1


def test_a_queue_that_keeps_times_states_those_of_the_device(clock):
    queue = Queue()
    assert clocks.QueueClock.fits(queue) and not clocks.QueueClock.fits(Queue(1))
    events = iter([Event(1_000, 4_000), Event(5_500, 7_500)])
    names = {"launch": lambda queue, kernel: next(events)}
    enqueue = names["launch"]
    executable = type("Executable", (), {"sources": [names, {}]})

    def launch():
        names["launch"](queue, "k0")
        names["launch"](queue, "k1")
        clock.spend(3.0)

    found = clocks.QueueClock(queue, executable)
    assert found.took(launch)[:3] == (5.0, 3.0, 3.0) and queue.waits == 2
    assert names["launch"] is enqueue
    # A launch that puts nothing into the queue takes what the host sees of it.
    assert found.took(lambda: clock.spend(2.0))[:3] == (2.0, 2.0, 2.0)


def test_kernels_that_run_at_once_are_counted_once():
    spans = [(10, 20), (0, 4), (12, 15), (18, 25), (25, 26)]
    assert clocks._covered(spans) == 4 + 15 + 1
    assert clocks._covered([(7, 7)]) == 0


def test_the_clock_fits_the_device():
    device = Queue()
    device.call = None
    executable = type("Executable", (), {"sources": []})
    assert isinstance(placing.clock_of(device, executable), clocks.QueueClock)
    device.properties = 0
    assert isinstance(placing.clock_of(device, executable), clocks.HostClock)


def test_cpu_time_is_kept_where_the_machine_was_busy(clock, monkeypatch):
    for busy in ("", "threads waited"):
        monkeypatch.setattr(timing, "busy", lambda _, busy=busy: busy)
        one = timing.Contender(lambda: clock.spend(3.0), lambda: None, 60e-6)
        timing.measure_together([one])
        found = one.record("n=4")
        assert found.n >= 10
        assert found.cpu_samples_us == ((3.0,) * found.n if busy else ())
