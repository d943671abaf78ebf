"""Reductions: many numbers in, one number out.

A local scalar that a parallel loop updates is one cell shared by all threads, and each update is
atomic. Taken literally that would be slower than one thread alone. Look at

- *Passes*: `make_thread_local` adds an accumulator to each chunk of the loop; one atomic
  update a piece remains.
- *Code*: under `fast_math` additions may be reordered, so the accumulator becomes several vector
  registers; switch `fast_math` off in *Options* and it becomes one dependent chain of additions.
- `array_max` next to `array_sum`: what differs in the IR is the kind of the atomic and the initial
  value.
- `dot` accumulates in double precision. It costs no memory traffic, and *Launch* says what else.

Summing n numbers in single precision loses about sqrt(n) units in the last place, more without
reordering: the check of `array_sum` allows for that.
"""

import numpy as np
from qd_studio import engine as qd


@qd.kernel
def array_sum(x: qd.types.NDArray[qd.f32, 1]) -> qd.f32:
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    return total


@qd.kernel
def array_max(x: qd.types.NDArray[qd.f32, 1]) -> qd.f32:
    largest = x[0]
    for i in range(1, x.shape[0]):
        qd.atomic_max(largest, x[i])
    return largest


@qd.kernel
def dot(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1]) -> qd.f64:
    total: qd.f64 = 0.0
    for i in range(x.shape[0]):
        total += qd.cast(x[i], qd.f64) * y[i]
    return total


def summation_tolerance(terms):
    """What summing `terms` in single precision, in any order, may be expected to lose."""
    magnitude = float(np.abs(terms, dtype=np.float64).sum())
    return 4.0 * np.sqrt(terms.size) * float(np.finfo(np.float32).eps) * magnitude


@array_sum.workload(n=[1 << 10, 1 << 24], bytes=lambda n: 4 * n, flops=lambda n: n)
@array_max.workload(n=[1 << 10, 1 << 24], bytes=lambda n: 4 * n, flops=lambda n: n)
def samples(n):
    return (np.random.default_rng(3).random(n, dtype=np.float32),)


@dot.workload(n=[1 << 10, 1 << 24], bytes=lambda n: 8 * n, flops=lambda n: 2 * n)
def two_signals(n):
    rng = np.random.default_rng(4)
    return rng.random(n, dtype=np.float32), rng.random(n, dtype=np.float32)


@array_sum.check
def sums_up(before, after, result):
    (x,) = before
    assert abs(result - x.sum(dtype=np.float64)) <= summation_tolerance(x)


@array_max.check
def is_the_largest(before, after, result):
    (x,) = before
    assert result == x.max()


@dot.check
def is_the_inner_product(before, after, result):
    x, y = before
    np.testing.assert_allclose(result, np.dot(x.astype(np.float64), y), rtol=1e-9)


def main():
    (x,) = samples(1 << 12)
    print(f"sum {array_sum(x):.2f}, max {array_max(x):.5f}, norm {dot(x, x) ** 0.5:.3f}")


if __name__ == "__main__":
    qd.init(arch=qd.cpu)
    main()
