"""Workload and check declarations: what they give, and what they refuse."""

from types import SimpleNamespace

import numpy as np
import pytest
from qd_studio.engine.lang import workload


@pytest.fixture
def kernel():
    return SimpleNamespace(name="k", workloads=[], checks=[])


def test_cases_are_every_combination_last_size_fastest(kernel):
    @workload.declare(kernel, n=[1, 2], m=[10, 20])
    def args(n, m):
        return n, m

    cases = kernel.workloads[0].cases()
    assert [c.label for c in cases] == ["n=1, m=10", "n=1, m=20", "n=2, m=10", "n=2, m=20"]
    assert [c.make() for c in cases] == [(1, 10), (1, 20), (2, 10), (2, 20)]
    assert cases[1].sizes == {"n": 1, "m": 20}
    assert args(3, 4) == (3, 4)


def test_one_argument_may_are_alone_and_is_fresh_each_time(kernel):
    workload.declare(kernel, n=4)(lambda n: np.zeros(n))
    (case,) = kernel.workloads[0].cases()
    first, second = case.make(), case.make()
    assert len(first) == 1
    assert first[0] is not second[0]


def test_no_sizes_is_one_case(kernel):
    @workload.declare(kernel)
    def fixed():
        return 1, 2

    (case,) = kernel.workloads[0].cases()
    assert case.label == "fixed"
    assert case.make() == (1, 2)


def test_amounts_take_the_sizes_they_name(kernel):
    workload.declare(kernel, n=[8], m=[2], bytes=lambda n: 4 * n, flops=100)(lambda n, m: ())
    declared = kernel.workloads[0]
    assert declared.amount("bytes", {"n": 8, "m": 2}) == 32
    assert declared.amount("flops", {"n": 8, "m": 2}) == 100


def test_missing_amount_is_none(kernel):
    workload.declare(kernel, n=[8])(lambda n: ())
    assert kernel.workloads[0].amount("bytes", {"n": 8}) is None


@pytest.mark.parametrize(
    ("options", "function", "message"),
    [
        ({"n": [1]}, lambda m: m, "has a parameter m, which is not a size; sizes: n"),
        ({"n": [1], "m": [1]}, lambda n: n, "does not take the size m"),
        ({"n": []}, lambda n: n, "size n has no values"),
        ({"n": [3, 3]}, lambda n: n, "size n has a value twice"),
        ({"n": [object()]}, lambda n: n, "must be a number or text"),
        ({"n": [1]}, 17, "decorates a function, not 17"),
        ({"n": [1], "bytes": 1.5}, lambda n: n, "bytes must be an integer or a function"),
        ({"n": [1], "flops": lambda q: q}, lambda n: n, "has a parameter q, which is not a size"),
    ],
)
def test_errors_name_the_kernel_and_the_mistake(kernel, options, function, message):
    with pytest.raises((TypeError, ValueError), match=r"k\.workload") as caught:
        workload.declare(kernel, **options)(function)
    assert message in str(caught.value)
    assert kernel.workloads == []


def test_a_function_that_returns_nothing_is_an_error_when_made(kernel):
    workload.declare(kernel, n=[1])(lambda n: None)
    (case,) = kernel.workloads[0].cases()
    with pytest.raises(TypeError, match="returned no arguments"):
        case.make()


def test_check_must_take_three_arguments(kernel):
    with pytest.raises(TypeError, match=r"must take \(before, after, result\)"):
        workload.check(kernel, lambda after: None)
    with pytest.raises(TypeError, match="decorates a function"):
        workload.check(kernel, 3)

    def fine(before, after, result=None):
        return None

    assert workload.check(kernel, fine) is fine
    assert kernel.checks == [fine]
