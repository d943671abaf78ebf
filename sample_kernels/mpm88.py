"""Two drops of water collide above a basin: the material point method in two dimensions.

Particles carry mass and motion; a grid that is wiped in every step computes the forces. Each step
moves momentum from particles to grid, applies gravity and walls there, and moves velocities back.
The transfer is the affine one, and the stress enters through it, as the moving-least-squares form
of the method has it:

    Y. Hu, Y. Fang, Z. Ge, Z. Qu, Y. Zhu, A. Pradhana, C. Jiang: A moving least squares material
    point method with displacement discontinuity and two-way rigid body coupling. ACM Transactions
    on Graphics 37(4), 2018.
    C. Jiang, C. Schroeder, A. Selle, J. Teran, A. Stomakhin: The affine particle-in-cell method.
    ACM Transactions on Graphics 34(4), 2015.

This file says `import quadrants as qd` and runs as it is on Quadrants and on this engine. Nothing
in it takes arguments, so the studio needs no workload: it launches on the fields as the file left
them. Look at

- *Source*: mass and velocity of a grid node are side by side ("array of structures"), since the
  scatter always touches both.
- *Passes* of `step`: every vector and matrix has become scalars before the first pass runs, the
  loops over the 3x3 neighbours are unrolled, and what is left is straight-line arithmetic.
- *CFG*: four tasks, in order: wipe, scatter, update, gather.
"""

import quadrants as qd

qd.init(arch=qd.cpu)

PARTICLES = 8192
GRID = 128
DX = 1.0 / GRID
DT = 2.0e-4
VOLUME = (0.4 / 90) ** 2  # of a particle at rest
MASS = VOLUME  # water of density 1
STIFFNESS = 400.0
GRAVITY = 9.8
WALL = 3  # grid nodes from the edge that nothing crosses

position = qd.Vector.field(2, dtype=qd.f32, shape=PARTICLES)
velocity = qd.Vector.field(2, dtype=qd.f32, shape=PARTICLES)
affine = qd.Matrix.field(2, 2, dtype=qd.f32, shape=PARTICLES)
swelling = qd.field(dtype=qd.f32, shape=PARTICLES)  # volume over volume at rest

momentum = qd.Vector.field(2, dtype=qd.f32)
mass = qd.field(dtype=qd.f32)
qd.root.dense(qd.ij, GRID).place(momentum, mass)


@qd.func
def spline(fx):
    """Weights of the three nearest nodes on each axis: the quadratic B-spline."""
    left = 0.5 * (1.5 - fx) ** 2
    middle = 0.75 - (fx - 1.0) ** 2
    right = 0.5 * (fx - 0.5) ** 2
    return left, middle, right


@qd.kernel
def step():
    for i, j in mass:
        momentum[i, j] = [0.0, 0.0]
        mass[i, j] = 0.0
    for p in position:
        place = position[p] / DX
        base = qd.cast(place - 0.5, qd.i32)
        fx = place - qd.cast(base, qd.f32)
        w0, w1, w2 = spline(fx)
        w = [w0, w1, w2]
        pressure = -DT * 4.0 * STIFFNESS * VOLUME * (swelling[p] - 1.0) / (DX * DX)
        spread = qd.Matrix([[pressure, 0.0], [0.0, pressure]]) + MASS * affine[p]
        for a, b in qd.static(qd.ndrange(3, 3)):
            arm = (qd.Vector([float(a), float(b)]) - fx) * DX
            weight = w[a][0] * w[b][1]
            node = base + qd.Vector([a, b])
            momentum[node] += weight * (MASS * velocity[p] + spread @ arm)
            mass[node] += weight * MASS
    for i, j in mass:
        if mass[i, j] > 0.0:
            v = momentum[i, j] / mass[i, j]
            v.y -= DT * GRAVITY
            if (i < WALL and v.x < 0.0) or (i > GRID - WALL and v.x > 0.0):
                v.x = 0.0
            if (j < WALL and v.y < 0.0) or (j > GRID - WALL and v.y > 0.0):
                v.y = 0.0
            momentum[i, j] = v  # from here on it is the velocity
    for p in position:
        place = position[p] / DX
        base = qd.cast(place - 0.5, qd.i32)
        fx = place - qd.cast(base, qd.f32)
        w0, w1, w2 = spline(fx)
        w = [w0, w1, w2]
        v = qd.Vector([0.0, 0.0])
        gradient = qd.Matrix([[0.0, 0.0], [0.0, 0.0]])
        for a, b in qd.static(qd.ndrange(3, 3)):
            arm = (qd.Vector([float(a), float(b)]) - fx) * DX
            weight = w[a][0] * w[b][1]
            there = momentum[base + qd.Vector([a, b])]
            v += weight * there
            gradient += (4.0 * weight / (DX * DX)) * there.outer_product(arm)
        velocity[p] = v
        position[p] = min(max(position[p] + DT * v, WALL * DX), 1.0 - WALL * DX)
        swelling[p] *= 1.0 + DT * gradient.trace()
        affine[p] = gradient


@qd.kernel
def fill_drops():
    """A square of particles on a jittered lattice, that repeats; its halves meet as they fall."""
    for p in position:
        column, row = p % 90, p // 90
        jitter = qd.Vector([((p * 37) % 101) / 101.0, ((p * 53) % 103) / 103.0])
        lattice = qd.Vector([float(column), float(row)]) + 0.5 * jitter
        arm = lattice * (0.4 / 90.0) - 0.2
        position[p] = arm + qd.Vector([0.5, 0.4])
        velocity[p] = [2.0 if arm.x < 0.0 else -2.0, -3.0]
        affine[p] = [[0.0, 0.0], [0.0, 0.0]]
        swelling[p] = 1.0


@qd.kernel
def kinetic_energy() -> qd.f32:
    energy = 0.0
    for p in velocity:
        energy += 0.5 * MASS * velocity[p].norm_sqr()
    return energy


def simulate(steps):
    """The fields after some steps, by name."""
    fill_drops()
    for _ in range(steps):
        step()
    return {
        "position": position.to_numpy(),
        "velocity": velocity.to_numpy(),
        "swelling": swelling.to_numpy(),
        "mass": mass.to_numpy(),
    }


fill_drops()  # so that `step` has something to move wherever this file is opened


def picture(side):
    """The basin as text, one character for a block of ``side`` nodes a side."""
    blocks = mass.to_numpy().reshape(GRID // side, side, GRID // side, side).sum(axis=(1, 3))
    full = side * side * DX * DX
    return [
        "".join(" .:-=+*#%@"[min(int(9 * m / full), 9)] for m in row) for row in reversed(blocks.T)
    ]


def main():
    fill_drops()
    for frame in range(5):
        for _ in range(200):
            step()
        x, y = position.to_numpy().mean(axis=0)
        print(f"step {200 * (frame + 1)}: centre ({x:.3f}, {y:.3f}), energy {kinetic_energy():.2e}")
    print("\n".join(picture(4)[12:]))


if __name__ == "__main__":
    main()
