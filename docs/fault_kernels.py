"""The kernels of the pictures in docs/: a race (check.md), an infinity (nan.md, debugging.md), a
wrong gradient (gradient-check.md), and one that needs much memory (checkpoints.md)."""

import numpy as np
from qd_studio import engine as qd

Floats = qd.types.NDArray[qd.f32, 1]


@qd.kernel
def shift(x: Floats):
    for i in range(x.shape[0] - 1):
        x[i + 1] = x[i] * 0.5


@qd.func
def tension(length):
    return qd.log(length) * 0.5


@qd.kernel
def pull(x: Floats, force: Floats):
    for i in range(x.shape[0] - 1):
        length = x[i + 1] - x[i]
        force[i] = 3.0 * tension(length) + 1.0


@qd.kernel
def settle(x: Floats, to: qd.types.NDArray[qd.i32, 1], loss: Floats):
    for i in x:
        loss[0] += x[i] * x[i] * qd.sin(x[i])
    for i in x:
        x[to[i]] = 0.5


@qd.kernel
def swing(x: Floats, end: Floats):
    for i in x:
        angle, speed = x[i], 0.0
        for _ in range(4000):
            speed -= 0.001 * qd.sin(angle)
            angle += 0.001 * speed
        end[i] = angle


@shift.workload(n=[8])
def line(n):
    return (np.arange(n, dtype=np.float32),)


@pull.workload(n=[64])
def rope(n):
    x = np.linspace(0.0, 1.0, n, dtype=np.float32)
    x[18] = x[17]
    return x, np.zeros(n, np.float32)


@settle.workload(n=[64])
def points(n):
    x = qd.ndarray(qd.f32, (n,), needs_grad=True)
    x.from_numpy(np.linspace(0.0, 1.0, n, dtype=np.float32))
    return x, np.arange(n, dtype=np.int32), qd.ndarray(qd.f32, (1,), needs_grad=True)


@swing.workload(n=[4])
def pendulums(n):
    x = qd.ndarray(qd.f32, (n,), needs_grad=True)
    x.from_numpy(np.linspace(0.5, 2.0, n, dtype=np.float32))
    return x, qd.ndarray(qd.f32, (n,), needs_grad=True)
