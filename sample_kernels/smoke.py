"""Smoke in a box: a solver for incompressible flow on fields, with struct-for loops only.

Each step carries velocity and smoke along the flow, pushes the hot smoke up, and removes from the
velocity whatever would compress the air:

    J. Stam: Stable fluids. SIGGRAPH 1999.

Fields take turns as source and destination. A kernel gets them as templates, so it is compiled
once for each choice of fields. This file says `import quadrants as qd` and runs as it is on
Quadrants and on this engine; open it with `qd-studio --run sample_kernels/smoke.py`, since which
fields a template stands for only the calls in `main` say. Look at

- *Source*: `sample` is inlined with vectors and numbers alike; it takes any field.
- *Passes* of `relax`: a struct-for over two axes stays one loop over two axes, and the address of
  each neighbour is the address of the cell plus a constant.
- *Launch*: `advect` has a row for each pair of fields it was called with; each is a program of its
  own, and the other tabs show the first.
"""

import quadrants as qd

qd.init(arch=qd.cpu)

N = 128
DT = 0.02
RELAXATIONS = 20
LIFT = 4.0

flow = qd.Vector.field(2, dtype=qd.f32, shape=(N, N))
next_flow = qd.Vector.field(2, dtype=qd.f32, shape=(N, N))
smoke = qd.field(dtype=qd.f32, shape=(N, N))
next_smoke = qd.field(dtype=qd.f32, shape=(N, N))
pressure = qd.field(dtype=qd.f32, shape=(N, N))
next_pressure = qd.field(dtype=qd.f32, shape=(N, N))
divergence = qd.field(dtype=qd.f32, shape=(N, N))


@qd.func
def inside(i):
    return max(0, min(N - 1, i))


@qd.func
def at(quantity: qd.template(), i, j):
    """The value at a node; beyond the edge that of the edge."""
    return quantity[inside(i), inside(j)]


@qd.func
def sample(quantity: qd.template(), place):
    """The value between nodes, linear in each axis."""
    corner = qd.floor(place)
    i, j = qd.cast(corner.x, qd.i32), qd.cast(corner.y, qd.i32)
    f = place - corner
    low = (1.0 - f.x) * at(quantity, i, j) + f.x * at(quantity, i + 1, j)
    high = (1.0 - f.x) * at(quantity, i, j + 1) + f.x * at(quantity, i + 1, j + 1)
    return (1.0 - f.y) * low + f.y * high


@qd.kernel
def advect(source: qd.template(), target: qd.template()):
    """What arrives at a node was upstream before: trace back, at the middle of the way."""
    for i, j in target:
        here = qd.Vector([float(i), float(j)])
        halfway = here - 0.5 * DT * N * flow[i, j]
        target[i, j] = sample(source, here - DT * N * sample(flow, halfway))


@qd.kernel
def rise(where: qd.template()):
    """Hot smoke goes up, and a burner in the floor makes more."""
    for i, j in where:
        flow[i, j].y += DT * LIFT * where[i, j]
        offset = qd.Vector([i - N // 2, j - N // 8])
        if offset.norm_sqr() < (N // 16) ** 2:
            where[i, j] = 1.0


@qd.kernel
def measure_divergence():
    for i, j in divergence:
        right, left = at(flow, i + 1, j).x, at(flow, i - 1, j).x
        above, below = at(flow, i, j + 1).y, at(flow, i, j - 1).y
        if i == 0 or i == N - 1:
            left, right = 0.0, 0.0
        if j == 0 or j == N - 1:
            below, above = 0.0, 0.0
        divergence[i, j] = 0.5 * (right - left + above - below)


@qd.kernel
def relax(old: qd.template(), new: qd.template()):
    """One Jacobi step for the pressure whose slope undoes the divergence."""
    for i, j in new:
        around = at(old, i + 1, j) + at(old, i - 1, j) + at(old, i, j + 1) + at(old, i, j - 1)
        new[i, j] = 0.25 * (around - divergence[i, j])


@qd.kernel
def project(p: qd.template()):
    for i, j in flow:
        slope = qd.Vector([at(p, i + 1, j) - at(p, i - 1, j), at(p, i, j + 1) - at(p, i, j - 1)])
        flow[i, j] -= 0.5 * slope


@qd.kernel
def begin():
    for i, j in smoke:
        flow[i, j] = [0.0, 0.0]
        smoke[i, j] = 0.0
        pressure[i, j] = 0.0


def step():
    advect(flow, next_flow)
    advect(smoke, next_smoke)
    flow.copy_from(next_flow)
    smoke.copy_from(next_smoke)
    rise(smoke)
    measure_divergence()
    for _ in range(RELAXATIONS // 2):
        relax(pressure, next_pressure)
        relax(next_pressure, pressure)
    project(pressure)


def simulate(steps):
    """The fields after some steps from still air, by name."""
    begin()
    for _ in range(steps):
        step()
    return {"flow": flow.to_numpy(), "smoke": smoke.to_numpy(), "pressure": pressure.to_numpy()}


def main():
    begin()
    for frame in range(4):
        for _ in range(25):
            step()
        total, fastest = smoke.to_numpy().sum(), abs(flow.to_numpy()).max()
        print(f"step {25 * (frame + 1):3}: {total:6.1f} smoke, fastest {fastest:.2f}")
    for row in smoke.to_numpy().T[::-1][2::5]:
        print("".join(" .:-=+*#%@"[min(int(10 * s), 9)] for s in row[1::3]))


if __name__ == "__main__":
    main()
