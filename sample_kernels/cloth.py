"""A cloth falls over a ball: masses on a lattice, springs between neighbours, one class.

A class decorated with `@qd.data_oriented` keeps fields and numbers together with the kernels that
work on them. The springs run along the threads, across the diagonals, and over two meshes against
bending, after

    X. Provot: Deformation constraints in a mass-spring model to describe rigid cloth behavior.
    Graphics Interface 1995.

This file says `import quadrants as qd` and runs as it is on Quadrants and on this engine. The
studio finds `cloth`, an instance at the top level of the file, and runs its methods on it. Look at

- *Source*: numbers of the instance (`self.n`, `self.stiffness`) are part of the program; an
  instance with others has a program of its own.
- *Passes* of `accelerate`: the loop over the twelve springs is unrolled, so that each rest length
  is a constant; its square root is folded away.
- *CFG*: the tests for the edge of the cloth make a diamond for each spring.
"""

import numpy as np
import quadrants as qd

qd.init(arch=qd.cpu)

# (rows, columns) to the other end of each spring
SPRINGS = (
    (-1, 0), (1, 0), (0, -1), (0, 1),
    (-1, -1), (-1, 1), (1, -1), (1, 1),
    (-2, 0), (2, 0), (0, -2), (0, 2),
)  # fmt: skip


@qd.data_oriented
class Cloth:
    """A square cloth of n by n points above a ball in the origin."""

    def __init__(self, n, stiffness=2000.0, damping=4.0, radius=0.3):
        self.n = n
        self.stiffness = stiffness
        self.damping = damping
        self.radius = radius
        self.mesh = 1.0 / n
        self.dt = 1.0 / 2000.0
        self.place = qd.Vector.field(3, dtype=qd.f32, shape=(n, n))
        self.speed = qd.Vector.field(3, dtype=qd.f32, shape=(n, n))
        self.touching = qd.field(dtype=qd.i32, shape=())

    @qd.kernel
    def hang(self):
        """Flat, level and at rest, a little above the ball and a little off its middle."""
        for i, j in self.place:
            self.place[i, j] = qd.Vector([i * self.mesh - 0.45, 0.35, j * self.mesh - 0.55])
            self.speed[i, j] = qd.Vector([0.0, 0.0, 0.0])

    @qd.func
    def holds(self, k):
        return k >= 0 and k < self.n

    @qd.func
    def pull(self, here, there, rest):
        """The acceleration at ``here`` by a spring of length ``rest`` to ``there``."""
        arm = there - here
        length = arm.norm()
        return self.stiffness * (length / rest - 1.0) * arm / length

    @qd.kernel
    def accelerate(self):
        for i, j in self.place:
            here = self.place[i, j]
            a = qd.Vector([0.0, -9.8, 0.0])
            for di, dj in qd.static(SPRINGS):
                if self.holds(i + di) and self.holds(j + dj):
                    rest = self.mesh * float(di * di + dj * dj) ** 0.5
                    a += self.pull(here, self.place[i + di, j + dj], rest)
            self.speed[i, j] += self.dt * (a - self.damping * self.speed[i, j])

    @qd.kernel
    def move(self):
        """Move each point, keep it out of the ball, and count the points on it."""
        self.touching[None] = 0
        for at in qd.grouped(self.place):
            place = self.place[at] + self.dt * self.speed[at]
            distance = place.norm()
            if distance < self.radius:
                outward = place / distance
                place = self.radius * outward
                self.speed[at] -= min(self.speed[at].dot(outward), 0.0) * outward
                self.touching[None] += 1
            self.place[at] = place

    @qd.kernel
    def lowest(self) -> qd.f32:
        level = 1.0
        for i, j in self.place:
            qd.atomic_min(level, self.place[i, j].y)
        return level

    def step(self):
        self.accelerate()
        self.move()


cloth = Cloth(64)
cloth.hang()


def simulate(steps):
    """The fields after some steps from the start, by name."""
    cloth.hang()
    for _ in range(steps):
        cloth.step()
    return {
        "place": cloth.place.to_numpy(),
        "speed": cloth.speed.to_numpy(),
        "touching": np.array(cloth.touching[None]),
        "lowest": np.array(cloth.lowest()),
    }


def main():
    cloth.hang()
    for second in range(4):
        for _ in range(250):
            cloth.step()
        touching = cloth.touching[None]
        print(f"{second + 1}/8 s: {touching:4} points on the ball, lowest at {cloth.lowest():.3f}")


if __name__ == "__main__":
    main()
