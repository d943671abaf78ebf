"""saxpy: y <- a x + y, the "hello, world" of parallel arithmetic.

One multiplication and one addition for every 12 bytes moved, so memory decides the speed. Open it
with `qd-studio sample_kernels/saxpy.py` and look at

- *Home*: at the large size GB/s is the number that means something; GFLOP/s is far below any peak.
- *Passes*: `saxpy_augmented` writes the update as `y[i] += ...`, and augmented assignment means an
  atomic addition. No two iterations touch the same element, so `demote_atomics` makes it a load,
  an addition and a store; from there on both kernels have the same IR.
- *Code*: one vector multiply-add for a whole register of elements.
"""

import numpy as np
from qd_studio import engine as qd


@qd.kernel
def saxpy(
    x: qd.types.ndarray(dtype=qd.f32, ndim=1),
    y: qd.types.ndarray(dtype=qd.f32, ndim=1),
    a: qd.f32,
):
    for i in range(x.shape[0]):
        y[i] = a * x[i] + y[i]


@qd.kernel
def saxpy_augmented(
    x: qd.types.NDArray[qd.f32, 1],
    y: qd.types.NDArray[qd.f32, 1],
    a: qd.f32,
):
    for i in range(x.shape[0]):
        y[i] += a * x[i]


@saxpy_augmented.workload(n=[1 << 10, 1 << 24], bytes=lambda n: 12 * n, flops=lambda n: 2 * n)
@saxpy.workload(n=[1 << 10, 1 << 16, 1 << 24], bytes=lambda n: 12 * n, flops=lambda n: 2 * n)
def line_and_noise(n):
    rng = np.random.default_rng(2)
    x = np.linspace(0.0, 1.0, n, dtype=np.float32)
    y = rng.standard_normal(n, dtype=np.float32)
    return x, y, 2.0


@saxpy_augmented.check
@saxpy.check
def same_as_numpy(before, after, result):
    x, y, a = before
    np.testing.assert_allclose(after[1], np.float32(a) * x + y, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(after[0], x)


def main():
    x, y, a = line_and_noise(1 << 10)
    expected = a * x + y
    saxpy(x, y, a)
    print(f"saxpy over {x.size} elements: largest error {np.abs(y - expected).max():.1e}")


if __name__ == "__main__":
    qd.init(arch=qd.cpu)
    main()
