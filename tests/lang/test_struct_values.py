"""Structs in Python scope: values, their types, `qd.dataclass`."""

import copy
import pickle

import pytest
from qd_studio import engine as qd

VEC2 = qd.types.vector(2, qd.f32)
Inner = qd.types.struct(a=qd.i32, v=VEC2)
Outer = qd.types.struct(s=Inner, k=float)

PRINTED = {
    "Inner(1, [2, 3])": "{'a': 1, 'v': [2.0, 3.0]}",
    "Inner(a=1, v=2)": "{'a': 1, 'v': [2.0, 2.0]}",
    "Inner()": "{'a': 0, 'v': [0.0, 0.0]}",
    "Inner(5)": "{'a': 5, 'v': [0.0, 0.0]}",
    "Inner(1.7, [2, 3])": "{'a': 1, 'v': [2.0, 3.0]}",
    "Inner({'a': 3})": "{'a': 3, 'v': [0.0, 0.0]}",
    "Inner(Inner(1, [2, 3]))": "{'a': 1, 'v': [2.0, 3.0]}",
    "Outer(Inner(1, [2, 3]), 4)": "{'s': {'a': 1, 'v': [2.0, 3.0]}, 'k': 4.0}",
    "Outer(s=dict(a=1, v=[1, 2]), k=3)": "{'s': {'a': 1, 'v': [1.0, 2.0]}, 'k': 3.0}",
    "qd.Struct(a=1, b=2.0)": "{'a': 1, 'b': 2.0}",
    "qd.Struct({'a': 1})": "{'a': 1}",
    "qd.Struct(a=1, v=qd.Vector([1, 2]))": "{'a': 1, 'v': [1, 2]}",
    "qd.Struct(a=dict(b=2))": "{'a': {'b': 2}}",
    "qd.Struct()": "{}",
    "Inner": "struct(a=i32, v=vector(2, f32))",
}


@pytest.mark.parametrize("text", PRINTED)
def test_values_and_how_they_print(text):
    assert str(eval(text, {"qd": qd, "Inner": Inner, "Outer": Outer})) == PRINTED[text]


def test_members_are_read_and_written():
    s = Outer(Inner(1, [2, 3]), 4)
    s.k = 5
    s.s.a = 2.9
    s.s.v.x = 7
    s["s"]["v"][1] = 8
    assert s.to_dict() == {"s": {"a": 2, "v": [7.0, 8.0]}, "k": 5.0}
    s.s = {"a": 9}
    assert s.s.to_dict() == {"a": 9, "v": [0.0, 0.0]}
    assert s.keys == ["s", "k"] and len(s) == 2 and list(s)[1] == 5.0
    assert dict(s.items) == s.entries
    assert s.struct_type is Outer and qd.Struct(a=1).struct_type is None


def test_equality_is_of_members():
    assert Inner(1, [2, 3]) == Inner(1, [2, 3]) == qd.Struct(a=1, v=[2.0, 3.0])
    assert Inner(1, [2, 3]) != Inner(1, [2, 4])
    assert Inner() != 0
    with pytest.raises(TypeError, match="unhashable"):
        hash(Inner())


def test_values_do_not_share_members():
    inner = Inner(1, [2, 3])
    outer = Outer(inner, 0)
    vector = qd.Vector([1, 2])
    free = qd.Struct(v=vector, s=inner)
    inner.a = 5
    inner.v.x = 6
    vector.x = 7
    assert outer.s.to_dict() == {"a": 1, "v": [2.0, 3.0]}
    assert free.to_dict() == {"v": [1, 2], "s": {"a": 1, "v": [2.0, 3.0]}}


def test_values_are_copied_and_pickled():
    free = qd.Struct(a=1, v=[1, 2])
    for other in (copy.deepcopy(free), pickle.loads(pickle.dumps(free))):
        assert other == free and other is not free
        other.v.x = 5
        assert free.v.x == 1


def test_members_may_have_the_names_of_properties():
    odd = qd.types.struct(items=qd.i32, keys=qd.i32, t=float, self=int)(items=3, t=1, self=2)
    assert (odd.items, odd.keys, odd.t, odd.self) == (3, 0, 1.0, 2)
    odd.items = 4
    assert str(odd) == "{'items': 4, 'keys': 0, 't': 1.0, 'self': 2}"


@qd.dataclass
class Particle:
    mass: qd.f32
    at: VEC2

    @qd.func
    def only_in_kernels(self):
        return self.mass

    @qd.pyfunc
    def moved(self, by):
        return self.at + by

    def plain(self):
        return self.mass * 2

    @staticmethod
    def fixed(x):
        return x + 1


def test_methods_of_a_dataclass():
    p = Particle(2, [1, 3])
    assert p.moved(1).to_list() == [2.0, 4.0]
    assert p.plain() == 4.0
    assert p.fixed(3) == 4
    with pytest.raises(AssertionError, match="can only be called from a kernel"):
        p.only_in_kernels()
    with pytest.raises(AttributeError, match=r"'Particle' has no member 'speed'"):
        _ = p.speed
    assert list(Particle.members) == ["mass", "at"]
    assert set(Particle.methods) == {"only_in_kernels", "moved", "plain", "fixed"}
    assert repr(Particle) == "Particle(mass=f32, at=vector(2, f32))"


def test_methods_given_by_hand():
    def twice(self):
        return self.a * 2

    T = qd.types.struct(a=qd.i32, __struct_methods={"twice": twice})
    assert T(4).twice() == 8
    assert qd.Struct({"a": 3, "__struct_methods": {"twice": twice}}).twice() == 6


def test_dataclasses_nest_and_text_annotations_are_looked_up():
    vec = qd.types.vector(3, qd.f64)

    @qd.dataclass
    class Body:
        part: Particle
        spin: "vec"
        n: "qd.i32"

    assert Body.members == {"part": Particle, "spin": vec, "n": qd.i32}
    assert Body(Particle(1, 2), n=4).to_dict() == {
        "part": {"mass": 1.0, "at": [2.0, 2.0]}, "spin": [0.0, 0.0, 0.0], "n": 4,
    }  # fmt: skip


def decorated(body):
    return qd.dataclass(type("Broken", (), body))


def annotated(**members):
    return {"__annotations__": members}


def cyclic():
    found = {}
    found["a"] = found
    return found


def nested(depth):
    found = qd.types.struct(a=qd.i32)
    for _ in range(depth):
        found = qd.types.struct(a=found)
    return found


T, S = qd.QuadrantsTypeError, qd.QuadrantsSyntaxError
MISTAKES = {
    "default value": (lambda: decorated({**annotated(a=qd.i32), "a": 5}), S, "Default value"),
    "no type": (lambda: decorated({**annotated(a=qd.i32), "b": 3}), S, "Broken.b is neither"),
    "list": (
        lambda: decorated(annotated(a=list)),
        ValueError,
        r"Invalid data type .* of Broken\.a",
    ),
    "itself": (lambda: decorated(annotated(a="Broken")), T, "Broken contains itself"),
    "unknown text": (lambda: decorated(annotated(a="Nothing")), ValueError, "names no type"),
    "no members": (lambda: decorated({}), T, "has no members"),
    "number": (lambda: qd.types.struct(a=3), ValueError, "Invalid data type 3"),
    "cyclic type": (lambda: qd.types.struct(a=cyclic()), T, "nested more than 64 deep"),
    "cyclic value": (lambda: qd.Struct(cyclic()), T, "nested more than 64 deep"),
    "deep type": (lambda: nested(100), T, "nested more than 64 deep"),
    "name": (lambda: qd.types.struct(**{"a b": qd.i32}), T, "cannot be the name of a member"),
    "too many": (lambda: Inner(1, 2, 3), T, "has 2 members, got 3 values"),
    "unknown": (lambda: Inner(b=1), T, "no member 'b'; it has a, v"),
    "twice": (lambda: Inner(1, a=2), T, "given twice"),
    "None": (lambda: Inner(None), T, r"struct\.a must be a number, not None"),
    "vector for a number": (lambda: Inner([1, 2]), T, "must be a number"),
    "number for a struct": (lambda: Outer(3), T, "must be a struct or a dict"),
    "struct for a vector": (lambda: Inner(1, Inner()), T, r"must be of type vector\(2, f32\)"),
    "text": (lambda: qd.Struct(a="x"), T, "cannot be 'x'"),
    "one number": (lambda: qd.Struct(1), S, "dictionary or keyword"),
    "unknown member": (lambda: setattr(Inner(), "z", 1), AttributeError, "no member 'z'"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_say_what_is_wrong(name):
    make, error, message = MISTAKES[name]
    with pytest.raises(error, match=message):
        make()


def test_integers_must_fit():
    t = qd.types.struct(a=qd.i32, v=qd.types.vector(2, qd.i8))
    for make in (lambda: t(a=2**40), lambda: t(v=[1, 128]), lambda: t(2**31)):
        with pytest.raises(qd.QuadrantsTypeError, match="its range is"):
            make()
    one = t(a=1)
    with pytest.raises(qd.QuadrantsTypeError, match=r"a of type i32 .* its range is -2147483648"):
        one.a = -(2**31) - 1
    assert one.a == 1
