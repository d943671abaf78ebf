"""Fields on the host side: making, placing, reading and writing them."""

import gc
import weakref

import numpy as np
import pytest
from qd_studio import engine as qd

from . import opaque

pytestmark = pytest.mark.usefixtures("memory")


host_only = opaque.host_only("memory")


# Elements


def test_python_types_mean_the_configured_ones():
    qd.init(arch=qd.cpu, default_ip=qd.i64, default_fp=qd.f64)
    assert qd.field(int, shape=1).dtype is qd.i64
    assert qd.field(float, shape=1).dtype is qd.f64
    assert qd.field(bool, shape=1).dtype is qd.u1
    assert qd.Vector.field(2, float, shape=1).dtype is qd.f64
    assert qd.types.struct(a=int).field(shape=1).a.dtype is qd.i64


def test_values_are_converted_and_must_fit():
    u = qd.field(qd.u8, shape=())
    for value, held in ((0, 0), (255, 255), (np.int64(7), 7), (True, 1)):
        u[None] = value
        assert u[None] == held
    for value in (300, -1, np.int64(257), 2**40, 10**5000):
        with pytest.raises(qd.QuadrantsTypeError, match="its range is 0 to 255"):
            u[None] = value
    assert u[None] == 1
    b = qd.field(qd.u1, shape=())
    b[None] = 5
    assert b[None] == 1
    h = qd.field(qd.f16, shape=())
    h[()] = 1.1
    assert h[()] == 1.099609375
    f = qd.field(qd.f32, shape=1)
    f[0] = np.float64(2.5)
    assert f[0] == 2.5
    f[0] = 1 << 70
    assert f[0] == 2.0**70


@pytest.mark.parametrize("value", [2.5, 2.0, np.float32(2.5), np.float64(2), "a", None, [1]])
def test_what_an_integer_element_cannot_be_set_to(value):
    f = qd.field(qd.i32, shape=1)
    f[0] = 7
    with pytest.raises(TypeError, match="an element of type i32 cannot be set to"):
        f[0] = value
    assert f[0] == 7


@pytest.mark.parametrize("key", [(np.int64(1), np.int32(2)), [1, 2], (1, 2)])
def test_indices_of_all_kinds(key):
    f = qd.field(qd.i32, shape=(2, 3))
    f[key] = 5
    assert f.to_numpy()[1, 2] == 5


@pytest.mark.parametrize("key", [0, (0,), (0, 0, 0), None, ()])
def test_a_wrong_number_of_indices(key):
    f = qd.field(qd.i32, shape=(2, 3))
    with pytest.raises(AssertionError, match=r"Slicing is not supported on qd\.field"):
        f[key]
    with pytest.raises(AssertionError, match="2 axes"):
        f[key] = 1


@pytest.mark.parametrize("key", [(2, 0), (0, 3), (-1, 0), (0, -1), (1 << 40, 0)])
def test_indices_out_of_range(key):
    f = qd.field(qd.i32, shape=(2, 3))
    for error in (IndexError, qd.QuadrantsAssertionError):
        with pytest.raises(error, match=r"out of range.*\(0\.\.1, 0\.\.2\)"):
            f[key]
        with pytest.raises(error, match="out of range"):
            f[key] = 1


@pytest.mark.parametrize("key", [slice(0, 1), 1.0, "a", (0, slice(None))])
def test_indices_that_are_none(key):
    f = qd.field(qd.i32, shape=(2, 3))
    with pytest.raises(TypeError, match=r"slicing a qd\.field is not supported"):
        f[key]


def test_offsets_shift_the_indices_only():
    f = qd.field(qd.i32, shape=(4,), offset=(-2,))
    f[-2], f[1] = 1, 4
    assert f.to_numpy().tolist() == [1, 0, 0, 4]
    assert f.shape == f.parent().shape == (4,)
    with pytest.raises(IndexError, match=r"\(-2\.\.1\)"):
        f[2]
    assert qd.field(qd.f32, shape=3, offset=5)[7] == 0


# Vectors, matrices, structs


def test_vectors_are_live():
    v = qd.Vector.field(3, qd.f32, shape=2)
    v[0] = [1, 2, 3]
    v[1] = qd.Vector([4.0, 5.0, 6.0])
    v[0][1] = 9
    assert v.to_numpy().tolist() == [[1, 9, 3], [4, 5, 6]]
    x = v[0]
    v[0] = [10, 11, 12]
    x[0] = 5
    x[2] += 1
    v[0].y = 8
    assert x.to_list() == v[0].to_list() == [5, 8, 13]
    assert isinstance(x, qd.Vector)
    v[1] += 1
    assert v[1].to_list() == [5, 6, 7]
    assert (v.n, v.m, v.ndim) == (3, 1, 1)


def test_results_of_live_vectors_are_their_own():
    v = qd.Vector.field(2, qd.f32, shape=1)
    v[0] = [3, 4]
    twice = v[0] + v[0]
    v[0] = [0, 0]
    assert twice.to_list() == [6, 8]


def test_matrices():
    m = qd.Matrix.field(2, 3, qd.i32, shape=2)
    m[0] = [[1, 2, 3], [4, 5, 6]]
    m[0][1, 2] = 60
    m[1] = np.ones((2, 3), int)
    assert m[0].to_list() == [[1, 2, 3], [4, 5, 60]]
    assert m.to_numpy().shape == (2, 2, 3)
    assert (m.n, m.m, m.ndim) == (2, 3, 2)


@pytest.mark.parametrize("value", [7, [1, 2], [1, 2, 3, 4], [[1, 2, 3]], "abc", [1, [2], 3]])
def test_what_a_vector_cannot_be_set_to(value):
    v = qd.Vector.field(3, qd.f32, shape=1)
    with pytest.raises(TypeError):
        v[0] = value
    assert not v.to_numpy().any()


def test_real_numbers_do_not_go_into_integer_vectors():
    v = qd.Vector.field(2, qd.i32, shape=1)
    with pytest.raises(TypeError, match="real numbers"):
        v[0] = [1.5, 2.0]
    for value in ([1 << 40, -1], np.array([1, -(2**31) - 1])):
        with pytest.raises(TypeError, match="its range is -2147483648 to 2147483647"):
            v[0] = value
    with pytest.raises(TypeError, match="its range is -2147483648 to 2147483647"):
        v[0].x = 2**31
    assert v[0].to_list() == [0, 0]


def test_structs_are_live():
    t = qd.types.struct(a=qd.i32, v=qd.types.vector(2, qd.f32), s=qd.types.struct(d=qd.f64))
    f = t.field(shape=3)
    f[0] = {"a": 3, "v": [1, 2], "s": {"d": 0.5}}
    f[1] = f[0]
    f[1].a = 5
    f[1].v[1] = 9
    f[1].s.d = 2.5
    assert f[1].to_dict() == {"a": 5, "v": [1, 9], "s": {"d": 2.5}}
    assert f[0].to_dict() == {"a": 3, "v": [1, 2], "s": {"d": 0.5}}
    f[2] = qd.Struct(a=1, v=qd.Vector([2.0, 3.0]), s=qd.Struct(d=4.0))
    assert (f.a[2], f.v[2].to_list(), f.s.d[2]) == (1, [2, 3], 4)
    one = f[2]
    f.a[2] = 11
    assert one.a == 11
    assert f.keys == ["a", "v", "s"]
    assert f.get_member_field("a") is f.a
    with pytest.raises(KeyError):
        f[0] = {"a": 1}
    with pytest.raises(TypeError):
        f[0] = 3
    with pytest.raises(AttributeError, match="nothing"):
        _ = f.nothing
    with pytest.raises(IndexError):
        f[3]


def test_members_may_be_called_like_attributes():
    f = qd.Struct.field({"keys": qd.i32, "shape": qd.f32, "items": qd.i32}, shape=2)
    f[0] = {"keys": 4, "shape": 0.5, "items": 6}
    assert (f[0].items, f[0].keys) == (6, 4)
    assert f.get_member_field("shape")[0] == 0.5
    assert f.shape == (2,)


def test_methods_of_struct_elements():
    @qd.dataclass
    class Ball:
        r: qd.f32

        @qd.pyfunc
        def twice(self):
            return self.r * 2

    f = Ball.field(shape=2)
    f[1].r = 3
    assert f[1].twice() == 6


# Whole fields


def test_fill():
    f = qd.field(qd.i8, shape=(2, 3), order="ji")
    f.fill(2.0)
    assert (f.to_numpy() == 2).all()
    for wrong in ("a", None, float("nan"), float("inf"), [1], 300, -129, 2.7, 1e30):
        with pytest.raises(TypeError):
            f.fill(wrong)
    assert (f.to_numpy() == 2).all()
    v = qd.Vector.field(2, qd.i32, shape=3)
    for value, held in (
        ([1, 2], [1, 2]),
        (4, [4, 4]),
        (qd.Vector([7, 8]), [7, 8]),
        ([1.0, -1.0], [1, -1]),
    ):
        v.fill(value)
        assert v.to_numpy().tolist() == [held] * 3
    with pytest.raises(TypeError, match="shape"):
        v.fill([1, 2, 3])
    s = qd.types.struct(a=qd.i32, v=qd.types.vector(2, qd.f32)).field(shape=2)
    s.fill(2)
    assert s[1].to_dict() == {"a": 2, "v": [2, 2]}
    s.fill({"a": 1, "v": [3, 4]})
    assert s[0].to_dict() == {"a": 1, "v": [3, 4]}


def test_copy_from():
    a, b = qd.field(qd.f32, shape=3), qd.field(qd.i32, shape=(3,), offset=(5,))
    a.from_numpy(np.array([1.9, -1.9, 3]))
    b.copy_from(a)
    assert b.to_numpy().tolist() == [1, -1, 3]
    with pytest.raises(ValueError, match=r"qd\.field shape \(3,\) does not match the source"):
        a.copy_from(qd.field(qd.f32, shape=4))
    for other in (np.zeros(3), 3, qd.ndarray(qd.f32, 3)):
        with pytest.raises(TypeError, match="Cannot copy from a non-field object"):
            a.copy_from(other)
    v = qd.Vector.field(2, qd.f32, shape=3)
    v.copy_from(b)
    assert v.to_numpy().tolist() == [[1, 1], [-1, -1], [3, 3]]
    with pytest.raises(TypeError, match="elements of shape"):
        v.copy_from(qd.Vector.field(3, qd.f32, shape=3))
    t = qd.types.struct(a=qd.i32, b=qd.f32)
    s, r = t.field(shape=2), t.field(shape=2)
    s.fill(3)
    r.copy_from(s)
    assert r[1].to_dict() == {"a": 3, "b": 3}
    with pytest.raises(TypeError, match="no field of such structs"):
        r.copy_from(a)


def test_numpy_both_ways():
    f = qd.field(qd.f32, shape=(2, 3))
    f.from_numpy(np.arange(24).reshape(4, 6)[::2, ::2])
    assert f.to_numpy().tolist() == [[0, 2, 4], [12, 14, 16]]
    assert f.to_numpy(dtype=qd.f64).dtype == np.float64
    with pytest.raises(
        ValueError, match=r"qd\.field shape \(2, 3\) does not match the numpy array"
    ):
        f.from_numpy(np.zeros((3, 2)))
    v = qd.Vector.field(3, qd.f32, shape=2, layout=qd.Layout.SOA)
    v.from_numpy(np.arange(6).reshape(2, 3, 1))
    assert v.to_numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert v.to_numpy(keep_dims=True).shape == (2, 3, 1)
    for wrong in ((2, 2), (3, 3), (2,)):
        with pytest.raises(ValueError, match="does not match"):
            v.from_numpy(np.ones(wrong))


def test_arrays_for_a_struct_are_complete():
    f = qd.types.struct(a=qd.i32, s=qd.types.struct(v=qd.types.vector(2, qd.f32))).field(shape=3)
    with pytest.raises(KeyError):
        f.from_numpy({"a": np.arange(3)})


def test_how_they_print():
    f = qd.field(qd.f32, shape=2)
    assert str(f) == "[0. 0.]"
    assert repr(f) == "<qd.field f32 (2,)>"
    assert repr(qd.Matrix.field(2, 3, qd.i32, shape=())) == "<2x3 qd.Matrix.field i32 ()>"
    assert str(qd.field(qd.f32)) == "<Field: Definition of this field is incomplete>"
    assert "not placed" in repr(qd.field(qd.f32))
    s = qd.types.struct(a=qd.i32).field(shape=1)
    assert str(s) == "{'a': array([0], dtype=int32)}"
    qd.reset()
    assert "no longer valid" in repr(f)
    assert "no longer valid" in str(f)


# What belongs to a program


@host_only
def test_after_a_reset():
    f = qd.field(qd.f32, shape=2)
    v = qd.Vector.field(2, qd.f32, shape=2)
    waiting = qd.field(qd.f32)
    v[0] = [1, 2]
    kept = v.to_numpy(copy=False)
    qd.reset()
    uses = [
        lambda: f[0], lambda: v[0], lambda: f.fill(1), f.to_numpy, f.memory_layout, f.flat,
        lambda: f.from_numpy(np.zeros(2)), lambda: waiting[0], lambda: qd.field(qd.f32, shape=1),
        lambda: qd.root.dense(qd.i, 3), qd.FieldsBuilder,
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(qd.QuadrantsRuntimeError, match="_prog attribute not initialized"):
            use()
    assert kept.tolist() == [[1, 2], [0, 0]]
    qd.init(arch=qd.cpu)
    for use in uses[:6]:
        with pytest.raises(qd.QuadrantsRuntimeError, match="a program that has ended"):
            use()
    with pytest.raises(qd.QuadrantsRuntimeError, match="ended"):
        qd.root.dense(qd.i, 3).place(waiting)
    assert f.shape == (2,)


def owner_of(field):
    """The array that owns the memory of a field, weakly."""
    data = field.block.data
    while data.base is not None:
        data = data.base
    return weakref.ref(data)


@host_only
def test_memory_goes_with_the_last_view():
    f = qd.field(qd.f32, shape=1000)
    view = f.to_numpy(copy=False)
    memory = owner_of(f)
    qd.reset()
    gc.collect()
    view[:] = 3
    assert view.sum() == 3000
    del view
    gc.collect()
    assert memory() is None
    assert repr(f)


@host_only
@pytest.mark.parametrize("how", ["reset", "destroy"])
def test_memory_goes_without_views(how):
    builder, f, v = qd.FieldsBuilder(), qd.field(qd.f32), qd.Vector.field(2, qd.f32)
    builder.dense(qd.i, 100).place(f, v)
    tree = builder.finalize()
    f[3] = v[3][1] = 1
    memory = owner_of(f)
    ended = weakref.ref(builder.program)
    (qd.reset if how == "reset" else tree.destroy)()
    gc.collect()
    assert memory() is None
    with pytest.raises(qd.QuadrantsRuntimeError):
        f[3]
    if how == "reset":
        del builder, tree, f, v
        gc.collect()
        assert ended() is None


def test_programs_with_fields_do_not_pile_up():
    ended = []
    for _ in range(3):
        qd.init(arch=qd.cpu)
        f = qd.field(qd.f32, shape=3, needs_grad=True)
        f.fill(1)
        ended.append(weakref.ref(f.program))
    del f
    qd.reset()
    gc.collect()
    assert [one() for one in ended] == [None] * 3


@pytest.mark.parametrize("element", [(2,), (3,), (3, 3), (5,)])
@pytest.mark.parametrize("count", [7, 9001])
def test_fill_repeats_a_vector_or_matrix(element, count):
    qd.init(arch=qd.cpu)
    size = int(np.prod(element))
    x = qd.Matrix.field(*(*element, 1)[:2], qd.f32, shape=(count, 2))
    if len(element) == 1:
        x = qd.Vector.field(size, qd.f32, shape=(count, 2))
    one = np.arange(1, size + 1, dtype=np.float32).reshape(element)
    x.fill(qd.Matrix(one.tolist()) if len(element) == 2 else qd.Vector(one.tolist()))
    assert np.array_equal(x.to_numpy(), np.broadcast_to(one, (count, 2, *element)))
    x.fill(3)
    assert (x.to_numpy() == 3).all()
    parts = [qd.field(qd.f32) for _ in range(2)]
    y = qd.Vector.field(2, qd.f32)
    qd.root.dense(qd.i, count).place(y, *parts)
    y.fill(qd.Vector([4, 5]))
    assert np.array_equal(y.to_numpy(), np.broadcast_to([4, 5], (count, 2)))
    assert not parts[0].to_numpy().any()
