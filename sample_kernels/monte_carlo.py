"""Random numbers: an area by throwing darts, and walkers that forget where they came from.

`qd.random` draws from a generator that belongs to the iteration. Look at

- *Passes*: `demote_random` turns each draw into integer arithmetic on a state of its own, seeded by
  the launch and the iteration; from there on random numbers are like any other.
- *Home*: because no state is shared between threads, the backends agree to the last dart.
- *Passes* of `throw_darts`: the count is a reduction, so each thread counts for itself.
"""

import math

import numpy as np
from qd_studio import engine as qd


@qd.kernel
def throw_darts(darts: qd.i32) -> qd.i32:
    """How many of so many darts, thrown at the unit square, land in the quarter circle."""
    hits = 0
    for _ in range(darts):
        x = qd.random(qd.f32)
        y = qd.random(qd.f32)
        if x * x + y * y < 1.0:
            hits += 1
    return hits


@qd.kernel
def walk(place: qd.types.NDArray[qd.f32, 1], steps: qd.i32):
    """Move each walker by unit steps, left or right."""
    for i in range(place.shape[0]):
        here = place[i]
        for _ in range(steps):
            here += 1.0 if qd.random(qd.f32) < 0.5 else -1.0
        place[i] = here


@throw_darts.workload(darts=[1 << 10, 1 << 22], flops=lambda darts: 4 * darts)
def only_a_number(darts):
    return (darts,)


@walk.workload(walkers=[64, 1 << 16], steps=[16, 64], bytes=lambda walkers, steps: 8 * walkers)
def all_at_home(walkers, steps):
    return np.zeros(walkers, np.float32), steps


@throw_darts.check
def is_pi_within_five_sigma(before, after, result):
    (darts,) = before
    inside = math.pi / 4
    sigma = math.sqrt(darts * inside * (1 - inside))
    assert abs(result - darts * inside) < 5 * sigma


@walk.check
def spreads_like_a_random_walk(before, after, result):
    place, steps = after
    walkers = place.size
    assert np.all(np.abs(place) <= steps)
    assert np.all((place - steps) % 2 == 0)
    assert abs(place.mean()) < 5 * math.sqrt(steps / walkers)
    # The variance of the estimated variance: the fourth moment of n steps is 3 n^2 - 2 n.
    assert abs(place.var() - steps) < 5 * math.sqrt((2 * steps**2 - 2 * steps) / walkers)


def main():
    for darts in (1_000, 100_000, 10_000_000):
        print(f"{darts:>10,} darts: pi is about {4 * throw_darts(darts) / darts:.4f}")


if __name__ == "__main__":
    qd.init(arch=qd.cpu)
    main()
