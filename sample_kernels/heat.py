"""Heat conduction written carelessly, and the same written with care.

`step_careless` recomputes constants for every cell, keeps a diagnostic that no one reads, and
carries a branch for a setting that is off. `step_careful` is what an experienced author would
type. Look at

- *Passes* of `step_careless`, from the top: constant folding, unreachable code, dead code,
  loop-invariant motion, common subexpressions; one idea at a time, each with its diff.
- *Home*: statements before -> after. The two start far apart and end (nearly) equal, and so do the
  launch times.
- *Options*: switch `fast_math` off. A division by a variable may no longer become a
  multiplication, and sums keep their order: watch which statements stay.
"""

import numpy as np
from qd_studio import engine as qd

TRACE = False
CELSIUS_OF_KELVIN = -273.15

Plate = qd.types.NDArray[qd.f32, 2]


@qd.kernel
def step_careless(t: Plate, t_next: Plate, conductivity: qd.f32, dt: qd.f32, dx: qd.f32):
    for i, j in qd.ndrange((1, t.shape[0] - 1), (1, t.shape[1] - 1)):
        courant = conductivity * dt / (dx * dx)
        flux_x = -conductivity * (t[i, j + 1] - t[i, j - 1]) / (2.0 * dx)
        flux_y = -conductivity * (t[i + 1, j] - t[i - 1, j]) / (2.0 * dx)
        flux = qd.sqrt(flux_x * flux_x + flux_y * flux_y)
        d2x = t[i, j + 1] - 2.0 * t[i, j] + t[i, j - 1]
        d2y = t[i + 1, j] - 2.0 * t[i, j] + t[i - 1, j]
        if TRACE:
            flux = flux * 2.0
            t_next[i, j] = flux
        offset = CELSIUS_OF_KELVIN + 273.15
        t_next[i, j] = t[i, j]
        t_next[i, j] = t[i, j] * 1.0 + courant * (d2x + d2y) + offset * 0.0


@qd.kernel
def step_careful(t: Plate, t_next: Plate, conductivity: qd.f32, dt: qd.f32, dx: qd.f32):
    courant = conductivity * dt / (dx * dx)
    for i, j in qd.ndrange((1, t.shape[0] - 1), (1, t.shape[1] - 1)):
        around = t[i, j + 1] + t[i, j - 1] + t[i + 1, j] + t[i - 1, j]
        t_next[i, j] = t[i, j] + courant * (around - 4.0 * t[i, j])


@step_careful.workload(n=[24, 512, 2048], bytes=lambda n: 8 * n * n, flops=lambda n: 7 * n * n)
@step_careless.workload(n=[24, 512, 2048], bytes=lambda n: 8 * n * n, flops=lambda n: 7 * n * n)
def warm_spot(n):
    y, x = np.mgrid[-1.0 : 1.0 : n * 1j, -1.0 : 1.0 : n * 1j]
    t = (20.0 + 60.0 * np.exp(-8.0 * (x * x + y * y))).astype(np.float32)
    return t, t.copy(), 0.8, 0.2, 1.0


def conducted(t, courant):
    t_next = t.copy()
    around = t[1:-1, 2:] + t[1:-1, :-2] + t[2:, 1:-1] + t[:-2, 1:-1]
    t_next[1:-1, 1:-1] += courant * (around - 4.0 * t[1:-1, 1:-1])
    return t_next


@step_careful.check
@step_careless.check
def conducts(before, after, result):
    t, _, conductivity, dt, dx = before
    expected = conducted(t.astype(np.float64), conductivity * dt / (dx * dx))
    np.testing.assert_allclose(after[1], expected, rtol=1e-5)


def main():
    t, t_next, *constants = warm_spot(64)
    for _ in range(200):
        step_careless(t, t_next, *constants)
        t, t_next = t_next, t
    print(f"after 200 steps: centre {t[32, 32]:.1f} degrees, mean {t.mean():.1f}")


if __name__ == "__main__":
    qd.init(arch=qd.cpu)
    main()
