"""Columns of a Jacobian in forward mode: how the tips of jointed arms move when one joint turns.

`qd.ad.FwdMode` carries along with each value its derivative in one direction of the parameters, the
seed. With a seed that is 1 for one joint and 0 for the others, the duals of the tips are the column
of the Jacobian that belongs to that joint. Reverse mode would give a row.

This file says `import quadrants as qd` and runs as it is on Quadrants and on this engine. Look at

- *Passes* of `reach`: next to every float value is its derivative; nothing runs backwards, and
  the loop over the joints needs no stack.
"""

import math

import numpy as np
import quadrants as qd

qd.init(arch=qd.cpu, default_fp=qd.f64)

JOINTS = 7
ARMS = 6  # the same joints, with shorter and shorter bones

angle = qd.field(qd.f64, shape=JOINTS, needs_dual=True)
tip_x = qd.field(qd.f64, shape=ARMS, needs_dual=True)
tip_y = qd.field(qd.f64, shape=ARMS, needs_dual=True)


@qd.kernel
def reach():
    for arm in range(ARMS):
        x, y, heading, bone = 0.0, 0.0, 0.0, 1.0
        for joint in range(JOINTS):
            heading += angle[joint]
            x += bone * qd.cos(heading)
            y += bone * qd.sin(heading)
            bone *= 1.0 - 0.1 * arm
        tip_x[arm] = x
        tip_y[arm] = y


def bend(amount):
    for joint in range(JOINTS):
        angle[joint] = amount * math.sin(1.0 + joint)


def column(joint):
    """d tip / d angle[joint] for every arm, x next to y."""
    seed = [1.0 if j == joint else 0.0 for j in range(JOINTS)]
    with qd.ad.FwdMode(loss=[tip_x, tip_y], param=angle, seed=seed):
        reach()
    return np.stack([tip_x.dual.to_numpy(), tip_y.dual.to_numpy()], axis=1)


def simulate(steps):
    """Tips and the whole Jacobian, column by column, for a bend of ``steps`` tenths."""
    bend(steps / 10)
    jacobian = np.stack([column(joint) for joint in range(JOINTS)], axis=2)
    return {"tip_x": tip_x.to_numpy(), "tip_y": tip_y.to_numpy(), "jacobian": jacobian}


bend(0.5)  # so that `reach` has something to do wherever this file is opened


def main():
    for steps in (2, 5, 9):
        found = simulate(steps)
        print(
            f"bend {steps / 10}: first arm's tip ({found['tip_x'][0]:.3f}, {found['tip_y'][0]:.3f})"
        )
        for joint in (0, JOINTS - 1):
            dx, dy = found["jacobian"][0, :, joint]
            print(f"   turning joint {joint} moves it by ({dx:+.3f}, {dy:+.3f}) a radian")


if __name__ == "__main__":
    main()
