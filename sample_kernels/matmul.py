"""Matrix product, the same sums in two orders.

Both kernels do 2 n m k operations. The first is the textbook's dot product of a row and a column,
which walks down a column of `b`: one element out of every cache line. The second goes through `b`
and `c` along rows. Look at

- *Home*: GFLOP/s of the two at n = 512.
- *Code*: which of the two innermost loops has vector multiply-adds.
- *Passes* of `matmul_rows`: `a[i, k]` does not depend on j; `cache_loop_invariant_global_vars`
  loads it ahead of the innermost loop. `c[i, j]` is only ever touched by the thread that owns row
  i, so its atomic addition is demoted.
"""

import numpy as np
from qd_studio import engine as qd

Matrix = qd.types.NDArray[qd.f32, 2]


@qd.kernel
def matmul_dots(a: Matrix, b: Matrix, c: Matrix):
    for i, j in qd.ndrange(a.shape[0], b.shape[1]):
        total = 0.0
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


@qd.kernel
def matmul_rows(a: Matrix, b: Matrix, c: Matrix):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0.0
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


@matmul_rows.workload(n=[12, 128, 512], bytes=lambda n: 12 * n * n, flops=lambda n: 2 * n**3)
@matmul_dots.workload(n=[12, 128, 512], bytes=lambda n: 12 * n * n, flops=lambda n: 2 * n**3)
def square_matrices(n):
    rng = np.random.default_rng(8)
    a, b = rng.standard_normal((2, n, n), dtype=np.float32)
    return a.copy(), b.copy(), np.full((n, n), np.nan, np.float32)


@matmul_rows.check
@matmul_dots.check
def same_as_numpy(before, after, result):
    a, b, _ = before
    np.testing.assert_allclose(after[2], a.astype(np.float64) @ b, rtol=1e-3, atol=1e-3)


def main():
    a, b, c = square_matrices(96)
    matmul_rows(a, b, c)
    print(f"96 x 96 product: largest difference from NumPy {np.abs(c - a @ b).max():.1e}")


if __name__ == "__main__":
    qd.init(arch=qd.cpu)
    main()
