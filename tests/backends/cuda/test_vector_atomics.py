"""Atomic sums into the members of a cell, of fields in either order and apart, and of arrays."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.runtime import program

from tests import cuda_sim

N = 40


def fields(order):
    """Velocities and masses of 16 cells: together, in one of both orders, or apart."""
    v, m = qd.Vector.field(3, qd.f32), qd.field(qd.f32)
    if order == "apart":
        qd.root.dense(qd.i, 16).place(v)
        qd.root.dense(qd.i, 16).place(m)
    else:
        qd.root.dense(qd.i, 16).place(*((v, m) if order == "v m" else (m, v)))
    return v, m


def run_fields(order):
    v, m = fields(order)

    @qd.kernel
    def scatter(x: qd.types.NDArray[qd.f32, 1]):
        for p in x:
            for k in qd.static(range(3)):
                at = (p * 7 + k) % 16
                v[at] += x[p] * qd.Vector([1.0, 2.0, 4.0])
                m[at] += 0.5 * x[p]

    scatter(np.arange(N, dtype=np.float32))
    return scatter, [v.to_numpy(), m.to_numpy()]


def run_pairs(shift):
    """Rows of 2 and 4 floats; with a shift, the array begins between two pairs."""

    @qd.kernel
    def scatter(a: qd.types.NDArray[qd.f32, 2], b: qd.types.NDArray[qd.math.vec2, 1]):
        for p in range(N):
            for k in qd.static(range(4)):
                a[p * 5 % 6, k] += 0.25 * p
            b[p % 3] += qd.Vector([p, -p])

    flat = np.zeros(24 + shift + 6 + 4, np.float32)
    start = (-(flat.ctypes.data // 4)) % 4 + shift
    a, b = flat[start : start + 24].reshape(6, 4), np.zeros((3, 2), np.float32)
    scatter(a, b)
    return scatter, [a.copy(), b]


def on(arch, run, argument, **options):
    """The results, and the PTX if there is some."""
    qd.init(arch=arch, log_level="error", tiered="off", **options)
    kernel, found = run(argument)
    texts = [v.compiled.artifact.texts.get("ptx", "") for v in kernel.launchers.variants.values()]
    name = program.current().backend.name
    qd.reset()
    return found, "".join(texts) if name == "cuda" else ""


CASES = [(run_fields, order) for order in ("v m", "m v", "apart")] + [
    (run_pairs, shift) for shift in (0, 1, 2)
]


@pytest.mark.parametrize("run, argument", CASES)
def test_sums_of_vectors_are_those_of_their_parts(run, argument):
    expected, _ = on(qd.cpu, run, argument)
    with cuda_sim.cuda():
        found, ptx = on(qd.cuda, run, argument)
        older, plain = on(qd.cuda, run, argument, cuda_arch="sm_80")
    assert ("add.v" in ptx) == (argument != "apart")
    assert "add.v" not in plain
    for want, got, old in zip(expected, found, older, strict=True):
        assert np.array_equal(want, got)
        assert np.array_equal(want, old)
