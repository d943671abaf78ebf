"""The program that tests of the debugger run. Recorded sessions name its lines."""

PROGRAM = """\
import os
import numpy as np
from qd_studio import engine as qd

qd.init(arch=qd.cpu)
x = np.arange(8, dtype=np.float32)
os.write(1, b"Content-Length: 5\\r\\n\\r\\nhello\\n")


@qd.func
def half(a):
    b = a * 0.5
    return b


@qd.kernel
def step(x: qd.types.NDArray[qd.f32, 1]):
    for i in range(8):
        t = half(x[i])
        x[i] = t + 1


@qd.kernel
def fails(x: qd.types.NDArray[qd.f32, 1]):
    for i in range(8):
        x[i] = 2.0
        assert x[i] < 1, "too large"


@qd.kernel
def turned(x: qd.types.NDArray[qd.f32, 1]):
    for i in range(8):
        v = qd.Vector([1.0, 2.0])
        t = half(x[i])
        x[i] = t + v.x
        x[i] = x[i] + v.y


@qd.kernel
def leaves(x: qd.types.NDArray[qd.f32, 1]):
    for i in range(8):
        x[i + 10] = 1.0


@turned.workload(n=[8, 16])
@leaves.workload(n=[8])
def _(n):
    return (np.arange(n, dtype=np.float32),)
"""
