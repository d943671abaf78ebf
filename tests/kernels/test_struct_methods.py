"""Structs and their methods in kernels: locals, parameters, results, elements of fields."""

import pytest
from qd_studio import engine as qd

vec2 = qd.types.vector(2, qd.f32)


@qd.dataclass
class Part:
    a: qd.i32
    v: vec2

    @qd.func
    def twice(self):
        return self.a * 2

    @qd.func
    def grow(self, by):
        self.a += by
        self.v[0] = self.v[0] + 1.5

    @qd.func
    def grown(self, by):
        self.grow(by)
        return self.twice() + self.v.sum()

    @qd.pyfunc
    def shifted(self, by):
        return self.v + by

    @staticmethod
    @qd.func
    def fixed(x):
        return x + 100


@qd.dataclass
class Whole:
    part: Part
    w: qd.f32

    @qd.func
    def total(self):
        return self.part.twice() + self.w


Plain = qd.types.struct(x=qd.f32, y=vec2)
captured = Part(7, [1, 2])
free = qd.Struct(z=3, q=qd.Vector([1.0, 2.0]))


@pytest.fixture(params=("cpu", "interp"), autouse=True)
def arch(request):
    qd.init(arch=getattr(qd, request.param), log_level="error")
    yield
    qd.reset()


@qd.kernel
def methods() -> qd.types.vector(6, qd.f32):
    p = Part(1, vec2(2, 3))
    p.grow(4)
    first = p.twice()
    second = p.grown(2)
    return qd.Vector([first, second, p.a, p.v.x, p.shifted(10.0).y, p.fixed(p.a)])


def test_methods_change_the_value_they_are_called_on():
    assert methods().to_list() == [10.0, 22.0, 7.0, 5.0, 13.0, 107.0]


@qd.kernel
def nested() -> Whole:
    n = Whole(w=1.5)
    n.part.grow(3)
    other = Whole(Part(1, [2, 3]), n.total())
    other.part.v.y += n.part.a
    return other


def test_nested_structs_are_made_and_returned():
    found = nested()
    assert found == Whole(Part(1, [2, 6]), 7.5)
    assert found.part.shifted(1).to_list() == [3.0, 7.0]


@qd.kernel
def copies() -> qd.types.vector(4, qd.i32):
    p = Part(1, vec2(2, 3))
    q = p
    q.a = 9
    r = Whole(p, 0)
    r.part.a = 5
    return qd.Vector([p.a, q.a, r.part.a, captured.a])


def test_assignment_copies():
    assert copies().to_list() == [1, 9, 5, 7]


@qd.func
def by_reference(p: qd.template()):
    p.a = 77


@qd.func
def by_value(p):
    p.a = 78
    return p.a


@qd.func
def made(a) -> Part:
    return Part(a, a)


@qd.kernel
def through_functions(given: Part) -> qd.types.vector(5, qd.f32):
    p = given
    by_reference(p)
    kept = by_value(p)
    other = made(4)
    return qd.Vector([p.a, kept, other.a + other.v.y, given.a + given.v.x, given.twice()])


def test_functions_take_and_give_structs():
    assert through_functions(Part(3, [4, 5])).to_list() == [77.0, 78.0, 8.0, 7.0, 6.0]


@qd.kernel
def without_a_type() -> qd.types.vector(4, qd.f32):
    s = qd.Struct(a=1, b=qd.Vector([1.0, 2.0]))
    s.a = 5
    s.b.x = 3
    return qd.Vector([s.a, s.b.sum(), free.z, free.q.y])


def test_structs_made_of_members():
    assert without_a_type().to_list() == [5.0, 5.0, 3.0, 2.0]


@qd.kernel
def into_fields(parts: qd.template(), grid: qd.template()):
    for i in parts:
        parts[i].a = i
        parts[i].v = vec2(i, 2 * i)
        parts[i].grow(10)
    for i, j in grid:
        s = grid[i, j]
        s.x = i + 10 * j
        grid[i, j] = s
        grid[i, j].y[1] = parts[i].twice()


def test_elements_of_fields_are_structs():
    parts, grid = Part.field(shape=3), Plain.field(shape=(2, 2))
    into_fields(parts, grid)
    assert parts.a.to_numpy().tolist() == [10, 11, 12]
    assert parts[2] == Part(12, [3.5, 4])
    assert grid.x.to_numpy().tolist() == [[0, 10], [1, 11]]
    assert grid[1, 0].y.to_list() == [0, 22]
    grid[0, 0].y.x = 5
    grid[0, 1] = Plain(1, [2, 3])
    assert grid[0, 0].to_dict() == {"x": 0, "y": [5, 20]}
    assert grid[0, 1] == Plain(1, [2, 3])


@qd.kernel
def no_such_member() -> qd.i32:
    p = Part(1, 2)
    return p.nothing


@qd.kernel
def too_many_members() -> qd.i32:
    p = Part(1, 2, 3)
    return p.a


def test_mistakes_point_to_the_place_and_leave_the_process_usable():
    with pytest.raises(qd.QuadrantsCompilationError, match="nothing") as caught:
        no_such_member()
    assert "p.nothing" in str(caught.value)
    with pytest.raises(qd.QuadrantsCompilationError, match="2 members"):
        too_many_members()
    assert copies().to_list() == [1, 9, 5, 7]
