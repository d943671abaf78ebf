"""What functions get and give: by value, by reference, converted, several at once."""

import pytest
from qd_studio import engine as qd

vec3 = qd.types.vector(3, qd.f32)
ivec3 = qd.types.vector(3, qd.i32)


@qd.func
def whole(v: ivec3):
    return v.sum()


@qd.func
def halves(v: vec3):
    v[1] = 0.5
    return v


@qd.func
def two(a, b):
    return a + b, a * b


@qd.func
def three(a) -> vec3:
    return [a, a, a]


@qd.func
def mixed(a) -> tuple[qd.i32, vec3]:
    return a + 0.7, qd.Vector([a, a, a])


@qd.func
def apply(f: qd.template(), a):
    return f(a)


@qd.func
def square(a):
    return a * a


@qd.func
def converted(t: qd.template(), a):
    return qd.cast(a, t)


@qd.func
def optional(x: qd.Tensor | None, y: vec3 | None):
    result = 0.0
    if qd.static(x is not None):
        result += x[1]
    if qd.static(y is not None):
        result += y[2]
    return result


pytestmark = pytest.mark.usefixtures("arch")


@qd.kernel
def conversions() -> tuple[qd.f32, vec3, vec3]:
    ints = qd.Vector([1, 2, 3])
    return whole(qd.Vector([1.9, 2.9, 3.9])), halves(ints), halves([4, 5, 6])


def test_annotated_parameters_convert():
    number, first, second = conversions()
    assert number == 6
    assert first.to_list() == [1, 0.5, 3]
    assert second.to_list() == [4, 0.5, 6]


@qd.kernel
def results() -> tuple[qd.f32, qd.f32, vec3, qd.i32, qd.f32]:
    p, q = two(2.0, 3.0)
    i, v = mixed(2.0)
    return p, q, three(2) + v, i, apply(square, 4) + converted(qd.i32, 4.5)


def test_functions_give_one_value_or_several():
    p, q, v, i, n = results()
    assert (p, q, v.to_list(), i, n) == (5, 6, [4, 4, 4], 2, 20)


@qd.kernel
def with_options(x: qd.Tensor) -> qd.f32:
    return optional(x, None) + optional(None, [1, 2, 3]) * 10 + optional(y=None, x=x) * 100


def test_optional_parameters():
    for x in (qd.field(qd.f32, 2), qd.ndarray(qd.f32, 2)):
        x[1] = 4
        assert with_options(x) == 434
