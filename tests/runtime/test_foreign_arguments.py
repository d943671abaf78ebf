"""Arrays of NumPy and of other libraries as arguments of launches."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.runtime.launch import Launchers

vec3 = qd.types.vector(3, qd.f32)


@qd.kernel
def add(x: qd.types.NDArray[qd.f32, 2], by: qd.f32) -> qd.f32:
    for i, j in x:
        x[i, j] += by * (10 * i + j)
    return x[1, 2]


@qd.kernel
def read(x: qd.types.NDArray[qd.f32, 2]) -> qd.f32:
    return x[1, 2]


@qd.kernel
def third(v: qd.types.ndarray(dtype=vec3, ndim=1)) -> qd.f32:
    return v[1][2]


class Elsewhere:
    """An array of a library that only speaks DLPack."""

    def __init__(self, array, device=1):
        self.array, self.device = array, device

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device, 0


pytestmark = pytest.mark.usefixtures("arch")


COUNTED = [[0, 1, 2], [10, 11, 12]]


def zeros(order="C"):
    return np.zeros((2, 3), np.float32, order=order)


@pytest.mark.parametrize("order", ["C", "F"])
def test_both_orders_are_written(order):
    x = zeros(order)
    for times in (1, 2):
        assert add(x, 1) == 12 * times
        assert x.tolist() == (np.array(COUNTED) * times).tolist()


def test_other_strides_are_an_error():
    for x in (np.zeros((4, 3), np.float32)[::2], np.zeros((2, 6), np.float32)[:, ::2]):
        with pytest.raises(ValueError, match="Non contiguous numpy arrays") as caught:
            read(x)
        assert "ascontiguousarray" in str(caught.value)
    assert read(np.zeros((4, 3), np.float32)[1:3]) == 0  # contiguous


@pytest.mark.parametrize("order", ["C", "F"])
def test_what_must_not_be_written_is_only_read(order):
    x = zeros(order)
    x[1, 2] = 7
    x.flags.writeable = False
    assert read(x) == read(x) == 7
    with pytest.raises(ValueError, match="the kernel writes to it, but it is read-only"):
        add(x, 1)
    assert x.sum() == 7


def test_vectors_take_an_axis_of_the_array():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert third(x) == third(x) == third(np.asfortranarray(x)) == 5
    for wrong, message in (
        (np.zeros(3, np.float32), "ndim=1 element_dim=1, array with 1 dimensions"),
        (np.zeros((2, 2), np.float32), r"element_shape=\(3,\), array with element shape of \(2,\)"),
        (np.zeros((2, 2, 3), np.float32), "required ndim=1, but 2d"),
        (np.zeros((2, 3), complex), "dtype=f32, array with dtype=complex128"),
    ):
        with pytest.raises(ValueError, match=message):
            third(wrong)
    assert third(np.arange(6).reshape(2, 3)) == third(np.arange(6.0).reshape(2, 3)) == 5
    with pytest.raises(ValueError, match=r"element type: \[Tensor \(3\) f32\], but f32 is"):
        third(qd.ndarray(qd.f32, (2, 3)))
    with pytest.raises(ValueError, match=r"but \[Tensor \(2\) f32\] is provided"):
        third(qd.Vector.ndarray(2, qd.f32, 2))


def test_arrays_of_dlpack_share_their_memory():
    x = zeros()
    assert add(Elsewhere(x), 1) == 12
    assert add(Elsewhere(x), 1) == 24
    assert x.tolist() == (np.array(COUNTED) * 2).tolist()
    with pytest.raises(TypeError, match="not in host memory"):
        add(Elsewhere(x, device=2), 1)


def test_a_field_is_no_array():
    with pytest.raises(qd.QuadrantsRuntimeTypeError, match="Invalid type for argument x") as caught:
        read(qd.field(qd.f32, (2, 3)))
    assert "qd.Tensor" in caught.value.hint


def test_tensors_of_torch(arch):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = torch.zeros(2, 3)
    for times in (1, 2, 3):
        assert add(x, 1) == 12 * times
        assert x.tolist() == (np.array(COUNTED) * times).tolist()
    assert third(torch.arange(6.0).reshape(2, 3)) == 5
    with pytest.raises(ValueError, match="non-contiguous tensors are not supported"):
        read(torch.zeros(3, 2).T)
    with pytest.raises(ValueError, match="dtype=f32, array with dtype=f64"):
        read(x.double())


@qd.kernel
def double(x: qd.types.NDArray[qd.f32, 1]):
    for i in x:
        x.grad[i] = 2 * x[i]


def test_tensors_of_torch_with_gradients():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = torch.ones(3, requires_grad=True)
    for _ in range(3):
        double(x)
        assert x.grad.tolist() == [2, 2, 2]
    y = torch.full((3,), 3.0, requires_grad=True)
    double(y)
    assert y.grad.tolist() == [6, 6, 6]


def test_fresh_tensors_of_torch_with_gradients_need_no_slow_path(monkeypatch):
    torch = pytest.importorskip("torch", reason="torch is not installed")

    @qd.kernel
    def squares(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in range(3):
            y[i] = x[i] * x[i]

    slow, launch = [], Launchers.launch

    def counted(self, *args, **options):
        slow.append(self.decl.name)
        return launch(self, *args, **options)

    monkeypatch.setattr(Launchers, "launch", counted)
    for n in range(6):
        x = torch.full((3,), float(n), requires_grad=True)
        y = torch.zeros(3, requires_grad=True)
        if n % 2:
            x.grad = torch.ones(3)
        squares(x, y)
        assert y[1] == n * n and x.grad[0] == n % 2 and y.grad[2] == 0
        y.grad = torch.ones(3)
        squares.grad(x, y)
        assert x.grad[1] == n % 2 + 2 * n
    assert len(slow) == 4
