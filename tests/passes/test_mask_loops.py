"""Loops of unknown length under masks: LLVM's results have the bits of the loop without them.

The file tests have two groups of iterations; these have edges, floats that differ by lane, and
each way out of a loop.
"""

import numpy as np
import pytest
from qd_studio import engine as qd

F = qd.types.NDArray[qd.f32, 2]
N = qd.types.NDArray[qd.i32, 2]


def escape(x: F, out: N, cap: qd.i32):
    for i, j in out:
        z = x[i, j]
        n = 0
        while z * z < 50.0 and n < cap:
            z = z * z - 0.7 + j * 0.01
            n += 1
        out[i, j] = n


def breaks(x: F, out: N, cap: qd.i32):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            z = x[i, j] * 3.0
            n = i
            for k in range(cap):
                if z > 9.0:
                    n += 100
                    break
                elif z < -2.0:
                    z = -z * 1.5
                    continue
                z = z * 1.3 + 0.1
                n += k
            out[i, j] += n


def newton(x: F, out: N, cap: qd.i32):
    for j, i in qd.ndrange((2, out.shape[1]), out.shape[0]):
        a = x[i, j] * x[i, j] + 1.0
        y = a
        n = 0
        while True:
            t = 0.5 * (y + a / y)
            if abs(t - y) < 1e-6 * y:
                break
            y = t
            n += 1
            if n > cap:
                break
        out[i, j] = n * 1000 + qd.cast(y * 100.0, qd.i32)


def collatz(x: F, out: N, cap: qd.i32):
    for i, j in out:
        v = qd.cast(qd.abs(x[i, j]) * 1000.0, qd.i32) + 1
        n = 0
        while v != 1 and n < cap:
            if v % 2 == 0:
                v //= 2
            else:
                v = 3 * v + 1
            n += 1
        if n > 3:
            out[i, j] = n


def julia(x: F, out: N, cap: qd.i32):
    for i, j in out:
        z = qd.math.vec2(x[i, j], i * 0.05 - 1.0)
        c = qd.math.vec2(-0.8, j * 0.01)
        n = 0
        while z.norm() < 20 and n < cap:
            z = qd.math.vec2(z[0] ** 2 - z[1] ** 2, z[1] * z[0] * 2) + c
            n += 1
        out[i, j] = n * 16 + qd.cast(z.norm() * 4.0, qd.i32)


@pytest.mark.parametrize("body", [escape, breaks, newton, collatz, julia])
def test_masks_keep_the_results(body):
    found = []
    for skipped in ("", "mask_loops"):
        qd.init(arch=qd.cpu, fast_math=False, tiered="off", skip_passes=skipped)
        kernel = qd.kernel(body)
        rng = np.random.default_rng(3)
        results = []
        for shape in ((5, 8), (3, 16), (2, 37), (9, 3), (1, 65)):
            x = rng.standard_normal(shape).astype(np.float32)
            out = rng.integers(0, 9, shape).astype(np.int32)
            kernel(x, out, 25)
            none = out.copy()
            kernel(x, none, 0)
            results += [out, none]
        found.append(np.concatenate([one.ravel() for one in results]))
    assert np.array_equal(found[0], found[1])
    assert len(np.unique(found[0])) > 3
