"""Vectors and matrices as elements of fields and arrays: parts are read and written in place."""

import numpy as np
import pytest
from qd_studio import engine as qd

vec2, vec3 = qd.types.vector(2, qd.f32), qd.types.vector(3, qd.f32)


@pytest.fixture(params=("cpu", "interp"), autouse=True)
def _start(request):
    qd.init(arch=getattr(qd, request.param), log_level="error")
    yield
    qd.reset()


@pytest.mark.parametrize("layout", ["AOS", "SOA"])
def test_vector_fields(layout):
    v = qd.Vector.field(2, qd.f32, shape=4, layout=getattr(qd.Layout, layout))

    @qd.kernel
    def work(k: qd.i32):
        for i in v:
            v[i] = [i, 2 * i]
            v[i].x += 1
            v[i][1] *= 3
            v[i] += 0.5
            v[i].yx = v[i].xy
            v[i][k] -= i
        v[0], v[3] = v[3], v[0]

    work(1)
    i = np.arange(4, dtype=np.float32)
    want = np.stack([6 * i + 0.5, i + 1.5 - i], 1)
    want[[0, 3]] = want[[3, 0]]
    assert v.to_numpy().tolist() == want.tolist()


def test_matrix_fields():
    m = qd.Matrix.field(2, 2, qd.i32, shape=(2, 3))

    @qd.kernel
    def work():
        for i, j in m:
            m[i, j] = [[i, j], [1, 2]]
            m[i, j][0, 1] += 10
            m[i, j][1, :] += [5, 6]
            m[i, j] @= qd.Matrix([[2, 0], [0, 1]])
            m[i, j][i, j % 2] += 100
        for row in qd.static(range(m.n)):
            m[0, 0][row, m.m - 1] = -1

    work()
    want = np.zeros((2, 3, 2, 2), np.int64)
    for i, j in np.ndindex(2, 3):
        want[i, j] = [[2 * i, j + 10], [12, 8]]
        want[i, j, i, j % 2] += 100
    want[0, 0, :, 1] = -1
    assert m.to_numpy().tolist() == want.tolist()


def test_index_vectors():
    x = qd.field(qd.i32, shape=(4, 5))
    v = qd.Vector.field(2, qd.i32, shape=(4, 5))

    @qd.kernel
    def work():
        for I in qd.grouped(x):  # noqa: E741
            x[I] = I.x * 10 + I[1]
            v[I] = I
            v[I].x += I.sum()
        near = qd.Vector([1, 2]) + qd.Vector([1, 0])
        x[near] = -1
        x[near + qd.Vector([0, 1])] = -2
        for off in qd.static(qd.grouped(qd.ndrange((-1, 1), (0, 2)))):
            if qd.static(off.x == 0):
                x[qd.Vector([3, 3]) + off] = 500 + off.y

    work()
    want = np.add.outer(np.arange(4) * 10, np.arange(5))
    want[2, 2], want[2, 3], want[3, 3], want[3, 4] = -1, -2, 500, 501
    assert x.to_numpy().tolist() == want.tolist()
    i, j = np.indices((4, 5))
    assert v.to_numpy().tolist() == np.stack([2 * i + j, j], -1).tolist()


def test_struct_loops_with_offsets_and_orders():
    x = qd.field(qd.i32, shape=(3, 2), offset=(-1, 5), order="ji")
    parts = qd.Vector.field(2, qd.i32)
    node = qd.root.dense(qd.i, 3).dense(qd.ij, (2, 2))
    node.place(parts)

    @qd.kernel
    def work():
        for i, j in x:
            x[i, j] = i * 100 + j
        for i, j in node:
            parts[i, j] = [i, j]

    work()
    assert x.to_numpy().tolist() == [[-95, -94], [5, 6], [105, 106]]
    i, j = np.indices((6, 2))
    assert parts.to_numpy().tolist() == np.stack([i, j], -1).tolist()


def test_arrays_of_vectors():
    @qd.kernel
    def work(x: qd.types.ndarray(dtype=vec3, ndim=1), out: qd.types.ndarray(dtype=qd.f32, ndim=1)):
        for i in x:
            x[i] = x[i] * 2 + [i, 0, 1]
            x[i].y -= 1
            out[i] = x[i].dot(x[i])

    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    want = x * 2
    want[:, 0] += np.arange(4)
    want[:, 1] -= 1
    want[:, 2] += 1
    out = np.zeros(4, np.float32)
    work(x, out)
    assert x.tolist() == want.tolist()
    assert out.tolist() == (want * want).sum(1).tolist()


def test_components_of_a_vector_field_are_scalar_fields():
    v = qd.Vector.field(2, qd.f32, shape=3)
    y = v.get_scalar_field(1)

    @qd.kernel
    def work():
        for i in y:
            y[i] = i
            v[i].y += 10
            v[i].x = y[i]

    work()
    assert v.to_numpy().tolist() == [[10, 10], [11, 11], [12, 12]]


def test_atomics_on_parts():
    v = qd.Vector.field(2, qd.i32, shape=2)

    @qd.kernel
    def work(out: qd.types.ndarray(dtype=qd.i32, ndim=1)):
        for i in range(1000):
            v[i % 2] += [1, i]
            qd.atomic_max(v[0].y, 7)
        old = qd.atomic_add(v[1], 5)
        out[0], out[1] = old[0], qd.volatile_load(v[1]).x

    out = np.zeros(2, np.int32)
    work(out)
    assert out.tolist() == [500, 505]
    assert v.to_numpy()[1].tolist() == [505, sum(range(1, 1000, 2)) + 5]


def test_fields_are_filled_when_the_kernel_runs():
    x, v = qd.field(qd.f32, shape=(2, 3), offset=(1, -1)), qd.Vector.field(2, qd.f32, shape=2)
    s, p = qd.field(qd.i32, shape=()), qd.types.struct(a=qd.i32, b=vec2).field(shape=2)

    @qd.kernel
    def work(value: qd.f32):
        x.fill(value)
        x[1, 0] += 1
        v.fill([value, 2])
        s.fill(value)
        p.fill(3)
        p.b.fill(4)

    for value in (5, 7):
        work(value)
        assert x.to_numpy().tolist() == [[value, value + 1, value], [value] * 3]
        assert v.to_numpy().tolist() == [[value, 2]] * 2
        assert s[None] == value
        assert (p[1].a, p[1].b[1]) == (3, 4)


def test_the_index_vector_is_a_copy():
    x = qd.field(qd.i32, shape=(2, 3))

    @qd.kernel
    def work():
        for at in qd.grouped(x):
            at.x += 5
            at[1] *= 2
            at = at + 1
            x[at - [6, at.y - at.y // 2]] = at.x * 10 + at.y

    work()
    assert x.to_numpy().tolist() == [[61, 63, 65], [71, 73, 75]]
