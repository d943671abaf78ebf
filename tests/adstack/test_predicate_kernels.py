"""Kernels of users with and without predicates: their gradients are the same, the rows fewer."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.runtime import program

N, SIDE = 64, 8
F32 = qd.types.ndarray(dtype=qd.f32, ndim=1)
GRID = qd.types.ndarray(dtype=qd.f32, ndim=2)


@pytest.fixture(params=["interp", "cpu"], autouse=True)
def arch(request):
    qd.init(
        arch=request.param, offline_cache=False, ad_stack_experimental_enabled=True,
        ad_stack_sparse_threshold_bytes=0, cpu_max_num_threads=4,
    )  # fmt: skip
    yield request.param
    qd.reset()


@qd.func
def power(x, n):
    p = 1.0
    for _ in range(n):
        p = p * x
    return p


@qd.kernel
def array_element(x: F32, y: F32, m: F32, g: GRID, f: qd.template(), n: qd.i32):
    for i in range(x.shape[0]):
        if m[i] > 0.5:
            y[i] += power(x[i], n)


@qd.kernel
def field_element(x: F32, y: F32, m: F32, g: GRID, f: qd.template(), n: qd.i32):
    for i in range(x.shape[0]):
        if f[i] == 1:
            y[i] += power(x[i], n)


@qd.kernel
def other_branch(x: F32, y: F32, m: F32, g: GRID, f: qd.template(), n: qd.i32):
    for i in range(x.shape[0]):
        if m[i] <= 0.5:
            pass
        else:
            y[i] += power(x[i], n)


@qd.kernel
def both_axes(x: F32, y: F32, m: F32, g: GRID, f: qd.template(), n: qd.i32):
    for i, j in qd.ndrange(g.shape[0], g.shape[1]):
        if g[i, j] > 0.5:
            y[i * SIDE + j] += power(x[i * SIDE + j], n)


@qd.kernel
def taken_apart(x: F32, y: F32, m: F32, g: GRID, f: qd.template(), n: qd.i32):
    for i in range(x.shape[0]):
        if g[i // SIDE, i % SIDE] >= 0.5:
            y[i] += power(x[i], n)


@qd.kernel
def over_a_field(x: F32, y: F32, m: F32, g: GRID, f: qd.template(), n: qd.i32):
    for i in f:
        if f[i] > 0:
            y[i] += power(x[i], n)


@qd.kernel
def inside_another(x: F32, y: F32, m: F32, g: GRID, f: qd.template(), n: qd.i32):
    for i in range(x.shape[0]):
        if x[i] + m[i] > 0.75:  # noqa: SIM102
            if m[i] > 0.5:
                y[i] += power(x[i], n)


@qd.kernel
def around_another(x: F32, y: F32, m: F32, g: GRID, f: qd.template(), n: qd.i32):
    for i in range(x.shape[0]):
        if m[i] > 0.5:
            if x[i] < 99.0:
                y[i] += power(x[i], n)
            else:
                y[i] += power(x[i], n + 1)


CAPTURED = [
    array_element, field_element, other_branch, both_axes, taken_apart, over_a_field,
    inside_another, around_another,
]  # fmt: skip


@qd.kernel
def neighbour(x: F32, y: F32, m: F32, g: GRID, f: qd.template(), n: qd.i32):
    for i in range(x.shape[0] - 1):
        if m[i + 1] > 0.5:
            y[i + 1] += power(x[i + 1], n)


@qd.kernel
def one_axis_of_two(x: F32, y: F32, m: F32, g: GRID, f: qd.template(), n: qd.i32):
    for i, j in qd.ndrange(g.shape[0], g.shape[1]):
        if m[i * SIDE + j] > 0.5:  # noqa: SIM102
            if g[i, i] > -1.0:
                y[i * SIDE + j] += power(x[i * SIDE + j], n)


@qd.kernel
def two_elements(x: F32, y: F32, m: F32, g: GRID, f: qd.template(), n: qd.i32):
    for i in range(x.shape[0]):
        if m[i] > 0.5 * m[0]:
            y[i] += power(x[i], n)


@qd.kernel
def one_of_two(x: F32, y: F32, m: F32, g: GRID, f: qd.template(), n: qd.i32):
    for i in range(x.shape[0]):
        if m[i] > 0.5:
            y[i] += 0.5 * power(x[i], n)
        if m[i] > 0.25:
            y[i] += 0.5 * power(x[i], n)


@qd.kernel
def found_indirectly(x: F32, y: F32, m: F32, g: GRID, f: qd.template(), n: qd.i32):
    for i in range(x.shape[0]):
        if m[qd.cast(x[i] * 0.1, qd.i32) + i] > 0.5:
            y[i] += power(x[i], n)


@qd.kernel
def cut_short(x: F32, y: F32, m: F32, g: GRID, f: qd.template(), n: qd.i32):
    for i in range(x.shape[0]):
        if m[qd.cast(i, qd.u8)] > 0.5:  # 256 would be 0 again
            y[i] += power(x[i], n)


OTHERS = [neighbour, one_axis_of_two, two_elements, one_of_two, found_indirectly, cut_short]


def gradient(kernel, chosen, n):
    """The gradients of the chosen elements' powers, found by ``kernel``, and its tasks' plans."""
    x, y = (qd.ndarray(qd.f32, (N,), needs_grad=True) for _ in range(2))
    m, g, f = qd.ndarray(qd.f32, (N,)), qd.ndarray(qd.f32, (SIDE, SIDE)), qd.field(qd.i32, shape=N)
    x.from_numpy(np.linspace(0.5, 1.5, N).astype(np.float32))
    y.grad.fill(1.0)
    m.from_numpy(chosen.astype(np.float32))
    g.from_numpy(chosen.astype(np.float32).reshape(SIDE, SIDE))
    f.from_numpy(chosen.astype(np.int32))
    kernel.grad(x, y, m, g, f, n)
    (variant,) = set(kernel.grad.launchers.variants.values())
    tasks = program.current().stacks.sizer(variant.executable).plan_made.tasks
    want = np.where(chosen, n * x.to_numpy() ** (n - 1), 0)
    np.testing.assert_allclose(x.grad.to_numpy(), want, rtol=1e-4)
    return [t for t in tasks if t is not None], variant.executable.meta


@pytest.mark.parametrize("kernel", CAPTURED, ids=lambda k: k.name)
@pytest.mark.parametrize("passing", [0, 1, 3, 40])
def test_a_predicate_makes_rows_for_what_passes(arch, kernel, passing):
    chosen = np.zeros(N, bool)
    chosen[np.random.default_rng(passing).permutation(np.arange(1, N))[:passing]] = True
    (task,), meta = gradient(kernel, chosen, 3)
    assert [bool(t.predicate) for t in meta.tasks if t.stacks] == [True]
    assert task.real_rows == (1 if arch == "interp" else min(max(passing, 1), 4))


@pytest.mark.parametrize("kernel", OTHERS, ids=lambda k: k.name)
def test_without_a_predicate_every_thread_has_a_row(arch, kernel):
    chosen = np.zeros(N, bool)
    chosen[[5, 9]] = True
    if kernel is two_elements:
        chosen[0] = True
    (task,), meta = gradient(kernel, chosen, 4)
    assert [t.predicate for t in meta.tasks if t.stacks] == [""]
    assert task.real_rows == (1 if arch == "interp" else 4)
    assert not task.predicated


def test_a_predicate_that_is_changed_between_launches(arch):
    x, y = (qd.ndarray(qd.f32, (N,), needs_grad=True) for _ in range(2))
    m, g, f = qd.ndarray(qd.f32, (N,)), qd.ndarray(qd.f32, (SIDE, SIDE)), qd.field(qd.i32, shape=N)
    x.fill(1.0)
    y.grad.fill(1.0)
    stacks = program.current().stacks
    for turn, passing in enumerate([0, 1, 1, 30, 2]):
        m.fill(0)
        for i in range(passing):
            m[i] = 1
        for again in range(2):
            x.grad.fill(0)
            before = stacks.evaluated
            array_element.grad(x, y, m, g, f, 2)
            assert x.grad.to_numpy().sum() == 2 * passing
            if arch == "cpu":
                assert (stacks.evaluated > before) is (again == 0), turn
