"""A box blur whose radius is a compile-time value: one kernel, an instance for each radius.

`radius: qd.Template` is not an argument of the compiled code. Each new value is compiled, with the
two `static` loops unrolled for it. Look at

- *Home*: the workloads with radius 1 and 2 are different instances; statements and compile time
  grow with the window, (2 radius + 1)^2 loads a pixel.
- *Passes*: clamped indices repeat between the copies: of `min(max(...))` for every neighbour only
  one a row and one a column remain after common subexpressions are merged. The weight is one
  constant.
- *Source*: `grouped` returns one index variable for both axes; underneath it is the same loop nest.
"""

import numpy as np
from qd_studio import engine as qd

Image = qd.types.NDArray[qd.f32, 2]


@qd.func
def clamped(index, extent):
    return min(max(index, 0), extent - 1)


@qd.kernel
def box_blur(image: Image, blurred: Image, radius: qd.Template):
    for pixel in qd.grouped(qd.ndrange(image.shape[0], image.shape[1])):
        total = 0.0
        for di, dj in qd.static(qd.ndrange((-radius, radius + 1), (-radius, radius + 1))):
            row = clamped(pixel[0] + di, image.shape[0])
            column = clamped(pixel[1] + dj, image.shape[1])
            total += image[row, column]
        blurred[pixel] = total / (2 * radius + 1) ** 2


@box_blur.workload(
    n=[16, 1024],
    radius=[1, 2],
    bytes=lambda n, radius: 8 * n * n,
    flops=lambda n, radius: (2 * radius + 1) ** 2 * n * n,
)
def checkerboard(n, radius):
    row, column = np.indices((n, n)) // 4
    return ((row + column) % 2).astype(np.float32), np.zeros((n, n), np.float32), radius


@box_blur.check
def is_the_mean_of_the_window(before, after, result):
    image, _, radius = before
    side = 2 * int(radius) + 1
    padded = np.pad(image, int(radius), mode="edge").astype(np.float64)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (side, side))
    np.testing.assert_allclose(after[1], windows.mean(axis=(2, 3)), rtol=1e-5, atol=1e-6)


def main():
    image, blurred, _ = checkerboard(16, 1)
    for radius in (1, 2):
        box_blur(image, blurred, radius)
        print(f"radius {radius}: contrast {image.std():.3f} -> {blurred.std():.3f}")


if __name__ == "__main__":
    qd.init(arch=qd.cpu)
    main()
