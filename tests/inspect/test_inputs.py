"""What launches of a capture are given: copies that keep the relations of the originals."""

import dataclasses

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect import KernelCapture
from qd_studio.engine.inspect.inputs import Inputs

from tests.lang import opaque

F32 = qd.types.NDArray[qd.f32, 1]


@pytest.fixture(params=["cpu", "device"], autouse=True)
def program(request):
    with opaque.program(request.param, log_level="error", offline_cache=False):
        yield


@qd.kernel
def add(x: F32, y: F32, n: qd.i32):
    for i in range(n):
        x[i] += y[i]


@dataclasses.dataclass(frozen=True)
class Inner:
    x: F32
    unused: F32


@dataclasses.dataclass(frozen=True)
class Outer:
    inner: Inner
    y: F32
    scale: qd.f32


@qd.kernel
def scale(state: Outer, extra: F32):
    for i in range(4):
        state.inner.x[i] = state.inner.x[i] * state.scale + state.y[i] + extra[i]


def inputs(kernel, *args):
    capture = KernelCapture(kernel, ["cpu"], CompileConfig())
    bound = capture.bound(args)
    compiled = capture.compiled("cpu", tuple(a.spec_key for a in bound))
    return Inputs(kernel.name, compiled, bound, args, {}, CompileConfig()), compiled


def floats(n=4):
    return np.arange(n, dtype=np.float32)


def test_arrays_are_copies_and_can_be_restored():
    x, y = floats(), floats()
    given, _ = inputs(add, x, y, 3)
    assert given.args[0] is given.values[0] and given.args[2] == 3
    assert not given.overlap()
    restore = given.restorer([1])
    for value in given.values[:2]:
        value += 1
    restore()
    assert x.tolist() == y.tolist() == given.values[1].tolist() == [0, 1, 2, 3]
    assert given.values[0].tolist() == [1, 2, 3, 4]


def test_what_shares_memory_goes_on_sharing_it():
    whole = floats(10)
    other = floats(10)
    given, _ = inputs(add, whole[2:8], whole[4:10], 6)
    assert given.overlap()
    given.values[0][2] = 77
    assert given.values[1].tolist() == [77, 5, 6, 7, 8, 9]
    assert whole.tolist() == other.tolist()
    same, _ = inputs(add, whole, whole, 6)
    assert same.values[0] is same.values[1] and same.overlap()


def test_a_check_sees_the_copies_inside_of_dataclasses():
    arrays = [floats() for _ in range(4)]
    state = Outer(Inner(arrays[0], arrays[1]), arrays[2], 2.0)
    given, compiled = inputs(scale, state, arrays[3])
    compiled.executable.launch(given.values, 0)
    seen, extra = given.args
    assert seen.inner.x.tolist() == [0, 4, 8, 12] and extra.tolist() == [0, 1, 2, 3]
    assert seen.inner.unused is arrays[1] and seen.scale == 2.0
    assert type(seen) is Outer and seen.y is not arrays[2]
    assert all(a.tolist() == [0, 1, 2, 3] for a in arrays)
    assert state.inner.x is arrays[0]


def test_arrays_in_fortran_order_are_seen_by_index():
    @qd.kernel
    def fill(a: qd.types.NDArray[qd.f32, 2]):
        for i, j in a:
            a[i, j] = 10 * i + j

    given, compiled = inputs(fill, np.zeros((2, 3), np.float32, order="F"))
    compiled.executable.launch(given.values, 0)
    assert given.args[0].tolist() == [[0, 1, 2], [10, 11, 12]]
