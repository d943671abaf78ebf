"""Arrays of gradients in kernels: ordinary arrays that hang on others."""

import numpy as np
import pytest
from qd_studio import engine as qd

from tests.lang import opaque

vec3 = qd.types.vector(3, qd.f32)


@qd.kernel
def count(x: qd.Tensor):
    for i, j in qd.ndrange(2, 3):
        x.grad[i, j] += 10 * i + j


@qd.kernel
def count_vectors(x: qd.types.ndarray(dtype=vec3, ndim=1, needs_grad=True)):
    for i in x:
        x.grad[i] = qd.Vector([1.0, 2.0, 3.0]) * i


@qd.func
def corner(g):
    return g[1, 2]


@qd.kernel
def read_in_a_function(x: qd.types.NDArray[qd.f32, 2]) -> qd.f32:
    return corner(x.grad)


@qd.kernel
def add_squares(x: qd.types.NDArray[qd.f32, 1], total: qd.types.NDArray[qd.f32, 1]):
    for i in x:
        total[0] += x[i] * x[i]


@pytest.fixture(params=("cpu", "interp", "device"), autouse=True)
def arch(request):
    with opaque.program(request.param, log_level="error"):
        yield


COUNTED = [[0, 1, 2], [10, 11, 12]]


@pytest.mark.parametrize("layout", [(0, 1), (1, 0)])
@pytest.mark.parametrize("backend", ["NDARRAY", "FIELD"])
def test_gradients_are_as_their_tensors_do(layout, backend):
    x = qd.tensor(
        qd.f32, (2, 3), layout=layout, needs_grad=True, backend=getattr(qd.Backend, backend)
    )
    for times in (1, 2, 3):
        count(x)
        assert x.grad.to_numpy().tolist() == (np.array(COUNTED) * times).tolist()
    assert not x.to_numpy().any()


def test_gradients_of_arrays_of_vectors():
    x = qd.Vector.ndarray(3, qd.f32, 2, needs_grad=True)
    for _ in range(3):
        count_vectors(x)
        assert x.grad.to_numpy().tolist() == [[0, 0, 0], [1, 2, 3]]
    with pytest.raises(ValueError, match="required needs_grad=True, but False is provided"):
        count_vectors(qd.Vector.ndarray(3, qd.f32, 2))
    with pytest.raises(ValueError, match="required needs_grad=True, but False is provided"):
        count_vectors(np.zeros((2, 3), np.float32))


def test_gradients_are_passed_on():
    x = qd.ndarray(qd.f32, (2, 3), needs_grad=True)
    count(x)
    assert read_in_a_function(x) == read_in_a_function(x) == 12
    x.grad[1, 2] = 5
    assert read_in_a_function(x) == 5


def test_an_array_without_gradients_says_so():
    with pytest.raises(qd.QuadrantsTypeError, match='no attribute "grad"') as caught:
        count(qd.ndarray(qd.f32, (2, 3)))
    assert "needs_grad" in caught.value.hint


def test_gradients_that_no_code_uses_do_not_overlap_each_other():
    x, total = (qd.ndarray(qd.f32, n, needs_grad=True) for n in (3, 1))
    x.fill(2)
    for times in (1, 2, 3):
        add_squares(x, total)
        assert total[0] == 12 * times
    assert not x.grad.to_numpy().any()
