"""Patterns out of two chemicals: a solver whose state and settings are one dataclass.

One chemical feeds the other, which decays; both diffuse. Depending on two rates this makes spots,
stripes or corals:

    P. Gray, S. K. Scott: Autocatalytic reactions in the isothermal, continuous stirred tank
    reactor. Chemical Engineering Science 38(1), 1983.
    J. E. Pearson: Complex patterns in a simple system. Science 261, 1993.

A kernel has the dataclass as one argument and passes it to functions. The compiled kernel has
what it uses of it, each member as a parameter of its own. This file says `import quadrants as qd`
and runs as it is on Quadrants and on this engine. Look at

- *Source*: the parameters of `react` with their origin: `tank.u`, `tank.rates.feed`. The members
  that no line reads are not passed.
- *Launch*: the cost of a call with many members.
"""

import dataclasses

import numpy as np
import quadrants as qd

Plane = qd.types.NDArray[qd.f32, 2]


@dataclasses.dataclass
class Rates:
    """feed, kill: of the reaction. spread_u, spread_v: of diffusion, for a cell a step."""

    feed: qd.f32
    kill: qd.f32
    spread_u: qd.f32
    spread_v: qd.f32


@dataclasses.dataclass
class Tank:
    """Concentrations of the two chemicals, now and after the next step."""

    u: Plane
    v: Plane
    next_u: Plane
    next_v: Plane
    rates: Rates
    steps_done: qd.i32


@qd.func
def laplacian(x: Plane, i, j):
    """By the nine-point stencil, on a torus."""
    n, m = x.shape[0], x.shape[1]
    up, down = (i + n - 1) % n, (i + 1) % n
    left, right = (j + m - 1) % m, (j + 1) % m
    sides = x[up, j] + x[down, j] + x[i, left] + x[i, right]
    corners = x[up, left] + x[up, right] + x[down, left] + x[down, right]
    return 0.2 * sides + 0.05 * corners - x[i, j]


@qd.func
def reaction(rates: Rates, u, v):
    """How fast u and v change by the reaction alone."""
    eaten = u * v * v
    return rates.feed * (1.0 - u) - eaten, eaten - (rates.feed + rates.kill) * v


@qd.kernel
def react(tank: Tank):
    """One step; the result is in next_u and next_v."""
    for i, j in tank.u:
        u, v = tank.u[i, j], tank.v[i, j]
        du, dv = reaction(tank.rates, u, v)
        tank.next_u[i, j] = u + tank.rates.spread_u * laplacian(tank.u, i, j) + du
        tank.next_v[i, j] = v + tank.rates.spread_v * laplacian(tank.v, i, j) + dv


@qd.kernel
def grown(tank: Tank, threshold: qd.f32) -> qd.i32:
    """How many cells hold more of the second chemical than the threshold."""
    count = 0
    for i, j in tank.v:
        if tank.v[i, j] > threshold:
            count += 1
    return count


def tank_of(n, feed=0.055, kill=0.062):
    """A tank full of u with a few drops of v."""
    arrays = [qd.ndarray(qd.f32, (n, n)) for _ in range(4)]
    u, v = np.ones((n, n), np.float32), np.zeros((n, n), np.float32)
    for row, column in ((n // 2, n // 2), (n // 4, n // 3), (3 * n // 4, n // 5)):
        u[row - 4 : row + 4, column - 4 : column + 4] = 0.5
        v[row - 4 : row + 4, column - 4 : column + 4] = 0.25
    arrays[0].from_numpy(u)
    arrays[1].from_numpy(v)
    return Tank(*arrays, rates=Rates(feed, kill, 1.0, 0.5), steps_done=0)


def advance(tank, steps):
    for _ in range(steps):
        react(tank)
        tank.u, tank.next_u = tank.next_u, tank.u
        tank.v, tank.next_v = tank.next_v, tank.v
        tank.steps_done += 1


def simulate(steps):
    """The concentrations after some steps, by name."""
    tank = tank_of(96)
    advance(tank, steps)
    return {
        "u": tank.u.to_numpy(),
        "v": tank.v.to_numpy(),
        "grown": np.array(grown(tank, 0.2)),
    }


def main():
    tank = tank_of(96)
    for _ in range(4):
        advance(tank, 500)
        print(f"step {tank.steps_done}: {grown(tank, 0.2):4} cells have grown")
    for row in tank.v.to_numpy()[2::4]:
        print("".join(" .:-=+*#%@"[min(int(25 * v), 9)] for v in row[::2]))


if __name__ == "__main__":
    qd.init(arch=qd.cpu)
    main()
