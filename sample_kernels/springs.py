"""A rope of springs is thrown: gradients of the last step find the throw that hits the mark.

Masses hang together by springs, a ragged list of them for each mass. The whole flight is kept, a
row of the fields for each step, so that the backward run finds every value that the forward run
used. The loss is the squared distance of the last mass from the mark after the last step; its
gradients are those of the first velocity of every mass and of every spring's rest length.

This file says `import quadrants as qd` and runs as it is on Quadrants and on this engine. Look at

- *Source*: `accelerate` reads the row before and writes its own: no element is read by one
  iteration and written by another, the rule that gradients depend on.
- *Passes* of `accelerate.grad`: the loop over a mass's springs runs backwards, and the force, to
  which each spring only adds, needs no stack.
- *Autodiff*: what the loop keeps, how large that is, and from which arrays it follows.
"""

import quadrants as qd

qd.init(arch=qd.cpu, default_fp=qd.f64, ad_stack_experimental_enabled=True)

MASSES = 8
STEPS = 60
DT = 1.0 / 120.0
STIFFNESS = 80.0
GRAVITY = 9.8
REST = 0.1
MARK = (1.0, 0.5)

# To the next mass and, against bending, to the one after it; both ends know a spring.
LINKS = [(i, i + 1) for i in range(MASSES - 1)] + [(i, i + 2) for i in range(MASSES - 2)]
ENDS = [[(k, a + b - i) for k, (a, b) in enumerate(LINKS) if i in (a, b)] for i in range(MASSES)]

place = qd.Vector.field(2, qd.f64, shape=(STEPS + 1, MASSES), needs_grad=True)
speed = qd.Vector.field(2, qd.f64, shape=(STEPS + 1, MASSES), needs_grad=True)
rest = qd.field(qd.f64, shape=len(LINKS), needs_grad=True)
miss = qd.field(qd.f64, shape=(), needs_grad=True)

first = qd.field(qd.i32, shape=MASSES + 1)  # of a mass's springs in the two lists below
link = qd.field(qd.i32, shape=2 * len(LINKS))
other = qd.field(qd.i32, shape=2 * len(LINKS))


@qd.kernel
def accelerate(t: qd.i32):
    for i in range(MASSES):
        force = qd.Vector([0.0, -GRAVITY])
        for k in range(first[i], first[i + 1]):
            arm = place[t - 1, other[k]] - place[t - 1, i]
            length = qd.sqrt(arm.dot(arm) + 1e-12)
            force += STIFFNESS * (length - rest[link[k]]) / length * arm
        speed[t, i] = 0.999 * speed[t - 1, i] + DT * force


@qd.kernel
def move(t: qd.i32):
    for i in range(MASSES):
        place[t, i] = place[t - 1, i] + DT * speed[t, i]


@qd.kernel
def measure():
    for axis in qd.static(range(2)):
        miss[None] += (place[STEPS, MASSES - 1][axis] - MARK[axis]) ** 2


def begin(throw):
    """The rope is stretched along x and is thrown with this velocity."""
    for k, (a, b) in enumerate(LINKS):
        rest[k] = REST * (b - a)
    entries = [entry for ends in ENDS for entry in ends]
    for n, (k, j) in enumerate(entries):
        link[n], other[n] = k, j
    for i in range(MASSES):
        first[i + 1] = first[i] + len(ENDS[i])
        place[0, i] = [REST * i - REST * MASSES, 0.0]
        speed[0, i] = throw


def fly():
    """The flight and how far it misses; on return the gradients are those of the miss."""
    with qd.ad.Tape(loss=miss):
        for t in range(1, STEPS + 1):
            accelerate(t)
            move(t)
        measure()


def simulate(steps):
    """Improve the throws by gradient descent in `steps` rounds; return the results by name."""
    throw = [1.5, 2.0]
    for _ in range(steps):
        begin(throw)
        fly()
        slope = speed.grad.to_numpy()[0].sum(axis=0)
        throw = [float(v - 0.8 * s) for v, s in zip(throw, slope)]  # noqa: B905
    return {
        "miss": miss.to_numpy(),
        "place": place.to_numpy()[-1],
        "speed_grad": speed.grad.to_numpy()[0],
        "place_grad": place.grad.to_numpy()[0],
        "rest_grad": rest.grad.to_numpy(),
    }


begin([1.5, 2.0])  # so that the kernels have something to work on wherever this file is opened
for row in range(1, STEPS + 1):
    accelerate(row)
    move(row)


def main():
    for throws in (1, 2, 4, 8):
        found = simulate(throws)
        print(f"throw {throws}: misses by {float(found['miss']) ** 0.5:.4f}")


if __name__ == "__main__":
    main()
