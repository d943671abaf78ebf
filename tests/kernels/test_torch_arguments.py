"""Tensors of torch as arguments of kernels."""

import pytest
from qd_studio import engine as qd

torch = pytest.importorskip("torch", reason="torch is not installed")
vec3 = qd.types.vector(3, qd.f32)


pytestmark = pytest.mark.usefixtures("arch")


@qd.kernel
def count(a: qd.types.ndarray()):
    for i in a:
        a[i] = i


@qd.kernel
def table(a: qd.types.NDArray[qd.f32, 2]):
    for i, j in a:
        a[i, j] += 10 * i + j


@qd.kernel
def of_tensors(a: qd.Tensor):
    for i, j in a:
        a[i, j] += 7


@qd.kernel
def of_vectors(a: qd.types.ndarray(dtype=vec3, ndim=1)):
    for i in a:
        a[i] += [i, 1, 2]


def test_tensors_are_written_in_place():
    for dtype in (torch.float32, torch.int8, torch.float64, torch.int64):
        t = torch.zeros(5, dtype=dtype)
        for _ in range(3):
            count(t)
        assert t.tolist() == [0, 1, 2, 3, 4]
    m = torch.zeros(2, 3)
    for times in range(1, 4):
        table(m)
        table(m.numpy())
        assert m.tolist() == [[0, 2 * times, 4 * times], [20 * times, 22 * times, 24 * times]]
    of_tensors(m)
    assert m[0, 0] == 7
    v = torch.zeros(4, 3)
    of_vectors(v)
    of_vectors(v)
    assert v.tolist() == [[2 * i, 2, 4] for i in range(4)]


def test_what_does_not_fit():
    wrong = {
        "non-contiguous": torch.zeros(3, 2).t(),
        "ndim=2, but 1d": torch.zeros(3),
        "dtype=f32, array with dtype=f64": torch.zeros(2, 2, dtype=torch.float64),
        "bfloat16": torch.zeros(2, 2, dtype=torch.bfloat16),
        "sparse": torch.zeros(2, 2).to_sparse(),
    }
    for text, tensor in wrong.items():
        with pytest.raises(ValueError, match=f"(?s)Invalid argument a.*{text}"):
            table(tensor)
    m = torch.zeros(1, 2)
    table(m)
    assert m.tolist() == [[0, 1]]
