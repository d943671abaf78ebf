"""`inspect.check_gradient`: all wrong entries, losses of any size, and NaN at a kink."""

import pytest
from qd_studio import engine as qd
from qd_studio.app.core.views.gradients import gradient_lines
from qd_studio.engine.inspect import check_gradient

from tests.inspect.gradient_arrays import F32, F64, I32, f32, f64, i32


@pytest.fixture(autouse=True)
def program():
    qd.init(arch=qd.cpu, offline_cache=False, cpu_max_num_threads=2)
    yield
    qd.reset()


@qd.kernel
def overwritten_twice(x: F32, z: F32, to: I32, y: F32):
    for i in x:
        y[0] += x[i] * x[i] + z[i] ** 3
    for i in range(2):
        x[to[i]] = 1.0
    for i in z:
        z[to[i]] = 2.0


def test_each_wrong_entry_of_small_arrays_is_counted_and_the_worst_are_listed():
    args = f32(0.1, 0.2, 0.3), f32(0.5, 0.6, 0.7), i32(2, 1, 0), f32(0.0)
    found = check_gradient(overwritten_twice, *args)
    assert [(c.name, c.wrong, c.size, c.all) for c in found.counts] == [
        ("x", 2, 3, True), ("z", 3, 3, True)
    ]  # fmt: skip
    errors = [abs(e.reverse - e.differences) for e in found.worst]
    assert errors == sorted(errors, reverse=True) and len(errors) == 5
    assert [e.cause for e in found.worst] == ["overwritten"] * 5
    assert {(e.name, e.index) for e in found.worst} == {
        *(("x", (i,)) for i in (1, 2)), *(("z", (i,)) for i in range(3))
    }  # fmt: skip
    assert (found.name, found.index) == (found.worst[0].name, found.worst[0].index)
    lines = {e.name: e.line for e in found.worst}
    assert lines["z"] - lines["x"] == 2
    shown = ["".join(text for text, _ in line.spans) for line in gradient_lines(found)]
    assert any(s.startswith("  wrong       2 of the 3 elements of x, 3 of the 3") for s in shown)
    assert sum("an overwritten value  test_gradient_entries.py:" in s for s in shown) == 5


@qd.kernel
def length(x: F32, y: F32):
    for _ in range(1):
        y[0] += qd.Vector([x[0], x[1]]).norm()


def test_a_gradient_that_is_no_number_at_a_kink_is_wrong():
    found = check_gradient(length, f32(0.0, 0.0, 1.0), f32(0.0))
    assert (found.state, found.cause, found.reverse) == ("wrong", "kink", None)
    assert "sqrt has no unique derivative here" in found.why and "no finite number" in found.why
    assert [(c.wrong, c.size) for c in found.counts] == [(2, 3)]


@qd.kernel
def large_loss(x: F32, y: F32):
    for i in x:
        y[0] += qd.sqrt(x[i])


def test_a_loss_whose_rounding_hides_small_steps_gets_larger_ones():
    found = check_gradient(large_loss, f32(1e18, 2e18), f32(0.0))
    assert found.state == "right", found


@qd.kernel
def large_doubles(x: F64, y: F64):
    for i in x:
        y[0] += x[i] * x[i]


def test_derivatives_near_the_end_of_the_range_raise_no_warning():
    found = check_gradient(large_doubles, f64(1e150, 2e150), f64(0.0))
    assert (found.state, found.cause) == ("unknown", "noise")
