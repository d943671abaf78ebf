"""The rule of two that are launched in turns, on made noise: how often it is wrong.

Time is what the noise says, so that these runs are the same everywhere.
"""

import random

import pytest
from qd_studio.engine.inspect import clocks, timing
from qd_studio.engine.inspect.verdicts import Rival, verdicts_of


class Noise:
    """The state of a machine, by time: ``factor(now_s, side)`` is what a launch takes longer."""

    def __init__(self, seed, kind):
        self.rng = random.Random(seed)
        self.kind = kind
        self.level, self.until = [1.0, 1.0], [0.0, 0.0]

    def switched(self, side, now_s, high, dwell_s):
        while self.until[side] <= now_s:
            self.level[side] = high if self.level[side] == 1.0 else 1.0
            self.until[side] += self.rng.expovariate(1.0 / dwell_s)
        return self.level[side]

    def factor(self, now_s, side):
        rng = self.rng
        if self.kind == "calm":
            return 1 + abs(rng.gauss(0, 0.01))
        if self.kind == "wide":
            return 1 + abs(rng.gauss(0, 0.08))
        if self.kind == "heavy tails":
            return 1 + 0.01 * rng.paretovariate(1.1)
        if self.kind == "drift":
            return (1 + 0.5 * now_s) * (1 + abs(rng.gauss(0, 0.02)))
        if self.kind == "two levels":  # of the machine: both sides are slow at the same time
            return self.switched(0, now_s, 1.3, 0.01) * (1 + abs(rng.gauss(0, 0.02)))
        if self.kind == "own levels":  # of each side
            return self.switched(side, now_s, 1.06, 0.002) * (1 + abs(rng.gauss(0, 0.02)))
        if self.kind == "other programs":  # have the processors most of the time
            waits = rng.random() < 0.6
            return 1 + abs(rng.gauss(0, 0.01)) + waits * rng.expovariate(0.5)
        assert self.kind == "single levels"  # of each launch
        return rng.choice((1.0, 1.08)) * (1 + abs(rng.gauss(0, 0.01)))


KINDS = ("calm", "wide", "heavy tails", "drift", "two levels", "own levels",
         "other programs", "single levels")  # fmt: skip


def verdict(kind, change, seed, monkeypatch, us=60.0, budget_s=0.4):
    """Two sides of a noisy machine, the second longer by ``change``."""
    noise, now = Noise(seed, kind), [0]
    clock = dict.fromkeys(("perf_counter_ns", "process_time_ns"), lambda: now[0])
    fake = type("Time", (), {**clock, "perf_counter": lambda: 0.0})
    for module in (timing, clocks):
        monkeypatch.setattr(module, "time", fake)

    def side(number, cost):
        def launch():
            now[0] += int(1e3 * cost * noise.factor(now[0] / 1e9, number))

        return timing.Contender(launch, lambda: None, timing.share(budget_s, 2), cost)

    both = [side(0, us), side(1, us * (1 + change))]
    timing.measure_together(both)
    records = [one.record("w", burst=1) for one in both]
    (found,) = verdicts_of([Rival("a", records[0]), Rival("b", records[1])])
    return found, records


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_false_verdicts_are_rare_and_three_percent_are_found(kind, monkeypatch):
    monkeypatch.setattr(timing.LoadClock, "tick", lambda clock: clock._us.append(1.0))
    runs = 100
    false = [verdict(kind, 0.0, i, monkeypatch)[0].verdict for i in range(runs)]
    found = [verdict(kind, 0.03, i, monkeypatch)[0].verdict for i in range(runs)]
    assert runs - false.count("within noise") <= 1
    assert found.count("slower") >= 0.95 * runs
    assert "faster" not in found
