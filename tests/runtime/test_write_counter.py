"""Arrays and fields count what is written to them, by whom ever."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.lang.ndarray import Ndarray
from qd_studio.engine.runtime.program import current
from qd_studio.engine.types import WriteCounter

from tests.lang import opaque

VEC = qd.types.vector(2, qd.i32)


@pytest.fixture(params=["cpu", "interp", "device"], autouse=True)
def program(request):
    with opaque.program(request.param, offline_cache=False):
        yield request.param


def count_of(thing):
    return (thing._writes if isinstance(thing, Ndarray) else thing.writes).count


def seen(thing, change):
    """Whether a change shows, and shows once."""
    before = count_of(thing)
    assert count_of(thing) == before
    change()
    after = count_of(thing)
    assert count_of(thing) == after
    return after != before


def numbers():
    return [qd.ndarray(qd.i32, (4,)), qd.field(qd.i32, shape=4)]


def test_numbers_are_given_once():
    one, other = WriteCounter(), WriteCounter()
    assert one.count != other.count


@pytest.mark.parametrize("which", [0, 1])
def test_what_python_writes(which):
    x, other = numbers()[which], numbers()[which]
    assert seen(x, lambda: x.__setitem__(1, 3))
    assert seen(x, lambda: x.fill(3))
    assert seen(x, lambda: x.from_numpy(np.arange(4)))
    assert seen(x, lambda: x.copy_from(other))
    assert seen(x, lambda: x.from_dlpack(np.arange(4)))
    assert not seen(other, lambda: x.copy_from(other)), "reading is no change"
    assert not seen(x, lambda: (x[1], x.to_numpy(), str(x)))


@pytest.mark.parametrize("make", [
    lambda: qd.ndarray(VEC, (3,)), lambda: qd.field(VEC, shape=3),
])  # fmt: skip
def test_live_vectors(make):
    x = make()
    window = x[1]
    assert seen(x, lambda: window.__setitem__(0, 5))
    assert seen(x, lambda: setattr(window, "y", 6))
    assert x[1].to_list() == [5, 6]
    assert not seen(x, lambda: (window + 1, window.to_numpy(), x[2].to_list()))
    x[0] = x[1]
    assert isinstance(count_of(x), int), "reading one element to write another hands out nothing"
    if current().device.host_arrays:  # else there are no views
        x[1].entries[0] = 7
        assert count_of(x) is None


def test_components_and_members_of_structs():
    v = qd.field(VEC, shape=3)
    first = v.get_scalar_field(0)
    assert seen(v, lambda: first.__setitem__(0, 1))
    assert seen(first, lambda: v.fill(1))
    s = qd.Struct.field({"a": qd.i32, "b": VEC}, shape=2)
    assert seen(s.a, lambda: s.__setitem__(0, {"a": 1, "b": [1, 2]}))
    assert seen(s.a, lambda: setattr(s[1], "a", 3))
    assert not seen(s.a, lambda: setattr(s[1], "b", [3, 4]))


@pytest.mark.parametrize("which", [0, 1])
def test_a_view_that_was_handed_out(which):
    x = numbers()[which]
    x.to_numpy()
    assert isinstance(count_of(x), int)
    if current().device.host_arrays:
        view = x.to_numpy(copy=False)
        view[0] = 1
        assert count_of(x) is None
    x = numbers()[which]
    x.to_dlpack()
    assert count_of(x) is None
    x.fill(1)
    assert count_of(x) is None, "it is not known when the view ends"


def test_kernels_that_write():
    f, g = qd.field(qd.i32, shape=4), qd.field(qd.i32, shape=4)

    @qd.kernel
    def k(x: qd.types.ndarray(dtype=qd.i32, ndim=1), y: qd.types.ndarray(dtype=qd.i32, ndim=1)):
        for i in range(x.shape[0]):
            x[i] = y[i] + g[i]
            f[i] += 1

    x, y = qd.ndarray(qd.i32, (4,)), qd.ndarray(qd.i32, (4,))
    plain = np.zeros(4, np.int32)
    for _ in range(4):  # the slow path first, then a launch stub
        assert seen(x, lambda: k(x, y))
        assert seen(f, lambda: k(x, y))
        assert not seen(y, lambda: k(x, y))
        assert not seen(g, lambda: k(x, y))
        assert seen(f, lambda: k(plain, y))
        assert seen(y, lambda: k(y, y)), "arrays that overlap"


def test_gradients_are_arrays_of_their_own():
    x = qd.ndarray(qd.f32, (4,), needs_grad=True)

    @qd.kernel
    def k(x: qd.types.ndarray(dtype=qd.f32, ndim=1)):
        for i in range(4):
            x.grad[i] = 1.0

    for _ in range(4):
        assert seen(x.grad, lambda: k(x))
        assert not seen(x, lambda: k(x))


@pytest.mark.parametrize("arch", ["cpu", "interp"])
def test_a_kernel_that_fails_has_written(arch):
    qd.init(arch=arch, debug=True, offline_cache=False)
    x = qd.ndarray(qd.i32, (4,))

    @qd.kernel
    def k(x: qd.types.ndarray(dtype=qd.i32, ndim=1), n: qd.i32):
        x[0] = n
        assert n < 2

    for _ in range(4):
        k(x, 1)

        def failing():
            with pytest.raises(AssertionError):
                k(x, 5)

        assert seen(x, failing)
        assert x[0] == 5


def test_contents_that_are_put_back():
    from qd_studio.engine.inspect import contents

    f = qd.field(qd.i32, shape=4)
    f.fill(2)
    kept = contents.remember()
    assert seen(f, lambda: contents.put_back(kept))
