"""Kernels of several tasks on a device that is a CPU: one OpenCL kernel runs them all."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.opencl.source import fused

pytest.importorskip("pyopencl")
Row = qd.types.ndarray(qd.f32, 1)
Words = qd.types.ndarray(qd.u64, 1)


@pytest.fixture(autouse=True)
def afterwards():
    yield
    qd.reset()


def start(mapping):
    qd.init(
        arch=qd.opencl, opencl_device="pocl", opencl_mapping=mapping, enable_fallback=False,
        offline_cache=False, log_level="error",
    )  # fmt: skip


def facts_of(kernel):
    variant = list(kernel.launchers.variants.values())[-1]
    artifact = variant.compiled.artifact
    return artifact.texts["opencl_c"], artifact.facts["tasks"]


@qd.kernel
def steps(task: Row, words: Words, a: qd.f64, b: qd.i8, by: qd.u64) -> qd.f32:
    for i in task:
        task[i] += qd.cast(a, qd.f32)
    for i in words:
        words[i] += by
    total = 0.0
    for i in task:
        total += task[i] * b
    return total


@pytest.mark.parametrize("mapping", ["chunks", "lanes"])
def test_each_task_gets_its_own_arguments(mapping):
    start(mapping)
    row, words = np.arange(5, dtype=np.float32), np.arange(3, dtype=np.uint64)
    for _ in range(2):  # the second launch finds what the first has left in the kernels' objects
        assert steps(row, words, 0.5, -3, 2**63 + 5) == -3 * row.sum()
    assert row.tolist() == [1, 2, 3, 4, 5]
    assert words.tolist() == [10, 11, 12]
    text, tasks = facts_of(steps)
    assert len(tasks) > 2
    if mapping == "lanes":
        assert text.count("__kernel ") == len({task.symbol for task in tasks}) == len(tasks)
        return
    assert text.count("__kernel ") == 1
    assert {task.symbol for task in tasks} == {"steps_kernel_tasks"}
    assert [task.number for task in tasks] == list(range(len(tasks)))
    for task in tasks:
        assert len(task.positions) == len(task.args)
        assert not {place for place, _ in task.rest} & set(task.positions)


@qd.real_func
def called_kernel_tasks(a: qd.f32) -> qd.f32:
    return a + 1.0


@qd.real_func
def called_kernel_0_range_for_body(a: qd.f32) -> qd.f32:
    return 2.0 * a


@qd.kernel
def called(
    x: Row, x_at: qd.i32, x_mem: qd.f32, half: qd.f16, half_bits: qd.f32, task: qd.i32,
    tmp_0: qd.f32, seed: qd.i32, seed_: Row, tiled: qd.f32,
) -> qd.f32:  # fmt: skip
    for i in x:
        x[i] = called_kernel_tasks(x[i]) + x_at + qd.floor(qd.random(qd.f32))
    for i in x:
        x[i] += tiled
    for i in x:
        x[i] = called_kernel_0_range_for_body(x[i]) + x_mem + half + half_bits + task
    total = tmp_0
    for i in seed_:
        total += seed_[i] * seed
    return total


@pytest.mark.parametrize("mapping", ["chunks", "lanes"])
def test_names_that_the_code_has_uses_for(mapping):
    start(mapping)
    x = np.zeros(3, np.float32)
    more = np.arange(4, dtype=np.float32)
    assert called(x, 1, 10.0, 100.0, 1000.0, 10000, 0.5, 3, more, 20.0) == 18.5
    assert x.tolist() == [11154.0] * 3


@qd.kernel
def counted(n: qd.types.ndarray(qd.i32, 1), x: Row, cells: qd.f32):
    qd.loop_config(block_dim=32)
    for i in range(n[0] * 2):
        shared = qd.simt.block.SharedArray((32,), qd.f32)
        shared[i % 32] = x[i] + cells
        qd.simt.block.sync()
        x[i] = shared[(i + 1) % 32]


@pytest.mark.parametrize("mapping", ["chunks", "lanes"])
def test_names_where_the_device_counts_the_cells(mapping):
    start(mapping)
    x = np.arange(64, dtype=np.float32)
    counted(np.array([32], np.int32), x, 0.5)
    assert x.tolist() == [*np.arange(1, 32) + 0.5, 0.5, *np.arange(33, 64) + 0.5, 32.5]


@qd.kernel
def one(x: Row):
    for i in x:
        x[i] += 1.0


def test_a_task_alone_keeps_its_kernel():
    start("chunks")
    x = np.zeros(3, np.float32)
    one(x)
    text, (task,) = facts_of(one)
    assert x.tolist() == [1, 1, 1]
    assert (task.number, task.positions, task.rest) == (-1, (), ())
    assert task.symbol == "one_kernel_0_range_for" and text.count("__kernel ") == 1


@qd.kernel
def reported(x: Row):
    for i in x:
        x[i] = i
    for _ in range(1):
        print("sum", x[0] + x[1] + x[2])


def test_many_tasks_have_several_kernels(monkeypatch):
    monkeypatch.setattr(fused, "_TASKS", 5)
    start("chunks")

    @qd.kernel
    def many(x: Row):
        for k in qd.static(range(12)):
            for i in x:
                x[i] = x[i] * 2.0 - k

    row = np.ones(3, np.float32)
    many(row)
    right = 1.0
    for k in range(12):
        right = right * 2 - k
    assert row.tolist() == [right] * 3
    _, tasks = facts_of(many)
    assert [task.number for task in tasks] == [*range(5), *range(5), *range(2)]
    assert len({task.symbol for task in tasks}) == 3


def test_one_task_prints(capsys):
    start("chunks")
    x = np.zeros(3, np.float32)
    reported(x)
    qd.sync()
    assert capsys.readouterr().out.strip() == "sum 3.000000"
    assert x.tolist() == [0, 1, 2]


def test_a_binary_of_the_cache_runs_all_tasks(tmp_path):
    def run():
        qd.init(
            arch=qd.opencl, opencl_device="pocl", opencl_mapping="chunks", enable_fallback=False,
            offline_cache=True, offline_cache_file_path=str(tmp_path), log_level="error",
        )  # fmt: skip
        row, words = np.arange(5, dtype=np.float32), np.arange(3, dtype=np.uint64)
        found = steps(row, words, 1.0, 2, 7), row.tolist(), words.tolist()
        qd.reset()
        return found

    assert run() == run() == (30.0, [1, 2, 3, 4, 5], [7, 8, 9])
