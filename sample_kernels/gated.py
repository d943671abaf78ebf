"""Gated particles: most of them sleep, and only those awake pay for their gradients.

The reverse of the inner loop needs the values of every round of it, kept on stacks. A stack is used
under `if awake[i] > 0.5`, so before a launch the particles that pass are counted, and there are
rows for so many and no more: memory is proportional to what passes the gate.

This file says `import quadrants as qd` and runs as it is on Quadrants and on this engine. Look at

- *Autodiff* of `fall.grad`: the gate as a formula, how many pass it, the rows that follow.
- *Source*: what does not need a gradient (`awake`) has none, and costs none.
"""

import numpy as np
import quadrants as qd

qd.init(
    arch=qd.cpu,
    default_fp=qd.f64,
    ad_stack_experimental_enabled=True,
    ad_stack_sparse_threshold_bytes=0,
)

PARTICLES = 1000
ROUNDS = 64
DT = 0.05

awake = qd.field(qd.f64, shape=PARTICLES)
drag = qd.field(qd.f64, shape=PARTICLES, needs_grad=True)
height = qd.field(qd.f64, shape=PARTICLES, needs_grad=True)
lost = qd.field(qd.f64, shape=(), needs_grad=True)


@qd.kernel
def fall():
    """Each particle that is awake falls and bounces; what it loses of its energy is summed."""
    for i in range(PARTICLES):
        if awake[i] > 0.5:
            h = height[i]
            v = 0.0
            for _ in range(ROUNDS):
                v -= DT * (9.8 + drag[i] * v * qd.abs(v))
                h += DT * v
                if h < 0.0:
                    h = -0.8 * h
                    v = -0.8 * v
            lost[None] += 9.8 * (height[i] - h) - 0.5 * v * v


def begin(share):
    """This share of the particles is awake, spread evenly."""
    i = np.arange(PARTICLES)
    awake.from_numpy((i * 7919 % PARTICLES < share * PARTICLES).astype(np.float64))
    height.from_numpy(1.0 + 0.002 * i)
    drag.from_numpy(0.01 + 0.0001 * (i % 17))


def gradients():
    lost[None] = 0.0
    lost.grad[None] = 1.0
    drag.grad.fill(0.0)
    height.grad.fill(0.0)
    fall()
    fall.grad()


def simulate(steps):
    """With ``steps`` of a hundred particles awake: the energy lost, and its gradients."""
    begin(steps / 100)
    gradients()
    return {
        "lost": lost.to_numpy(),
        "drag_grad": drag.grad.to_numpy(),
        "height_grad": height.grad.to_numpy(),
    }


begin(0.1)  # so that `fall` has something to do wherever this file is opened


def main():
    for share in (1, 10, 50, 100):
        found = simulate(share)
        moving = np.count_nonzero(found["height_grad"])
        print(f"{share:3} % awake: {moving:4} gradients, energy lost {found['lost']:.4g}")


if __name__ == "__main__":
    main()
