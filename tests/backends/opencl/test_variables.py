"""Values of variables that are changed between where they were read and where they are used."""

import numpy as np
import pytest
from qd_studio import engine as qd

pytest.importorskip("pyopencl")
Row = qd.types.ndarray(qd.i32, 1)


@qd.kernel
def first(x: Row, steps: Row):
    for i in x:
        new = True
        y = z = 0
        for j in range(6):
            if new:
                new = False
                y = y + x[i] + j
            else:
                z = z + y
        x[i] = y * 100 + z


@qd.kernel
def followed(x: Row, steps: Row):
    for _ in range(1):
        at = 0
        for j in range(6):
            here = at
            old = x[here]
            at = steps[j]
            x[here] = old + j + 1


@qd.kernel
def followed_by_one(x: Row, steps: Row):
    for _ in range(1):
        at = 0
        for j in range(6):
            here = at + 1
            old = x[here]
            at = steps[j]
            x[here] = old + j + 1


@qd.kernel
def kept_in_a_vector(x: Row, steps: Row):
    for i in x:
        at = i % 4
        v = qd.Vector([1, 2, 3, 4])
        for j in range(6):
            here = at
            old = v[here]
            at = steps[j] % 4
            v[here] = old + j
            v[at] -= old
        x[i] = v[0] + v[1] * 10 + v[2] * 100 + v[3] * 1000


@qd.kernel
def moving_bounds(x: Row, steps: Row):
    for i in x:
        low = x[i] % 3
        total = 0
        for p, q in qd.ndrange(3, (low + 1, low + 4)):
            low = low + 1
            total += p * q
        x[i] = total + low


KERNELS = (first, followed, followed_by_one, kept_in_a_vector, moving_bounds)


def results(arch, **options):
    qd.init(arch=arch, log_level="error", offline_cache=False, **options)
    found = []
    for kernel in KERNELS:
        x = np.arange(8, dtype=np.int32)
        kernel(x, np.array([3, 1, 4, 1, 5, 2], np.int32))
        found.append(x)
    qd.reset()
    return found


@pytest.mark.parametrize(("mapping", "level"), [("chunks", 1), ("lanes", 1), ("lanes", 0)])
def test_a_value_is_that_of_when_it_was_read(mapping, level):
    wanted = results(qd.interp)
    got = results(qd.opencl, enable_fallback=False, opencl_mapping=mapping, opt_level=level)
    for kernel, a, b in zip(KERNELS, wanted, got, strict=True):
        np.testing.assert_array_equal(b, a, err_msg=kernel.__name__)
