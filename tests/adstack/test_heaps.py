"""The two heaps that adstacks lie in: rows, growth, threads, programs, processes."""

import os
import re
import threading

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.base import StackMeta
from qd_studio.engine.errors import QuadrantsRuntimeError
from qd_studio.engine.ir import UNKNOWN
from qd_studio.engine.runtime import program
from qd_studio.engine.runtime import stacks as stacks_module
from qd_studio.engine.runtime.sizer import packed
from qd_studio.engine.types import f16, f32, f64, i8, i32, i64, u1

from .launchkit import EXACT, RAGGED, Case, compiled, launch

I32 = qd.types.ndarray(dtype=qd.i32, ndim=1)
F32 = qd.types.ndarray(dtype=qd.f32, ndim=1)


def stack(dtype, adjoint=None):
    adjoint = dtype.is_real if adjoint is None else adjoint
    return StackMeta("s", dtype, adjoint, "", 1, "", UNKNOWN)


@pytest.mark.parametrize("metas, capacities, offsets, strides", [
    ([stack(f32), stack(f64)], (3, 2), (32, 0), (56, 0)),
    ([stack(f16), stack(f64, False), stack(f32)], (3, 1, 1), (16, 0, 8), (32, 0)),
    ([stack(i32), stack(f32), stack(u1), stack(i64)], (2, 5, 3, 1), (8, 0, 16, 0), (40, 24)),
    ([stack(i8)], (7,), (0,), (0, 7)),
])  # fmt: skip
def test_nothing_is_between_the_stacks_of_a_row(metas, capacities, offsets, strides):
    plan = packed(metas, capacities, 4, 2)
    assert plan.offsets == offsets
    assert (plan.real_stride, plan.integer_stride) == strides
    for meta, offset in zip(metas, offsets, strict=True):
        assert offset % meta.dtype.size == 0
    for real, stride in zip((True, False), strides, strict=True):
        bare = sum(m.entry * n for m, n in zip(metas, capacities, strict=True) if m.real is real)
        widest = max([m.dtype.size for m in metas if m.real is real], default=1)
        assert bare <= stride < bare + widest


def test_a_heap_grows_to_twice_its_size_at_least(arch):
    case = Case(qd, [3, 1])
    stacks = program.current().stacks
    rows = 1 if arch == "interp" else stacks.threads
    case.check()
    assert stacks.real.size == rows * 4 * 8 and stacks.integer.size == 0
    case.check(1)
    assert stacks.real.size == 2 * rows * 4 * 8
    case.check(100)
    assert stacks.real.size == rows * 104 * 8
    case.check()
    assert stacks.real.size == rows * 104 * 8, "and it never shrinks"
    assert stacks.real.address % 64 == 0


def test_plans_follow_the_heap(arch):
    """A launch that grows the heap makes the plans of other kernels void."""
    small, large = Case(qd, [2, 3, 1]), Case(qd, [5, 1], loop="strictly_serialized=True")
    small.check()
    first = small.sizer.plan_made
    large.check(60)
    assert small.sizer.ready is None
    small.check()
    assert small.sizer.plan_made.real_heap == program.current().stacks.real.address
    assert small.sizer.plan_made.tasks == first.tasks


def test_planned_memory_is_reported(monkeypatch, capfd):
    monkeypatch.setenv("QD_DEBUG_ADSTACK", "1")
    qd.init(arch=qd.cpu, cpu_max_num_threads=2, ad_stack_experimental_enabled=True)
    x, y = qd.ndarray(qd.f32, 8, needs_grad=True), qd.ndarray(qd.f32, 8, needs_grad=True)

    @qd.kernel
    def k(x: F32, y: F32, n: qd.i32):
        for i in x:
            a = x[i]
            for _ in range(n):
                a = qd.sin(a)
            y[i] = a

    for n in (3, 3, 30):
        k.grad(x, y, n)
    said = capfd.readouterr().err.splitlines()
    arch = program.current().config.arch
    qd.reset()
    form = rf"\[adstack_heap\] arch={arch} kernel=k_reverse_grad task_idx=0 kind=F src=threads"
    form += r" effective_rows=(\d+) stride=(\d+) required_bytes=(\d+)"
    found = [[*map(int, m.groups())] for m in map(re.compile(form).fullmatch, said) if m]
    assert [stride for _, stride, _ in found] == [12, 120]
    assert all(rows * stride == needed for rows, stride, needed in found)


def test_a_serial_task_has_one_row(cpu):
    case = Case(qd, [2, 3, 1], loop="strictly_serialized=True")
    case.check()
    (task,) = case.sizer.plan_made.tasks
    assert (task.real_rows, task.integer_rows) == (1, 1)


def gradient_kernel():
    @qd.kernel
    def k(x: F32, y: F32, a: I32):
        for i in range(x.shape[0]):
            p = 1.0
            for _ in range(a[i]):
                p = p * x[i]
            y[i] += p

    return k


def arrays(n, power):
    x, y = (qd.ndarray(qd.f32, (n,), needs_grad=True) for _ in range(2))
    a = qd.ndarray(qd.i32, (n,))
    a.fill(power)
    x.from_numpy(np.linspace(0.5, 1.0, n).astype(np.float32))
    y.grad.fill(1)
    return x, y, a


def right(x, power, times=1):
    want = times * power * x.to_numpy() ** max(power - 1, 0)
    np.testing.assert_allclose(x.grad.to_numpy(), want, rtol=1e-3)


@pytest.fixture
def gradients():
    qd.init(arch=qd.cpu, offline_cache=False, ad_stack_experimental_enabled=True)
    yield
    qd.reset()


def test_two_threads_launch_gradients(gradients):
    kernels = [gradient_kernel(), gradient_kernel()]
    data = [arrays(200, 3), arrays(300, 5)]
    errors = []

    def work(number):
        try:
            x, y, a = data[number]
            for turn in range(60):
                if turn % 20 == 10:
                    a.fill(3 + 2 * number)
                kernels[number].grad(x, y, a)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    right(data[0][0], 3, 60)
    right(data[1][0], 5, 60)


def test_a_gradient_is_launched_while_a_kernel_prints(gradients, monkeypatch):
    k, (x, y, a) = gradient_kernel(), arrays(4, 3)
    for _ in range(3):
        k.grad(x, y, a)
    x.grad.fill(0)
    seen = []

    class Out:
        def write(self, text):
            seen.append(text)
            k.grad(x, y, a)

        def flush(self):
            pass

    @qd.kernel
    def reports(n: qd.i32):
        for i in range(n):
            print(i)

    monkeypatch.setattr("sys.stdout", Out())
    reports(3)
    monkeypatch.undo()
    assert len(seen) == 3
    right(x, 3, 3)


@pytest.mark.parametrize("ending", [qd.reset, lambda: qd.init(arch=qd.cpu)])
def test_the_end_of_a_program_frees_the_heaps(gradients, ending):
    k, (x, y, a) = gradient_kernel(), arrays(4, 3)
    k.grad(x, y, a)
    stacks = program.current().stacks
    assert stacks.real.size > 0
    ending()
    assert stacks.real.size == 0 and stacks.real.memory is None
    qd.init(arch=qd.cpu, offline_cache=False, ad_stack_experimental_enabled=True)
    x, y, a = arrays(4, 2)
    k.grad(x, y, a)
    right(x, 2)
    assert program.current().stacks is not stacks


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_another_thread_launches(gradients):
    k, (x, y, a) = gradient_kernel(), arrays(2000, 4)
    for _ in range(3):
        k.grad(x, y, a)
    going = threading.Event()

    def work():
        while not going.is_set():
            k.grad(x, y, a)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        child = os.fork()
        if not child:
            ok = 1
            try:
                x, y, a = arrays(50, 6)
                k.grad(x, y, a)
                right(x, 6)
                ok = 0
            finally:
                os._exit(ok)
        _, status = os.waitpid(child, 0)
    finally:
        going.set()
        thread.join()
    assert os.waitstatus_to_exitcode(status) == 0


def test_no_memory_for_a_heap_names_the_stack_and_what_to_do(gradients, monkeypatch):
    monkeypatch.setattr(stacks_module, "_memory", lambda: 1 << 20)
    k, (x, y, a) = gradient_kernel(), arrays(4, 1 << 24)
    rows = program.current().stacks.threads
    with pytest.raises(QuadrantsRuntimeError) as caught:
        k.grad(x, y, a)
    text = str(caught.value)
    (entry,) = {s.entry for t in _meta(k).tasks for s in t.stacks}
    assert f"Failed to allocate {rows * (1 << 24) * entry} bytes for the adstack float heap" in text
    assert f"{rows} rows of {(1 << 24) * entry} bytes" in text
    assert "'p' (entries: max over i < x.shape[0] of a[i]; forced by the loop over _" in text
    assert "ad_stack_size" in text
    a.fill(3)
    k.grad(x, y, a)
    right(x, 3)


def _meta(kernel):
    (variant,) = set(kernel.grad.launchers.variants.values())
    return variant.executable.meta


@pytest.mark.parametrize("option", ["kernel_profiler", "debug"])
def test_timed_and_checked_launches(option):
    qd.init(arch=qd.cpu, offline_cache=False, ad_stack_experimental_enabled=True, **{option: True})
    k, (x, y, a) = gradient_kernel(), arrays(4, 3)
    for _ in range(3):
        k.grad(x, y, a)
    right(x, 3, 3)
    stacks = program.current().stacks
    before = stacks.evaluated
    k.grad(x, y, a)
    assert stacks.evaluated == before
    qd.reset()


def test_a_kernel_that_prints_has_heaps_of_its_own(cpu, monkeypatch):
    """What it prints may launch others, whose stacks must lie elsewhere."""
    text = RAGGED.replace("SIZE", f"size={EXACT!r}").replace(" {LOOP}", "")
    text = text.replace(
        "    $26 : range_for", "    $70 : print $6 [('at ', (None,), '\\n')]\n    $26 : range_for"
    )
    reports = compiled(text)
    assert reports.meta.prints and reports.meta.has_stacks
    case, seen = Case(qd, [3, 1, 4]), []

    class Out:
        def write(self, line):
            seen.append(line)
            case.check()

        def flush(self):
            pass

    a = qd.ndarray(qd.i32, (2,))
    a.fill(3)
    x, gy, gx = np.full(2, 0.5, np.float32), np.ones(2, np.float32), np.zeros(2, np.float32)
    monkeypatch.setattr("sys.stdout", Out())
    for _ in range(3):
        launch(reports, x, gx, gy, a, 0)
    monkeypatch.undo()
    assert len(seen) == 6
    np.testing.assert_allclose(gx, 3 * 3 * 0.25)
