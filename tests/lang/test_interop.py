"""Arrays of NumPy, torch and DLPack: copies, and views of the same memory."""

import sys

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.runtime.foreign import foreign_array

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")


pytestmark = pytest.mark.usefixtures("program")


def containers():
    """Containers of 2 x 3 f32 elements that can share their memory."""
    nested = qd.field(qd.f32)
    qd.root.dense(qd.ij, (1, 3)).dense(qd.i, 2).place(nested)
    return {
        "ndarray": qd.ndarray(qd.f32, (2, 3)),
        "field": qd.field(qd.f32, shape=(2, 3)),
        "ordered": qd.field(qd.f32, shape=(2, 3), order="ji"),
        "shifted": qd.field(qd.f32, shape=(2, 3), offset=(0, 0)),
        "nested": nested,
        "vectors": qd.Vector.field(3, qd.f32, shape=2),
        "vector array": qd.Vector.ndarray(3, qd.f32, 2),
        "tensor": qd.tensor(qd.f32, (2, 3), layout=(1, 0)),
        "field tensor": qd.tensor(qd.f32, (2, 3), backend=qd.Backend.FIELD, layout=(1, 0)),
    }


on_the_host = pytest.mark.not_on_device("it is about views of memory")
NAMES = [
    "ndarray", "field", "ordered", "shifted", "nested", "vectors", "vector array", "tensor",
    "field tensor",
]  # fmt: skip
VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


@on_the_host
@pytest.mark.parametrize("name", NAMES)
def test_views_share_the_memory(name):
    x = containers()[name]
    x.from_numpy(VALUES)
    view = x.to_numpy(copy=False)
    assert np.shares_memory(view, x.to_numpy(copy=None))
    np.testing.assert_array_equal(view, VALUES)
    view[1, 2] = 50
    x_values = x.to_numpy()
    assert x_values[1, 2] == 50
    x.fill(7)
    assert (view == 7).all()
    assert x_values[1, 2] == 50  # a copy is a copy
    assert x_values.flags.c_contiguous


def unshareable():
    """Containers that cannot share their memory, with the reason."""
    a, b = qd.field(qd.f32), qd.field(qd.f32)
    qd.root.dense(qd.i, 3).place(a, b)
    gaps, other = qd.field(qd.f32), qd.field(qd.f32)
    outer = qd.root.dense(qd.i, 3)
    outer.dense(qd.i, 2).place(gaps)
    outer.place(other)
    struct = qd.types.struct(a=qd.f32, b=qd.f32)
    return {
        "interleaved": (a, "shares its cells"),
        "gaps": (gaps, "shares its cells"),
        "0-D": (qd.field(qd.f32, shape=()), "without axes"),
        "f16": (qd.field(qd.f16, shape=2), "dtype=f16"),
        "u8": (qd.ndarray(qd.u8, 2), "dtype=u8"),
        "soa": (
            qd.Vector.field(2, qd.f32, shape=16, layout=qd.Layout.SOA),
            "components are stored apart",
        ),
        "component": (qd.Vector.field(2, qd.f32, shape=3).get_scalar_field(0), "shares its cells"),
        "struct": (struct.field(shape=3), "shares its cells"),
        "member": (struct.field(shape=3).a, "shares its cells"),
    }


@on_the_host
@pytest.mark.parametrize(
    "name", ["interleaved", "gaps", "0-D", "f16", "u8", "soa", "component", "struct", "member"]
)
def test_memory_that_cannot_be_shared(name):
    x, reason = unshareable()[name]
    with pytest.raises(ValueError, match=f"Zero-copy not available for .*{reason}"):
        x.to_numpy(copy=False)
    got = x.to_numpy(copy=None)
    if not isinstance(got, dict):
        x.fill(3)
        assert not got.any()


@on_the_host
def test_members_of_soa_structs_can_be_shared():
    t = qd.types.struct(a=qd.f32, b=qd.f32)
    f = t.field(shape=3, layout=qd.Layout.SOA)
    f.a.to_numpy(copy=False)[1] = 5
    assert f.a[1] == 5


@on_the_host
def test_no_conversion_without_a_copy():
    for x in (qd.ndarray(qd.f32, 3), qd.field(qd.f32, shape=3)):
        with pytest.raises(ValueError, match="copy=False is incompatible with dtype conversion"):
            x.to_numpy(np.int32, copy=False)
        got = x.to_numpy(qd.i32, copy=None)
        got[:] = 5
        assert not x.to_numpy().any()
        assert np.shares_memory(x.to_numpy(np.float32, copy=False), x.to_numpy(copy=None))


# DLPack


@on_the_host
@pytest.mark.parametrize("name", NAMES)
def test_dlpack_shares_the_memory(name):
    x = containers()[name]
    x.from_numpy(VALUES)
    assert x.__dlpack_device__() == (1, 0)
    view = np.from_dlpack(x)
    np.testing.assert_array_equal(view, VALUES)
    view[0, 1] = 40
    assert x.to_numpy()[0, 1] == 40
    for versioned, capsule in ((False, '"dltensor"'), (True, '"dltensor_versioned"')):
        assert capsule in repr(x.to_dlpack(versioned=versioned))
    x.from_dlpack(np.arange(6.0).reshape(2, 3)[::-1])
    assert x.to_numpy().tolist() == [[3, 4, 5], [0, 1, 2]]


@on_the_host
def test_dlpack_of_interleaved_fields_has_strides():
    a, b = qd.field(qd.i32), qd.field(qd.i32)
    qd.root.dense(qd.i, 3).place(a, b)
    view = np.from_dlpack(b)
    assert view.strides == (8,)
    view[:] = [1, 2, 3]
    assert (a.to_numpy().tolist(), b.to_numpy().tolist()) == ([0, 0, 0], [1, 2, 3])


@on_the_host
def test_dlpack_of_other_types():
    for t in (qd.u1, qd.i8, qd.u64, qd.f16):
        f = qd.field(t, shape=2)
        f[1] = 1
        assert np.from_dlpack(f).tolist() == [0, 1]


def test_dlpack_needs_fixed_distances():
    f, other = qd.field(qd.f32), qd.field(qd.f32)
    outer = qd.root.dense(qd.i, 3)
    outer.dense(qd.i, 2).place(f)
    outer.place(other)
    with pytest.raises(ValueError, match="fixed distances"):
        f.to_dlpack()
    with pytest.raises(TypeError, match="take its members"):
        qd.types.struct(a=qd.f32).field(shape=2).to_dlpack()


@on_the_host
def test_dlpack_keeps_the_memory():
    f = qd.field(qd.f32, shape=100)
    f.fill(2)
    view = np.from_dlpack(f)
    del f
    qd.reset()
    assert view.sum() == 200


# Arguments of kernels


class Exporter:
    """An array of another library, as DLPack shows it."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device


def test_arrays_of_other_libraries():
    data = np.arange(4.0)
    found = foreign_array(Exporter(data))
    assert np.shares_memory(found.view, data)
    assert (found.grad, found.back) == (None, None)
    for other in (3, "a", None, data, data[0], [1.0]):
        assert foreign_array(other) is None
    with pytest.raises(TypeError, match=r"argument x: .* not in host memory"):
        foreign_array(Exporter(data, (2, 0)), "x")


# Torch


def test_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for x in (qd.ndarray(qd.f32, 2), qd.field(qd.f32, shape=2), qd.tensor(qd.f32, 2)):
        with pytest.raises(ModuleNotFoundError, match=r"to_torch\(\) needs PyTorch"):
            x.to_torch()
        with pytest.raises(ModuleNotFoundError, match=r"from_torch\(\) needs PyTorch"):
            x.from_torch(np.zeros(2))


@on_the_host
@needs_torch
@pytest.mark.parametrize("name", NAMES)
def test_torch_both_ways(name):
    x = containers()[name]
    x.from_torch(torch.arange(6.0, requires_grad=True).reshape(2, 3))
    got = x.to_torch()
    assert got.dtype == torch.float32
    assert got.tolist() == VALUES.tolist()
    got[0, 0] = 9
    assert x.to_numpy()[0, 0] == 0
    for shared in (x.to_torch(copy=False), x.to_torch(copy=None), torch.from_dlpack(x)):
        shared += 1
    assert x.to_numpy().tolist() == (VALUES + 3).tolist()
    with pytest.raises(ValueError, match=r"does not match|Mismatch shape"):
        x.from_torch(torch.zeros(3, 2))


@needs_torch
def test_torch_of_all_types():
    for t in (qd.u1, qd.i8, qd.u8, qd.i16, qd.i32, qd.i64, qd.f16, qd.f32, qd.f64):
        f = qd.field(t, shape=(2, 2))
        f[0, 1] = 1
        assert f.to_torch().tolist() == [[0, 1], [0, 0]]
    v = qd.Vector.field(2, qd.i32, shape=3)
    assert v.to_torch(keep_dims=True).shape == (3, 2, 1)


@needs_torch
def test_torch_of_structs():
    f = qd.types.struct(a=qd.i32, v=qd.types.vector(2, qd.f32)).field(shape=2)
    f.from_torch({"a": torch.tensor([1, 2]), "v": torch.ones(2, 2)})
    assert f[1].to_dict() == {"a": 2, "v": [1, 1]}
    assert f.to_torch()["a"].tolist() == [1, 2]


@on_the_host
@needs_torch
def test_torch_copies_where_it_must():
    f = qd.field(qd.f16, shape=2)
    with pytest.raises(ValueError, match="Zero-copy"):
        f.to_torch(copy=False)
    with pytest.raises(ValueError, match="copy=False is impossible"):
        qd.field(qd.f32, shape=2).to_torch("meta", copy=False)
    with pytest.raises(TypeError, match="takes a torch tensor"):
        f.from_torch(np.zeros(2))


@needs_torch
def test_tensors_as_arguments():
    plain = torch.arange(4.0)
    found = foreign_array(plain)
    found.view[1] = 7
    assert (plain[1], found.grad) == (7, None)
    wants = torch.zeros(3, requires_grad=True)
    found = foreign_array(wants)
    found.grad[2] = 5
    assert wants.grad.tolist() == [0, 0, 5]
    assert np.shares_memory(foreign_array(wants).grad, found.grad)
    with pytest.raises(ValueError, match=r"argument x: non-contiguous .* tensor\.contiguous\(\)"):
        foreign_array(torch.zeros(2, 3).t(), "x")
