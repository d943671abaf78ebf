"""What the reference's max-reducer promises of sizes, a test for each statement of behaviour.

The statements are those of "Adstack max-reducer: parallel multi-axis MaxOverRange dispatch"; each
test is named after one. Where we do better on purpose, its docstring says so. What is kept between
launches and what makes sizes be found again is tested in `tests/adstack/test_caches.py`.
"""

import numpy as np
import pytest
from qd_studio import engine as qd

from tests.autodiff.reducer_kernels import (
    Sum,
    array,
    capacities,
    dispatches,
    evaluations,
    expected,
    integers,
)

ABOVE_CAP = (1 << 24) + 8
ONE = qd.types.ndarray(dtype=qd.i32, ndim=1)
TWO = qd.types.ndarray(dtype=qd.i32, ndim=2)


pytestmark = pytest.mark.usefixtures("backend")


def ragged_twice(s):
    """A stack around two loops, the bound of the second at an index of the first."""
    x, y = s.x, s.y

    @qd.kernel
    def k(limit: ONE, a: ONE):
        for i in range(limit.shape[0]):
            v = x[i % x.shape[0]]
            for j in range(limit[i]):
                for _ in range(a[j]):
                    v = qd.sin(v) + 0.1
            y[None] += v

    return k


# TL;DR: a reverse kernel like this one, recognised and dispatched.


def test_the_kernel_of_the_summary_lowers_to_a_max_over_range_that_is_dispatched():
    s, a = Sum(6), array([3, 0, 7, 1, 2, 5])

    k = s.by_array()
    s.agree(k, [3, 0, 7, 1, 2, 5], a)
    assert dispatches() == 1
    assert max(capacities(k)) == 7


def test_users_whose_kernels_have_no_such_range_see_no_change():
    """test_max_reducer_grammar_fallback: a constant trip count is captured by nothing."""
    s = Sum(4)
    x, y = s.x, s.y

    @qd.kernel
    def k():
        for i in range(4):
            v = x[i]
            for _ in range(5):
                v = qd.sin(v) + 0.1
            y[None] += v

    s.agree(k, [5] * 4)
    assert (dispatches(), evaluations()) == (0, 0)


def test_a_linear_body_needs_no_stack_at_all():
    """Deliberately better: ``v = v * 0.95 + 0.01``, the document's own, needs no value of v."""
    s, a = Sum(4), array([3, 0, 7, 1])
    x, y = s.x, s.y

    @qd.kernel
    def compute(a: ONE):
        for i in range(a.shape[0]):
            v = x[i]
            for _ in range(a[i]):
                v = v * 0.95 + 0.01
            y[None] += v

    np.testing.assert_allclose(s.slopes(compute, a), [0.95**3, 1.0, 0.95**7, 0.95])
    assert dispatches() == 0


# 1. Shapes that are recognised.


@pytest.mark.parametrize("dtype", ["i8", "i16", "i32", "u8", "u16", "u32", "i64", "u64"])
@pytest.mark.parametrize("source", ["ndarray", "field"])
def test_integer_reads_of_each_width_are_captured(dtype, source):
    """Deliberately better for 64 bits: the reference walks them in sequence, up to its cap."""
    s, trips, integer = Sum(4), [2, 0, 5, 1], getattr(qd, dtype)
    if source == "field":
        k, args = s.by_field(integers(trips, integer)), ()
    else:
        k, args = s.by_array(integer), (array(trips, integer),)
    s.agree(k, trips, *args)
    assert dispatches() == 1
    assert max(capacities(k)) == 5


@pytest.mark.parametrize(
    ("name", "rounds"),
    [
        ("plus", lambda t: t + 2), ("minus", lambda t: np.maximum(t - 1, 0)),
        ("times", lambda t: t * 2), ("largest", lambda t: np.maximum(t, 3)),
        ("combined", lambda t: np.maximum(t * 2 - 1, t + 1)),
    ],
)  # fmt: skip
def test_arithmetic_combinators_of_the_body_are_captured(name, rounds):
    s, trips = Sum(5), np.array([3, 0, 6, 1, 2])

    @qd.func
    def plus(a, i):
        return a[i] + 2

    @qd.func
    def minus(a, i):
        return a[i] - 1

    @qd.func
    def times(a, i):
        return a[i] * 2

    @qd.func
    def largest(a, i):
        return qd.max(a[i], 3)

    @qd.func
    def combined(a, i):
        return qd.max(a[i] * 2 - 1, a[i] + 1)

    bounds = {"plus": plus, "minus": minus, "times": times, "largest": largest}
    k = s.looping(bounds.get(name, combined))
    s.agree(k, rounds(trips), array(trips))
    assert dispatches() == 1
    assert max(capacities(k)) == rounds(trips).max()


def test_the_shape_of_an_array_in_the_body_is_captured():
    s = Sum(4)

    @qd.func
    def bound(a, i):
        return a[i] + a.shape[0]

    k = s.looping(bound)
    s.agree(k, [6, 4, 5, 4], array([2, 0, 1, 0]))
    assert max(capacities(k)) == 6


@pytest.mark.parametrize("index", ["none", "literal", "variable"])
def test_field_reads_by_none_a_constant_or_a_loop_variable(index):
    s, alone, several = Sum(3), integers(4), integers([1, 4, 4])

    @qd.func
    def none(a, i):
        return alone[None]

    @qd.func
    def literal(a, i):
        return several[1]

    @qd.func
    def variable(a, i):
        return several[i]

    k = s.looping({"none": none, "literal": literal, "variable": variable}[index])
    s.agree(k, [1, 4, 4] if index == "variable" else [4] * 3, array([0, 0, 0]))
    assert max(capacities(k)) == 4
    assert dispatches() == (index == "variable")


def test_reads_of_several_axes_are_captured_and_the_cross_product_is_enumerated():
    s, trips = Sum(3), np.array([[1, 2, 0], [0, 5, 1], [3, 0, 1]])
    x, y = s.x, s.y

    @qd.kernel
    def k(a: TWO):
        for i in range(a.shape[0]):
            v = x[i]
            for j in range(a.shape[1]):
                for _ in range(a[i, j]):
                    v = qd.sin(v) + 0.1
            y[None] += v

    s.agree(k, trips.sum(axis=1), array(trips))
    assert dispatches() >= 1
    # 3 columns of at most 5 rounds each; that the fullest row has 6 in all is not known.
    assert max(capacities(k)) == 3 * 5


def test_a_range_whose_end_is_the_maximum_of_an_array_takes_a_round_more():
    """Specs come in dependency order; results of a round are constants in the next."""
    s, limits, trips = Sum(4), np.array([1, 3, 2, 0]), np.array([2, 0, 4, 9])
    x, y = s.x, s.y

    @qd.kernel
    def k(limit: ONE, a: ONE):
        for i in range(limit.shape[0]):
            for j in range(limit[i]):
                v = x[i]
                for _ in range(a[j]):
                    v = qd.sin(v) + 0.1
                y[None] += v

    found = s.slopes(k, array(limits), array(trips))
    starts = 0.2 + 0.05 * np.arange(4)
    wanted = [sum(expected(at, n) for n in trips[:m]) for at, m in zip(starts, limits, strict=True)]
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    assert dispatches() == 2
    assert max(capacities(k)) == 4, "the 9 lies beyond the largest limit"


def test_bounds_of_nested_loops_that_depend_on_each_other_are_walked_in_sequence():
    """The whole bound is evaluated by one of the two ways, never by both."""
    s, limits, trips = Sum(4), np.array([1, 3, 2, 0]), np.array([2, 0, 4, 1])
    k = ragged_twice(s)
    s.agree(k, [trips[:n].sum() for n in limits], array(limits), array(trips))
    assert (dispatches(), evaluations()) == (0, 1)
    assert max(capacities(k)) == 3 * 4


def test_ranges_with_a_beginning_other_than_zero():
    s, trips = Sum(5), np.array([9, 1, 4, 0, 2])
    x, y = s.x, s.y

    @qd.kernel
    def k(a: ONE):
        for i in range(1, a.shape[0]):
            v = x[i]
            for _ in range(1, a[i]):
                v = qd.sin(v) + 0.1
            y[None] += v

    rounds = np.maximum(trips - 1, 0)
    wanted = [0.0, *(expected(0.2 + 0.05 * i, int(rounds[i])) for i in range(1, 5))]
    np.testing.assert_allclose(s.slopes(k, array(trips)), wanted, rtol=1e-9)
    assert max(capacities(k)) == 3, "the 9 lies before the range"


def test_an_empty_range_is_zero():
    s = Sum(3)

    k = s.by_array()
    s.agree(k, [0, 0, 0], array([0, 0, 0]))
    s.agree(k, [0, 0, 0], array([-5, 0, -1]))
    assert max(capacities(k)) == 1


# The conservative wrapper, and arithmetic indices.


BODIES = ["f[i]", "f[i] + a[i]", "a[i] + f[i]", "max(f[i], a[i])", "max(f[i], 2)",
          "max(f[i] + 0, f[i] * 1 - 0)", "f[f[i]]", "a[f[i]]"]  # fmt: skip


def eight_bodies(f):
    """Bound -> function of the array and the index."""

    @qd.func
    def alone(a, i):
        return f[i]

    @qd.func
    def plus(a, i):
        return f[i] + a[i]

    @qd.func
    def commuted(a, i):
        return a[i] + f[i]

    @qd.func
    def largest(a, i):
        return qd.max(f[i], a[i])

    @qd.func
    def at_least(a, i):
        return qd.max(f[i], 2)

    @qd.func
    def combined(a, i):
        return qd.max(f[i] + 0, f[i] * 1 - 0)

    @qd.func
    def nested(a, i):
        return f[f[i]]

    @qd.func
    def through(a, i):
        return a[f[i]]

    bounds = (alone, plus, commuted, largest, at_least, combined, nested, through)
    return dict(zip(BODIES, bounds, strict=True))


@pytest.mark.parametrize("body", BODIES)
def test_bound_variable_field_loads_are_dispatched_in_all_eight_body_shapes(body):
    f, a = np.array([3, 0, 1, 2, 3]), np.array([1, 2, 0, 4, 1])
    s, i = Sum(5), np.arange(5)
    wanted = {
        "f[i]": f, "f[i] + a[i]": f + a, "a[i] + f[i]": f + a, "max(f[i], a[i])": np.maximum(f, a),
        "max(f[i], 2)": np.maximum(f, 2), "max(f[i] + 0, f[i] * 1 - 0)": f, "f[f[i]]": f[f[i]],
        "a[f[i]]": a[f[i]],
    }[body]  # fmt: skip
    k = s.looping(eight_bodies(integers(f))[body])
    s.agree(k, wanted, array(a))
    assert dispatches() >= 1
    assert wanted.max() <= max(capacities(k)) <= max(f.max() + a.max(), 4)


@pytest.mark.parametrize("index", ["half", "remainder", "looked_up"])
def test_arithmetic_and_indirect_indices_are_taken_in_parallel(index):
    """Deliberately better: ``a[i // 2]`` walks sequentially in the reference, up to its cap."""
    s, trips = Sum(6), np.array([3, 1, 6, 0, 2, 4])
    i = np.arange(6)

    @qd.func
    def half(a, i):
        return a[i // 2]

    @qd.func
    def remainder(a, i):
        return a[i % 4]

    @qd.func
    def looked_up(a, i):
        return a[a[i] % 6]

    bounds = {"half": half, "remainder": remainder, "looked_up": looked_up}
    rounds = {"half": trips[i // 2], "remainder": trips[i % 4], "looked_up": trips[trips % 6]}
    k = s.looping(bounds[index])
    s.agree(k, rounds[index], array(trips))
    assert dispatches() >= 1


# 5. Above the cap.


def mostly_zeros(cells):
    numbers = np.zeros(cells, np.int32)
    numbers[3], numbers[-1] = 4, 6
    a = qd.ndarray(qd.i32, shape=(cells,))
    a.from_numpy(numbers)
    return a


def test_a_recognised_range_may_be_longer_than_the_cap(backend):
    """The documented kernel over more than 1 << 24 elements, most of them without a round."""
    if backend == "interp":
        pytest.skip("the interpreter would take minutes for 16 million iterations")
    s, a = Sum(1), mostly_zeros(ABOVE_CAP)
    k = s.by_array()
    wanted = ABOVE_CAP - 2 + expected(0.2, 4) + expected(0.2, 6)
    np.testing.assert_allclose(s.slopes(k, a), [wanted], rtol=1e-9)
    assert dispatches() == 1
    assert max(capacities(k)) == 6


def test_an_out_of_grammar_kernel_above_the_cap_raises():
    """An inner range that depends on the variable of an outer one is walked in sequence.

    Not the 64-bit leaf or ``a[i // 2]`` of the document, since both are dispatched here.
    """
    s, limits = Sum(1), mostly_zeros(ABOVE_CAP)
    k = ragged_twice(s)
    with pytest.raises(RuntimeError, match="exceeds the 16777216 guard; refusing to enumerate"):
        s.slopes(k, limits, array([1, 2, 0]))
    short = array([2])
    s.agree(k, [3], short, array([1, 2, 0]))


# Caches and counters.


def test_dispatch_counts_advance_on_input_mutation():
    """The first launch dispatches; a host mutation of the array makes the next one do so again."""
    s, a = Sum(3), array([1, 2, 0])
    k = s.by_array()
    s.agree(k, [1, 2, 0], a)
    first = dispatches()
    assert first >= 1
    a[2] = 9
    s.agree(k, [1, 2, 9], a)
    assert dispatches() == 2 * first
    assert max(capacities(k)) == 9


@pytest.mark.parametrize("index", [0, 3])
def test_field_cache_invalidates_on_a_mutation_at_any_index(index):
    """There is no canonical element to look at: the field's count of writes is the only signal."""
    s, trips = Sum(4), [1, 3, 0, 2]
    f = integers(trips)
    k = s.by_field(f)
    s.agree(k, trips)
    first = dispatches()
    assert first >= 1
    trips[index] = 11
    f[index] = 11
    s.agree(k, trips)
    assert dispatches() == 2 * first
    assert max(capacities(k)) == 11


def test_kernels_do_not_share_results():
    """Results are kept by kernel, stack and expression: two kernels alike have results apart."""
    s, first, second = Sum(3), array([1, 2, 0]), array([8, 0, 3])
    one, other = s.by_array(), s.by_array()
    for _ in range(2):
        s.agree(one, [1, 2, 0], first)
        s.agree(other, [8, 0, 3], second)
    assert max(capacities(one)) == 2
    assert max(capacities(other)) == 8


def test_arrays_that_may_change_unseen_are_looked_at_in_every_launch():
    """A NumPy array counts no writes: its bytes are compared."""
    s, a = Sum(3), np.array([1, 2, 0], np.int32)
    k = s.by_array()
    s.agree(k, [1, 2, 0], a)
    first = dispatches()
    a[1] = 40
    s.agree(k, [1, 40, 0], a)
    s.agree(k, [1, 40, 0], a)
    assert dispatches() == 2 * first
    a[1] = 4
    s.agree(k, [1, 4, 0], a)
    assert max(capacities(k)) == 4


def test_bounds_that_change_between_the_kernel_and_its_gradient():
    """Deliberately better than an overflow or a silently wrong result: the gradient is that of the
    kernel as it would run now."""
    s, a = Sum(3), array([1, 2, 0])
    k = s.by_array()
    k(a)
    a[1] = 12
    s.agree(k, [1, 12, 0], a)


def test_a_generous_stack_size_bypasses_the_sizer(backend):
    qd.init(
        arch=getattr(qd, backend), default_fp=qd.f64, ad_stack_experimental_enabled=True,
        offline_cache=False, ad_stack_size=50,
    )  # fmt: skip
    s, a = Sum(3), array([1, 20, 0])
    k = s.by_array()
    s.agree(k, [1, 20, 0], a)
    assert (dispatches(), evaluations()) == (0, 0)
    assert set(capacities(k)) == {50}


def test_a_captured_range_survives_the_offline_cache(backend, tmp_path):
    """The sizes are part of what the cache keeps: the next process dispatches as this one did."""
    counts = []
    for _ in range(2):
        qd.init(
            arch=getattr(qd, backend), default_fp=qd.f64, ad_stack_experimental_enabled=True,
            offline_cache=True, offline_cache_file_path=str(tmp_path),
        )  # fmt: skip
        s, a = Sum(3), array([1, 20, 0])
        k = s.by_array()
        s.agree(k, [1, 20, 0], a)
        counts.append((dispatches(), max(capacities(k))))
    assert counts[0] == counts[1]
    assert counts[0][1] == 20
