"""Gravity between n bodies, every pair, with leapfrog steps.

Quadratic work on linear data: arithmetic decides the speed, the arrays stay in cache. Look at

- *Home*: GFLOP/s is the number here, and it hardly depends on n.
- *Passes* of `accelerations`: body i does not change in the loop over j.
  `loop_invariant_code_motion` lifts its addresses out, and `cache_loop_invariant_global_vars`
  loads it once, ahead of the loop. The three accumulators are still variables in memory when LLVM
  takes over.
- *Code*: the loop over j is a reduction; with `fast_math` it uses whole vector registers, and the
  reciprocal square root may be an estimate with a correction.
- *Options*: switch `fast_math` off and launch again.

Positions, velocities and accelerations are separate arrays for each axis ("structure of arrays"),
so that neighbouring bodies fill a vector register.
"""

import numpy as np
from qd_studio import engine as qd

Bodies = qd.types.NDArray[qd.f32, 1]


@qd.kernel
def accelerations(
    x: Bodies, y: Bodies, z: Bodies, mass: Bodies,
    ax: Bodies, ay: Bodies, az: Bodies, softening: qd.f32,
):  # fmt: skip
    """The pull of all bodies on each one, in units where G = 1."""
    for i in range(x.shape[0]):
        sx = 0.0
        sy = 0.0
        sz = 0.0
        for j in range(x.shape[0]):
            dx = x[j] - x[i]
            dy = y[j] - y[i]
            dz = z[j] - z[i]
            inv_r = 1.0 / qd.sqrt(dx * dx + dy * dy + dz * dz + softening * softening)
            pull = mass[j] * inv_r * inv_r * inv_r
            sx += pull * dx
            sy += pull * dy
            sz += pull * dz
        ax[i] = sx
        ay[i] = sy
        az[i] = sz


@qd.kernel
def kick_and_drift(
    x: Bodies, y: Bodies, z: Bodies, vx: Bodies, vy: Bodies, vz: Bodies,
    ax: Bodies, ay: Bodies, az: Bodies, dt: qd.f32,
):  # fmt: skip
    """Velocities by the accelerations, then positions by the new velocities."""
    for i in range(x.shape[0]):
        vx[i] += dt * ax[i]
        vy[i] += dt * ay[i]
        vz[i] += dt * az[i]
        x[i] += dt * vx[i]
        y[i] += dt * vy[i]
        z[i] += dt * vz[i]


@qd.kernel
def potential_energy(x: Bodies, y: Bodies, z: Bodies, mass: Bodies, softening: qd.f32) -> qd.f32:
    """Each pair once: the inner loop begins after the outer one."""
    energy = 0.0
    for i in range(x.shape[0]):
        for j in range(i + 1, x.shape[0]):
            dx = x[j] - x[i]
            dy = y[j] - y[i]
            dz = z[j] - z[i]
            squared = dx * dx + dy * dy + dz * dz + softening * softening
            energy -= mass[i] * mass[j] / qd.sqrt(squared)
    return energy


def cluster(n):
    """n bodies of total mass 1 in a ball: positions and masses."""
    rng = np.random.default_rng(6)
    x, y, z = rng.standard_normal((3, n), dtype=np.float32)
    mass = rng.random(n, dtype=np.float32) + 0.5
    return x.copy(), y.copy(), z.copy(), mass / mass.sum()


@accelerations.workload(n=[32, 2048, 8192], bytes=lambda n: 28 * n, flops=lambda n: 20 * n * n)
def resting_cluster(n):
    return (*cluster(n), *(np.zeros(n, np.float32) for _ in range(3)), 0.05)


@kick_and_drift.workload(n=[256, 1 << 20], bytes=lambda n: 60 * n, flops=lambda n: 12 * n)
def moving_cluster(n):
    x, y, z, _ = cluster(n)
    motion = np.random.default_rng(7).standard_normal((6, n), dtype=np.float32)
    return (x, y, z, *(row.copy() for row in motion), 0.01)


@potential_energy.workload(n=[32, 2048], bytes=lambda n: 16 * n, flops=lambda n: 6 * n * n)
def resting_masses(n):
    return (*cluster(n), 0.05)


def separations(x, y, z, softening):
    """Blocks of rows of the matrices of coordinate differences and of softened distances."""
    places = np.array([x, y, z], np.float64)
    for rows in np.array_split(np.arange(x.size), max(1, x.size // 256)):
        d = places[:, None, :] - places[:, rows, None]
        yield rows, d, np.sqrt((d**2).sum(axis=0) + float(softening) ** 2)


@accelerations.check
def newton_agrees(before, after, result):
    x, y, z, mass, *_, softening = before
    for rows, d, r in separations(x, y, z, softening):
        expected = (d * (mass / r**3)).sum(axis=2)
        for axis in range(3):
            np.testing.assert_allclose(after[4 + axis][rows], expected[axis], rtol=2e-4, atol=2e-4)


@kick_and_drift.check
def moves_by_one_step(before, after, result):
    *arrays, dt = before
    dt = np.float32(dt)
    for axis in range(3):
        place, velocity, acceleration = arrays[axis], arrays[3 + axis], arrays[6 + axis]
        velocity = velocity + dt * acceleration
        np.testing.assert_allclose(after[3 + axis], velocity, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(after[axis], place + dt * velocity, rtol=1e-5, atol=1e-6)


@potential_energy.check
def is_the_sum_over_pairs(before, after, result):
    x, y, z, mass, softening = before
    mass = mass.astype(np.float64)
    energy = 0.0
    for rows, _, r in separations(x, y, z, softening):
        later = np.arange(x.size) > rows[:, None]
        energy -= (mass[rows, None] * mass / r)[later].sum()
    np.testing.assert_allclose(result, energy, rtol=1e-4)


def main():
    n, dt, softening = 256, np.float32(0.01), 0.05
    x, y, z, mass = cluster(n)
    v = [np.zeros(n, np.float32) for _ in range(3)]
    a = [np.zeros(n, np.float32) for _ in range(3)]
    accelerations(x, y, z, mass, *a, softening=softening)
    for axis in range(3):
        v[axis] -= 0.5 * dt * a[axis]  # leapfrog: velocities lag by half a step
    for step in range(101):
        accelerations(x, y, z, mass, *a, softening=softening)
        if step % 50 == 0:
            on_time = [v[axis] + 0.5 * dt * a[axis] for axis in range(3)]
            kinetic = 0.5 * float((mass * sum(w * w for w in on_time)).sum())
            potential = potential_energy(x, y, z, mass, softening)
            print(f"step {step:3}: kinetic {kinetic:.4f}, total energy {kinetic + potential:.4f}")
        kick_and_drift(x, y, z, *v, *a, dt=float(dt))


if __name__ == "__main__":
    qd.init(arch=qd.cpu)
    main()
