"""Structs in kernels: members, methods, copies, elements of fields."""

import numpy as np
import pytest
from qd_studio import engine as qd

N = qd.types.ndarray(dtype=qd.i32, ndim=1)
F = qd.types.ndarray(dtype=qd.f32, ndim=1)
vec2 = qd.types.vector(2, qd.f32)
Point = qd.types.struct(a=qd.i32, v=vec2)
Pair = qd.types.struct(first=Point, m=qd.types.matrix(2, 2, qd.f32), n=float)


@qd.dataclass
class Ball:
    pos: vec2
    hits: qd.i32

    @qd.func
    def move(self, by):
        self.pos += by
        self.hits += 1
        return self.hits

    @qd.func
    def speed(self, scale=1.0):
        return self.pos.norm() * scale

    @staticmethod
    @qd.func
    def twice(x):
        return x * 2


@pytest.fixture(params=("cpu", "interp"), autouse=True)
def _start(request):
    qd.init(arch=getattr(qd, request.param), log_level="error")
    yield
    qd.reset()


def run(kernel, *args, count):
    out = np.zeros(count, np.float32)
    kernel(out, *args)
    return out.tolist()


@qd.kernel
def made(out: F):
    p = Point(1, [2, 3])
    q = Point(v=4)
    r = Point({"a": 7})
    s = Pair(p, [[1, 2], [3, 4]])
    out[0] = p.a + p.v.x * 10 + p.v[1] * 100
    out[1] = q.a + q.v.sum()
    out[2] = r.a + r.v.norm()
    out[3] = s.first.v.y + s.m[1, 0] * 10 + s.n
    t = qd.Struct(a=2.5, w=qd.Vector([1, 2]), inner={"k": 3})
    t.inner.k += 1.9
    t.w = [5, 6]
    out[4] = t.a + t.w.sum() * 10 + t.inner.k * 1000


def test_constructors_and_defaults():
    assert run(made, count=5) == [321, 8, 7, 33, 4112.5]


@qd.kernel
def changed(out: F, i: qd.i32):
    p = Point(1, [2, 3])
    q = p
    q.a = 5.9
    q.v.x = 50
    p.v[i] += 7
    p.v.yx = p.v.xy + 1
    out[0] = p.a
    out[1] = p.v.x
    out[2] = p.v.y
    out[3] = q.a
    out[4] = q.v.sum()
    s = Pair(p)
    s.first = q
    s.first.v = [8, 9]
    s.m[0, 1] += s.first.v.x
    s.m = s.m.transpose() * 2
    out[5] = s.m[1, 0] + q.v.y
    p, q = q, p
    out[6] = p.a * 10 + q.a
    p = {"a": 3, "v": [1, 2]}
    out[7] = p.a + p.v.y


def test_members_are_variables_and_structs_are_copied():
    assert run(changed, 1, count=8) == [1, 11, 3, 5, 53, 19, 51, 5]


@qd.kernel
def methods(out: F):
    b = Ball([3.0, 4.0], 0)
    out[0] = b.speed() + b.speed(scale=2)
    first = b.move(1.0)
    c = b
    out[1] = c.move(qd.Vector([1.0, 2.0])) + first * 10
    out[2] = b.pos.x + b.hits * 10
    out[3] = c.pos.y + c.hits * 10
    out[4] = b.twice(4)


def test_methods_change_the_struct_they_are_called_on():
    assert run(methods, count=5) == [15, 12, 14, 27, 8]


@qd.func
def nudged(p):
    p.v += 1
    return p


@qd.func
def nudge(p: qd.template()):
    p.v += 1
    p.a = 9


@qd.kernel
def passed(out: F):
    p = Point(1, 2)
    q = nudged(p)
    out[0] = p.v.x + q.v.x * 10
    nudge(p)
    out[1] = p.v.x + p.a * 10


def test_functions_get_copies_or_references():
    assert run(passed, count=2) == [32, 93]


@qd.kernel
def branches(out: F, k: qd.i32):
    a, b = Point(1, 1), Point(2, 2)
    c = a if k > 0 else b
    c.a += 10
    out[0] = c.a + a.a * 100
    for i in range(3):
        if i == k:
            c = Point(i, [i, 7])
    out[1] = c.v.y + c.a * 10


def test_branches_and_loops():
    assert run(branches, 2, count=2) == [111, 27]
    assert run(branches, 0, count=2) == [112, 7]


CONSTANT = qd.Struct(scale=2, at=qd.Vector([1.0, 2.0]))


@qd.kernel
def captured(out: F):
    local = CONSTANT
    local.scale = 3
    out[0] = CONSTANT.scale * CONSTANT.at.y + local.scale * 100


def test_structs_of_python_scope_are_captured():
    assert run(captured, count=1) == [304]


def test_fields_of_structs():
    balls = Ball.field(shape=4)
    points = Pair.field(shape=(2, 3))

    @qd.kernel
    def fill(out: F):
        for i in balls:
            balls[i] = Ball([i, 1], i)
            balls[i].move(0.5)
            balls[i].pos.y *= 2
        for i, j in points:
            points[i, j].first.v = [i, j]
            points[i, j].first.v[1] += 10
            points[i, j].m[i, 1] = 5
            qd.atomic_add(points[i, j].first.a, 3)
        copy = points[1, 2]
        copy.n = 100
        points[0, 0] = copy
        for i in range(4):
            out[i] = balls[i].pos.x + balls[i].hits * 10 + balls[i].pos.y * 100

    assert run(fill, count=4) == [310.5, 321.5, 332.5, 343.5]
    assert balls[2].pos[0] == 2.5 and balls[2].hits == 3
    assert points[1, 1].first.v[1] == 11 and points[1, 1].m[1, 1] == 5
    assert points[0, 0].first.v[1] == 12 and points[0, 0].n == 100 and points[1, 2].n == 0
    assert points[0, 1].first.a == 3


def test_a_struct_prints_its_members(capfd):
    @qd.kernel
    def show():
        p = Point(1, [2, 3])
        print(p, f"{p.v:.1f}")

    show()
    qd.sync()
    assert capfd.readouterr().out == "{a: 1, v: [2.000000, 3.000000]} [2.0, 3.0]\n"


@qd.kernel
def argument(out: F, p: Point, q: Pair):
    p.a = 7.9
    p.v += 1
    q.first.v.x *= 3
    out[0] = p.a + p.v.sum() * 10
    out[1] = q.first.v.x + q.m[0, 1]


def test_members_of_an_argument_may_change():
    p, q = Point(a=1, v=[2, 3]), Pair(Point(v=[4, 5]), [[1, 2], [3, 4]], 0.5)
    assert run(argument, p, q, count=2) == [77, 14]
    assert p.a == 1 and p.v[0] == 2


@qd.kernel
def replaced(p: Point):
    p = Point(1)  # noqa: F841


def test_an_argument_as_a_whole_does_not():
    with pytest.raises(qd.QuadrantsSyntaxError, match='"p" is immutable'):
        replaced(Point(a=1))
