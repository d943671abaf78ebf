"""Vectors and matrices as elements of fields and arrays: parts are read and written in place."""

import pytest
from qd_studio import engine as qd

vec2, vec3 = qd.types.vector(2, qd.f32), qd.types.vector(3, qd.f32)


pytestmark = pytest.mark.usefixtures("arch")


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
