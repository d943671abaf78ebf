"""Kernels of the GPU benchmark that are no samples; the same text on both engines."""

from qd_studio import engine as qd

Row = qd.types.NDArray[qd.f32, 1]
Plate = qd.types.NDArray[qd.f32, 2]
Flag = qd.types.NDArray[qd.i32, 0]


@qd.kernel
def fill(x: Row, scale: qd.f32):
    for i in range(x.shape[0]):
        x[i] = scale * qd.cast(i % 1021, qd.f32)


@qd.kernel
def fill_plate(x: Plate, scale: qd.f32):
    for i, j in qd.ndrange(x.shape[0], x.shape[1]):
        x[i, j] = scale * qd.cast((i * 31 + j * 17) % 1021, qd.f32)


@qd.kernel
def weigh(x: Row) -> qd.f64:
    """A number that two correct results share but for rounding."""
    total: qd.f64 = 0.0
    for i in range(x.shape[0]):
        total += qd.cast(x[i], qd.f64) * qd.cast(i % 97 + 1, qd.f64)
    return total


@qd.kernel
def weigh_plate(x: Plate) -> qd.f64:
    total: qd.f64 = 0.0
    for i, j in qd.ndrange(x.shape[0], x.shape[1]):
        total += qd.cast(x[i, j], qd.f64) * qd.cast((i + 3 * j) % 97 + 1, qd.f64)
    return total


@qd.kernel
def sum_into(x: Row, total: Row):
    for i in range(x.shape[0]):
        total[0] += x[i]


@qd.kernel
def scale_plate(x: Plate, y: Plate, a: qd.f32):
    for i, j in qd.ndrange(x.shape[0], x.shape[1]):
        y[i, j] = a * x[i, j] + y[i, j]


@qd.kernel
def one_task(x: Row):
    for i in range(x.shape[0]):
        x[i] = x[i] + 1.0


@qd.kernel
def four_tasks(x: Row):
    for i in range(x.shape[0]):
        x[i] = x[i] + 1.0
    for i in range(x.shape[0]):
        x[i] = x[i] * 1.5
    for i in range(x.shape[0]):
        x[i] = x[i] - 0.25
    for i in range(x.shape[0]):
        x[i] = x[i] * 0.5


@qd.kernel
def count_down(x: Row, left: Flag):
    """One round of `rounds` as an ordinary kernel, for a loop on the host."""
    for i in range(x.shape[0]):
        x[i] = x[i] + 1.0
    for _i in range(1):
        left[()] = left[()] - 1
