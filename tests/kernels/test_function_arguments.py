"""What functions get and give: by value, by reference, converted, several at once."""

import pytest
from qd_studio import engine as qd

vec3 = qd.types.vector(3, qd.f32)
ivec3 = qd.types.vector(3, qd.i32)
Ball = qd.types.struct(n=qd.i32, v=vec3)


@qd.func
def untyped(v):
    v[0] = 9.0
    return v[0]


@qd.func
def typed(v: vec3):
    v[0] = 9.0
    return v[0]


@qd.func
def template(v: qd.template()):
    v[0] = 9.0


@qd.func
def template_number(v: qd.template(), to=9):
    v = to  # noqa: F841


@qd.func
def untyped_struct(s):
    s.n = 7
    s.v.x += 1
    return s.n + s.v[0]


@qd.func
def typed_struct(s: Ball):
    s.n = 7
    return s.n


@qd.func
def template_struct(s: qd.template()):
    s.n = 7
    s.v[1] = 5


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


@pytest.fixture(params=("cpu", "interp"), autouse=True)
def arch(request):
    qd.init(arch=getattr(qd, request.param), log_level="error")
    yield
    qd.reset()


@qd.kernel
def by_value() -> tuple[qd.f32, qd.f32, qd.f32, qd.f32, qd.f32]:
    a = qd.Vector([1.0, 2.0, 3.0])
    s = Ball(n=1, v=a)
    first = untyped(a) + typed(a)
    second = untyped_struct(s) + typed_struct(s)
    return first, a[0], second, s.n, s.v[0]


def test_functions_get_copies():
    assert by_value() == (18, 1, 16, 1, 1)


@qd.kernel
def by_reference(f: qd.template(), v: qd.template()) -> tuple[vec3, Ball]:
    a = qd.Vector([1.0, 2.0, 3.0])
    template(a)
    template_number(a[1], to=8)
    s = Ball(n=1, v=a)
    template_struct(s)
    template_number(s.v[2])
    template(v[1])
    template_number(f[1], 4.5)
    return a, s


def test_template_parameters_are_the_caller_s():
    f, v = qd.field(qd.f32, 3), qd.Vector.field(3, qd.f32, 2)
    a, s = by_reference(f, v)
    assert a.to_list() == [9, 8, 3]
    assert (s.n, s.v.to_list()) == (7, [9, 5, 9])
    assert f.to_numpy().tolist() == [0, 4.5, 0]
    assert v.to_numpy().tolist() == [[0, 0, 0], [9, 0, 0]]


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


@qd.kernel
def wrong_shape():
    halves(qd.Vector([1.0, 2.0]))


@qd.kernel
def number_for_a_vector():
    halves(3)


@qd.kernel
def vector_for_a_struct():
    typed_struct(qd.Vector([1.0, 2.0]))


@qd.kernel
def number_for_a_tensor():
    optional(3, None)


@pytest.mark.parametrize(
    ("kernel", "message", "marked"),
    [
        (wrong_shape, r"'v' of halves must be a vector\(3, f32\), got a vector of shape \(2,\)",
         "qd.Vector([1.0, 2.0])"),
        (number_for_a_vector, r"'v' of halves must be a vector\(3, f32\)", "3"),
        (vector_for_a_struct, "'s' of typed_struct must be a struct", "qd.Vector([1.0, 2.0])"),
        (number_for_a_tensor, "'x' of optional must be a Tensor", "3"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit(kernel, message, marked):
    with pytest.raises(qd.QuadrantsSyntaxError, match=message) as caught:
        kernel()
    error = caught.value
    assert error.source_line[error.col : error.end_col] == marked
    assert by_value() == (18, 1, 16, 1, 1)
