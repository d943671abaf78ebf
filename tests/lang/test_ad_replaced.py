"""Gradients of one's own, and functions without any."""

import numpy as np
import pytest
from qd_studio import engine as qd

pytestmark = pytest.mark.usefixtures("arch")


@pytest.fixture
def parts():
    """A field x of 1, 2, 3, a loss y, and a kernel that adds the squares of x to y."""
    x, y = qd.field(qd.f64, 3, needs_grad=True), qd.field(qd.f64, (), needs_grad=True)
    x.from_numpy(np.array([1.0, 2.0, 3.0]))

    @qd.kernel
    def k(scale: qd.f64):
        for i in x:
            y[None] += scale * x[i] ** 2

    return x, y, k


def test_the_replacement_runs_instead(parts):
    x, y, k = parts
    seen = []

    @qd.ad.grad_replaced
    def step(scale, *, times=1):
        """Several kernels."""
        for _ in range(times):
            k(scale)
        return "done"

    @qd.ad.grad_for(step)
    def step_grad(scale, times=1):
        seen.append((scale, times))
        k.grad(scale * 10)

    with qd.ad.Tape(y) as tape:
        assert step(1.0) == "done"
        step(2.0, times=3)
        k(1.0)
    assert len(tape.calls) == 3 and y[None] == 14.0 * 8
    assert seen == [(2.0, 3), (1.0, 1)]
    assert x.grad.to_numpy().tolist() == [2.0 * 31, 4.0 * 31, 6.0 * 31]
    assert step.__name__ == "step" and step.__doc__ == "Several kernels."
    assert step(1.0) == "done"  # outside of tapes too


def test_methods_and_a_second_gradient_that_calls_kernels(parts):
    x, y, k = parts

    class Solver:
        def __init__(self, scale):
            self.scale = scale

        @qd.ad.grad_replaced
        def solve(self, n):
            for _ in range(n):
                k(self.scale)

        @qd.ad.grad_for(solve)
        def solve_grad(self, n):
            k.grad(self.scale * n)
            k(0.0)  # recorded nowhere

    solver = Solver(2.0)
    with qd.ad.Tape(y) as tape:
        solver.solve(4)
    assert len(tape.calls) == 1
    assert x.grad.to_numpy().tolist() == [16.0, 32.0, 48.0]


def test_nested_functions_are_one_step(parts):
    x, y, k = parts

    @qd.ad.no_grad
    def inner():
        k(1.0)

    @qd.ad.grad_replaced
    def outer():
        inner()
        k(1.0)

    @qd.ad.grad_for(outer)
    def outer_grad():
        k.grad(100.0)

    with qd.ad.Tape(y) as tape:
        outer()
        inner()
        k(1.0)
    assert len(tape.calls) == 3
    assert x.grad.to_numpy().tolist() == [202.0, 404.0, 606.0]


def test_errors_within_leave_the_tape_watching(parts):
    x, y, k = parts

    @qd.ad.no_grad
    def fails():
        k(1.0)
        raise ValueError("inside")

    with qd.ad.Tape(y):
        with pytest.raises(ValueError, match="inside"):
            fails()
        k(1.0)
    assert x.grad.to_numpy().tolist() == [2.0, 4.0, 6.0]


def test_without_a_gradient_a_replaced_function_is_an_error(parts):
    x, y, k = parts

    @qd.ad.grad_replaced
    def step():
        k(1.0)

    with pytest.raises(qd.QuadrantsRuntimeError, match="step is decorated with") as caught:  # noqa: SIM117
        with qd.ad.Tape(y):
            step()
    assert "@qd.ad.grad_for(step)" in caught.value.hint
    assert y[None] == 14.0 and not x.grad.to_numpy().any()


def test_parts_are_computed_again_instead_of_kept(parts):
    x, y, k = parts
    z = qd.field(qd.f64, 3, needs_grad=True)

    @qd.kernel
    def double():
        for i in x:
            z[i] = 2 * x[i]

    @qd.kernel
    def add():
        for i in z:
            y[None] += z[i] ** 2

    @qd.ad.grad_replaced
    def step():
        double()
        add()

    @qd.ad.grad_for(step)
    def step_grad():
        with qd.ad.Tape(clear_gradients=False) as tape:
            double()
            add()
        tape.grad()

    with qd.ad.Tape(y) as tape:
        step()
        k(1.0)
    assert len(tape.calls) == 2
    assert x.grad.to_numpy().tolist() == [10.0, 20.0, 30.0]


def test_no_grad_of_a_kernel(parts):
    x, y, k = parts
    silent = qd.ad.no_grad(k)
    with qd.ad.Tape(y):
        silent(5.0)
        k(1.0)
    assert y[None] == 14.0 * 6 and x.grad.to_numpy().tolist() == [2.0, 4.0, 6.0]
    assert silent.grad(5.0) is None and x.grad.to_numpy().tolist() == [2.0, 4.0, 6.0]


def test_mistakes():
    for decorator in (qd.ad.grad_replaced, qd.ad.no_grad):
        with pytest.raises(TypeError, match="decorates a Python function, not 3"):
            decorator(3)


def test_an_ndarray_may_get_other_gradients():
    @qd.kernel
    def squares(x: qd.types.ndarray(qd.f32, 1), y: qd.types.ndarray(qd.f32, 1)):
        for i in x:
            y[0] += x[i] * x[i]

    x, y = qd.ndarray(qd.f32, 3), qd.ndarray(qd.f32, 1, needs_grad=True)
    x.fill(2.0)
    y.grad.fill(1.0)
    for other in (qd.ndarray(qd.f32, 3), qd.ndarray(qd.f32, 3)):
        x.grad = other
        squares(x, y)
        squares.grad(x, y)
        assert other.to_numpy().tolist() == [4.0, 4.0, 4.0]
    wrong = (
        qd.ndarray(qd.f32, 2), qd.ndarray(qd.f64, 3), qd.ndarray(qd.types.vector(2, qd.f32), 3),
        np.zeros(3, np.float32),
    )  # fmt: skip
    for value in wrong:
        with pytest.raises(TypeError, match="same type and shape"):
            x.grad = value
    assert x.grad is other
