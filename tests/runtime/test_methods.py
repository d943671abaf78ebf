"""Kernels that are methods: how objects keep them, what compiles again, what is an error."""

import copy
import dataclasses
import gc
import pickle
import weakref

import numpy as np
import pytest
from qd_studio import engine as qd


@dataclasses.dataclass
class Settings:
    k: qd.i32
    x: qd.types.NDArray[qd.f32, 1]


@qd.data_oriented
class Part:
    def __init__(self, factor):
        self.factor = factor
        self.a = qd.ndarray(qd.f32, 3)
        self.a[1] = 1

    @qd.func
    def at(self, i):
        return self.a[i] * self.factor


@qd.data_oriented
class Sim:
    def __init__(self, n):
        self.n = n
        self.x = qd.field(qd.f32, n)
        self.arr = qd.ndarray(qd.f32, n)
        self.part = Part(2.0)
        self.tensor = qd.tensor(qd.f32, (n,))
        self.settings = Settings(5, qd.ndarray(qd.f32, 2))
        self.table = np.array([1.5, 2.5], np.float32)

    @qd.func
    def doubled(self, i):
        return self.x[i] * 2

    @qd.func
    def set(self, target: qd.template(), value=7.0):
        target = value  # noqa: F841

    @qd.kernel
    def step(self, by: qd.f32) -> qd.f32:
        for i in range(self.n):
            self.x[i] += by
            self.arr[i] = self.doubled(i)
        return self.arr[self.n - 1]

    @qd.kernel
    def parts(self) -> qd.f32:
        return self.part.at(1) + self.part.a[0]

    @qd.kernel
    def tensors(self) -> qd.f32:
        return self.tensor[1]

    @qd.kernel
    def of_settings(self) -> qd.f32:
        return self.settings.k + self.settings.x[1]

    @qd.kernel
    def by_reference(self) -> qd.f32:
        a = 1.0
        self.set(a)
        self.set(value=3.0, target=self.arr[0])
        return a * 10 + self.arr[0]

    @qd.kernel
    def constants(self) -> qd.f32:
        return self.table[1]

    def helper(self, a):
        return a + self.n

    @qd.kernel
    def plain_python(self, a: qd.i32) -> qd.i32:
        return self.helper(1) * 100 + self.helper(a)

    @property
    def whole(self):
        return self.arr

    @qd.kernel
    def through_a_property(self) -> qd.f32:
        return self.whole[1]

    @staticmethod
    @qd.kernel
    def of_nobody(a: qd.i32) -> qd.i32:
        return a + 1

    @classmethod
    @qd.kernel
    def of_the_class(cls) -> qd.i32:
        return 3


class Derived(Sim):
    @qd.func
    def doubled(self, i):
        return super().doubled(i) + 1000


pytestmark = pytest.mark.usefixtures("arch")


def compiled(kernel):
    return len(set(kernel.launchers.variants.values()))


def test_a_method_is_bound_as_python_binds_methods():
    sim = Sim(3)
    assert sim.step(1.0) == sim.step(by=0.0) == Sim.step(sim, 0) == 2
    step = sim.step
    assert step(1) == 4
    assert step.__self__ is sim
    assert sim.of_nobody(3) == Sim.of_nobody(3) == 4
    assert sim.of_the_class() == Sim.of_the_class() == 3
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'self'"):
        Sim.step()
    with pytest.raises(qd.QuadrantsSyntaxError, match="Missing argument 'by'") as caught:
        sim.step()
    assert caught.value.source_line.strip() == "def step(self, by: qd.f32) -> qd.f32:"
    with pytest.raises(qd.QuadrantsSyntaxError, match=r"Expected \(by : f32\), got \(1, 2\)"):
        sim.step(1, 2)


def test_each_object_compiles_its_own_and_once():
    first, second = Sim(3), Sim(5)
    assert [first.step(1), first.step(1), second.step(1)] == [2, 4, 2]
    kernels = [Sim.__dict__["step"].of(sim) for sim in (first, second)]
    assert kernels[0] is not kernels[1]
    assert [compiled(k) for k in kernels] == [1, 1]
    assert compiled(Sim.__dict__["step"]) == 0


def test_objects_take_their_kernels_with_them():
    sim = Sim(2)
    sim.step(1)
    kernel = weakref.ref(Sim.__dict__["step"].of(sim))
    gone = weakref.ref(sim)
    del sim
    gc.collect()
    assert gone() is None
    assert kernel() is None


def test_copies_have_kernels_of_their_own():
    sim = Sim(2)
    sim.step(1)
    other = copy.copy(sim)
    other.x = qd.field(qd.f32, 2)
    other.n = 1
    assert other.step(5) == 10
    assert sim.step(0) == 2
    assert Sim.__dict__["step"].of(other) is not Sim.__dict__["step"].of(sim)


@qd.data_oriented
class Light:
    def __init__(self, n):
        self.n = n

    @qd.kernel
    def get(self) -> qd.i32:
        return self.n


def test_objects_that_have_launched_can_be_pickled_and_copied():
    light = Light(4)
    assert light.get() == 4
    for other in (pickle.loads(pickle.dumps(light)), copy.deepcopy(light)):
        other.n = 6
        assert other.get() == 6
    assert light.get() == 4


@qd.data_oriented
class Slotted:
    __slots__ = ("n",)

    def __init__(self, n):
        self.n = n

    @qd.kernel
    def get(self) -> qd.i32:
        return self.n


def test_objects_without_attributes_of_their_own():
    first, second = Slotted(1), Slotted(2)
    assert [first.get(), second.get(), first.get()] == [1, 2, 1]


def test_numbers_are_constants_and_arrays_are_not():
    sim = Sim(3)
    sim.step(1)
    sim.n = 100  # stays 3
    sim.arr = qd.ndarray(qd.f32, 7)
    assert sim.step(1) == 4
    assert sim.arr.to_numpy().tolist() == [4, 4, 4, 0, 0, 0, 0]
    assert compiled(Sim.__dict__["step"].of(sim)) == 1


def test_other_members_compile_again():
    sim = Sim(3)
    assert (sim.step(1), sim.parts(), sim.tensors()) == (2, 2, 0)
    sim.x = qd.field(qd.f32, 3)
    sim.x[2] = 50
    assert sim.step(1) == 102
    sim.part = Part(10.0)
    sim.part.a[0] = 0.5
    assert sim.parts() == sim.parts() == 10.5
    sim.tensor = qd.tensor(qd.f32, (3,), backend=qd.Backend.FIELD)
    sim.tensor[1] = 4
    assert sim.tensors() == sim.tensors() == 4
    sim.arr = qd.ndarray(qd.f32, (2, 2))
    with pytest.raises(qd.QuadrantsIndexError, match="Array with dim 2 accessed with indices of"):
        sim.step(1)


def test_functions_properties_and_python_methods():
    sim = Sim(4)
    assert sim.by_reference() == 73
    assert sim.arr[0] == 3
    with pytest.warns(SyntaxWarning, match='Calling non-quadrants function "helper"'):
        assert sim.plain_python(3) == 507
    sim.arr[1] = 8
    assert sim.through_a_property() == 8
    assert sim.constants() == 2.5
    assert sim.of_settings() == 5
    sim.settings.x[1] = 1.5
    sim.settings.k = 6
    assert sim.of_settings() == 7.5


def test_derived_classes_override_functions():
    assert Derived(2).step(1) == 1002
    assert Sim(2).step(1) == 2


def test_known_objects_never_take_the_slow_path(arch, monkeypatch):
    if arch != "cpu":
        pytest.skip("launchers are prepared for native code only")
    sim = Sim(3)
    for _ in range(2):
        sim.step(1), sim.parts(), sim.of_settings(), sim.tensors()

    def never(*args):
        raise AssertionError("took the slow path")

    for name in ("step", "parts", "of_settings", "tensors"):
        kernel = Sim.__dict__[name].of(sim)
        monkeypatch.setattr(kernel.launchers, "call", never)
        monkeypatch.setattr(kernel.launchers, "slow", never)
    sim.arr, sim.settings = qd.ndarray(qd.f32, 3), Settings(1, np.ones(2, np.float32))
    sim.tensor = qd.tensor(qd.f32, (5,))
    assert (sim.step(1), sim.parts(), sim.of_settings(), sim.tensors()) == (6, 2, 2, 0)
    sim.x = qd.field(qd.f32, 3)
    with pytest.raises(AssertionError, match="slow path"):
        sim.step(1)


def test_a_new_program_compiles_again(arch):
    light = Light(4)
    assert light.get() == 4
    light.n = 5
    assert light.get() == 4
    qd.init(arch=getattr(qd, arch), log_level="error")
    assert light.get() == 5


@qd.data_oriented(template_primitives=False)
class Lifted:
    def __init__(self):
        self.n, self.x, self.on, self.name = 3, 1.5, True, "a"
        self.unused = 1

    @qd.kernel
    def sum(self) -> qd.f32:
        return self.n + self.x + self.on

    @qd.kernel
    def static(self) -> qd.i32:
        r = 0
        for i in qd.static(range(self.n)):
            r += i
        return r

    @qd.kernel
    def named(self) -> qd.i32:
        return qd.static(3 if self.name == "a" else 4)


def test_lifted_numbers(arch):
    lifted = Lifted()
    assert lifted.sum() == lifted.sum() == 5.5
    lifted.n, lifted.x, lifted.on = 10, 2, False
    assert lifted.sum() == 12
    lifted.unused = 2.5
    assert lifted.sum() == 12
    lifted.n = 2.5
    with pytest.raises(TypeError, match=r"Argument self.n .*'float'.* type i32"):
        lifted.sum()
    lifted.n = "x"
    with pytest.raises(TypeError, match=r"Argument self.n .*'str'"):
        lifted.sum()
    assert lifted.named() == 3
    lifted.n = 1
    with pytest.raises(qd.QuadrantsSyntaxError, match=r"self\.n is a value of run time") as caught:
        lifted.static()
    assert caught.value.source_line.strip() == "for i in qd.static(range(self.n)):"
    assert lifted.sum() == 3
    assert compiled(Lifted.__dict__["sum"].of(lifted)) == 1


@qd.data_oriented
class Baking:
    def __init__(self):
        self.k = 2
        self.lifted = Lifted()

    @qd.kernel
    def get(self) -> qd.i32:
        return self.lifted.n


@qd.data_oriented(template_primitives=False)
class Lifting:
    def __init__(self):
        self.baking = Baking()
        self.big = 2**40

    @qd.kernel
    def get(self) -> qd.i32:
        return self.baking.k

    @qd.kernel
    def get_big(self) -> qd.i64:
        return self.big


def test_the_object_that_is_called_decides_for_those_it_holds():
    baking, lifting = Baking(), Lifting()
    assert (baking.get(), lifting.get()) == (3, 2)
    baking.lifted.n = lifting.baking.k = 10
    assert (baking.get(), lifting.get()) == (3, 10)


def test_a_lifted_number_must_fit_the_default_type():
    with pytest.raises(qd.QuadrantsTypeError, match="exceeded the range of default_ip: i32"):
        Lifting().get_big()


@qd.kernel
def of_template(sim: qd.template(), i: qd.i32) -> qd.f32:
    return sim.doubled(i) + sim.n + sim.arr[i]


def test_objects_as_template_arguments():
    first, second = Sim(2), Sim(3)
    first.x[1], first.arr[1] = 10, 0.5
    assert of_template(first, 1) == of_template(first, 1) == 22.5
    assert of_template(second, 1) == 3
    first.arr = qd.ndarray(qd.f32, 2)
    assert of_template(first, 1) == 22
    assert compiled(of_template) == 2


class Plain:
    @qd.kernel
    def k(self):
        pass


def test_other_classes_are_an_error():
    for call in (Plain().k, lambda: Plain.k(Plain()), lambda: Sim.step(3, 4)):
        with pytest.raises(qd.QuadrantsSyntaxError, match=r"Please decorate class (Plain|int) "):
            call()


captured = []


@qd.kernel
def use_captured() -> qd.f32:
    return captured[0].arr[1]


def test_arrays_of_captured_objects_are_an_error():
    captured[:] = [Sim(2)]
    with pytest.raises(qd.QuadrantsCompilationError, match="is not one of its arguments") as caught:
        use_captured()
    assert "qd.types.ndarray" in caught.value.hint
    assert Light(2).get() == 2


def describes(thing, name):
    return hasattr(thing, name) and isinstance(thing, Sim)


@qd.data_oriented
class Looking:
    def __init__(self):
        self.sim = Sim(2)
        self.sim.arr[1] = 3
        self.settings = Settings(5, self.sim.arr)
        self.names = ("arr", "tensor")

    @qd.kernel
    def get(self) -> qd.f32:
        total = 0.0
        for name in qd.static(self.names):
            total += getattr(self.sim, name)[1]
        total += getattr(self, "missing", 10) + getattr(self.settings, "k")  # noqa: B009
        if qd.static(describes(self.sim, "part")):
            total += 100
        if qd.static(hasattr(self.settings, "x") and not hasattr(self.settings, "y")):
            total += 1000
        if qd.static(isinstance(self.sim, Derived) or not isinstance(self.settings, Settings)):
            total += 10000
        return total

    @qd.kernel
    def wrong(self, x: qd.f32) -> qd.i32:
        return isinstance(x, float)


def test_python_can_look_at_objects():
    looking = Looking()
    assert looking.get() == 1118
    looking.sim.arr = qd.ndarray(qd.f32, 2)
    assert looking.get() == 1115
    with pytest.raises(qd.QuadrantsTypeError, match="f32 is a value of run time"):
        looking.wrong(1)
