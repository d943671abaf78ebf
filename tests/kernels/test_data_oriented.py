"""Kernels and functions as methods of `qd.data_oriented` classes."""

import pytest
from qd_studio import engine as qd


@qd.data_oriented
class Helper:
    def __init__(self, m):
        self.m = m

    @qd.func
    def plus(self, x):
        return x + self.m


@qd.data_oriented
class Model:
    constant = 3

    def __init__(self, n):
        self.n = n
        self.f = qd.field(qd.f32, shape=n)
        self.v = qd.Vector([1.0, 2.0])
        self.scale = 2.5
        self.helper = Helper(4)
        self.numbers = [1, 2, 3]

    @qd.kernel
    def fill(self, k: qd.f32):
        for i in range(self.n):
            self.f[i] = self.at(i) * k + self.two + self.constant

    @qd.func
    def at(self, i):
        return i * self.scale + self.helper.plus(1) + self.hundred(i)

    @staticmethod
    @qd.func
    def hundred(x):
        return x * 100

    @property
    def two(self):
        return 2

    @qd.kernel
    def members(self) -> qd.f32:
        return self.v.x + self.v[1] + self.numbers[2]

    def plain(self):
        return self.members()

    @classmethod
    def three(cls):
        return cls.constant


class Derived(Model):
    @qd.kernel
    def extra(self) -> qd.f32:
        return self.f[1] + self.n


@qd.data_oriented(template_primitives=False)
class Lifted:
    def __init__(self):
        self.k = 2
        self.x = 1.5
        self.on = True

    @qd.kernel
    def run(self) -> qd.f32:
        total = 0.0
        for _i in range(self.k):
            total += self.x
        if self.on:
            total += 100
        return total


@pytest.fixture(params=("cpu", "interp"), autouse=True)
def arch(request):
    qd.init(arch=getattr(qd, request.param), log_level="error")
    yield
    qd.reset()


def test_methods_see_members_functions_properties_and_static_methods():
    model = Model(4)
    model.fill(2.0)
    assert model.f.to_numpy().tolist() == [15.0, 220.0, 425.0, 630.0]
    assert model.members() == model.plain() == 6.0
    assert model.three() == 3


def test_each_object_has_its_own_members():
    first, second = Model(4), Model(3)
    second.scale = 1.0
    second.fill(1.0)
    first.fill(1.0)
    assert second.f.to_numpy().tolist() == [10.0, 111.0, 212.0]
    assert first.f.to_numpy().tolist() == [10.0, 112.5, 215.0, 317.5]


def test_derived_classes_inherit_kernels():
    model = Derived(2)
    model.fill(1.0)
    assert model.extra() == 114.5


def test_lifted_members_are_read_at_each_launch():
    model = Lifted()
    assert model.run() == 103.0
    model.k, model.x, model.on = 5, 2.0, False
    assert model.run() == 10.0
    model.k = 2.5
    with pytest.raises(TypeError, match="cannot be converted into required type i32"):
        model.run()
    model.k = 1
    assert model.run() == 2.0


class Undecorated:
    @qd.kernel
    def k(self):
        pass


def test_an_undecorated_class_is_an_error():
    with pytest.raises(qd.QuadrantsSyntaxError, match="Please decorate class Undecorated with"):
        Undecorated().k()
