"""What the gradient samples claim, beside central differences of what they compute.

Each function takes a sample's module, runs it as it is, and yields (what, gradient, difference
quotient) for a few directions. Everything is f64, so the two agree to some nine digits.
"""

import numpy as np

H = 1e-5


def central(loss, *where):
    """(loss(h) - loss(-h)) / 2h, improved by the same of h/2: the error is of fourth order."""
    wide, near = ((loss(*where, h) - loss(*where, -h)) / (2 * h) for h in (H, H / 2))
    return (4 * near - wide) / 3


def springs(m):
    throw = np.array([1.5, 2.0])

    def flown(what, at, h):
        step = h * np.eye(2)[at] if what == "throw" else 0.0
        m.begin([float(v) for v in throw + step])
        if what == "rest":
            m.rest[at] = m.rest[at] + h
        if what == "place":
            m.place[0, at][0] = m.place[0, at][0] + h
        m.miss[None] = 0.0
        for t in range(1, m.STEPS + 1):
            m.accelerate(t)
            m.move(t)
        m.measure()
        return m.miss[None]

    m.begin([float(v) for v in throw])
    m.fly()
    speeds, rests = m.speed.grad.to_numpy()[0], m.rest.grad.to_numpy()
    places = m.place.grad.to_numpy()[0]
    for axis in range(2):
        yield f"throw {axis}", speeds[:, axis].sum(), central(flown, "throw", axis)
    for link in (0, 6, 12):
        yield f"rest {link}", rests[link], central(flown, "rest", link)
    for mass in (0, 7):
        yield f"place {mass}", places[mass, 0], central(flown, "place", mass)


def diffmpm(m):
    start = np.array([3.0, 4.0])

    def flown(axis, h):
        m.push[None] = [float(v) for v in start + h * np.eye(2)[axis]]
        m.miss[None] = 0.0
        m.start()
        for t in range(m.STEPS):
            m.wipe()
            m.scatter(t)
            m.update()
            m.gather(t)
        m.measure()
        return m.miss[None]

    m.push[None] = [float(v) for v in start]
    m.fly()
    grad = m.push.grad.to_numpy()
    for axis in range(2):
        yield f"push {axis}", grad[axis], central(flown, axis)


def ragged(m):
    a = m.trips(40)
    for kernel in (m.compute, m.triangle):
        _, grad = m.gradient_of(kernel, a)
        before = m.x.to_numpy()

        def summed(i, h, kernel=kernel, before=before):
            m.x.from_numpy(before)
            m.x[i] = before[i] + h
            m.y[None] = 0.0
            kernel(a)
            return m.y[None]

        name = getattr(kernel, "__name__", "kernel")
        for i in range(0, m.CELLS, 5):
            yield f"{name} x[{i}]", grad[i], central(summed, i)


def gated(m):
    m.begin(0.1)
    m.gradients()
    slopes = {"drag": m.drag.grad.to_numpy(), "height": m.height.grad.to_numpy()}
    awake = np.flatnonzero(m.awake.to_numpy())

    def lost(name, i, h):
        m.begin(0.1)
        field = getattr(m, name)
        field[i] = field[i] + h
        m.lost[None] = 0.0
        m.fall()
        return m.lost[None]

    for name, found in slopes.items():
        for i in (int(awake[0]), int(awake[-1]), int(awake[0]) + 1):
            yield f"{name}[{i}]", found[i], central(lost, name, i)


def fitting(m):
    m.begin()
    m.descend(1)
    grad = m.numbers.grad.to_numpy()

    def loss(k, h):
        m.begin()
        m.numbers[k] = m.numbers[k] + h
        m.loss[None] = 0.0
        m.residuals()
        m.squares()
        return m.loss[None]

    for k in range(4):
        yield f"numbers[{k}]", grad[k], central(loss, k)


def jacobian(m):
    m.bend(0.5)

    def tips(joint, h):
        m.bend(0.5)
        m.angle[joint] = m.angle[joint] + h
        m.reach()
        return np.stack([m.tip_x.to_numpy(), m.tip_y.to_numpy()], axis=1)

    for joint in range(m.JOINTS):
        m.bend(0.5)
        found = m.column(joint)
        wanted = central(tips, joint)
        for arm in range(0, m.ARMS, 2):
            for axis in range(2):
                yield f"tip {arm}, {axis} by {joint}", found[arm, axis], wanted[arm, axis]


SLOPES = {f.__name__: f for f in (springs, diffmpm, ragged, gated, fitting, jacobian)}
