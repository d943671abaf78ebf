"""Which loops go through all passes once, and that the others, and their order, stay."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import ir, passes
from qd_studio.engine.backends.cpu.backend import BACKEND
from qd_studio.engine.cache.in_process import IN_PROCESS
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.frontend import build
from qd_studio.engine.frontend.specialization import ndarray_key
from qd_studio.engine.passes import loop_templates, pipeline, task_copies, task_templates

F32 = qd.types.ndarray(qd.f32, 1)


@qd.kernel
def bounds(x: F32, y: F32, a: qd.f32):
    for k in qd.static(range(32)):
        for i in range(k % 3, x.shape[0] - 1):
            y[i] = x[i + 1] * (k + 0.3) + a
        for i in range(y.shape[0]):
            x[i] = (k + 0.7) / (y[i] * y[i] + a) - x[i] / (1.3 + k)


@qd.kernel
def ordered(x: F32, y: F32, a: qd.f32):
    """Every loop reads what the one before has written."""
    for k in qd.static(range(32)):
        for _ in range(1):
            x[0] = x[0] * 0.5 + (k + 0.3)
        for _ in range(1):
            x[0] = x[0] * x[0] - (k + 0.9)
        if qd.static(k % 7 == 3):
            for _ in range(1):
                y[k % 5] += x[0]


@qd.kernel
def hoisted(x: F32, y: F32, a: qd.f32):
    """What costs much and is the same for all iterations is a task of its own."""
    for k in qd.static(range(32)):
        for i in x:
            y[i] += qd.sin(a * (k + 0.3)) * qd.cos(a + (k + 0.3)) * qd.exp(a - (k + 0.3)) * x[i]


@qd.kernel
def between(x: F32, y: F32, a: qd.f32):
    for k in qd.static(range(32)):
        for i in x:
            y[i] += x[i] * (k + 0.3)
        y[0] = x[0] + y[0]


@qd.kernel
def serialized(x: F32, y: F32, a: qd.f32):
    for k in qd.static(range(32)):
        for i in x:
            y[i] += x[i] * (k + 0.3)
    qd.loop_config(serialize=True)
    for i in range(1, 5):
        y[i] += y[i - 1]


@qd.kernel
def apart(x: F32, y: F32, a: qd.f32):
    for k in qd.static(range(32)):
        for i in range(k, x.shape[0]):
            y[i] += x[i] * (k + 0.3)


@qd.kernel
def by_zero(x: F32, y: F32, a: qd.f32):
    for k in qd.static(range(32)):
        for i in x:
            y[i] = x[i] / 0.0 + (k + 0.3)


@qd.kernel
def empty(x: F32, y: F32, a: qd.f32):
    """Some loops do nothing, and vanish with their numbers before they are tasks."""
    for k in qd.static(range(32)):
        for i in range(5, 3):
            y[i] = x[i] * (k + 0.3)
        for i in x:
            y[i] += x[i] * (k + 0.7)


KERNELS = {bounds: True, ordered: True, hoisted: None, between: False, serialized: False,
           apart: False, by_zero: False, empty: True}  # fmt: skip


@pytest.fixture(autouse=True)
def program():
    IN_PROCESS.clear()
    qd.init(arch=qd.cpu, offline_cache=False)
    yield
    IN_PROCESS.clear()


def finished(kernel, config):
    array = ndarray_key(qd.f32, 1)
    func = build.build(kernel.decl, (array, array, qd.f32), config).func
    passes.run(func, config, BACKEND.pipeline(config), share_tasks=True)
    task_copies.write_out(func)
    return func


def by_order(func):
    """A copy with its tasks as they are, and constants in one order."""
    for task in func.body.ops:
        mapping = {task: task}
        ops = [op for region in task.regions for op in ir.walk(region)]
        indices = [op.args[0] for op in ops if op.code == ir.codes.LOOP_INDEX]
        own = {loop: task for loop in indices if loop.code == ir.codes.OFFLOADED}
        regions = tuple(ir.Block(task) for _ in task.regions)
        for source, target in zip(task.regions, regions, strict=True):
            ir.edit.clone_into(func, source.ops, own | mapping, target)
            consts = [op for op in target.ops if op.code == ir.codes.CONST]
            consts.sort(key=lambda op: (op.type.name, repr(op.attr)))
            target.ops = [*consts, *[op for op in target.ops if op.code != ir.codes.CONST]]
        task.regions = regions
    return func


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.decl.name)
@pytest.mark.parametrize("fast_math", [False, True])
def test_the_ir_is_that_of_loops_that_are_all_prepared(kernel, fast_math, monkeypatch):
    config = CompileConfig(fast_math=fast_math, cpu_max_num_threads=2)
    answers = []
    once_per_loop = loop_templates.once_per_loop
    monkeypatch.setattr(
        loop_templates, "once_per_loop",
        lambda *words: answers.append(once_per_loop(*words)) or answers[-1],
    )  # fmt: skip
    once = by_order(finished(kernel, config))
    if KERNELS[kernel] is not None:
        assert answers == [KERNELS[kernel]]
    with monkeypatch.context() as patch:
        patch.setattr(loop_templates, "once_per_loop", lambda *_: False)
        patch.setattr(task_templates, "alike_tasks", lambda *_, **_options: [])
        every = by_order(finished(kernel, config))
    ir.verify(once)
    assert once.params == every.params
    assert once.global_tmp_size == every.global_tmp_size
    assert ir.difference(once, every, ids=False) is None


@qd.kernel
def far(x: F32, n: qd.types.ndarray(qd.i32, 1)):
    for i in range(4):
        x[n[i]] = x[n[i]] * 0.3
        n[i] += 1
    for i in range(4):
        x[n[i]] = x[n[i]] * 0.7
        n[i] += 1


def test_an_index_out_of_bounds_is_reported_at_its_own_line(monkeypatch):
    monkeypatch.setattr(loop_templates, "MANY", 2)
    monkeypatch.setattr(pipeline, "_LOOPS", 2)
    qd.init(arch=qd.cpu, offline_cache=False, check_out_of_bound=True)
    with pytest.raises(qd.QuadrantsAssertionError) as found:
        far(np.zeros(1, np.float32), np.zeros(4, np.int32))
    assert "x[n[i]] * 0.7" in str(found.value)


def divisions(**options):
    func = finished(bounds, CompileConfig(**options))
    ops = [op for task in func.body.ops for op in ir.walk(task.regions[1])]
    return sum(op.code == ir.codes.DIV and op.type.is_real for op in ops)


def test_divisions_by_numbers_stay_where_no_pass_multiplies_by_the_reciprocal():
    every = divisions(fast_math=False)
    assert divisions() == every / 2
    assert divisions(skip_passes="alg_simp") == every
    assert divisions(opt_level=0) == divisions(opt_level=0, fast_math=False)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.decl.name)
def test_results_are_those_of_the_interpreter(kernel):
    results = []
    for arch in ("interp", qd.cpu):
        qd.init(arch=arch, fast_math=False, offline_cache=False)
        x, y = qd.ndarray(qd.f32, 64), qd.ndarray(qd.f32, 64)
        x.from_numpy(np.linspace(-1.0, 1.0, 64, dtype=np.float32))
        y.from_numpy(np.linspace(0.5, 2.0, 64, dtype=np.float32))
        kernel(x, y, 0.25)
        results.append([array.to_numpy() for array in (x, y)])
        IN_PROCESS.clear()
    for expected, got in zip(*results, strict=True):
        np.testing.assert_array_equal(got, expected)
