"""qd.tensor, and ndarrays of vectors and matrices."""

import pickle

import numpy as np
import pytest
from qd_studio import engine as qd

from . import opaque

BACKENDS = list(qd.Backend)


pytestmark = pytest.mark.usefixtures("memory")


host_only = opaque.host_only("memory")


@host_only
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("layout", [None, (0, 2, 1), (2, 0, 1), (1, 2, 0)])
def test_layouts_permute_the_memory_only(backend, layout):
    x = qd.tensor(qd.i32, (2, 3, 4), backend=backend, layout=layout, needs_grad=False)
    values = np.arange(24).reshape(2, 3, 4)
    x.from_numpy(values)
    assert (x.shape, x.layout, x.backend) == ((2, 3, 4), layout, backend)
    assert all(x[i] == values[i] for i in np.ndindex(2, 3, 4))
    np.testing.assert_array_equal(x.to_numpy(), values)
    memory = np.from_dlpack(x)
    order = layout or (0, 1, 2)
    assert memory.transpose(order).flags.c_contiguous
    x[1, 2, 3] = 99
    assert memory[1, 2, 3] == 99
    assert isinstance(x._unwrap(), qd.Ndarray if backend else qd.ScalarField)


@host_only
def test_the_memory_of_an_ndarray_is_in_the_order_of_its_layout():
    x = qd.Vector.tensor(2, qd.i32, (3, 4), layout=(1, 0))
    values = np.arange(24).reshape(3, 4, 2)
    x.from_numpy(values)
    array = x._unwrap()
    live = array._live()
    assert live.shape == (4, 3, 2)
    assert live.flags.c_contiguous
    np.testing.assert_array_equal(live, values.transpose(1, 0, 2))
    assert (array._key.axes, array._key.ndim, array._key.element_shape) == ((1, 0), 2, (2,))


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_order_that_is_that_of_the_axes_is_none(backend):
    assert qd.tensor(qd.f32, (2, 3), backend=backend, layout=[0, 1]).layout is None
    assert qd.tensor(qd.f32, 4, backend=backend, layout=(0,)).layout is None
    assert qd.tensor(qd.f32, (), backend=backend)[None] == 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_vectors_and_matrices(backend):
    v = qd.Vector.tensor(3, qd.f32, (2,), backend=backend)
    m = qd.Matrix.tensor(2, 2, qd.f32, (2,), backend=backend)
    v[0], m[1] = [1, 2, 3], [[1, 2], [3, 4]]
    v[0][1] = 9
    assert (v[0].to_list(), m[1].to_list()) == ([1, 9, 3], [[1, 2], [3, 4]])
    assert (v.element_shape, m.element_shape) == ((3,), (2, 2))
    assert isinstance(v, qd.VectorTensor)
    assert isinstance(m, qd.MatrixTensor)
    assert not isinstance(m, qd.VectorTensor)
    assert type(qd.tensor(qd.types.vector(3, qd.f32), (2,), backend=backend)) is qd.VectorTensor
    assert type(qd.wrap(m._unwrap())) is qd.MatrixTensor


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients(backend):
    x = qd.tensor(qd.f32, (2, 3), backend=backend, layout=(1, 0), needs_grad=True)
    assert x.has_grad()
    assert x.grad is x.grad
    assert (x.grad.shape, x.grad.layout, x.grad.has_grad()) == ((2, 3), (1, 0), False)
    x.grad.fill(2)
    assert x.to_numpy().sum() == 0
    plain = qd.tensor(qd.f32, 2, backend=backend)
    assert not plain.has_grad() and not pickle.loads(pickle.dumps(plain)).has_grad()
    assert qd.tensor(qd.i32, 2, backend=backend).grad is None
    if backend is qd.Backend.NDARRAY:
        assert plain.grad is None
    else:
        with pytest.raises(qd.QuadrantsRuntimeError, match="Field has no allocation"):
            plain.grad.fill(1)
    with pytest.raises(qd.QuadrantsRuntimeError, match="i32 is not supported for"):
        qd.tensor(qd.i32, 2, backend=backend, needs_grad=True)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("other", BACKENDS)
def test_copy_from(backend, other):
    a = qd.tensor(qd.i32, (2, 3), backend=backend, layout=(1, 0))
    b = qd.tensor(qd.f32, (2, 3), backend=other)
    b.from_numpy(np.arange(6).reshape(2, 3) + 0.5)
    a.copy_from(b)
    assert a.to_numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    a.fill(0)
    a.copy_from(b._unwrap())
    assert a[1, 2] == 5
    with pytest.raises((AssertionError, ValueError), match="shape"):
        a.copy_from(qd.tensor(qd.f32, (3, 2), backend=other))
    with pytest.raises(TypeError, match="shape"):
        a.copy_from(qd.Vector.tensor(2, qd.f32, (2, 3), backend=other))
    with pytest.raises(TypeError, match="Cannot copy"):
        a.copy_from(np.zeros((2, 3)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_pickles(backend):
    x = qd.tensor(qd.f32, (2, 3), backend=backend, layout=(1, 0), needs_grad=True)
    x.from_numpy(np.arange(6).reshape(2, 3))
    x.grad.fill(3)
    v = qd.Matrix.tensor(2, 2, qd.i8, (2,), backend=backend)
    v.fill(4)
    data = pickle.dumps([x, v])
    qd.init(arch=qd.cpu)
    y, w = pickle.loads(data)
    assert (type(y), y.layout, y.backend, y.dtype) == (qd.Tensor, (1, 0), backend, qd.f32)
    assert y.to_numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert (y.grad.to_numpy() == 3).all()
    assert (type(w), w.has_grad(), w[1].to_list()) == (qd.MatrixTensor, False, [[4, 4], [4, 4]])


def test_pickles_keep_the_first_indices():
    f = qd.Vector.field(2, qd.i32, shape=(2, 3), offset=(-1, 4), order="ji")
    f[-1, 6] = [7, 8]
    g = pickle.loads(pickle.dumps(qd.wrap(f)))
    assert (g[-1, 6].to_list(), g.layout, type(g)) == ([7, 8], (1, 0), qd.VectorTensor)


def test_wrap():
    for impl in (qd.ndarray(qd.f32, 3), qd.field(qd.f32, shape=3)):
        x = qd.wrap(impl)
        assert x._unwrap() is impl
        x[1] = 4
        assert impl[1] == 4
    for wrong in (3, np.zeros(3), None, x):
        with pytest.raises(TypeError, match="requires an Ndarray or Field; got"):
            qd.wrap(wrong)
    with pytest.raises(TypeError, match="cannot be iterated"):
        iter(x)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"layout": (0, 0)}, ValueError, r"layout=\(0, 0\) is not a permutation of range\(2\)"),
        ({"layout": "ji"}, ValueError, "is not a permutation"),
        ({"layout": (0,)}, ValueError, "layout has 1 entries but shape has 2 dimensions"),
        ({"layout": qd.Layout.SOA}, TypeError, "not iterable"),
        ({"order": "ji"}, TypeError, "does not accept order=; pass layout="),
        ({"offset": 2}, TypeError, r"unexpected keyword argument\(s\) \['offset'\]; accepted:"),
        ({"backend": "field"}, ValueError, r"'field' is not a valid qd\.Backend"),
        ({"shape": None}, TypeError, "needs a shape"),
        ({"shape": (0, 1)}, qd.QuadrantsRuntimeError, r"\(0, 1\) is not a valid shape"),
        ({"dtype": qd.types.struct(a=qd.i32)}, qd.QuadrantsRuntimeError, "ndarray element type"),
    ],
)
def test_mistakes(options, error, text):
    with pytest.raises(error, match=text):
        qd.tensor(**{"dtype": qd.f32, "shape": (2, 3), **options})
    assert qd.tensor(qd.f32, 2)[1] == 0


def test_how_they_print():
    x = qd.tensor(qd.f32, (2, 3), backend=qd.Backend.FIELD, layout=(1, 0))
    assert repr(x) == "Tensor(shape=(2, 3), dtype=f32, backend=FIELD, layout=(1, 0))"


# Ndarrays of vectors and matrices


def test_vector_ndarrays():
    v = qd.Vector.ndarray(3, qd.f32, (2,))
    v[0] = [1, 2, 3]
    v[0][1] = 9
    x = v[0]
    v[0] = qd.Vector([7, 8, 9])
    assert x.to_list() == [7, 8, 9]
    assert (v.shape, v.element_shape, v.n, v.m, v.dtype) == ((2,), (3,), 3, 1, qd.f32)
    assert v.element_type is qd.types.vector(3, qd.f32)
    assert v.to_numpy().tolist() == [[7, 8, 9], [0, 0, 0]]
    assert [isinstance(v, k) for k in (qd.ScalarNdarray, qd.VectorNdarray, qd.MatrixNdarray)] == [
        False, True, False,
    ]  # fmt: skip
    for wrong in (5, [1, 2], "a"):
        with pytest.raises(TypeError):
            v[0] = wrong
    with pytest.raises(IndexError, match="dim 1 accessed with indices of dim 2"):
        v[0, 1]
    with pytest.raises(ValueError, match=r"Mismatch shape: \(2, 3\) expected, but \(2, 2\)"):
        v.from_numpy(np.ones((2, 2)))


def test_matrix_ndarrays():
    m = qd.ndarray(qd.types.matrix(2, 3, float), 2, needs_grad=True)
    m[1] = [[1, 2, 3], [4, 5, 6]]
    assert m[1][1, 2] == 6
    m.fill([[1, 2, 3], [4, 5, 6]])
    assert m[0].to_list() == [[1, 2, 3], [4, 5, 6]]
    assert (m.grad.element_shape, m.grad.shape) == ((2, 3), (2,))
    assert m.to_numpy().shape == (2, 2, 3)
    assert qd.Matrix.ndarray(2, 2, qd.i32, ())[None].to_list() == [[0, 0], [0, 0]]
    other = qd.Matrix.ndarray(2, 3, qd.i32, 2)
    other.copy_from(m)
    assert other[1].to_list() == [[1, 2, 3], [4, 5, 6]]
    with pytest.raises(TypeError, match="elements of shape"):
        other.copy_from(qd.Matrix.ndarray(3, 2, qd.i32, 2))
    with pytest.raises(AssertionError, match="Mismatch shape"):
        other.copy_from(qd.Matrix.ndarray(2, 3, qd.i32, 3))


def test_what_ndarrays_cannot_hold():
    with pytest.raises(
        qd.QuadrantsRuntimeError, match=r"(?s)not supported as ndarray element.*field"
    ):
        qd.ndarray(qd.types.struct(a=qd.i32), 3)
    with pytest.raises(qd.QuadrantsRuntimeError, match="i32 is not supported for ndarray with"):
        qd.Vector.ndarray(2, qd.i32, 3, needs_grad=True)
    for kind in (qd.ScalarNdarray, qd.VectorNdarray):
        with pytest.raises(TypeError, match=r"make arrays with qd\.ndarray"):
            kind()
    with pytest.raises(AttributeError):
        _ = qd.ndarray(qd.f32, 2).n


@pytest.mark.parametrize("axes", [None, (1, 0)])
def test_ndarrays_can_be_pickled(axes):
    from qd_studio.engine.lang.ndarray import made

    x = made(qd.types.vector(2, qd.f32), np.array([3, 4]), True, axes, True)
    values = np.arange(24.0).reshape(3, 4, 2)
    for n, one in enumerate((x, x.grad, x.dual)):
        one.from_numpy(values + n)
    x.note = "an attribute of a program"
    again = pickle.loads(pickle.dumps(x))
    assert (again.shape, again.element_shape, again.layout) == ((3, 4), (2,), axes)
    for n, one in enumerate((again, again.grad, again.dual)):
        assert one.to_numpy().tolist() == (values + n).tolist()
    again.fill(0)
    assert x[1, 2].to_list() == [12.0, 13.0]


def test_shapes_are_what_numpy_computes():
    assert qd.ndarray(qd.i32, np.array([3, 4])).shape == (3, 4)
    assert [type(n) for n in qd.ndarray(qd.i32, np.array([3, 4])).shape] == [int, int]
    assert qd.tensor(qd.i32, np.int64(3)).shape == (3,)
    x = qd.field(qd.i32, shape=np.array([3, 4]), offset=np.array([1, 2]))
    x[3, 5] = 1
    assert x.to_numpy()[2, 3] == 1
    for shape in ((2.5, 1), "ab", np.array([2.0, 3.0]), np.zeros((2, 2), int)):
        with pytest.raises(qd.QuadrantsRuntimeError, match="is not a valid shape for ndarray"):
            qd.ndarray(qd.f32, shape)
        with pytest.raises(TypeError):
            qd.ndarray(qd.f32, shape)
        with pytest.raises(qd.QuadrantsTypeError, match="an extent of a field must be an integer"):
            qd.field(qd.f32, shape)
