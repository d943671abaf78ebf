"""Lambdas that kernels get as template values or find in globals."""

import pytest
from qd_studio import engine as qd

C = 3
linear = lambda q: q * C + 1  # noqa: E731
several = (lambda a: a + 1, lambda a: a * 10), lambda a: (
    a - 5
)  # fmt: skip
wrong = lambda z: z + missing  # noqa: E731, F821

pytestmark = [
    pytest.mark.filterwarnings("ignore:Calling non-quadrants function"),
    pytest.mark.usefixtures("arch"),
]


@qd.kernel
def apply(f: qd.template(), x: qd.f32) -> qd.f32:
    return f(x)


@qd.kernel
def from_globals(x: qd.f32) -> qd.f32:
    return linear(x) + linear(1) * 100


@qd.kernel
def mistaken(x: qd.f32) -> qd.f32:
    return wrong(x)


def test_lambdas_are_inlined():
    (first, second), third = several
    assert [apply(f, 4.0) for f in (linear, first, second, third)] == [13, 5, 40, -1]
    assert apply(lambda x, y=2: x**y, 4.0) == 16
    assert from_globals(2.0) == 407


def test_mistakes_in_a_lambda_point_into_it():
    with pytest.raises(qd.QuadrantsNameError, match="missing") as caught:
        mistaken(1)
    error = caught.value
    assert error.source_line.startswith("wrong = lambda z: z + missing")
    assert error.source_line[error.col : error.end_col] == "missing"
    assert error.function == "<lambda>"
    assert [span.function for span in error.chain] == ["mistaken"]
    with pytest.warns(SyntaxWarning, match='function "<lambda>"'):
        assert apply(lambda x: x / 2, 4.0) == 2


def test_a_lambda_is_no_kernel():
    with pytest.raises(qd.QuadrantsSyntaxError, match="not a lambda"):
        qd.kernel(lambda x: x)
