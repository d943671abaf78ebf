"""What objects with ``template_primitives=False`` hold changes between launches.

Programs are generated over the kinds of members, and compared with the same functions run as plain
Python. So with template values, which may be equal where what they hold is not the same.
"""

import dataclasses
import enum
import random
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from qd_studio import engine as qd


@dataclasses.dataclass
class Deep:
    n: int = 2
    x: float = 0.5


@dataclasses.dataclass
class Params:
    nt: int = 1
    scale: float = 2.0
    on: bool = True
    deep: Deep = dataclasses.field(default_factory=Deep)


@qd.data_oriented
class Part:
    def __init__(self, n=3):
        self.n = n
        self.deep = Deep()


class Loose:
    def __init__(self, n=3):
        self.n = n


class Mode(enum.IntEnum):
    SLOW = 1
    FAST = 4


class Pair(NamedTuple):
    a: int
    b: float


pytestmark = pytest.mark.usefixtures("arch")


def _ints(rng):
    return rng.choice([rng.randint(-9, 9), True, np.int32(rng.randint(-9, 9))])


def _floats(rng):
    x = rng.randint(-8, 8) / 4
    return rng.choice([x, np.float32(x), np.float64(x), rng.randint(-3, 3)])


def _containers(rng, make):
    k = rng.randint(-9, 9)
    return make(rng.choice([k, k / 2, k > 0]))


KINDS = {
    # name: (expression, first value, new value)
    "int": ("self.{}", lambda r: r.randint(-9, 9), _ints),
    "float": ("self.{}", lambda r: r.randint(-8, 8) / 4, _floats),
    "bool": ("self.{} * 3", lambda r: True, lambda r: r.choice([False, True, 2, np.bool_(False)])),
    "numpy": ("self.{}", lambda r: np.float32(0.5), _floats),
    "record": ("self.{}.nt * 2 + self.{}.scale", lambda r: Params(), lambda r: Params(7, 0.25)),
    "on": ("(3 if self.{}.on else 4)", lambda r: Params(), lambda r: Params(on=False)),
    "deep": ("self.{}.deep.n", lambda r: Params(), lambda r: Params(deep=Deep(r.randint(0, 9)))),
    "part": ("self.{}.n", lambda r: Part(), lambda r: Part(r.randint(0, 9))),
    "inside": ("self.{}.deep.x", lambda r: Part(), lambda r: Part()),
    "loose": ("self.{}.n", lambda r: Loose(), lambda r: Loose(r.randint(0, 9))),
    "space": ("self.{}.n", lambda r: Loose(), lambda r: SimpleNamespace(n=r.randint(0, 9))),
    "list": ("self.{}[1]", lambda r: [1, 2], lambda r: _containers(r, lambda v: [0, v])),
    "nested": ("self.{}[0][1]", lambda r: [[1, 2]], lambda r: _containers(r, lambda v: [(0, v)])),
    "tuple": ("self.{}[1]", lambda r: (1, 2), lambda r: _containers(r, lambda v: (0, v))),
    "dict": ("self.{}['a']", lambda r: {"a": 1}, lambda r: _containers(r, lambda v: {"a": v})),
    "pair": ("self.{}.b", lambda r: Pair(1, 2.0), lambda r: Pair(1, r.randint(0, 9) / 2)),
    "enum": ("self.{}", lambda r: Mode.SLOW, lambda r: r.choice(list(Mode))),
    "name": ("(1 if qd.static(self.{} == 'a') else 2)", lambda r: "a", lambda r: r.choice("ab")),
    "none": ("(1 if qd.static(self.{} is None) else 2)", lambda r: None, lambda r: r.choice("a")),
    "property": ("self.twice_{}", lambda r: 2, lambda r: r.randint(0, 9)),
}


def _in_place(rng, value):
    """Change a value without another object in its place; False if it cannot be."""
    if isinstance(value, Params):
        value.nt, value.scale = rng.randint(0, 9), rng.randint(0, 9) / 2
        value.on = rng.random() > 0.5
        value.deep.n = rng.randint(0, 9)
    elif isinstance(value, Part | Loose | SimpleNamespace):
        value.n = rng.randint(0, 9)
        if isinstance(value, Part):
            value.deep.x = rng.randint(0, 9) / 4
    elif isinstance(value, list):
        value[-1] = [5, rng.randint(0, 9)] if isinstance(value[-1], list | tuple) else 8.5
    elif isinstance(value, dict):
        value["a"] = rng.randint(0, 9) / 2
    else:
        return False
    return True


def _source(kinds):
    lines = ["from qd_studio import engine as qd", ""]
    lines += ["@qd.data_oriented(template_primitives=False)", "class Sim:"]
    for i, kind in enumerate(kinds):
        if kind == "property":
            lines += [
                "    @property",
                f"    def twice_m{i}(self):",
                f"        return self.m{i} * 2",
            ]
    lines += ["    @qd.kernel", "    def get(self) -> qd.f32:", "        r = 0.0"]
    for i, kind in enumerate(kinds):
        text = KINDS[kind][0].replace("{}", f"m{i}")
        lines.append(f"        r += {text} * {10**i}")
    lines.append("        return r")
    return "\n".join(lines)


def _program(seed, folder):
    rng = random.Random(seed)
    kinds = rng.sample(sorted(KINDS), 3)
    name = f"changed_members_{seed}"
    path = folder / f"{name}.py"
    path.write_text(_source(kinds))
    scope = {"__name__": name}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    sim = scope["Sim"]()
    for i, kind in enumerate(kinds):
        setattr(sim, f"m{i}", KINDS[kind][1](rng))
    return rng, kinds, sim


@pytest.mark.parametrize("seed", range(25))
def test_what_changed_is_seen_as_in_python(seed, tmp_path):
    rng, kinds, sim = _program(seed, tmp_path)
    plain = type(sim).get.fn
    for step in range(7):
        for _ in range(2):  # the second launch prepares a launcher, the third uses it
            assert sim.get() == pytest.approx(plain(sim)), (step, kinds, vars(sim))
        k = rng.randrange(len(kinds))
        value = getattr(sim, f"m{k}")
        if rng.random() < 0.5 or not _in_place(rng, value):
            setattr(sim, f"m{k}", KINDS[kinds[k]][2](rng))


@qd.data_oriented(template_primitives=False)
class Sim:
    def __init__(self):
        self.params = Params()
        self.n = 3
        self.weights = np.array([1.0, 2.0])
        self.act = double

    @qd.kernel
    def nt(self) -> qd.i32:
        return nt_of(self.params)

    @qd.kernel
    def applied(self) -> qd.i32:
        return self.act(self.n)

    @qd.kernel
    def weight(self) -> qd.f32:
        return qd.static(float(self.weights[1]))

    @qd.kernel
    def unrolled(self) -> qd.i32:
        r = 0
        for i in qd.static(range(self.params.nt)):
            r += i
        return r


@qd.func
def nt_of(p):
    return p.nt


@qd.func
def double(x):
    return x * 2


@qd.func
def triple(x):
    return x * 3


def test_members_of_a_dataclass_that_is_passed_on():
    sim = Sim()
    found = []
    for nt in (1, 5, 9):
        sim.params.nt = nt
        found.append(sim.nt())
    assert found == [1, 5, 9]
    sim.params.nt = 2.5
    with pytest.raises(TypeError, match=r"self\.params\.nt .*cannot be converted"):
        sim.nt()


def test_another_function_in_the_place_of_one():
    sim = Sim()
    assert sim.applied() == sim.applied() == 6
    sim.act = triple
    assert sim.applied() == sim.applied() == 9


def test_an_array_of_numpy_is_known_by_what_it_holds():
    sim = Sim()
    assert sim.weight() == sim.weight() == 2
    sim.weights[1] = 7
    assert sim.weight() == sim.weight() == 7


def test_numbers_of_dataclasses_are_no_constants_either():
    with pytest.raises(qd.QuadrantsSyntaxError, match=r"self\.params\.nt is a value of run time"):
        Sim().unrolled()


@qd.kernel
def kind_of(x: qd.template()) -> qd.i32:
    return qd.static(1 if isinstance(x, bool) else 2 if isinstance(x, int) else 3)


@qd.kernel
def kind_in(x: qd.template()) -> qd.i32:
    return qd.static(1 if isinstance(x[0], bool) else 2 if isinstance(x[0], int) else 3)


def test_equal_numbers_of_other_types_are_other_template_arguments():
    for _ in range(3):
        assert [kind_of(x) for x in (1, True, 1.0)] == [2, 1, 3]
        assert [kind_in((x,)) for x in (1, True, 1.0)] == [2, 1, 3]


class Named(NamedTuple):
    of: float


class Sub(tuple):
    of = property(lambda self: self[0])


@dataclasses.dataclass(frozen=True)
class Data:
    of: float


class Inner(NamedTuple):
    inner: Data

    @property
    def of(self):
        return self.inner.of


class Own:
    def __init__(self, of):
        self.of = of

    def __eq__(self, other):
        return self.of == other.of

    def __hash__(self):
        return hash(self.of)


EQUAL = {
    "named": Named, "sub": lambda of: Sub((of,)), "data": Data, "own": Own,
    "nested": lambda of: Inner(Data(of)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*dataclass:DeprecationWarning")
@pytest.mark.parametrize("make", EQUAL.values(), ids=EQUAL)
def test_template_values_that_are_equal_may_hold_numbers_of_other_types(make):
    @qd.kernel
    def half(p: qd.template()) -> qd.f64:
        return p.of / 2 if qd.static(isinstance(p.of, float)) else p.of // 2

    for _ in range(3):
        assert [half(make(v)) for v in (3, 3.0, 3, 5.0, 5)] == [1, 1.5, 1, 2.5, 2]
    assert len(half.launchers.variants) == 2
    half(make(3))
    assert len(half.launchers.variants) == 2
