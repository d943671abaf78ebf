"""Verdicts between two backends, on times that the tests make up."""

import random

import msgspec
import pytest
from qd_studio.engine.inspect.record import DeviceRecord, LaunchRecord, LoadRecord
from qd_studio.engine.inspect.verdicts import Rival, times_by, verdict_between, verdicts_of


def times(median, spread, n=100, seed=1):
    rng = random.Random(seed)
    return [median * (1 + spread * rng.gauss(0, 1)) for _ in range(n)]


def test_a_clear_difference_has_a_side():
    ratio, band, verdict = verdict_between(times(112, 0.02), times(100, 0.02, seed=2))
    assert ratio == pytest.approx(1.12, abs=0.02) and verdict == "slower"
    assert 0.015 <= band < 0.1
    ratio, _, verdict = verdict_between(times(50, 0.02), times(100, 0.02, seed=2))
    assert ratio == pytest.approx(0.5, abs=0.02) and verdict == "faster"


def test_equal_ones_are_within_noise_nearly_always():
    verdicts = [
        verdict_between(times(100, 0.2, seed=2 * i), times(100, 0.2, seed=2 * i + 1))[2]
        for i in range(200)
    ]
    assert verdicts.count("within noise") >= 196


def test_the_band_grows_with_the_spread_and_shrinks_with_the_number():
    def band(spread, n):
        return verdict_between(times(100, spread, n), times(100, spread, n, seed=2))[1]

    assert band(0.3, 100) > band(0.1, 100) > band(0.1, 1000) >= 0.0149


def test_a_difference_below_the_least_band_is_noise():
    assert verdict_between([100.0] * 200, [101.4] * 200) == (
        pytest.approx(0.986, abs=1e-3), pytest.approx(0.0148, abs=1e-4), "within noise",
    )  # fmt: skip


def test_outliers_say_nothing():
    calm = times(100, 0.01)
    torn = [t if i % 7 else 50 * t for i, t in enumerate(times(100, 0.01, seed=2))]
    ratio, _, verdict = verdict_between(torn, calm)
    assert verdict == "within noise" and ratio == pytest.approx(1.0, abs=0.02)


def disturbed(cost, n, seed):
    """Most launches wait for other programs, up to tens of times as long as they take."""
    rng = random.Random(seed)
    return [
        cost * (1 + abs(rng.gauss(0, 0.005)) + (rng.random() < 0.6) * rng.expovariate(0.1))
        for _ in range(n)
    ]


def test_three_percent_are_found_in_the_launches_that_nothing_has_disturbed():
    found = [
        [verdict_between(disturbed(cost, 300, i), disturbed(100, 300, 1000 + i))[2]
         for i in range(50)]
        for cost in (103, 100)
    ]  # fmt: skip
    assert found[0].count("slower") >= 48 and found[1].count("within noise") == 50


@pytest.mark.parametrize(
    ("load", "why"),
    [
        (
            LoadRecord(cpus=2, waited=0.4),
            "the machine was busy: threads waited for a processor 40%",
        ),
        (LoadRecord(cpus=2, waited=0.0), "launch times vary too much: by up to "),
    ],
)
def test_a_band_that_says_nothing_is_unknown_with_the_reason(load, why):
    """Ratios of tens were called noise."""
    slow = [(2000.0, 100.0)[i % 5 < 2] for i in range(60)]
    one, other = launch([100.0] * 60), msgspec.structs.replace(launch(slow), load=load)
    (found,) = verdicts_of([Rival("a", one), Rival("b", other)])
    assert found.ratio > 10 and found.verdict == "unknown" and found.reason.startswith(why)


def test_a_machine_that_changes_its_speed_widens_the_band():
    """Slow and fast times hit both alike, but not quite: the blocks tell, single samples do not."""
    rng = random.Random(3)
    ours, theirs = [], []
    for _ in range(10):
        a, b = rng.uniform(0.8, 1.25), rng.uniform(0.8, 1.25)
        ours += [100 * a * (1 + 0.001 * rng.gauss(0, 1)) for _ in range(10)]
        theirs += [100 * b * (1 + 0.001 * rng.gauss(0, 1)) for _ in range(10)]
    ratio, band, verdict = verdict_between(ours, theirs)
    assert band > 0.08 and verdict == "within noise", (ratio, band)


def test_medians_that_fall_on_two_levels_by_chance_are_noise():
    """A machine with two speeds: the medians differ, but not those of pairs."""
    rng = random.Random(4)
    theirs = [x + rng.gauss(0, 0.1) for x in [100.0] * 101 + [93.0] * 99]
    ours = [x + rng.gauss(0, 0.1) for x in [100.0] * 99 + [93.0] * 101]
    ratio, _, verdict = verdict_between(ours, theirs)
    assert ratio == pytest.approx(1.0, abs=0.001) and verdict == "within noise"


def test_a_ratio_that_the_times_do_not_have_is_no_verdict():
    """Of times of 74 and 90 us one was called 7.4 times as slow: two levels, and pairs of both."""
    pairs = ([(740.0, 100.0)] * 12 + [(74.0, 10.0)] + [(74.0, 90.0)] * 12) * 20
    pairs += [(74.0, 10.0)] * 30
    random.Random(1).shuffle(pairs)
    ours, theirs = zip(*pairs, strict=True)
    ratio, band, verdict = verdict_between(ours, theirs)
    assert verdict == "unknown", (ratio, band)
    twice = verdict_between([700.0, 710.0, 720.0] * 40, [95.0, 96.0, 97.0] * 40)
    assert twice[2] == "slower"


def test_drift_that_both_share_costs_nothing():
    drift = [1 + i / 100 for i in range(100)]
    ours = [112 * d for d in drift]
    theirs = [100 * d for d in drift]
    ratio, _, _ = verdict_between(ours, theirs)
    assert ratio == pytest.approx(1.12, abs=1e-6)


@pytest.mark.parametrize(
    ("n", "least"), [(1, 0.5), (2, 0.25), (3, 0.1), (4, 0.1), (5, 0.02), (49, 0.02), (50, 0.015)]
)
def test_few_launches_make_a_wide_band(n, least):
    ratio, band, _ = verdict_between([100.0] * n, [100.0] * 60)
    assert (ratio, band) == (1.0, least)


def test_without_times_there_is_no_verdict():
    with pytest.raises(ValueError, match="needs times of both"):
        verdict_between([], [1.0])
    with pytest.raises(ValueError, match="needs times of both"):
        verdict_between([0.0, 0.0], [1.0])


def launch(samples, walls=None):
    """walls: of launches on a device, whose time is ``samples``."""
    more = {} if walls is None else {"host_us": 1.0, "wall_samples_us": tuple(walls)}
    return LaunchRecord(
        workload="n=4", method="m", n=len(samples), warmup=1, first_us=1.0,
        median_us=sorted(samples)[len(samples) // 2], mad_us=0.0, min_us=min(samples),
        max_us=max(samples), samples_us=tuple(samples), **more,
    )  # fmt: skip


def test_all_are_held_against_the_first():
    rivals = [("cpu", [10.0] * 9), ("opencl", [15.0] * 9), ("cuda", [2.0] * 9)]
    found = verdicts_of([Rival(name, launch(times)) for name, times in rivals])
    assert [(v.backend, v.against, v.workload, v.verdict) for v in found] == [
        ("opencl", "cpu", "n=4", "slower"), ("cuda", "cpu", "n=4", "faster"),
    ]  # fmt: skip
    assert (found[0].ratio, found[0].clock) == (1.5, "wall clock")
    assert verdicts_of([]) == []


H200 = DeviceRecord(name="H200")


def test_a_devices_time_is_not_held_against_a_wall_clock():
    """The device needs half the time, and yet the caller waits for three times as long."""
    queue = launch([5.0] * 9, [30.0] * 9)
    for rivals, ratio in (
        ([Rival("cpu", launch([10.0] * 9)), Rival("opencl", queue, H200)], 3.0),
        ([Rival("opencl", queue, H200), Rival("cpu", launch([10.0] * 9))], 1 / 3),
    ):
        (found,) = verdicts_of(rivals)
        assert (found.clock, found.ratio) == ("wall clock", pytest.approx(ratio))
        assert found.verdict == ("slower" if ratio > 1 else "faster")


def test_two_backends_of_one_device_are_compared_by_its_time():
    cuda = Rival("cuda", launch([4.0] * 9, [20.0] * 9), DeviceRecord(name="H200", driver="13.0"))
    opencl = Rival("opencl", launch([5.0] * 9, [50.0] * 9), H200)
    (found,) = verdicts_of([cuda, opencl])
    assert (found.clock, found.ratio) == ("device time", 1.25)
    (found,) = verdicts_of([cuda, opencl._replace(device=DeviceRecord(name="other"))])
    assert (found.clock, found.ratio) == ("wall clock", 2.5)
    kernels_alone = msgspec.structs.replace(opencl.launch, method="without their gaps")
    (found,) = verdicts_of([cuda, opencl._replace(launch=kernels_alone)])
    assert (found.clock, found.ratio) == ("wall clock", 2.5)


def test_without_a_clock_that_timed_both_there_is_no_verdict():
    assert verdicts_of([Rival("cpu", launch([10.0])), Rival("gpu", launch([5.0], []), H200)]) == []


BUSY = LoadRecord(cpus=2, waited=1.2)


def waiting(seed, work, threads=2, stall=1.5):
    """Launches on a busy machine, whose threads wait for a processor, some more and some less."""
    rng = random.Random(seed)
    cpu = [1000.0 * work * (1 + 0.004 * rng.random()) for _ in range(100)]
    walls = [t / threads * (1 + stall * rng.random()) for t in cpu]
    return msgspec.structs.replace(launch(walls), load=BUSY, cpu_samples_us=tuple(cpu))


@pytest.mark.parametrize(
    ("work", "verdict"), [(1.0, "within noise"), (1.03, "slower"), (0.97, "faster")]
)
def test_cpu_time_decides_where_a_busy_machine_hides_a_change(work, verdict):
    ours, theirs = waiting(5, work), waiting(3, 1.0)
    (found,) = verdicts_of([Rival("old", theirs), Rival("new", ours)])
    assert (found.clock, found.verdict, found.reason) == ("CPU time", verdict, "")
    assert found.ratio == pytest.approx(work, abs=0.002)
    assert times_by(found.clock, ours) == ours.cpu_samples_us
    quiet = [msgspec.structs.replace(x, cpu_samples_us=()) for x in (theirs, ours)]
    (found,) = verdicts_of([Rival("cpu", x) for x in quiet])
    assert (found.clock, found.verdict) == ("wall clock", "unknown")
    assert "threads waited for a processor" in found.reason


def test_cpu_time_says_nothing_about_the_number_of_threads():
    """Twice the threads: the same work in half the time, which the wall clock sees."""
    one, two = waiting(3, 1.0, threads=1, stall=0.3), waiting(5, 1.0, threads=2, stall=0.3)
    (found,) = verdicts_of([Rival("one", one), Rival("two", two)])
    assert (found.clock, found.verdict) != ("CPU time", "within noise")
