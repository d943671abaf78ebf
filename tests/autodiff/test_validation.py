"""Validation mode: the kernel runs as ever, and an element that was read keeps its value."""

import numpy as np
import pytest
from qd_studio import engine as qd

from .gradients import Problem, compiled, differentiated

A1 = qd.types.ndarray(qd.f64, 1)


pytestmark = pytest.mark.usefixtures("f64_program")


@qd.kernel
def reads_then_stores(x: A1, y: A1):
    for i in x:
        y[i] = x[(i + 1) % 4]
    for i in x:
        if i == 2:
            x[i] = 0.0


@qd.kernel
def reads_then_adds(x: A1, y: A1):
    for i in x:
        y[i] = x[0]
    x[0] += 1.0


def validate(kernel, backend, marks=None):
    x, y = np.arange(4.0), np.ones(4)
    problem = Problem.of_kernel(kernel, x, y, default_fp="f64")
    launch = compiled(differentiated(problem.source, "validation"), backend, default_fp="f64")
    values = problem.fresh()
    marks = [np.zeros(4), np.zeros(4)] if marks is None else marks
    launch([*values, *marks])
    plain = problem.fresh()
    compiled(differentiated(problem.source, "none"), backend, default_fp="f64")([*plain, *marks])
    np.testing.assert_array_equal(values[0], plain[0])
    np.testing.assert_array_equal(values[1], plain[1])
    return marks


@qd.kernel
def copies(x: A1, y: A1):
    for i in x:
        if i > 0:
            y[i] = x[i]


@pytest.mark.parametrize("backend", ["interp", "cpu"])
def test_reads_are_marked_and_stores_of_others_pass(backend):
    marks = validate(copies, backend)
    np.testing.assert_array_equal(marks[0], [0.0, 1.0, 1.0, 1.0])
    np.testing.assert_array_equal(marks[1], 0.0)


@pytest.mark.parametrize("backend", ["interp", "cpu"])
@pytest.mark.parametrize(
    ("kernel", "line"),
    [(reads_then_stores, "x[i] = 0.0"), (reads_then_adds, "x[0] += 1.0")],
    ids=lambda k: getattr(k, "name", ""),
)
def test_an_element_that_was_read_is_overwritten(kernel, line, backend):
    text = "Breaks the global data access rule. Array x is overwritten unexpectedly."
    with pytest.raises(qd.QuadrantsAssertionError) as caught:
        validate(kernel, backend)
    assert text in caught.value.message
    assert caught.value.source_line.strip() == line


@pytest.mark.parametrize("backend", ["interp", "cpu"])
def test_read_flags_of_an_earlier_kernel_count(backend):
    marks = validate(copies, backend)
    with pytest.raises(qd.QuadrantsAssertionError, match="Array x is overwritten"):
        validate(only_stores, backend, marks)


@qd.kernel
def only_stores(x: A1, y: A1):
    for i in x:
        x[i] = 2.0
