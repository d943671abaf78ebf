"""Gradients within a budget of adstacks: the same to the bit, in as many bytes as allowed."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.errors import QuadrantsCompilationError, QuadrantsRuntimeError
from qd_studio.engine.ir import to_text
from qd_studio.engine.passes.autodiff.checkpoint_loops import LEVELS, schedule
from qd_studio.engine.runtime.program import current

from .gradients import compiled, differentiated, gradients
from .test_reverse_kernels import SIGNATURE, problem

PROGRAMS = {
    "nested_loops_of_the_launch": """
    for i in range(x.shape[0]):
        v = x[i]
        s = 0.1
        for t in range(n):
            u = v
            for j in range(n + t):
                u = qd.sin(u) + s * 0.3
            s = s + u * u * 0.1
            v = qd.cos(v * u)
        y[i] += v * s
""",
    "values_from_an_if_around_the_loop": """
    for i in range(x.shape[0]):
        if x[i] > 0.5:
            a = x[i] * 2.0
            b = a * a
            v = b
            for t in range(n * 20):
                v = qd.sin(v * a) + b * 0.1
            y[i] += v * v
        else:
            w = x[i]
            for t in range(10 * n):
                w = w * w * 0.9 + 0.1
            y[i] += w
""",
    "a_vector_with_computed_indices": """
    for i in range(x.shape[0]):
        v = qd.Vector([x[i], 0.5, 0.2, 0.7])
        for t in range(n * 15):
            k = t % 4
            v[k] = qd.sin(v[(k + 1) % 4]) + v[k] * 0.5
        y[i] += v[0] * v[3]
""",
    "continue_and_integers": """
    for i in range(x.shape[0]):
        v = x[i]
        k = 0
        for t in range(n * 11):
            if v > 0.8:
                k += 1
                v = v * 0.5
                continue
            if (k + c[i]) % 3 == 1:
                v = qd.exp(-v) + x[i]
            else:
                v = v * v + 0.3
        y[i] += v
""",
    "two_axes": """
    for i in range(x.shape[0]):
        v = x[i]
        for a, b in qd.ndrange(20, 3):
            v = qd.sin(v) * 1.1 + x[b] * (a * 0.01)
        y[i] += v
""",
    "a_search_with_while": """
    for i in range(x.shape[0]):
        v = x[i]
        for t in range(c[i], n * 10):
            k = t
            while k > 3:
                k -= 3
            v = qd.sin(v) + x[k % 3] * v * 0.3
        y[i] += v
""",
    "an_index_from_around_in_an_inner_loop": """
    for i in range(x.shape[0]):
        v = x[i]
        for t in range(n * 3):
            if x[t % 3] > 0.1:
                for j in range(n * 5):
                    v = qd.sin(v) + x[c[i] % 3] * 0.2
        y[i] += v
""",
    "a_serial_root": """
    v = x[0]
    qd.loop_config(serialize=True)
    for t in range(n * 9):
        for j in range(5):
            v = qd.sin(v) + x[j % 3] * 0.2
    y[0] += v
    for i in range(x.shape[0]):
        y[i] += x[i] * x[i]
""",
}


@pytest.mark.usefixtures("interp")
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_the_same_to_the_bit(name, tmp_path):
    made = problem(SIGNATURE + PROGRAMS[name], tmp_path)
    weights = [np.linspace(0.5, 1.5, 5) for _ in range(3)]
    plain = gradients(
        compiled(differentiated(made.source, "reverse"), "interp"), made.values, weights
    )
    func = differentiated(made.source, "reverse")
    launch = compiled(func, "interp", ad_stack_budget_bytes=300)
    for a, b in zip(plain, gradients(launch, made.values, weights), strict=True):
        assert np.array_equal(a, b)
    assert "checkpoint of" in to_text(func)


@pytest.mark.parametrize(("entry", "state"), [(8, 8), (17, 16), (400, 8), (1, 64), (8, 0)])
def test_a_schedule_is_within_its_budget(entry, state):
    for trips in (1, 7, 100, 99_991):
        for budget in (64, 500, 4000, 100_000):
            made = schedule(trips, entry, state, budget)
            if made is None:
                continue
            left, total = trips, 0
            for length in made.lengths:
                total += -(-left // length) * state
                left = min(length, left)
            assert total + left * entry <= made.bytes <= budget
            assert len(made.lengths) <= LEVELS
    opened = schedule(None, entry, state, 4000)
    assert opened is not None and opened.bytes <= 4000


def _long(steps, forward=True):
    x = qd.field(qd.f64, shape=2, needs_grad=True)
    y = qd.field(qd.f64, shape=2, needs_grad=True)

    @qd.kernel
    def walk(n: qd.i32):
        for i in x:
            v = x[i]
            w = 0.5
            for _t in range(n):
                v = qd.sin(v) * 1.01 + x[i] * 0.1
                w = w * 0.99 + v * v * 0.1
                if v > 0.7:
                    w = qd.cos(w + v * 0.1)
            y[i] += v * w

    x.from_numpy(np.array([0.1, 0.6]))
    y.grad.fill(1)
    if forward:
        walk(steps)
    walk.grad(steps)
    (sizer,) = current().stacks._sizers.values()
    (plan,) = [t for t in sizer.plan_made.tasks if t is not None]
    return x.grad.to_numpy(), plan.real_stride + plan.integer_stride


def _begin(budget):
    qd.init(
        arch=qd.cpu, ad_stack_experimental_enabled=True, ad_stack_budget_bytes=budget,
        offline_cache=False,
    )  # fmt: skip


def test_100_000_steps_in_a_hundredth_of_the_memory():
    _begin(0)
    plain, whole = _long(100_000)
    _begin(whole // 100)
    tight, part = _long(100_000)
    assert whole == 1_700_000 and part <= 17_000
    assert np.array_equal(plain, tight) and np.all(plain != 0)


def test_a_launch_that_does_not_fit_is_refused():
    _begin(200)
    too_many = "ad_stack_budget_bytes allows 200; the largest"
    with pytest.raises(QuadrantsRuntimeError, match=too_many) as e:
        _long(100_000_000, forward=False)
    assert "range(n)" in str(e.value)
    _begin(10)
    with pytest.raises(QuadrantsCompilationError, match=r"over _t at line .* leaves it 10"):
        _long(10)
