"""Prefix sums: y[i] = x[0] + ... + x[i], in parallel.

Each result needs all earlier elements, yet the work divides. Two ways:

- `scan_blocks`: three top-level loops in one kernel. Each block is summed, the block sums are
  scanned one after the other (`serialize=True`), and each block is scanned from its start value. n
  additions twice.
- `doubling_step`: the classic of Hillis and Steele, launched log2(n) times with offset 1, 2, 4,
  ...: short, but n log2(n) additions, and every launch goes through memory.

Look at

- *Passes* of `scan_blocks`: `offload` makes three tasks, the second one serial. What they exchange
  goes through the array `block_total`, never through locals.
- *Launch*: many launches of `doubling_step` show what a launch itself costs.
"""

import numpy as np
from qd_studio import engine as qd

Integers = qd.types.NDArray[qd.i32, 1]


@qd.kernel
def scan_blocks(x: Integers, y: Integers, block_total: Integers):
    length = (x.shape[0] + block_total.shape[0] - 1) // block_total.shape[0]
    for b in range(block_total.shape[0]):
        total = 0
        for i in range(b * length, min((b + 1) * length, x.shape[0])):
            total += x[i]
        block_total[b] = total

    qd.loop_config(serialize=True)
    for b in range(1, block_total.shape[0]):
        block_total[b] = block_total[b] + block_total[b - 1]

    for b in range(block_total.shape[0]):
        running = block_total[b - 1] if b > 0 else 0
        for i in range(b * length, min((b + 1) * length, x.shape[0])):
            running += x[i]
            y[i] = running


@qd.kernel
def doubling_step(x: Integers, y: Integers, offset: qd.i32):
    for i in range(x.shape[0]):
        y[i] = x[i]
        if i >= offset:
            y[i] += x[i - offset]


@scan_blocks.workload(n=[1 << 10, 1 << 24], bytes=lambda n: 12 * n, flops=lambda n: 2 * n)
def small_numbers(n):
    x = np.random.default_rng(13).integers(-50, 51, n, dtype=np.int32)
    return x, np.zeros_like(x), np.zeros(min(1024, max(4, n // 64)), np.int32)


@doubling_step.workload(n=[1 << 10, 1 << 20], bytes=lambda n: 12 * n, flops=lambda n: n)
def one_step(n):
    x = np.random.default_rng(14).integers(-50, 51, n, dtype=np.int32)
    return x, np.zeros_like(x), n // 8


@scan_blocks.check
def same_as_cumsum(before, after, result):
    x, _, block_total = before
    expected = np.cumsum(x, dtype=np.int32)
    length = -(-x.size // block_total.size)
    np.testing.assert_array_equal(after[1], expected)
    ends = np.minimum(np.arange(1, block_total.size + 1) * length, x.size)
    np.testing.assert_array_equal(after[2], expected[ends - 1])


@doubling_step.check
def adds_the_earlier_element(before, after, result):
    x, _, offset = before
    expected = x.copy()
    expected[offset:] += x[:-offset]
    np.testing.assert_array_equal(after[1], expected)


def main():
    x, y, block_total = small_numbers(1 << 12)
    scan_blocks(x, y, block_total)
    a, b = x.copy(), np.zeros_like(x)
    offset = 1
    while offset < x.size:
        doubling_step(a, b, offset)
        a, b = b, a
        offset *= 2
    print(f"the last of {x.size} prefix sums: {y[-1]}; both ways agree: {np.array_equal(a, y)}")


if __name__ == "__main__":
    qd.init(arch=qd.cpu)
    main()
