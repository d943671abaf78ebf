"""What kernels marked fastcache=True may not read from outside."""

import cmath
import enum
from types import SimpleNamespace

import numpy as np
import quadrants as qd

INIT = {"mistake_without_looking_at_the_source": {"src_ll_cache": False}}

number = 3
real = 1.5
text = "abc"
switch = True
Mixed = 6
exact = np.float64(2.0)


class Color(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


class Settings:
    n = 3
    N = 4

    class Inner:
        m = 5


level = Level.LOW
settings = Settings()


@qd.func
def increased(a):
    return a + 1


@qd.func
def plus_number(a):
    return a + number


@qd.func
def through(a):
    return plus_number(a)


def mistake_number():
    """[PURE.VIOLATION] WARNING: Accessing global variable number <class 'int'>"""

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return number

    k()


def mistake_real():
    """[PURE.VIOLATION] WARNING: Accessing global variable real <class 'float'>"""

    @qd.kernel(fastcache=True)
    def k() -> qd.f32:
        return real

    k()


def mistake_truth():
    """[PURE.VIOLATION] WARNING: Accessing global variable switch <class 'bool'>"""

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return switch

    k()


def mistake_text():
    """[PURE.VIOLATION] WARNING: Accessing global variable text <class 'str'>"""

    @qd.kernel(fastcache=True)
    def k():
        print(text)

    k()


def mistake_real_of_numpy():
    """[PURE.VIOLATION] WARNING: Accessing global variable exact <class 'numpy.float64'>"""

    @qd.kernel(fastcache=True)
    def k() -> qd.f64:
        return exact

    k()


def mistake_mixed_case():
    """[PURE.VIOLATION] WARNING: Accessing global variable Mixed <class 'int'>"""

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return Mixed

    k()


def mistake_member_of_an_int_enum_by_a_name():
    """[PURE.VIOLATION] WARNING: Accessing global variable level"""

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return level

    k()


def mistake_closure():
    """[PURE.VIOLATION] WARNING: Accessing global variable steps <class 'int'>"""
    steps = 3

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return steps

    k()


def mistake_field():
    """[PURE.VIOLATION] WARNING: Accessing global variable x"""
    x = qd.field(qd.i32, 4)

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return x[0]

    k()


def mistake_vector_field():
    """[PURE.VIOLATION] WARNING: Accessing global variable x"""
    x = qd.Vector.field(3, qd.i32, shape=4)

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return x[0][1]

    k()


def mistake_struct_field():
    """[PURE.VIOLATION] WARNING: Accessing global variable x"""
    x = qd.Struct.field({"a": qd.i32}, shape=4)

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return x[0].a

    k()


def mistake_loop_bound():
    """[PURE.VIOLATION] WARNING: Accessing global variable number <class 'int'>"""

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        r = 0
        for i in range(number):
            r += i
        return r

    k()


def mistake_setting_of_a_loop():
    """[PURE.VIOLATION] WARNING: Accessing global variable number <class 'int'>"""

    @qd.kernel(fastcache=True)
    def k():
        qd.loop_config(block_dim=number)
        for i in range(3):
            pass

    k()


def mistake_in_a_comprehension():
    """[PURE.VIOLATION] WARNING: Accessing global variable number <class 'int'>"""

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        x = [number for i in range(2)]
        return x[0]

    k()


def mistake_in_a_printed_text():
    """[PURE.VIOLATION] WARNING: Accessing global variable number <class 'int'>"""

    @qd.kernel(fastcache=True)
    def k():
        print(f"{number}")

    k()


def mistake_static_and_not_static():
    """[PURE.VIOLATION] WARNING: Accessing global variable number <class 'int'>"""

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        a = qd.static(number)
        b = number
        return a + b

    k()


def mistake_attribute_of_an_object():
    """[PURE.VIOLATION] WARNING: Accessing global var n from outside function scope within pure"""

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return settings.n

    k()


def mistake_attribute_of_a_class():
    """[PURE.VIOLATION] WARNING: Accessing global var n from outside function scope within pure"""

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return Settings.n

    k()


def mistake_attribute_of_an_attribute():
    """[PURE.VIOLATION] WARNING: Accessing global var m from outside function scope within pure"""

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return Settings.Inner.m

    k()


def mistake_attribute_of_another_module():
    """[PURE.VIOLATION] WARNING: Accessing global var pi from outside function scope within pure"""

    @qd.kernel(fastcache=True)
    def k() -> qd.f32:
        return cmath.pi

    k()


def mistake_value_of_an_enum():
    """[PURE.VIOLATION] WARNING: Accessing global var value from outside function scope"""

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return Color.RED.value

    k()


def mistake_attribute_as_argument():
    """[PURE.VIOLATION] WARNING: Accessing global var n from outside function scope within pure"""

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return increased(settings.n)

    k()


def mistake_field_as_attribute():
    """[PURE.VIOLATION] WARNING: Accessing global var x from outside function scope within pure"""
    holder = SimpleNamespace(x=qd.field(qd.i32, 4))

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return holder.x[0]

    k()


def mistake_in_a_function():
    """[PURE.VIOLATION] WARNING: Accessing global variable number <class 'int'>"""

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return plus_number(1)

    k()


def mistake_in_a_function_of_a_function():
    """[PURE.VIOLATION] WARNING: Accessing global variable number <class 'int'>"""

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return through(1)

    k()


def mistake_in_a_method():
    """[PURE.VIOLATION] WARNING: Accessing global variable number <class 'int'>"""

    @qd.data_oriented
    class Body:
        def __init__(self):
            self.n = 3

        @qd.kernel(fastcache=True)
        def step(self) -> qd.i32:
            return self.n + number

    Body().step()


def mistake_without_looking_at_the_source():
    """[PURE.VIOLATION] WARNING: Accessing global variable number <class 'int'>"""

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return number

    k()


def mistake_old_option():
    """[PURE.VIOLATION] WARNING: Accessing global variable number <class 'int'>"""

    @qd.kernel(pure=True)
    def k() -> qd.i32:
        return number

    k()


def mistake_old_decorator():
    """[PURE.VIOLATION] WARNING: Accessing global variable number <class 'int'>"""

    @qd.pure
    @qd.kernel
    def k() -> qd.i32:
        return number

    k()


def mistake_old_decorator_below():
    """[PURE.VIOLATION] WARNING: Accessing global variable number <class 'int'>"""

    @qd.kernel
    @qd.pure
    def k() -> qd.i32:
        return number

    k()


def mistake_old_option_beside_the_new_one():
    """[PURE.VIOLATION] WARNING: Accessing global variable number <class 'int'>"""

    @qd.kernel(pure=True, fastcache=False)
    def k() -> qd.i32:
        return number

    k()
