"""The Mandelbrot set by escape time.

Every pixel iterates z <- z^2 + c until |z| > 2 or patience ends, so neighbours do very different
amounts of work. Look at

- *CFG*: the `while` has its condition in a block of its own, with the back edge in the gutter;
  `and` evaluates its right side only if the left one holds.
- *Code*: `re`, `im` and `steps` live in registers, and what the test squares is not squared again
  for the step.
- *Launch*: rows near the real axis cost most; how the pool splits the rows shows in the spread.
"""

import numpy as np
from qd_studio import engine as qd


@qd.kernel
def escape_time(
    count: qd.types.NDArray[qd.i32, 2], left: qd.f32, top: qd.f32, pixel: qd.f32, patience: qd.i32
):
    for row, column in qd.ndrange(count.shape[0], count.shape[1]):
        re_c = left + pixel * (column + 0.5)
        im_c = top - pixel * (row + 0.5)
        re = 0.0
        im = 0.0
        steps = 0
        while re * re + im * im <= 4.0 and steps < patience:
            next_re = re * re - im * im + re_c
            im = 2.0 * re * im + im_c
            re = next_re
            steps += 1
        count[row, column] = steps


@escape_time.workload(n=[24, 512], bytes=lambda n: 4 * n * n)
def whole_set(n):
    """The square around the whole set, at least n = 24 pixels wide."""
    patience = 100 if n > 64 else 32
    return np.zeros((n, n), np.int32), -2.0, 1.25, 2.5 / n, patience


@escape_time.check
def same_as_numpy(before, after, result):
    count, left, top, pixel, patience = before
    left, top, pixel = np.float32(left), np.float32(top), np.float32(pixel)
    rows, columns = np.indices(count.shape, dtype=np.float32)
    half = np.float32(0.5)
    re_c, im_c = left + pixel * (columns + half), top - pixel * (rows + half)
    re, im = np.zeros_like(re_c), np.zeros_like(im_c)
    expected = np.zeros(count.shape, np.int32)
    for _ in range(int(patience)):
        inside = re * re + im * im <= 4.0
        expected += inside
        re, im = (
            np.where(inside, re * re - im * im + re_c, re),
            np.where(inside, 2 * re * im + im_c, im),
        )
    # The map is chaotic on the boundary: one fused multiply-add changes some counts there.
    differing = np.count_nonzero(after[0] != expected)
    assert differing <= 0.01 * count.size, f"{differing} of {count.size} pixels differ"


def main():
    count = np.zeros((25, 34), np.int32)
    escape_time(count, -2.3, 1.2, 0.1, 50)
    shades = " .:-=+*#%@"
    for row in count:
        print("".join(2 * shades[min(steps, 49) * len(shades) // 50] for steps in row))


if __name__ == "__main__":
    qd.init(arch=qd.cpu)
    main()
