"""What an entry says of the values that a kernel read from outside."""

import enum
import math

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.runtime.about import value_text


class Colour(enum.Enum):
    RED = 1


class Thing:
    pass


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"), (True, "True"), (0.5, "0.5"), ("a\nb", r"'a\nb'"), (None, "None"),
        (Colour.RED, "Colour.RED = 1"), ((1, 2.0), "(1, 2.0)"), ([1, (2, 3)], "[1, (2, 3)]"),
        ({"a": 1, 2: [3]}, "{'a': 1, 2: [3]}"), (np.float32(2), "float32 2.0"), (qd.f32, "f32"),
        ([qd.i32, Thing], "[i32, class Thing]"), (Thing(), "an object of Thing"),
        ([Thing()], "[an object of Thing]"), (math.sin, None), (math, None), (qd, None),
        (lambda x: x, None),
    ],
)  # fmt: skip
def test_values_as_text(value, text):
    assert value_text(value) == text


def test_arrays_and_vectors_are_distinguished_by_content():
    a = value_text(np.arange(4))
    assert a is not None and a.startswith("int64[4] ")
    assert a == value_text(np.arange(4)) != value_text(np.arange(4) + 1)
    v = value_text(qd.Vector([1.0, 2.0]))
    assert v == value_text(qd.Vector([1.0, 2.0])) != value_text(qd.Vector([1.0, 3.0]))


def test_long_values_are_cut_and_still_distinguished():
    one, other = list(range(1000)), [*range(999), -1]
    assert len(value_text(one)) < 130
    assert value_text(one) != value_text(other)


def test_values_that_hold_themselves_end():
    loop = []
    loop.append(loop)
    assert value_text(loop)


def test_integers_of_thousands_of_digits():
    assert value_text(7**9000).startswith("0x")
    assert value_text(7**9000) != value_text(7**9000 + 1)
    assert value_text([7**9000]) is not None


class Odd(enum.Enum):
    ONE = 1

    @property
    def name(self):
        raise RuntimeError("no")


@qd.kernel
def reads(a: qd.types.NDArray[qd.f32, 1]):
    for i in range(1):
        a[i] = 1.0 if qd.static(Odd.ONE is Odd.ONE) else 2.0


def test_code_of_the_user_that_raises_keeps_no_kernel_from_compiling(tmp_path):
    qd.init(arch=qd.cpu, offline_cache=True, offline_cache_file_path=str(tmp_path / "cache"))
    a = np.zeros(1, np.float32)
    reads(a)
    assert a[0] == 1.0
    assert reads.launchers.observed.layers[1].stored
