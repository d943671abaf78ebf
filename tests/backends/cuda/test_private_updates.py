"""Updates of memory of a thread's own: PTX has no atomics for it, so they must be plain ones."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.runtime import program

from tests import cuda_sim
from tests.cuda_sim import translate
from tests.cuda_sim.intrinsics import Lacking


@qd.kernel
def of_locals(o: qd.types.ndarray(qd.i32, 2), p: qd.types.ndarray(qd.f32, 2)):
    for i in range(o.shape[1]):
        v, w = i, i * 0.5
        a = qd.Vector([0, 0, 0])
        o[0, i] = qd.atomic_add(v, 3)
        o[1, i] = qd.atomic_max(v, 7)
        o[2, i] = qd.atomic_xor(v, 5)
        o[3, i] = qd.atomic_exchange(v, 11)
        o[4, i] = qd.atomic_cas(v, 11, 13)
        o[5, i] = qd.atomic_cas(v, 11, 17)
        o[6, i] = v
        a[i % 3] += i
        o[7, i] = a[i % 3] + qd.atomic_min(a[i % 3], 2)
        o[8, i] = a[i % 3]
        p[0, i] = qd.atomic_add(w, 1.0) + qd.atomic_mul(w, 2.0)
        p[1, i] = qd.atomic_exchange(w, 9.0) + w


@qd.real_func
def more(x: qd.ref(qd.i32), n: qd.i32) -> qd.i32:
    return qd.atomic_add(x, n)


@qd.kernel
def through_addresses(o: qd.types.ndarray(qd.i32, 2)):
    for i in range(o.shape[1]):
        v = i
        o[0, i] = more(v, 5)
        o[1, i] = v


def results(arch, level, kernel, *shapes):
    qd.init(arch=arch, opt_level=level, log_level="error")
    out = [np.zeros(shape, dtype) for shape, dtype in shapes]
    kernel(*out)
    texts = [
        v.compiled.artifact.text("ptx") for v in kernel.launchers.variants.values()
        if program.current().backend.name == "cuda"
    ]  # fmt: skip
    qd.reset()
    return [o.tolist() for o in out], "".join(texts)


OF_LOCALS = of_locals, ((9, 8), np.int32), ((2, 8), np.float32)


@pytest.mark.parametrize("level", [0, 1])
def test_updates_of_locals_are_plain(level):
    with cuda_sim.simulated():
        found, ptx = results(qd.cuda, level, *OF_LOCALS)
    assert found == results(qd.interp, level, *OF_LOCALS)[0]
    assert "atom." not in ptx and "red." not in ptx


@pytest.mark.parametrize("level", [0, 1])
def test_updates_through_an_address_are_of_any_memory(level):
    case = through_addresses, ((2, 8), np.int32)
    with cuda_sim.simulated():
        found, _ = results(qd.cuda, level, *case)
    assert found == results(qd.interp, level, *case)[0]


def test_the_simulator_refuses_atomics_on_locals():
    text = """\
define ptx_kernel void @k(ptr %p) {
  %v = alloca [4 x i32]
  %w = getelementptr i32, ptr %v, i64 1
  %x = atomicrmw add ptr %w, i32 1 monotonic, align 4
  ret void
}
"""
    with pytest.raises(Lacking, match="own memory, %w"):
        translate.translate(text)
