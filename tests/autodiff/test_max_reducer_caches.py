"""What the reference's max-reducer promises of caches and counters, a test for each statement."""

import numpy as np
import pytest
from qd_studio import engine as qd

from tests.autodiff.reducer_kernels import (
    Sum,
    array,
    capacities,
    dispatches,
    evaluations,
    forget_dispatches,
    integers,
)

ONE = qd.types.ndarray(dtype=qd.i32, ndim=1)


pytestmark = pytest.mark.usefixtures("backend")


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


@pytest.mark.parametrize("write", ["setitem", "fill", "from_numpy", "copy_from", "kernel"])
def test_every_way_of_writing_an_array_invalidates(write):
    s, a = Sum(3), array([1, 2, 0])
    k = s.by_array()

    @qd.kernel
    def set_all(a: ONE):
        for i in range(3):
            a[i] = 7

    s.slopes(k, a)
    first = dispatches()
    if write == "setitem":
        a[0], a[1], a[2] = 7, 7, 7
    elif write == "fill":
        a.fill(7)
    elif write == "from_numpy":
        a.from_numpy(np.full(3, 7, np.int32))
    elif write == "copy_from":
        a.copy_from(array([7, 7, 7]))
    else:
        set_all(a)
    s.agree(k, [7, 7, 7], a)
    assert dispatches() == 2 * first


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


@pytest.mark.parametrize("source", ["ndarray", "field"])
def test_in_steady_state_nothing_is_evaluated(source):
    s, trips = Sum(4), [2, 0, 5, 1]
    a, f = array(trips), integers(trips)
    k, args = (s.by_array(), (a,)) if source == "ndarray" else (s.by_field(f), ())
    s.agree(k, trips, *args)
    known = dispatches(), evaluations()
    for _ in range(5):
        s.agree(k, trips, *args)
    assert (dispatches(), evaluations()) == known


def test_another_array_in_its_place_is_looked_at():
    s, short, long = Sum(3), array([1, 2, 0]), array([4, 0, 30])
    k = s.by_array()
    for _ in range(2):
        s.agree(k, [1, 2, 0], short)
        s.agree(k, [4, 0, 30], long)
    assert dispatches() >= 2


def test_writing_an_array_that_no_size_depends_on_evaluates_nothing():
    s, a = Sum(3), array([1, 2, 0])
    k = s.by_array()
    s.slopes(k, a)
    known = dispatches(), evaluations()
    other = array([5, 5])
    other[0] = 6
    s.x[0] = 0.2
    s.agree(k, [1, 2, 0], a)
    assert (dispatches(), evaluations()) == known


def test_kernels_do_not_share_results():
    """Results are kept by kernel, stack and expression: two kernels alike have results apart."""
    s, first, second = Sum(3), array([1, 2, 0]), array([8, 0, 3])
    one, other = s.by_array(), s.by_array()
    for _ in range(2):
        s.agree(one, [1, 2, 0], first)
        s.agree(other, [8, 0, 3], second)
    assert max(capacities(one)) == 2
    assert max(capacities(other)) == 8


def test_the_counter_can_be_reset():
    s, a = Sum(3), array([1, 2, 0])
    s.slopes(s.by_array(), a)
    assert dispatches() > 0
    forget_dispatches()
    assert dispatches() == 0


def test_arrays_that_may_change_unseen_are_looked_at_in_every_launch():
    """A NumPy array counts no writes: its size is never taken from an earlier launch."""
    s, a = Sum(3), np.array([1, 2, 0], np.int32)
    k = s.by_array()
    s.agree(k, [1, 2, 0], a)
    first = dispatches()
    a[1] = 40
    s.agree(k, [1, 40, 0], a)
    s.agree(k, [1, 40, 0], a)
    assert dispatches() == 3 * first


@pytest.mark.not_on_device("it is about views of memory")
def test_a_writable_view_makes_an_array_one_that_may_change_unseen():
    s, a = Sum(3), array([1, 2, 0])
    k = s.by_array()
    s.agree(k, [1, 2, 0], a)
    view = a.to_numpy(copy=False)
    view[0] = 25
    s.agree(k, [25, 2, 0], a)


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


@pytest.mark.parametrize("rounds", [5, 100_000])
def test_too_few_entries_raise_in_release_and_the_process_goes_on(backend, rounds):
    """Deliberately better: the reference gives silent garbage for 5 and crashes for 100,000."""
    if backend == "interp" and rounds > 5:
        rounds = 1000
    qd.init(
        arch=getattr(qd, backend), default_fp=qd.f64, ad_stack_experimental_enabled=True,
        offline_cache=False, ad_stack_size=2,
    )  # fmt: skip
    s, a = Sum(2), array([1, rounds])
    k = s.by_array()
    with pytest.raises(qd.QuadrantsAssertionError, match="overflow") as raised:
        s.slopes(k, a)
    assert "compute" in str(raised.value)
    a[1] = 0
    s.agree(k, [1, 0], a)
