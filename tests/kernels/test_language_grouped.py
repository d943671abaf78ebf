"""Index vectors of grouped loops: elements by number and by name, arithmetic, order."""

import numpy as np
import pytest
from qd_studio import engine as qd


@pytest.fixture(params=("cpu", "interp"), autouse=True)
def _start(request):
    qd.init(arch=getattr(qd, request.param))
    yield
    qd.reset()


Int2 = qd.types.ndarray(dtype=qd.i32, ndim=2)


@qd.kernel
def named(x: Int2, y: Int2):
    for at in qd.grouped(x):
        x[at] = at.x * 10 + at.y
        y[at.yx] = at.g


@qd.kernel
def moved(x: Int2):
    for at in qd.grouped(qd.ndrange((1, 3), (1, 3))):
        J = at * 2 - at
        x[J - 1] += 10 * at[0] + at[1]
        a, b = at
        x[b, a] += 100


@qd.kernel
def missing(x: Int2):
    for at in qd.grouped(x):
        x[at] = at.z


@qd.kernel
def ordered(x: Int2, count: qd.types.ndarray(dtype=qd.i32, ndim=1)):
    qd.loop_config(serialize=True)
    for i, j in qd.ndrange(2, (1, 4), axes=(1, 0)):
        x[i, j] = count[0]
        count[0] += 1


def test_elements_have_names():
    x, y = np.zeros((2, 3), np.int32), np.zeros((3, 2), np.int32)
    named(x, y)
    assert x.tolist() == [[0, 1, 2], [10, 11, 12]]
    assert y.tolist() == [[0, 0], [1, 1], [2, 2]]


def test_arithmetic_is_by_element():
    x = np.zeros((3, 3), np.int32)
    moved(x)
    assert x.tolist() == [[11, 12, 0], [21, 122, 100], [0, 100, 100]]


def test_a_name_beyond_the_axes_is_an_error_at_its_place():
    with pytest.raises(qd.QuadrantsSyntaxError, match="vec2 only has attributes"):
        missing(np.zeros((2, 2), np.int32))


def test_axes_change_the_order_of_visits():
    x = np.zeros((2, 4), np.int32)
    ordered(x, np.zeros(1, np.int32))
    assert x.tolist() == [[0, 0, 2, 4], [0, 1, 3, 5]]
