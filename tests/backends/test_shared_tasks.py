"""Tasks that do the same have one code, and the kernel's results stay those of the interpreter."""

import re
import threading

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import inspect, passes
from qd_studio.engine.backends.cpu.backend import BACKEND
from qd_studio.engine.backends.llvm import toolchain
from qd_studio.engine.backends.llvm.kernel import lower_kernel
from qd_studio.engine.cache.in_process import IN_PROCESS
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.frontend import build
from qd_studio.engine.frontend.specialization import ndarray_key
from qd_studio.engine.inspect.discover import Subject
from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir import to_text, walk
from qd_studio.engine.passes import share_tasks
from qd_studio.engine.runtime.compile import FullCompile

pytestmark = pytest.mark.not_on_device("it is about functions for processors")

F32 = qd.types.ndarray(qd.f32, 1)


@qd.kernel
def sweeps(x: F32, y: F32):
    for _ in qd.static(range(3)):
        for i in range(1, x.shape[0] - 1):
            y[i] = 0.5 * (x[i - 1] + x[i + 1])
        for i in range(1, x.shape[0] - 1):
            x[i] = 0.5 * (y[i - 1] + y[i + 1])
        y[0] += x[1]
        for i in x:
            y[2] += x[i]


@qd.kernel
def zeros(x: F32, y: F32):
    for i in x:
        x[i] = qd.math.inf * 0.0
    for i in x:
        y[i] = 0.0
    for i in x:
        y[i] = -0.0
    for i in x:
        x[i] = 0.0


@qd.kernel
def drawn(x: F32, y: F32):
    for i in x:
        x[i] = qd.random(qd.f32)
    for i in x:
        x[i] = qd.random(qd.f32)


@qd.kernel
def drawn_later(x: F32, y: F32):
    for i in x:
        x[i] += 1.0
    for i in x:
        x[i] += 1.0
    for i in x:
        y[i] = qd.random(qd.f32)


@qd.kernel
def carried(x: F32, y: F32):
    total = 0.0
    for i in x:
        total += x[i]
    for i in x:
        total += x[i]
    y[0] = total


@qd.kernel
def named(x: F32, y: F32):
    qd.loop_config(name="one")
    for i in x:
        x[i] += 1.0
    qd.loop_config(name="two")
    for i in x:
        x[i] += 1.0
    for i in x:
        x[i] += 1.0
    for i in x:
        x[i] += 1.0


@pytest.fixture(autouse=True)
def program():
    IN_PROCESS.clear()
    yield
    IN_PROCESS.clear()


def lowered(kernel, share=True, **options):
    config = CompileConfig(cpu_max_num_threads=4, **options)
    array = ndarray_key(qd.f32, 1)
    func = build.build(kernel.decl, (array, array), config).func
    passes.run(func, config, BACKEND.pipeline(config), share_tasks=share)
    return lower_kernel(func, config.fast_math, threads=4)


def bodies(kernel, share=True):
    """The functions of tasks, and the numbers of tasks."""
    found = lowered(kernel, share)
    toolchain.machine(toolchain.host_target(), 2).parse(found.text, verify=True)
    return found.text.count(".body(ptr noalias"), len(found.meta.tasks)


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize(
    ("kernel", "shared", "tasks"),
    [(sweeps, 5, 12), (zeros, 4, 4), (drawn, 2, 2), (named, 3, 4), (carried, 2, 3)],
)
def test_equal_tasks_have_one_body(kernel, shared, tasks, share):
    """Also where each task has blocks of its own, as in a record."""
    qd.init(arch=qd.cpu)
    assert bodies(kernel, share) == (shared, tasks)


def test_each_task_keeps_its_name_and_place():
    qd.init(arch=qd.cpu)
    apart, shared = (lowered(sweeps, share).meta.tasks for share in (False, True))
    assert [task.name for task in shared] == [task.name for task in apart]
    assert shared == apart


def finished(kernel, instruments=()):
    config = CompileConfig(cpu_max_num_threads=4)
    array = ndarray_key(qd.f32, 1)
    func = build.build(kernel.decl, (array, array), config).func
    return passes.run(func, config, BACKEND.pipeline(config), instruments)


def test_no_block_is_shared_where_the_ir_is_looked_at():
    """Records, dumps and comparisons have each task in full."""
    qd.init(arch=qd.cpu)
    func = finished(sweeps)
    regions = [region for task in func.tasks() for region in task.regions]
    assert len(set(regions)) == len(regions)
    assert len(func.repeats) == 7
    to_text(func)


def test_what_an_instrument_changes_in_one_task_keeps_it_apart():
    class Changing(passes.Instrument):
        def end(self, func):
            task = func.tasks()[1]
            next(op for op in walk(task.regions[1]) if op.code == C.CONST).attr = 7

    def numbers(func):
        tasks = func.tasks()
        return {(tasks.index(task), tasks.index(same)) for task, same in func.repeats.items()}

    qd.init(arch=qd.cpu)
    plain, changed = numbers(finished(sweeps)), numbers(finished(sweeps, (Changing(),)))
    assert {same for _, same in plain} > {1}
    assert changed == {(task, same) for task, same in plain if same != 1}


def without_ids(text):
    return re.sub(r"(?<=[%.a-z])\d+", "", text)


@pytest.mark.parametrize("kernel", [sweeps, zeros, named, carried, drawn])
def test_a_recorded_compile_has_the_code_of_a_program(kernel):
    """But for the ids in names, which machine code does not hold."""
    qd.init(arch=qd.cpu, offline_cache=False)
    record = inspect.capture_kernel(
        Subject(kernel, kernel.name), ("cpu",), CompileConfig(cpu_max_num_threads=4), launch=False
    )
    found = record.backends[0].compile.artefacts[0].text
    assert without_ids(found) == without_ids(lowered(kernel).text)


@pytest.mark.parametrize("kernel", [sweeps, zeros, named, carried, drawn_later])
@pytest.mark.parametrize("options", [{}, {"tiered": "off"}, {"kernel_profiler": True}], ids=str)
def test_results_are_those_of_the_interpreter(kernel, options):
    found = []
    for arch in ("interp", qd.cpu):
        qd.init(arch=arch, fast_math=False, offline_cache=False,
                **(options if arch == qd.cpu else {}))  # fmt: skip
        x, y = qd.ndarray(qd.f32, 9), qd.ndarray(qd.f32, 9)
        x.from_numpy(np.arange(9, dtype=np.float32))
        y.from_numpy(np.zeros(9, dtype=np.float32))
        kernel(x, y)
        found.append((x.to_numpy(), y.to_numpy()))
        IN_PROCESS.clear()
    for expected, got in zip(*found, strict=True):
        np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))


@qd.kernel
def squares(x: qd.types.ndarray(qd.f32, 1, needs_grad=True),
            y: qd.types.ndarray(qd.f32, 1, needs_grad=True)):  # fmt: skip
    for _ in qd.static(range(3)):
        for i in x:
            y[i] += x[i] * x[i]


def test_gradients_are_those_of_the_interpreter():
    found = []
    for arch in ("interp", qd.cpu):
        qd.init(arch=arch, fast_math=False, offline_cache=False)
        x, y = (qd.ndarray(qd.f32, 5, needs_grad=True) for _ in range(2))
        x.from_numpy(np.arange(5, dtype=np.float32))
        squares(x, y)
        y.grad.from_numpy(np.ones(5, dtype=np.float32))
        squares.grad(x, y)
        found.append(x.grad.to_numpy())
        IN_PROCESS.clear()
    np.testing.assert_array_equal(*found)
    np.testing.assert_array_equal(found[0], 6 * np.arange(5, dtype=np.float32))


def test_a_pipeline_that_stops_early_has_all_tasks():
    qd.init(arch=qd.cpu)
    config = CompileConfig()
    array = ndarray_key(qd.f32, 1)
    for upto in ("after_offload", "before_lower_access", "final"):
        func = build.build(sweeps.decl, (array, array), config).func
        passes.run(func, config, BACKEND.pipeline(config), upto=upto, share_tasks=True)
        assert len(func.tasks()) == 12


def test_threads_that_ask_for_the_ir_at_once_find_all_copies(monkeypatch):
    class Sharing(passes.Instrument):
        shares_from = 1

    qd.init(arch=qd.cpu)
    config = CompileConfig(cpu_max_num_threads=4)
    array = ndarray_key(qd.f32, 1)
    built = build.build(sweeps.decl, (array, array), config)
    func = passes.run(built.func, config, BACKEND.pipeline(config), (Sharing(),))
    full = FullCompile(None, None, {}, func, built)
    inside, asked, found = threading.Event(), threading.Event(), []
    clone = share_tasks.clone_into

    def slow(*args):
        inside.set()
        asked.wait(0.2)  # nothing says that the other one waits for a lock
        clone(*args)

    monkeypatch.setattr(share_tasks, "clone_into", slow)

    def ask():
        regions = [region for task in full.func.tasks() for region in task.regions]
        found.append(len(set(regions)) == len(regions) == 24)

    first, second = threading.Thread(target=ask), threading.Thread(target=ask)
    assert func.shared is not None
    first.start()
    assert inside.wait(30)
    second.start()
    second.join(0.3)
    asked.set()
    first.join(30)
    second.join(30)
    assert found == [True, True] and func.shared is None
