"""Arrays and fields on a device, and other libraries: NumPy, DLPack, torch."""

import gc
import sys

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.errors import QuadrantsRuntimeError
from qd_studio.engine.lang.dlpack import _Relabeled

from .opaque import copies

pytestmark = [
    pytest.mark.not_on_device("it has a device of its own"), pytest.mark.usefixtures("device")
]  # fmt: skip


def test_numpy_never_shares():
    for x in (qd.ndarray(qd.f32, 3), qd.field(qd.f32, shape=3), qd.tensor(qd.f32, 3)):
        with pytest.raises(ValueError, match=r"Zero-copy .* numpy zero copy is CPU only"):
            x.to_numpy(copy=False)
        with pytest.raises(ValueError, match="copy=False is incompatible with dtype conversion"):
            x.to_numpy(np.int32, copy=False)
        view = x.to_numpy(copy=None)
        view[0] = 5
        assert x[0] == 0
        x.fill(2.75)
        assert x.to_numpy(np.int8).tolist() == [2, 2, 2]


def containers():
    interleaved, other = qd.field(qd.f32), qd.field(qd.f32)
    qd.root.dense(qd.ij, (2, 3)).place(interleaved, other)
    return {
        "array": qd.ndarray(qd.f32, (2, 3)),
        "vectors": qd.Vector.ndarray(3, qd.f32, 2),
        "field": qd.field(qd.f32, shape=(2, 3)),
        "ordered": qd.field(qd.f32, shape=(2, 3), order="ji"),
        "tensor": qd.tensor(qd.f32, (2, 3), layout=(1, 0)),
        "interleaved": interleaved,
    }


@pytest.mark.parametrize("name", ["array", "vectors", "field", "ordered", "tensor", "interleaved"])
@pytest.mark.parametrize("versioned", [False, True])
def test_capsules_of_the_device(name, versioned, device):
    x = containers()[name]
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    x.from_numpy(values)
    assert x.__dlpack_device__() == (2, 0)
    capsule = x.to_dlpack(versioned=versioned)
    assert ('"dltensor_versioned"' if versioned else '"dltensor"') in repr(capsule)
    there = on_host(capsule)
    np.testing.assert_array_equal(there, values)
    there[1, 2] = 50
    assert x.to_numpy()[1, 2] == 50
    shown = x.__cuda_array_interface__
    assert shown["data"][0] == there.__array_interface__["data"][0]
    assert (shown["shape"], shown["version"], shown["typestr"]) == ((2, 3), 3, "<f4")
    assert (shown["strides"] or (12, 4)) == there.strides
    y = containers()[name]
    done = copies(device, lambda: y.from_dlpack(x))
    assert y.to_numpy().tolist() == x.to_numpy().tolist()
    if name != "interleaved":
        assert done == [("copy", 24)]
    x.from_dlpack(np.arange(6.0).reshape(2, 3))
    assert x.to_numpy().tolist() == values.tolist()


class Writable:
    """NumPy does not write to what old capsules hold."""

    def __init__(self, array):
        shown = array.__array_interface__
        self.array = array
        self.__array_interface__ = {**shown, "data": (shown["data"][0], False)}


def on_host(capsule):
    """What lies behind a capsule of the device, which this process can see."""
    return np.asarray(Writable(np.from_dlpack(_Relabeled(capsule))))


def test_capsules_convert_and_copy(device):
    a, b = qd.ndarray(qd.f32, 4), qd.ndarray(qd.i32, (2, 2))
    a.from_numpy(np.array([1.5, -2.5, 3, 4]))
    a.__dlpack__(copy=True, stream=1), a.__dlpack_device__()
    assert isinstance(a._writes.count, int), "a copy hands out nothing"
    with pytest.raises(ValueError, match="Mismatch shape"):
        b.from_dlpack(a)
    b = qd.field(qd.i32, shape=4)
    b.from_dlpack(a)
    assert b.to_numpy().tolist() == [1, -2, 3, 4]
    own = on_host(a.__dlpack__(copy=True, stream=1))
    own[0] = 9
    assert a[0] == 1.5
    here = a.__dlpack__(dl_device=(1, 0))
    assert np.from_dlpack(Capsule(here, (1, 0))).tolist() == [1.5, -2.5, 3, 4]
    with pytest.raises(BufferError):
        a.__dlpack__(dl_device=(1, 0), copy=False)
    assert device.syncs == 0
    a.__dlpack__(stream=12345)
    assert device.syncs == 1
    assert a._writes.count is None
    with pytest.raises(ValueError, match=r"the device \(2, 1\)"):
        a.from_dlpack(Capsule(None, (2, 1)))
    with pytest.raises(ValueError, match="backwards"):
        a.from_dlpack(Capsule(np.arange(4.0)[::-1], (2, 0)))


class Capsule:
    """What another library would show."""

    def __init__(self, of, device):
        self.of, self.device = of, device

    def __dlpack__(self, stream=None, **options):
        return self.of.__dlpack__() if isinstance(self.of, np.ndarray) else self.of

    def __dlpack_device__(self):
        return self.device


class FakeTensor:
    """A tensor of torch on the CPU or the device, over memory that this process can see."""

    def __init__(self, array, where="cpu", owner=None):
        self.array, self.device, self.owner = array, FakeDevice(where), owner
        self.shape = array.shape

    def detach(self):
        return self

    def cpu(self):
        return FakeTensor(self.array.copy())

    def numpy(self):
        assert self.device.type == "cpu"
        return self.array

    def clone(self):
        return FakeTensor(self.array.copy(), str(self.device))

    def to(self, where):
        return FakeTensor(self.array.copy(), str(where))

    def copy_(self, other):
        np.copyto(self.array, other.array, casting="unsafe")


class FakeDevice:
    def __init__(self, where):
        self.type, _, index = str(where).partition(":")
        self.index = int(index) if index else None

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"


class FakeStream:
    cuda_stream = 0
    waits = 0

    def synchronize(self):
        self.waits += 1


class FakeTorch:
    """As much of torch as moving arrays takes."""

    Tensor = FakeTensor
    device = staticmethod(FakeDevice)

    def __init__(self):
        self.cuda = self
        self.stream = FakeStream()

    def current_stream(self):
        return self.stream

    def from_numpy(self, array):
        return FakeTensor(array)

    def from_dlpack(self, x):
        kind, index = x.__dlpack_device__()
        assert kind == 2
        capsule = x.__dlpack__(stream=self.stream.cuda_stream or 1, max_version=(1, 0))
        return FakeTensor(on_host(capsule), f"cuda:{index}")


@pytest.mark.parametrize("name", ["array", "field", "tensor", "interleaved"])
def test_tensors_on_the_device(name, device, monkeypatch):
    torch = FakeTorch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    x = containers()[name]
    values = np.arange(6.0).reshape(2, 3)
    for where in ("cuda:0", "cuda:1", "cpu"):
        x.fill(0)
        done = copies(device, lambda where=where: x.from_torch(FakeTensor(values, where)))
        assert bool(done) is (where != "cuda:0"), "torch copies on its device"
        assert x.to_numpy().tolist() == values.tolist()
    assert (x.to_torch().device.type, x.to_torch("cuda").device.type) == ("cpu", "cuda")
    for copied in (x.to_torch(), x.to_torch("cuda"), x.to_torch("cuda:1"), x.to_torch("cpu")):
        assert copied.array.tolist() == values.tolist()
        copied.array[0, 0] = 9
        assert x[0, 0] == 0
    if name != "interleaved":
        shared = x.to_torch(copy=False)
        assert str(shared.device) == "cuda:0"
        shared.array[0, 0] = 7
        x.to_torch("cuda:0", copy=None).array[0, 1] = 8
        assert (x[0, 0], x[0, 1]) == (7, 8)
    else:
        with pytest.raises(ValueError, match="shares its cells"):
            x.to_torch(copy=False)
        assert x.to_torch(copy=None).array.tolist() == values.tolist()
    for where in ("cpu", "cuda:1"):
        with pytest.raises(ValueError, match=r"copy=False is impossible .* cuda:0"):
            x.to_torch(where, copy=False)
    with pytest.raises(ValueError, match=r"does not match|Mismatch shape"):
        x.from_torch(FakeTensor(values.T, "cuda:0"))
    torch.stream.cuda_stream, before = 77, device.syncs
    x.from_torch(FakeTensor(values, "cuda:0"))
    assert (torch.stream.waits, device.syncs) == (1, before + 1), "streams that are not in order"


def test_tensors_of_nested_fields_and_structs(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", FakeTorch())
    nested, other = qd.field(qd.i32), qd.field(qd.i8)
    outer = qd.root.dense(qd.i, 3)
    outer.dense(qd.i, 2).place(nested)
    outer.place(other)
    nested.from_torch(FakeTensor(np.arange(6), "cuda:0"))
    assert nested.to_numpy().tolist() == nested.to_torch("cuda").array.tolist() == [*range(6)]
    s = qd.types.struct(a=qd.i32, v=qd.types.vector(2, qd.f32)).field(shape=2)
    s.from_torch({"a": FakeTensor(np.array([1, 2]), "cuda:0"), "v": FakeTensor(np.ones((2, 2)))})
    assert s[1].to_dict() == {"a": 2, "v": [1, 1]}
    assert s.to_torch("cuda")["a"].array.tolist() == [1, 2]


def test_memory_that_others_look_at_outlives_the_program(device):
    a, f = qd.ndarray(qd.f32, 1000), qd.field(qd.f32, shape=1000)
    a.fill(2)
    f.fill(3)
    views = on_host(a.to_dlpack()), on_host(f.to_dlpack())
    a.to_dlpack()  # this one is never taken
    used = device.used
    assert used >= 8000  # and the unused bytes around the field
    qd.reset()
    assert device.used == used
    assert [float(v.sum()) for v in views] == [2000, 3000]
    with pytest.raises(QuadrantsRuntimeError, match="ended"):
        a.to_numpy()
    with pytest.raises(QuadrantsRuntimeError, match="ended"):
        f[0]
    del views
    gc.collect()
    assert device.used == 0
