"""Comparing results: what counts as equal, and how the difference is reported."""

import math

import numpy as np
import pytest
from qd_studio.engine.inspect.agreement import compare


def one(ours, theirs):
    return compare(["x"], [ours], [theirs])


def test_equal_is_equal():
    x = np.array([0.0, -0.0, math.nan, math.inf, -math.inf, 1e-45, 3.5], np.float32)
    found = one(x, x.copy())
    assert found.agrees
    assert (found.max_abs, found.max_rel, found.max_ulp, found.first_difference) == (0, 0, 0, "")


@pytest.mark.parametrize(
    ("ours", "theirs", "text"),
    [
        (math.nan, 1.0, "x[1]: got nan, interpreter 1.0"),
        (math.inf, 1.0, "x[1]: got inf, interpreter 1.0"),
        (math.inf, -math.inf, "x[1]: got inf, interpreter -inf"),
        (1.5, 1.0, "x[1]: got 1.5, interpreter 1.0"),
    ],
)
def test_what_differs_is_named(ours, theirs, text):
    found = one(np.array([0, ours], np.float32), np.array([0, theirs], np.float32))
    assert not found.agrees
    assert found.first_difference == text
    assert all(map(math.isfinite, found[1:4]))


def test_integers_are_exact():
    x = np.arange(6).reshape(2, 3)
    y = x.copy()
    assert one(x, y).agrees
    y[1, 2] += 1
    found = one(x, y)
    assert found.first_difference == "x[1, 2]: got 5, interpreter 6"
    assert found.tolerance == "integers exact"
    assert not one(np.uint64(2**64 - 1), np.uint64(2**64 - 2)).agrees


@pytest.mark.parametrize(
    ("dtype", "near", "far"),
    [(np.float16, 1e-2, 0.1), (np.float32, 5e-5, 1e-3), (np.float64, 1e-10, 1e-8)],
)
def test_floats_may_differ_a_little(dtype, near, far):
    x = np.array([100.0], np.float64)
    assert one(x.astype(dtype), (x * (1 + near)).astype(dtype)).agrees
    assert not one(x.astype(dtype), (x * (1 + far)).astype(dtype)).agrees


def test_small_values_next_to_large_ones_may_lose_digits():
    assert one(np.array([1000.0, 0.001], np.float32), np.array([1000.0, 0.0], np.float32)).agrees
    assert not one(np.array([1.0, 0.001], np.float32), np.array([1.0, 0.0], np.float32)).agrees
    assert not one(np.float32(0.001), np.float32(0.0)).agrees


def test_ulps_are_counted_across_zero():
    up = np.nextafter(np.float32(1), np.float32(2))
    assert one(up, np.float32(1)).max_ulp == 1
    tiny = np.float32(1e-45)
    assert one(tiny, -tiny).max_ulp == 2
    assert one(np.nextafter(1.0, 2.0), 1.0).max_ulp == 1


def test_errors_are_finite_even_for_the_largest_values():
    found = one(np.array([1.7e308]), np.array([-1.7e308]))
    assert not found.agrees
    assert all(map(math.isfinite, found[1:4]))


def test_the_first_of_several_values_is_reported():
    found = compare(["a", "b", "c"], [1, 2, 3], [1, 5, 6])
    assert found.first_difference == "b: got 2, interpreter 5"


def test_another_shape_differs():
    assert "shape (2,), interpreter (3,)" in one(np.zeros(2), np.zeros(3)).first_difference


def test_empty_arrays_agree():
    assert one(np.zeros(0, np.float32), np.zeros(0, np.float32)).agrees


def test_errors_of_integers_and_how_many_differ_are_reported():
    ours = np.array([1, 2, 3, 2**62 + 1], np.int64)
    theirs = np.array([1, 2, 3, -(2**62)], np.int64)
    found = compare(["n"], [ours], [theirs])
    assert not found.agrees and (found.elements, found.differing) == (4, 1)
    assert found.max_abs == float(2**63 + 1) and found.max_rel > 1.9 and found.max_ulp == 0
    found = compare(["n"], [np.array([5, 0], np.uint8)], [np.array([0, 1], np.uint8)])
    assert (found.max_abs, found.max_rel, found.differing) == (5.0, 1.0, 2)
    found = compare(["b"], [np.array([True, False])], [np.array([True, True])])
    assert (found.max_abs, found.differing) == (1.0, 1)


def test_numbers_that_some_backends_flush_count_as_0():
    """CUDA makes f32 values below the smallest normal one 0 under fast_math; the CPU does not."""
    tiny = np.array([1e-45, -1e-39, 0.0], np.float32)
    assert one(np.zeros(3, np.float32), tiny).agrees and one(tiny, -tiny).agrees
    assert "or less than 1.2e-38" in one(tiny, tiny).tolerance
    assert not one(np.float32([0.0]), np.float32([1.2e-38])).agrees
    # Nothing flushes those of f64.
    assert not one(np.array([0.0]), np.array([1e-310])).agrees
