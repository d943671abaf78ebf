"""Calls that do not fit a kernel: each says what is wrong and where, and harms nothing."""

import dataclasses
import enum

import numpy as np
import pytest
from qd_studio import engine as qd


@qd.kernel
def scaled(x: qd.types.NDArray[qd.f32, 1], by: qd.f32) -> qd.f32:
    return x[0] * by


class Kind(enum.Enum):
    PLAIN = 1
    DOUBLE = 2


@qd.kernel
def of_kind(kind: qd.template(), x: qd.i32) -> qd.i32:
    return qd.static(2 if kind == Kind.DOUBLE else 1) * x


@qd.kernel
def constant(v: qd.template(), i: qd.i32) -> qd.f32:
    return v[i]


@qd.kernel
def member(s: qd.template()) -> qd.f32:
    return s.a + s.v[1]


pytestmark = pytest.mark.usefixtures("arch")


X = np.full(2, 3, np.float32)


@pytest.mark.parametrize(
    ("args", "kwargs", "message", "marked"),
    [
        ((X,), {}, "Missing argument 'by'.", "by: qd.f32"),
        ((), {"by": 2}, "Missing argument 'x'.", "x: qd.types.NDArray[qd.f32, 1]"),
        ((X, 2), {"by": 2}, "Multiple values for argument 'by'.", "by: qd.f32"),
        ((X, 2), {"q": 2}, "Unexpected argument 'q'.", "def scaled"),
        ((X, 2, 3), {}, "Too many arguments. Expected (x : ndarray(dtype=f32, ndim=1), by : f32),",
         "def scaled"),
    ],
)  # fmt: skip
def test_a_wrong_call_points_to_the_declaration(args, kwargs, message, marked):
    for _ in range(3):
        with pytest.raises(qd.QuadrantsSyntaxError) as caught:
            scaled(*args, **kwargs)
        error = caught.value
        assert message in error.message
        assert error.file == __file__
        assert error.function == "scaled"
        assert error.source_line[error.col : error.end_col] == marked
        assert "^" * len(marked) in str(error)
        assert scaled(X, 2) == scaled(by=2, x=X) == 6


@pytest.mark.parametrize(
    ("args", "kind", "message"),
    [
        ((3, 2), qd.QuadrantsRuntimeTypeError, "Invalid type for argument x, got 3"),
        (([1.0], 2), qd.QuadrantsRuntimeTypeError, r"Invalid type for argument x, got \[1.0\]"),
        ((X, "2"), qd.QuadrantsRuntimeTypeError, r"Argument \(1,\) \(type=<class 'str'>\)"),
        ((X, None), qd.QuadrantsRuntimeTypeError, r"Argument \(1,\) \(type=<class 'NoneType'>\)"),
        ((X.reshape(2, 1), 2), ValueError, r"required ndim=1, but 2d ndarray with shape \(2, 1\)"),
        ((X.astype(np.float64), 2), ValueError, "dtype=f32, array with dtype=f64 is provided"),
        ((np.array(["a"]), 2), ValueError, "dtype=f32, array with dtype=<U1 is provided"),
    ],
)
def test_a_wrong_argument_is_named(args, kind, message):
    for _ in range(3):
        with pytest.raises(kind, match=message) as caught:
            scaled(*args)
        reported = getattr(caught.value, "kernel", None) or caught.value.__notes__[0]
        assert "scaled" in reported
        assert scaled(X, 2) == 6


def test_template_values_are_known_by_what_they_are():
    assert of_kind(Kind.PLAIN, 5) == of_kind(Kind.PLAIN, 5) == 5
    assert of_kind(Kind.DOUBLE, 5) == 10
    assert of_kind(Kind.PLAIN, 6) == 6
    assert len(of_kind.launchers.variants) == 2


def test_vectors_as_template_values_are_known_by_what_they_hold():
    v = qd.Vector([1.5, 2.5])
    assert constant(v, 1) == constant(v, 1) == constant(qd.Vector([1.5, 2.5]), 1) == 2.5
    assert len(constant.launchers.variants) == 1
    v[1] = 9
    assert constant(v, 1) == 9
    assert constant(qd.Vector([1.5, 2.5]), 1) == 2.5
    assert len(constant.launchers.variants) == 2


def test_structs_as_template_values_are_known_by_what_they_hold():
    s = qd.Struct(a=1, v=qd.Vector([2.0, 3.0]))
    assert member(s) == member(s) == 4
    s.v[1] = 10
    assert member(s) == member(s) == 11
    s.a = 2
    assert member(s) == 12


def test_values_that_cannot_be_distinguished_are_no_template_values():
    for value in ([1, 2], {"a": 1}, {1, 2}):
        with pytest.raises(qd.QuadrantsRuntimeTypeError, match="has no hash") as caught:
            constant(value, 0)
        assert caught.value.kernel == "constant"
    with pytest.raises(qd.QuadrantsRuntimeTypeError, match="shouldn't be passed in via"):
        constant(X, 0)
    assert constant(qd.Vector([4.0]), 0) == 4


def test_arrays_of_an_ended_program_are_named(arch):
    x = qd.ndarray(qd.f32, 1)
    assert scaled(x, 2) == 0
    qd.init(arch=getattr(qd, arch), log_level="error")
    with pytest.raises(qd.QuadrantsRuntimeError, match=r"Argument x: .* program that has ended"):
        scaled(x, 2)
    assert scaled(X, 2) == 6


@dataclasses.dataclass(frozen=True)
class Frozen:
    n: int
    x: qd.types.NDArray[qd.f32, 1] = None


@qd.kernel
def of_frozen(c: qd.template()) -> qd.f32:
    return c.n if qd.static(c.x is None) else c.n + c.x[0]


def test_a_dataclass_as_a_template_value_is_better_annotated():
    x = qd.ndarray(qd.f32, 1)
    x[0] = 0.5
    for c, value in ((Frozen(1), 1), (Frozen(2), 2), (Frozen(3, x), 3.5)):
        with pytest.warns(DeprecationWarning, match="parameter 'c'.*`c: Frozen`") as reported:
            assert of_frozen(c) == value
        assert reported[0].filename == __file__
