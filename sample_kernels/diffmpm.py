"""A differentiable step of the material point method: how must a block be pushed to fly to a mark?

A block of elastic matter moves by the moving-least-squares form of the method, as in `mpm88.py`.
Particles keep a row for each step; the grid does not. It is wiped in every step, and the backward
run computes it again before it needs it, step by step: `advance` is replaced, for gradients, by
`advance_backwards`, which trades a second forward step for the memory of all grids. After

    Y. Hu, L. Anderson, T. Li, Q. Sun, N. Carr, J. Ragan-Kelley, F. Durand: DiffTaichi:
    Differentiable programming for physical simulation. ICLR 2020.

This file says `import quadrants as qd` and runs as it is on Quadrants and on this engine. Look at

- *Source*: `qd.ad.grad_replaced` and `qd.ad.grad_for`, plain Python functions around kernels.
- *Passes* of `scatter.grad`: the scatter of the forward run is a gather in the backward run, and
  `gather.grad` is a scatter; loops over the neighbours are unrolled, so there is no stack.
"""

import quadrants as qd

qd.init(arch=qd.cpu, default_fp=qd.f64, ad_stack_experimental_enabled=True)

SIDE = 8
PARTICLES = SIDE * SIDE
GRID = 16
STEPS = 24
DX = 1.0 / GRID
DT = 2.0e-3
VOLUME = (0.25 / SIDE) ** 2  # of a particle at rest
MASS = VOLUME
STIFFNESS = 20.0
GRAVITY = 9.8
MARK = (0.55, 0.62)

place = qd.Vector.field(2, qd.f64, shape=(STEPS + 1, PARTICLES), needs_grad=True)
speed = qd.Vector.field(2, qd.f64, shape=(STEPS + 1, PARTICLES), needs_grad=True)
affine = qd.Matrix.field(2, 2, qd.f64, shape=(STEPS + 1, PARTICLES), needs_grad=True)
strain = qd.Matrix.field(2, 2, qd.f64, shape=(STEPS + 1, PARTICLES), needs_grad=True)
push = qd.Vector.field(2, qd.f64, shape=(), needs_grad=True)
miss = qd.field(qd.f64, shape=(), needs_grad=True)

momentum = qd.Vector.field(2, qd.f64, shape=(GRID, GRID), needs_grad=True)
mass = qd.field(qd.f64, shape=(GRID, GRID), needs_grad=True)
flow = qd.Vector.field(2, qd.f64, shape=(GRID, GRID), needs_grad=True)


@qd.func
def weights(fx):
    """Of the three nearest nodes on each axis: the quadratic B-spline."""
    return [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]


@qd.kernel
def wipe():
    for i, j in mass:
        momentum[i, j] = [0.0, 0.0]
        mass[i, j] = 0.0
        momentum.grad[i, j] = [0.0, 0.0]
        mass.grad[i, j] = 0.0
        flow.grad[i, j] = [0.0, 0.0]


@qd.kernel
def scatter(t: qd.i32):
    for p in range(PARTICLES):
        at = place[t, p] / DX
        base = qd.cast(at - 0.5, qd.i32)
        fx = at - qd.cast(base, qd.f64)
        w = weights(fx)
        f = (qd.Matrix.identity(qd.f64, 2) + DT * affine[t, p]) @ strain[t, p]
        strain[t + 1, p] = f
        # Neo-Hookean: mu (F F^T - 1) + lambda log(J), with mu = lambda
        j = f.determinant()
        pressure = qd.log(j) - 1.0
        stress = f @ f.transpose() + pressure * qd.Matrix.identity(qd.f64, 2)
        spread = (-DT * VOLUME * STIFFNESS * 4.0 / (DX * DX)) * stress + MASS * affine[t, p]
        for a, b in qd.static(qd.ndrange(3, 3)):
            arm = (qd.Vector([float(a), float(b)]) - fx) * DX
            weight = w[a][0] * w[b][1]
            node = base + qd.Vector([a, b])
            momentum[node] += weight * (MASS * speed[t, p] + spread @ arm)
            mass[node] += weight * MASS


@qd.kernel
def update():
    for i, j in mass:
        if mass[i, j] > 0.0:
            v = momentum[i, j] / mass[i, j]
            v[1] -= DT * GRAVITY
            if j < 3 and v[1] < 0.0:
                v[1] = 0.0
            flow[i, j] = v


@qd.kernel
def gather(t: qd.i32):
    for p in range(PARTICLES):
        at = place[t, p] / DX
        base = qd.cast(at - 0.5, qd.i32)
        fx = at - qd.cast(base, qd.f64)
        w = weights(fx)
        v = qd.Vector([0.0, 0.0])
        c = qd.Matrix([[0.0, 0.0], [0.0, 0.0]])
        for a, b in qd.static(qd.ndrange(3, 3)):
            arm = (qd.Vector([float(a), float(b)]) - fx) * DX
            weight = w[a][0] * w[b][1]
            there = flow[base + qd.Vector([a, b])]
            v += weight * there
            c += (4.0 * weight / (DX * DX)) * there.outer_product(arm)
        speed[t + 1, p] = v
        place[t + 1, p] = place[t, p] + DT * v
        affine[t + 1, p] = c


@qd.kernel
def start():
    for p in range(PARTICLES):
        speed[0, p] = push[None]
        place[0, p] = [0.2 + 0.25 / SIDE * (p % SIDE), 0.3 + 0.25 / SIDE * (p // SIDE)]
        strain[0, p] = [[1.0, 0.1], [0.0, 1.0]]  # it is let go sheared
        affine[0, p] = [[0.0, 0.0], [0.0, 0.0]]


@qd.kernel
def measure():
    for p in range(PARTICLES):
        for axis in qd.static(range(2)):
            miss[None] += (place[STEPS, p][axis] - MARK[axis]) ** 2 / PARTICLES


@qd.ad.grad_replaced
def advance(t):
    wipe()
    scatter(t)
    update()
    gather(t)


@qd.ad.grad_for(advance)
def advance_backwards(t):
    wipe()
    scatter(t)
    update()
    gather.grad(t)
    update.grad()
    scatter.grad(t)


def fly():
    """The flight; on return the gradients are those of the miss."""
    with qd.ad.Tape(loss=miss):
        start()
        for t in range(STEPS):
            advance(t)
        measure()


def simulate(steps):
    """Improve the pushes by gradient descent in `steps` rounds; return the results by name."""
    push[None] = [3.0, 4.0]
    for _ in range(steps):
        fly()
        for axis in range(2):
            push[None][axis] -= 80.0 * push.grad[None][axis]
    return {
        "miss": miss.to_numpy(),
        "push": push.to_numpy(),
        "push_grad": push.grad.to_numpy(),
        "place": place.to_numpy()[-1],
        "strain_grad": strain.grad.to_numpy()[0],
        "affine_grad": affine.grad.to_numpy()[0],
    }


# So that the kernels have something to work on wherever this file is opened.
push[None] = [3.0, 4.0]
start()
for row in range(STEPS):
    advance(row)


def main():
    for pushes in (1, 2, 4, 8):
        found = simulate(pushes)
        x, y = found["push"]
        away = float(found["miss"]) ** 0.5
        print(f"push {pushes}: {away:.4f} away on average, next ({x:.2f}, {y:.2f})")


if __name__ == "__main__":
    main()
