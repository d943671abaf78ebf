"""qd.ndarray on the host side."""

import copy

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.types import PRIMITIVE_TYPES, u1

from tests.lang import opaque


@pytest.fixture(autouse=True, params=opaque.MEMORIES)
def memory(request):
    with opaque.installed(request.param):
        qd.init(arch=qd.cpu)
        yield request.param
        qd.reset()


host_only = opaque.host_only("memory")


@pytest.mark.parametrize("t", PRIMITIVE_TYPES, ids=str)
def test_zero_filled_aligned_typed(t):
    a = qd.ndarray(t, (3, 5))
    assert (a.dtype, a.shape, a.ndim, a.grad) == (t, (3, 5), 2, None)
    assert a._address % 64 == 0
    values = a.to_numpy()
    assert values.dtype == np.dtype(t.np)
    assert not values.any()


@pytest.mark.parametrize("t", PRIMITIVE_TYPES, ids=str)
def test_elements_read_and_write_as_python_numbers(t):
    a = qd.ndarray(t, (2, 2))
    a[1, 0] = 1
    assert a[1, 0] == 1
    assert a[0, 1] == 0
    assert type(a[1, 0]) is (float if t.is_real else int)
    a.fill(1)
    assert a.to_numpy().all()


def test_values_are_converted_and_must_fit():
    a = qd.ndarray(qd.i8, 2)
    a.fill(-1)
    for value in (300, -129, np.int64(2**40), 10**30, 10**5000):
        with pytest.raises(TypeError, match="its range is -128 to 127"):
            a[0] = value
        with pytest.raises(TypeError, match="its range is -128 to 127"):
            a.fill(value)
    with pytest.raises(TypeError, match="real number"):
        a.fill(2.7)
    assert a.to_numpy().tolist() == [-1, -1]
    a.fill(3.0)
    assert a[1] == 3
    v = qd.Vector.ndarray(2, qd.u8, 2)
    for value in ([1, 256], qd.Vector([-1, 0])):
        with pytest.raises(TypeError, match="its range is 0 to 255"):
            v[0] = value
        with pytest.raises(TypeError, match="its range is 0 to 255"):
            v.fill(value)
    with pytest.raises(TypeError, match="its range is 0 to 255"):
        v[0][1] = 256
    assert not v.to_numpy().any()
    b = qd.ndarray(qd.f16, 1)
    b[0] = 1.1
    assert b[0] == float(np.float16(1.1))
    with pytest.raises(TypeError, match="real number"):
        a[0] = 1.5


def test_a_single_element():
    a = qd.ndarray(qd.f32, ())
    a[None] = 2.5
    assert a[()] == a[None] == 2.5
    assert a.shape == ()


@pytest.mark.parametrize("index", [3, -1, (0, 0), (), None, 1.0, "0", (5,)])
def test_indices_are_always_checked(index):
    a = qd.ndarray(qd.i32, 3)
    with pytest.raises((qd.QuadrantsIndexError, TypeError)):
        a[index]
    with pytest.raises((qd.QuadrantsIndexError, TypeError)):
        a[index] = 1
    assert a.to_numpy().tolist() == [0, 0, 0]


def test_index_errors_say_what_is_wrong():
    a = qd.ndarray(qd.i32, (3, 4))
    with pytest.raises(qd.QuadrantsIndexError, match=r"index \(2, -1\) is out of range.*\(3, 4\)"):
        a[2, -1]
    with pytest.raises(qd.QuadrantsIndexError, match="dim 2 accessed with indices of dim 1"):
        a[2]
    with pytest.raises(IndexError):
        a[3, 0]


@pytest.mark.parametrize(
    ("shape", "error", "text"),
    [((0,), qd.QuadrantsRuntimeError, r"\(0,\) is not a valid shape for ndarray"),
     ((3, -1), qd.QuadrantsRuntimeError, "not a valid shape"),
     (2.5, TypeError, "integer"), (("a",), TypeError, "integer"),
     ((1,) * 13, RuntimeError, "Too many dimensions. The maximum dimensionality is 12"),
     ((1 << 31,), qd.QuadrantsRuntimeError, "2\\*\\*31")],
)  # fmt: skip
def test_bad_shapes(shape, error, text):
    with pytest.raises(error, match=text):
        qd.ndarray(qd.i32, shape)


def test_data_types_as_users_write_them():
    assert qd.ndarray(int, 1).dtype is qd.i32
    assert qd.ndarray(float, 1).dtype is qd.f32
    assert qd.ndarray(bool, 1).dtype is u1
    assert qd.ndarray(np.float64, 1).dtype is qd.f64
    with pytest.raises(ValueError, match="Invalid data type i32"):
        qd.ndarray("i32", 1)
    with pytest.raises(TypeError):
        qd.ndarray(complex, 1)


def test_copies_to_and_from_numpy():
    a = qd.ndarray(qd.f32, (2, 3))
    source = np.arange(6.0).reshape(2, 3)
    a.from_numpy(source)
    got = a.to_numpy()
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, source)
    got[0, 0] = 99
    assert a[0, 0] == 0
    assert a.to_numpy(qd.i32).dtype == np.int32
    assert a.to_numpy(np.float64).dtype == np.float64
    a.from_numpy(np.asfortranarray(source + 1))
    assert a[1, 0] == 4
    with pytest.raises(ValueError, match=r"Mismatch shape: \(2, 3\) expected, but \(3, 3\)"):
        a.from_numpy(np.zeros((3, 3)))


def test_copies_between_arrays():
    a, b = qd.ndarray(qd.f32, 3), qd.ndarray(qd.i32, 3)
    a.from_numpy(np.array([1.9, -2.9, 3.0]))
    b.copy_from(a)
    assert b.to_numpy().tolist() == [1, -2, 3]
    with pytest.raises(AssertionError):
        a.copy_from(qd.ndarray(qd.f32, 4))
    with pytest.raises(TypeError, match="Cannot copy from a non-ndarray object"):
        a.copy_from(np.zeros(3))


def test_gradients_are_for_real_types():
    a = qd.ndarray(qd.f32, (2,), needs_grad=True)
    assert a.has_grad()
    assert a.grad.shape == (2,)
    assert not a.grad.to_numpy().any()
    with pytest.raises(qd.QuadrantsRuntimeError, match="i32 is not supported for ndarray with"):
        qd.ndarray(qd.i32, 2, needs_grad=True)


def test_copies_have_memory_of_their_own():
    a = qd.ndarray(qd.f32, 3, needs_grad=True)
    a.fill(2)
    a.grad.fill(7)
    for b in (copy.copy(a), copy.deepcopy(a), copy.deepcopy({"a": [a]})["a"][0]):
        assert b.to_numpy().tolist() == [2, 2, 2] and b.grad.to_numpy().tolist() == [7, 7, 7]
        b.fill(3)
    assert a.to_numpy().tolist() == [2, 2, 2]
