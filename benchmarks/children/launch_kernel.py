"""The smallest useful kernel: one task, one array."""

from qd_studio import engine as qd


@qd.kernel
def bump(x: qd.types.NDArray[qd.f32, 1]):
    for i in range(x.shape[0]):
        x[i] = x[i] + 1.0
