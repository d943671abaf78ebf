"""Polynomials, and a small zoo of statements for the passes to chew on.

`horner` and `powers` compute the same polynomial; `zoo` has, line by line, something for each
pass. Look at

- *Passes* of `horner`: the `static` loop over the coefficients is gone before the first pass; the
  IR is a chain of multiplications and additions. The load of `x[i]` happens once.
- *Passes* of `powers`: `x**2` and `x**3` become multiplications; the general `pow` would be a
  library call.
- *Passes* of `zoo`: step through with `]`. The comment at each line names what happens to it.
- `horner` next to `powers`: how many multiplications each of them ends with.
"""

import numpy as np
from qd_studio import engine as qd

# The Taylor polynomial of exp, highest power first.
COEFFICIENTS = (1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0)

Vector = qd.types.NDArray[qd.f32, 1]


@qd.kernel
def horner(x: Vector, y: Vector):
    for i in range(x.shape[0]):
        value = 0.0
        for coefficient in qd.static(COEFFICIENTS):
            value = value * x[i] + coefficient
        y[i] = value


@qd.kernel
def powers(x: Vector, y: Vector):
    for i in range(x.shape[0]):
        low = 1.0 + x[i] + x[i] ** 2 / 2.0 + x[i] ** 3 / 6.0
        y[i] = low + x[i] ** 4 / 24.0 + x[i] ** 5 / 120.0


@qd.kernel
def zoo(x: Vector, y: Vector, scale: qd.f32, rounds: qd.i32):
    for i in range(x.shape[0]):
        value = x[i] * 1.0 + 0.0  # alg_simp: nothing but the load is left
        seven = 3 + 2 * 2  # constant_fold: 7
        eight = seven + 1  # and on, through the variable: 8
        unused = qd.sin(value) * scale  # die: no one asks
        if eight < seven:  # unreachable code: the condition is known
            value = unused
        a = (value + scale) * (value - scale)  # two sums and a product ...
        b = (value + scale) * (value + scale)  # ... and one sum is shared
        y[i] = a  # dead store: overwritten before anyone reads
        total = 0.0
        for k in range(rounds):
            total += scale * scale * b + k  # scale * scale * b moves out of the loop
        y[i] = total  # this one stays
        y[i] = y[i] + a / 4.0  # store-to-load forwarding; the division becomes a product


@horner.workload(n=[1 << 10, 1 << 22], bytes=lambda n: 8 * n, flops=lambda n: 12 * n)
@powers.workload(n=[1 << 10, 1 << 22], bytes=lambda n: 8 * n, flops=lambda n: 20 * n)
def interval(n):
    return np.linspace(-1.0, 1.0, n, dtype=np.float32), np.zeros(n, np.float32)


@zoo.workload(n=[256, 1 << 22], bytes=lambda n: 8 * n)
def interval_and_scale(n):
    return (*interval(n), 0.5, 4)


@horner.check
@powers.check
def is_the_polynomial(before, after, result):
    x, _ = before
    np.testing.assert_allclose(after[1], np.polyval(COEFFICIENTS, x.astype(np.float64)), rtol=1e-5)


@zoo.check
def same_without_detours(before, after, result):
    x, _, scale, rounds = before
    x = x.astype(np.float64)
    loop = rounds * scale * scale * (x + scale) ** 2 + rounds * (rounds - 1) / 2
    np.testing.assert_allclose(after[1], loop + (x * x - scale * scale) / 4.0, rtol=1e-5)


def main():
    x, y = interval(1 << 10)
    horner(x, y)
    print(f"exp on [-1, 1] by a quintic: largest error {np.abs(y - np.exp(x)).max():.1e}")


if __name__ == "__main__":
    qd.init(arch=qd.cpu)
    main()
