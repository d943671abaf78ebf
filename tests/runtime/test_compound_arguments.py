"""Vectors, matrices and structs as arguments and results of launches."""

import numpy as np
import pytest
from qd_studio import engine as qd

vec3 = qd.types.vector(3, qd.f32)
ivec2 = qd.types.vector(2, qd.i32)
mat23 = qd.types.matrix(2, 3, qd.f32)
Inner = qd.types.struct(n=qd.i32, v=ivec2)
Body = qd.types.struct(mass=qd.f32, inner=Inner, m=mat23)


@qd.dataclass
class Ball:
    pos: vec3
    r: qd.f32

    @qd.func
    def grown(self, by):
        return self.pos * by + self.r


@qd.kernel
def weigh(v: vec3) -> qd.f32:
    return v[0] + 10 * v[1] + 100 * v[2]


@qd.kernel
def weigh_matrix(m: mat23) -> qd.f32:
    total = 0.0
    for i, j in qd.static(qd.ndrange(2, 3)):
        total += m[i, j] * 10 ** (3 * i + j)
    return total


@qd.kernel
def weigh_ints(v: ivec2) -> qd.i32:
    return v[0] - v[1]


@qd.kernel
def weigh_body(b: Body) -> qd.f32:
    return b.mass + b.inner.n * 10 + b.inner.v[1] * 100 + b.m[1, 2] * 1000


@qd.kernel
def grow(b: Ball, by: qd.f32) -> vec3:
    return b.grown(by)


@qd.kernel
def several(x: qd.f32) -> tuple[qd.i32, vec3, Inner]:
    return 7, qd.Vector([x, x + 1, x + 2]), Inner(n=3, v=[x, 5])


@qd.kernel
def matrix(x: qd.f32) -> mat23:
    return qd.Matrix([[x, 2, 3], [4, 5, 6]])


@qd.kernel
def one_in_a_tuple() -> tuple[vec3]:
    return qd.Vector([1.0, 2.0, 3.0])


@qd.kernel
def list_as_vector() -> ivec2:
    return [1, 2.7]


pytestmark = pytest.mark.usefixtures("arch")


VECTORS = (
    [1, 2, 3],
    (1.0, 2, True + 2),
    np.array([1, 2, 3]),
    np.array([1.0, 2.0, 3.0], np.float32),
    qd.Vector([1, 2, 3]),
    [np.float64(1), np.int8(2), np.float16(3)],
    vec3(1, 2, 3),
)


@pytest.mark.parametrize("value", VECTORS, ids=lambda v: type(v).__name__)
def test_vectors_come_in_many_forms(value):
    for _ in range(3):  # the slow path twice, then the launch stub
        assert weigh(value) == 321.0


@pytest.mark.parametrize(
    "value",
    [
        [[1, 2, 3], [4, 5, 6]],
        ((1, 2, 3), [4, 5, 6]),
        np.arange(1, 7).reshape(2, 3),
        np.asfortranarray(np.arange(1.0, 7.0).reshape(2, 3)),
        qd.Matrix([[1, 2, 3], [4, 5, 6]]),
        [qd.Vector([1, 2, 3]), np.array([4, 5, 6])],
    ],
)
def test_matrices_come_in_many_forms(value):
    for _ in range(3):
        assert weigh_matrix(value) == 654321.0


@pytest.mark.parametrize(
    "value", [[1, 2], [1, 2, 3, 4], [[1, 2, 3]], [1, 2, "3"], 3, None, "abc", np.zeros((3, 1))]
)
def test_a_wrong_vector_names_the_argument_and_the_kernel(value):
    for _ in range(3):
        with pytest.raises(qd.QuadrantsRuntimeTypeError, match="Argument v") as caught:
            weigh(value)
        assert caught.value.kernel == "weigh"
        assert weigh([1, 2, 3]) == 321.0


def test_integers_take_no_floats_and_must_fit():
    assert weigh_ints([5, 3]) == 2
    for value in ([2**32 + 5, 3], np.array([5, 2**31]), [5, -(2**31) - 1]):
        with pytest.raises(qd.QuadrantsRuntimeTypeError, match="out of the range of i32, -2147483"):
            weigh_ints(value)
    for value in ([1.5, 2], np.array([1.0, 2.0]), [5, 2.0]):
        with pytest.raises(qd.QuadrantsRuntimeTypeError, match="required type i32"):
            weigh_ints(value)


def body(**changes):
    members = {"mass": 1.0, "inner": {"n": 2, "v": [0, 3]}, "m": [[0, 0, 0], [0, 0, 4]]}
    return {**members, **changes}


def test_structs_come_as_values_and_as_dicts():
    for value in (body(), Body(**body()), qd.Struct(body()), Body(**body())):
        assert weigh_body(value) == 4321.0
    ball = Ball(pos=[1, 2, 3], r=0.5)
    assert list(grow(ball, 2)) == list(grow(ball, 2)) == [2.5, 4.5, 6.5]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, r"Argument b \(3\)"),
        (body(extra=1), "cannot be converted"),
        ({"mass": 1.0}, "cannot be converted"),
        (body(inner={"n": 1.5, "v": [0, 3]}), r"Argument b\.inner\.n \(1\.5\).* type i32"),
        (body(m=[[1, 2], [3, 4]]), r"Argument b\.m .*shape \(2, 3\)"),
    ],
)
def test_a_wrong_struct_names_the_member(value, message):
    with pytest.raises(qd.QuadrantsRuntimeTypeError, match=message):
        weigh_body(value)


def test_results_are_values_of_python_scope():
    for _ in range(3):
        number, vector, inner = several(2.5)
        assert number == 7
        assert isinstance(vector, qd.Vector)
        assert vector.to_numpy().tolist() == [2.5, 3.5, 4.5]
        assert (inner.n, inner.v.to_list()) == (3, [2, 5])
        assert matrix(1.5).to_list() == [[1.5, 2.0, 3.0], [4.0, 5.0, 6.0]]
        assert matrix(1.5).to_numpy().dtype == np.float32
    assert one_in_a_tuple().to_list() == [1.0, 2.0, 3.0]
    assert list_as_vector().to_list() == [1, 2]


def test_known_vectors_never_take_the_slow_path(arch, monkeypatch):
    if arch != "cpu":
        pytest.skip("launchers are prepared for native code only")
    weigh([1, 2, 3]), weigh([1, 2, 3])

    def never(*args):
        raise AssertionError("took the slow path")

    monkeypatch.setattr(weigh.launchers, "call", never)
    monkeypatch.setattr(weigh.launchers, "slow", never)
    for value in VECTORS:
        assert weigh(value) == 321.0
    with pytest.raises(AssertionError, match="slow path"):
        weigh([1, 2])


@qd.kernel
def of_default_types(v: qd.types.vector(2, float), n: qd.types.vector(2, int)) -> qd.f64:
    return v[0] + n[0]


def test_default_types_of_elements_follow_the_options(arch):
    assert of_default_types([0.1, 0], [1, 0]) == float(np.float32(0.1) + np.float32(1))
    with pytest.raises(qd.QuadrantsRuntimeTypeError, match=r"value 4294967297.*of i32"):
        of_default_types([0.1, 0], [2**32 + 1, 0])
    qd.init(arch=getattr(qd, arch), default_fp=qd.f64, default_ip=qd.i64, log_level="error")
    assert of_default_types([0.1, 0], [2**32 + 1, 0]) == 0.1 + 2**32 + 1


@qd.kernel
def apart(v: vec3, w: vec3, m: mat23, b: Ball, c: Ball) -> tuple[vec3, vec3, mat23, Ball, Ball]:
    return v, w, m, b, c


@qd.kernel
def two(v: vec3, w: vec3) -> tuple[vec3, vec3]:
    return v, w


@pytest.mark.parametrize("make", [list, tuple, qd.Vector, np.array])
def test_two_vectors_keep_apart_in_prepared_launches(make):
    for _ in range(3):
        assert [list(x) for x in two(make([1, 2, 3]), make([4, 5, 6]))] == [[1, 2, 3], [4, 5, 6]]


def test_several_values_keep_apart_in_prepared_launches():
    rows = [[1, 2, 3], [4, 5, 6]]
    for v, w, b in (([1, 2, 3], [4, 5, 6], 1.0), (qd.Vector([7, 8, 9]), (1, 1, 2), 2.0)):
        for _ in range(3):
            one, other = Ball(pos=v, r=b), Ball(pos=w, r=-b)
            got = apart(v, w, qd.Matrix(rows), one, {"pos": w, "r": -b})
            assert [list(x) for x in got[:2]] == [list(v), list(w)]
            assert got[2].to_list() == rows
            assert [list(x.pos) for x in got[3:]] == [list(v), list(w)]
            assert [x.r for x in got[3:]] == [one.r, other.r]
