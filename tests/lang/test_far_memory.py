"""Arrays and fields in memory that the host does not see: what is copied, and how it is shown."""

import copy
import gc
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qd_studio import engine as qd
from qd_studio.engine.errors import QuadrantsRuntimeError
from qd_studio.engine.lang import elements as lang_memory
from qd_studio.engine.lang.elements import Window, assign, host_of
from qd_studio.engine.lang.fields.storage import guard

from . import opaque
from .opaque import copies

pytestmark = [
    pytest.mark.not_on_device("it has a device of its own"), pytest.mark.usefixtures("device")
]  # fmt: skip


# What is copied


def test_elements_are_copied_alone(device):
    a = qd.ndarray(qd.f64, (100, 3))
    v = qd.Vector.field(3, qd.f32, shape=50)
    w = qd.Vector.ndarray(3, qd.f32, 50)
    assert copies(device, lambda: a[7, 2]) == [("read", 8)]
    assert copies(device, lambda: a.__setitem__((7, 2), 5)) == [("write", 8)]
    for x in (v, w):
        x.fill(0)
        assert copies(device, lambda x=x: x.__setitem__(4, [1, 2, 3])) == [("write", 12)]
        assert ("write", 4) in copies(device, lambda x=x: x[4].__setitem__(1, 9))
        assert x[4].to_list() == [1, 9, 3]
        assert copies(device, lambda x=x: x[4]) == []


def test_whole_arrays_are_copied_at_once(device):
    a, b = qd.ndarray(qd.f32, (8, 4)), qd.ndarray(qd.f32, (8, 4))
    permuted = qd.tensor(qd.f32, (8, 4), layout=(1, 0))
    ordered = qd.field(qd.f32, shape=(8, 4), order="ji")
    values = np.arange(32, dtype=np.float32).reshape(8, 4)
    for x in (a, permuted, ordered):
        assert copies(device, lambda x=x: x.from_numpy(values)) == [("write", 128)]
        assert copies(device, x.to_numpy) == [("read", 128)]
        got = x.to_numpy()
        assert got.flags.c_contiguous and got.flags.writeable
        np.testing.assert_array_equal(got, values)
    assert copies(device, lambda: b.copy_from(a)) == [("copy", 128)]
    assert b.to_numpy().tolist() == values.tolist()
    other = qd.field(qd.f32, shape=(8, 4), order="ji")
    assert copies(device, lambda: other.copy_from(ordered)) == [("copy", 128)]
    assert copies(device, lambda: a.fill(3)) == [("fill", 128)]
    assert copies(device, lambda: ordered.fill(2)) == [("fill", 128)]
    assert (ordered.to_numpy() == 2).all()


def test_fills_with_vectors(device):
    two, three = qd.Vector.ndarray(2, qd.f32, 5), qd.Vector.ndarray(3, qd.f32, (70, 700))
    assert copies(device, lambda: two.fill([1, 2])) == [("fill", 40)]
    assert copies(device, lambda: three.fill(4)) == [("fill", 588000)]
    done = copies(device, lambda: three.fill([1, 2, 3]))
    assert [what for what, _ in done] == ["write", *["copy"] * 4]
    assert sum(n for _, n in done) == 588000
    assert (three.to_numpy() == [1, 2, 3]).all()
    assert (two.to_numpy() == [1, 2]).all()
    apart = qd.Vector.field(3, qd.i16, shape=6, layout=qd.Layout.SOA)
    apart.fill([1, 2, 3])
    assert (apart.to_numpy() == [1, 2, 3]).all()


def test_neighbours_keep_what_they_hold(device):
    t = qd.types.struct(a=qd.i8, b=qd.f64, v=qd.types.vector(3, qd.i16))
    f = t.field(shape=4)
    f.b.from_numpy(np.arange(4))
    f.v.fill(7)
    f.a.fill(44)
    f[2] = {"a": 1, "b": 2.5, "v": [4, 5, 6]}
    f[1].v[2] = 9
    got = f.to_numpy()
    assert got["a"].tolist() == [44, 44, 1, 44]
    assert got["b"].tolist() == [0, 1, 2.5, 3]
    assert got["v"].tolist() == [[7, 7, 7], [7, 7, 9], [4, 5, 6], [7, 7, 7]]


def test_what_is_far_apart_is_copied_in_parts(device, monkeypatch):
    monkeypatch.setattr(lang_memory, "_PIECE", 1 << 10)
    monkeypatch.setattr(lang_memory, "_TILE", 1 << 8)
    memory = device.allocate(1 << 14)
    window = Window(memory, 16, (3, 4, 16), (256, 4096, 8), np.int64)
    values = np.arange(192).reshape(3, 4, 16)
    done = copies(device, lambda: window.write(values))
    assert max(n for _, n in done) <= 4096
    np.testing.assert_array_equal(window.read(), values)
    around = np.empty(1 << 14, np.uint8)
    memory.read(0, around)
    seen = np.ndarray((3, 4, 16), np.int64, around, 16, (256, 4096, 8))
    np.testing.assert_array_equal(seen, values)
    assert np.count_nonzero(around.view(np.int64)) == 191


@settings(max_examples=60)
@given(data=st.data())
def test_windows_are_like_views(data):
    """Windows of random layouts do what NumPy does on the same bytes."""
    device = opaque.OpaqueDevice()
    draw = data.draw
    dtype = np.dtype(draw(st.sampled_from(["u1", "?", "i2", "f2", "f4", "u8"])))
    shape = draw(st.lists(st.integers(1, 4), min_size=0, max_size=4))
    order = draw(st.permutations(range(len(shape))))
    strides, step = [0] * len(shape), dtype.itemsize
    for axis in reversed(order):
        step += dtype.itemsize * draw(st.sampled_from([0, 0, 0, 1, 3]))
        strides[axis] = step
        step *= shape[axis]
    offset = 8 * draw(st.integers(0, 2))
    memory = device.allocate(offset + step + 64)
    before = np.random.default_rng(step).integers(0, 2, memory.nbytes, np.uint8)
    memory.write(0, before)
    window = Window(memory, offset, shape, strides, dtype)
    view = np.ndarray(shape, dtype, before, offset, strides)
    assert np.array_equal(window.read(), view)
    dense = window.order()
    if dense is not None:
        assert window.span() == window.size * dtype.itemsize
    tail = draw(st.integers(0, len(shape)))
    values = np.arange(window.size).reshape(shape) % 100
    what = draw(st.sampled_from(["write", "fill", "element", "assign"]))
    if what == "write":
        window.write(values)
        view[...] = values
    elif what == "fill":
        one = values[(0,) * tail].astype(dtype)
        window[...] = one
        view[...] = one
    elif what == "element":
        where = tuple(n - 1 for n in shape)
        window[where] = 3
        view[where] = 3
        assert window[where] == view[where]
    else:
        other = Window(device.allocate(step + 64), 0, shape, strides, dtype)
        other.write(values.astype(dtype))
        assign(window, other)
        view[...] = values.astype(dtype)
    after = np.empty_like(before)
    memory.read(0, after)
    assert after.tolist() == before.tolist()
    flat = host_of(window.reshape((window.size,)))
    assert flat.tolist() == view.ravel().tolist()


# Live values


def test_live_vectors_and_matrices():
    m = qd.Matrix.field(2, 2, qd.i32, shape=3)
    m[1] = [[1, 2], [3, 4]]
    x = m[1]
    assert isinstance(x, qd.Matrix) and (x.n, x.m, x.ndim, x.shape, len(x)) == (2, 2, 2, (2, 2), 2)
    x[0, 1] = 20
    x[-1, 0] = 30
    assert m.to_numpy()[1].tolist() == [[1, 20], [30, 4]]
    assert [list(row) for row in x] == [[1, 20], [30, 4]]
    assert (x @ x).to_list() == [[601, 100], [150, 616]]
    assert x.transpose().to_list() == [[1, 30], [20, 4]]
    x.fill(5)
    assert m[1].to_list() == [[5, 5], [5, 5]]
    v = qd.Vector.ndarray(3, qd.f32, 2)
    y = v[0]
    y.xy = [1, 2]
    y.z += 4
    assert (y.x, y.zx.to_list(), list(y), str(y)) == (1, [4, 1], [1, 2, 4], "[1. 2. 4.]")
    y[:] = [7, 8, 9]
    assert v[0].to_list() == [7, 8, 9]
    assert (y.to_numpy().dtype, y.norm_sqr(), y.dot([1, 1, 1])) == (np.float32, 194, 24)
    with pytest.raises(ValueError, match="read-only"):
        y.entries[0] = 1
    with pytest.raises(AttributeError, match="'Vector' object has no attribute 'colour'"):
        y.colour  # noqa: B018
    with pytest.raises(TypeError, match="integer element"):
        m[0][0, 0] = 1.5
    with pytest.raises(QuadrantsRuntimeError, match="ended"):
        qd.reset()
        v[0]


def test_copies_of_live_vectors():
    v = qd.Vector.ndarray(2, qd.f32, 2)
    v[0] = [1, 2]
    for copied in (copy.deepcopy(v[0]), pickle.loads(pickle.dumps(v[0]))):
        copied[0] = 50
        assert copied.to_list() == [50, 2]
    assert v[0].to_list() == [1, 2]
    near = copy.copy(v[0])
    near[1] = 8
    assert v[0].to_list() == [1, 8]


def test_live_vectors_as_arguments():
    v = qd.Vector.field(2, qd.f32, shape=2)
    v[0] = [1, 2]

    @qd.kernel
    def total(by: qd.types.vector(2, qd.f32), fixed: qd.template()) -> qd.f32:
        return by[0] + 10 * by[1] + 100 * fixed[0] + 1000 * fixed[1]

    assert [total(v[0], v[0]) for _ in range(3)] == [2121] * 3
    v[0][1] = 3
    assert total(v[0], v[0]) == 3131


# The life of memory


def test_memory_is_given_back(device):
    a = qd.ndarray(qd.f32, 1000, needs_grad=True)
    assert device.used == 8000
    del a
    gc.collect()
    assert device.used == 0
    builder, f = qd.FieldsBuilder(), qd.field(qd.f32)
    builder.dense(qd.i, 16).place(f)
    tree = builder.finalize()
    assert device.used == 64 + 2 * guard(64)
    tree.destroy()
    assert device.used == 0
    kept = [qd.ndarray(qd.f32, 1000), qd.field(qd.f32, shape=16)]
    kept[1].fill(1)
    assert device.used == 4064 + 2 * guard(64)
    qd.reset()
    assert device.used == 0


def test_too_little_memory_says_how_much_there_is(device):
    device.limit = 1 << 20
    with pytest.raises(
        QuadrantsRuntimeError,
        match=r"not enough memory for an ndarray of shape \(1024, 1024, 2\), which takes"
        r" 8388608 bytes: 1048576 bytes are free",
    ):
        qd.Vector.ndarray(2, qd.f32, (1024, 1024))
    small, large = qd.field(qd.f32, shape=4), qd.field(qd.f64, shape=(1 << 10, 1 << 10))
    with pytest.raises(
        QuadrantsRuntimeError,
        match=r"of shape \(1024, 1024\), of 8388608 bytes: \d+ bytes are free",
    ):
        large.fill(1)
    small.fill(2)
    assert small.to_numpy().tolist() == [2] * 4
    assert qd.ndarray(qd.f32, 4).to_numpy().tolist() == [0] * 4


def test_pickles_of_tensors():
    x = qd.Vector.tensor(2, qd.f32, (2, 2), layout=(1, 0), needs_grad=True)
    x.from_numpy(np.arange(8).reshape(2, 2, 2))
    x.grad.fill(3)
    copied = pickle.loads(pickle.dumps(x))
    assert copied.to_numpy().tolist() == x.to_numpy().tolist()
    assert (copied.grad.to_numpy() == 3).all()


# Kernels


@pytest.mark.filterwarnings("ignore:Debug mode is disabled")
def test_read_flags_of_what_was_read():
    x, loss = qd.field(qd.f32, shape=4, needs_grad=True), qd.field(qd.f32, (), needs_grad=True)

    @qd.kernel
    def add():
        for i in x:
            loss[None] += x[i] ** 2

    @qd.kernel
    def spoil():
        x[1] = 3.0

    x.fill(1)
    with qd.ad.Tape(loss, validation=True):
        add()
    assert x.grad.to_numpy().tolist() == [2, 2, 2, 2]
    with (
        pytest.raises(qd.QuadrantsAssertionError, match="global data access rule"),
        qd.ad.Tape(loss, validation=True),
    ):
        add()
        spoil()
