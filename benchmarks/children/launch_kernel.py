"""The smallest useful kernel: one task, one array."""

from qd_studio import engine as qd


@qd.kernel
def bump(x: qd.types.NDArray[qd.f32, 1]):
    for i in range(x.shape[0]):
        x[i] = x[i] + 1.0


@qd.kernel
def copy(x: qd.types.ndarray(qd.f32, 2), y: qd.types.ndarray(qd.f32, 2)):
    for i, j in x:
        y[i, j] = x[i, j]


@qd.kernel
def transpose(x: qd.types.ndarray(qd.f32, 2), y: qd.types.ndarray(qd.f32, 2)):
    for i, j in x:
        y[j, i] = x[i, j]
