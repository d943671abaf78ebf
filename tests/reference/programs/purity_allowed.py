"""What kernels marked fastcache=True may read from outside, with a warning or without."""

import enum
import math
import warnings
from types import SimpleNamespace

import numpy as np
import quadrants as qd

INIT = {
    "case_the_names_of_kernels_that_are_not_marked": {"print_non_pure": True},
    "case_marked_kernels_are_not_named": {"print_non_pure": True},
}

number = 3
LIMIT = 4
_X1 = 5
numbers = [1, 2, 3]
pair = (4, 5)
table = {"a": 6}
array = np.array([7, 8])
small = np.int32(9)
vector = qd.Vector([1, 2, 3])
vec3 = qd.types.vector(3, qd.i32)
struct = qd.types.struct(a=qd.i32)
dtype = qd.i32


class Color(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


class Settings:
    n = 3
    N = 4

    class Inner:
        m = 5


settings = Settings()
space = SimpleNamespace(n=3, N=4, numbers=[1, 2], level=Level.LOW, math=math, inner=Settings)


@qd.func
def increased(a):
    return a + 1


@qd.func
def plus_number(a):
    return a + number


@qd.func
def plus_limit(a):
    return a + LIMIT


@qd.func
def with_default(a, b=number):
    return a + b


@qd.func
def member(s: qd.template()):
    return s.n


def python_increased(a):
    return a + number


def marked(kernel):
    """What the kernel gives, and whether it warns of something that is not pure."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = kernel()
    told = {(w.category.__name__, str(w.message)[:55]) for w in caught if "[PURE" in str(w.message)}
    return found, sorted(told)


# Warnings


def case_uppercase():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return LIMIT + _X1

    return marked(k)


def case_uppercase_closure():
    STEPS = 3

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return STEPS

    return marked(k)


def case_uppercase_in_a_function():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return plus_limit(1)

    return marked(k)


def case_uppercase_attribute():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return settings.N + Settings.N

    return marked(k)


def case_uppercase_field():
    X = qd.field(qd.i32, 4)
    X[0] = 5

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return X[0]

    return marked(k)


def case_static_bound():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        r = 0
        for i in qd.static(range(number)):
            r += i
        return r

    return marked(k)


def case_static_condition():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        r = 0
        if qd.static(number > 2):
            r = 1
        return r

    return marked(k)


def case_static_attribute():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return qd.static(settings.n)

    return marked(k)


def case_static_value_of_an_enum():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return qd.static(Color.RED.value)

    return marked(k)


def case_static_argument_of_a_function():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return increased(qd.static(number))

    return marked(k)


def case_static_assert():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        qd.static_assert(number == 3)
        return 1

    return marked(k)


def case_alias_of_a_field():
    x = qd.field(qd.i32, 4)
    x[1] = 7

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        y = qd.static(x)
        return y[1]

    return marked(k)


# Free


def case_containers():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return numbers[0] + pair[1] + table["a"] + array[1] + vector[2] + space.numbers[1]

    return marked(k)


def case_number_of_numpy():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return small

    return marked(k)


def case_types():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        x: dtype = 3
        return vec3(1)[0] + struct(a=2).a + qd.cast(2.5, dtype) + x

    return marked(k)


def case_members_of_enums():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return Level.LOW + space.level

    return marked(k)


def case_attributes_of_math_numpy_and_the_language():
    @qd.kernel(fastcache=True)
    def k() -> qd.f32:
        return math.pi + np.pi + qd.math.pi + space.math.e

    return marked(k)


def case_function():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return increased(1)

    return marked(k)


def case_default_of_a_function():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return with_default(1)

    return marked(k)


def case_object_as_argument():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return member(settings)

    return marked(k)


def case_python_functions():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return python_increased(1) + qd.static(python_increased(2))

    return marked(k)


def case_what_getattr_finds():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return qd.static(getattr(settings, "n"))  # noqa: B009

    return marked(k)


def case_what_is_never_compiled():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        r = 1
        if qd.static(False):
            r = number
        return r

    return marked(k)


def case_names_of_its_own():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        number = 5
        return number

    return marked(k)


def case_members_of_the_object():
    @qd.data_oriented
    class Body:
        K = 4

        def __init__(self):
            self.n = 3

        @qd.func
        def force(self, x):
            return x * self.K

        @qd.kernel(fastcache=True)
        def step(self) -> qd.i32:
            return self.force(self.n) + self.K

    return marked(Body().step)


def case_kernels_that_are_not_marked():
    @qd.kernel
    def k() -> qd.i32:
        return number + settings.n + plus_number(1)

    @qd.kernel(pure=False)
    def k2() -> qd.i32:
        return number

    return marked(k), marked(k2)


def case_the_names_of_kernels_that_are_not_marked():
    @qd.kernel
    def alone(a: qd.template()) -> qd.i32:
        return a

    @qd.data_oriented
    class Body:
        @qd.kernel
        def step(self, a: qd.i32) -> qd.i32:
            return a

    return alone(1), alone(1), alone(2), Body().step(1)


def case_marked_kernels_are_not_named():
    @qd.kernel(fastcache=True)
    def k(a: qd.i32) -> qd.i32:
        return a

    return k(1)
