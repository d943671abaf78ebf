"""Fitting a curve: the four numbers of a damped oscillation, found from noisy samples of it.

`qd.ad.Tape` records the kernels that are called inside of it and, when it ends, calls the gradients
of all of them in reverse order. The rest is gradient descent with momentum, in plain Python.

This file says `import quadrants as qd` and runs as it is on Quadrants and on this engine. Look at

- *Passes* of `residuals.grad`: no stack at all; everything is computed again where it is needed.
- *Source*: the loss is a field without axes (`shape=()`), cleared by the tape.
"""

import math

import numpy as np
import quadrants as qd

qd.init(arch=qd.cpu, default_fp=qd.f64)

SAMPLES = 400
TRUE = (1.5, 0.25, 3.0, 0.4)  # amplitude, decay, frequency, phase
START = (1.0, 0.10, 2.85, 0.2)

numbers = qd.field(qd.f64, shape=4, needs_grad=True)
times = qd.field(qd.f64, shape=SAMPLES)
seen = qd.field(qd.f64, shape=SAMPLES)
error = qd.field(qd.f64, shape=SAMPLES, needs_grad=True)
loss = qd.field(qd.f64, shape=(), needs_grad=True)


@qd.func
def curve(t):
    swing = qd.sin(numbers[2] * t + numbers[3])
    return numbers[0] * qd.exp(-numbers[1] * t) * swing


@qd.kernel
def residuals():
    for i in range(SAMPLES):
        error[i] = curve(times[i]) - seen[i]


@qd.kernel
def squares():
    for i in range(SAMPLES):
        loss[None] += error[i] ** 2 / SAMPLES


def begin():
    t = np.linspace(0.0, 6.0, SAMPLES)
    amplitude, decay, frequency, phase = TRUE
    noise = 0.01 * np.sin(np.arange(SAMPLES) * 12.9898) ** 3
    times.from_numpy(t)
    seen.from_numpy(amplitude * np.exp(-decay * t) * np.sin(frequency * t + phase) + noise)
    numbers.from_numpy(np.array(START))


def descend(steps, rate=0.05, momentum=0.8):
    """So many steps; the loss before each."""
    speed = np.zeros(4)
    losses = []
    for _ in range(steps):
        with qd.ad.Tape(loss=loss):
            residuals()
            squares()
        losses.append(loss[None])
        speed = momentum * speed - rate * numbers.grad.to_numpy()
        numbers.from_numpy(numbers.to_numpy() + speed)
    return losses


def simulate(steps):
    """The numbers, gradients and losses after some steps."""
    begin()
    losses = descend(steps)
    return {
        "losses": np.array(losses),
        "numbers": numbers.to_numpy(),
        "gradients": numbers.grad.to_numpy(),
    }


begin()  # so that the kernels have something to work on wherever this file is opened


def main():
    begin()
    for part in range(4):
        losses = descend(60)
        print(f"after {60 * (part + 1):3} steps: root mean square {math.sqrt(losses[-1]):.4f}")
    for k, name in enumerate(("amplitude", "decay", "frequency", "phase")):
        print(f"{name:9} {numbers[k]:.3f} (made with {TRUE[k]})")


if __name__ == "__main__":
    main()
