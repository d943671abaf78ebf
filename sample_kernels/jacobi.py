"""Jacobi relaxation of Laplace's equation on a square plate.

Each interior point becomes the mean of its four neighbours; the boundary holds its temperature.
Two arrays take turns as source and destination (ping-pong). Look at

- *Passes*: `sweep_pair` has two top-level loops, so `offload` makes two tasks; the second one sees
  all the first wrote. The inlined `neighbour_mean` is credited to your line in *Source*.
- *CFG*: each task's body is one straight block; the loop over `ndrange` stays a loop over two axes
  until the code generator sees it.
- *Code*: the inner axis is contiguous, so the four loads and the store are vector instructions. If
  the two axes were one loop with a division and a remainder, they could not be.
"""

import numpy as np
from qd_studio import engine as qd

Plate = qd.types.NDArray[qd.f32, 2]


@qd.func
def neighbour_mean(u: Plate, i, j):
    return 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


@qd.kernel
def sweep(u: Plate, v: Plate):
    """One relaxation, from `u` into `v`."""
    for i, j in qd.ndrange((1, u.shape[0] - 1), (1, u.shape[1] - 1)):
        v[i, j] = neighbour_mean(u, i, j)


@qd.kernel
def sweep_pair(u: Plate, v: Plate):
    """Two relaxations, there and back: the newest state is in `u` again."""
    for i, j in qd.ndrange((1, u.shape[0] - 1), (1, u.shape[1] - 1)):
        v[i, j] = neighbour_mean(u, i, j)
    for i, j in qd.ndrange((1, u.shape[0] - 1), (1, u.shape[1] - 1)):
        u[i, j] = neighbour_mean(v, i, j)


@qd.kernel
def residual(u: Plate) -> qd.f32:
    """How far `u` is from a solution: the largest change another sweep would make."""
    worst = 0.0
    for i, j in qd.ndrange((1, u.shape[0] - 1), (1, u.shape[1] - 1)):
        qd.atomic_max(worst, abs(neighbour_mean(u, i, j) - u[i, j]))
    return worst


def plate(n):
    """A cold plate with one hot edge."""
    u = np.zeros((n, n), np.float32)
    u[0, :] = 1.0
    return u


def relaxed(u):
    v = u.copy()
    v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    return v


def rough_plate(n):
    return plate(n) + np.random.default_rng(5).random((n, n), dtype=np.float32)


@sweep_pair.workload(n=[24, 512, 2048], bytes=lambda n: 16 * n * n, flops=lambda n: 8 * n * n)
@sweep.workload(n=[32, 512, 2048], bytes=lambda n: 8 * n * n, flops=lambda n: 4 * n * n)
def two_plates(n):
    u = rough_plate(n)
    return u, u.copy()


@residual.workload(n=[32, 2048], bytes=lambda n: 4 * n * n, flops=lambda n: 6 * n * n)
def one_plate(n):
    return (rough_plate(n),)


@sweep.check
def relaxes_once(before, after, result):
    np.testing.assert_allclose(after[1], relaxed(before[0]), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(after[0], before[0])


@sweep_pair.check
def relaxes_twice(before, after, result):
    once = relaxed(before[0])
    np.testing.assert_allclose(after[1], once, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(after[0], relaxed(once), rtol=1e-5, atol=1e-6)


@residual.check
def is_the_largest_change(before, after, result):
    (u,) = before
    np.testing.assert_allclose(result, np.abs(relaxed(u) - u).max(), rtol=1e-5)


def main():
    u = plate(64)
    v = u.copy()
    for pairs in (10, 100, 1000):
        for _ in range(pairs):
            sweep_pair(u, v)
        print(f"{pairs:5} more pairs of sweeps: residual {residual(u):.2e}, centre {u[32, 32]:.4f}")


if __name__ == "__main__":
    qd.init(arch=qd.cpu)
    main()
