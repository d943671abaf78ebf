"""A device of OpenCL without the compiler: programs written by hand, memory, streams, waiting."""

import threading

import numpy as np
import pytest
from qd_studio.engine.backends.array_memory import view_of
from qd_studio.engine.backends.base import Artifact, KernelMeta, Target, TaskMeta
from qd_studio.engine.backends.kernarg import abi, grids
from qd_studio.engine.backends.opencl import build, device, hardware
from qd_studio.engine.backends.opencl.executable import OpenclExecutable
from qd_studio.engine.backends.opencl.facts import MEMORY, OpenclTask
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.errors import (
    OpenclMemoryError,
    QuadrantsCompilationError,
    QuadrantsRuntimeError,
)
from qd_studio.engine.ir import UNKNOWN, Param
from qd_studio.engine.types import f32, i32

pytestmark = [
    pytest.mark.opencl,
    pytest.mark.skipif(bool(hardware.unavailable()), reason=f"opencl: {hardware.unavailable()}"),
]

SAXPY = """
__kernel void saxpy(__global uchar *restrict kernarg, __global uchar *restrict x_mem, ulong x_at,
                    int n, float a, __global uchar *restrict y_mem, ulong y_at)
{
    __global float *x = (__global float *)(x_mem + x_at), *y = (__global float *)(y_mem + y_at);
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) y[i] += a * x[i];
}
"""
PARAMS = (Param("x", "ndarray", f32, 1), Param("y", "ndarray", f32, 1), Param("a", "scalar", f32))


@pytest.fixture
def dev():
    opened = device.OpenclDevice(CompileConfig().freeze())
    yield opened
    opened.end()


def made(
    dev, text, name, args, params=PARAMS, results=(), size=4, blocks="", reads=(), written=(1,)
):
    """A kernel of one task, written by hand."""
    layout = abi.layout(params, results, 0, 0, 64)
    task = OpenclTask(name, args(layout), size, grids.COVER, blocks, reads)
    meta = KernelMeta(
        name,
        params,
        results,
        64,
        written,
        tasks=(TaskMeta(name, "range_for", "", "", 1, UNKNOWN, 1),),
    )
    source = build.Source(name, text)
    program = build.build(dev.context, source, CompileConfig())
    code = build.binary_of(dev.context, program)
    facts = {"layout": layout, "tasks": (task,), "key": build.key_of(text, "")}
    return Artifact("opencl", Target("opencl"), meta, {"opencl_c": text}, code, facts=facts)


def saxpy(dev):
    def args(layout):
        x, y, a = layout.params
        return ((MEMORY, x), ("i", x + 8), ("f", a), (MEMORY, y))

    return made(dev, SAXPY, "saxpy", args, blocks="(v0 + 3) // 4", reads=(72,))


def test_launch(dev):
    artifact = saxpy(dev)
    run = OpenclExecutable(dev, artifact)
    x = dev.allocate(400)
    x.write(0, np.arange(100, dtype=np.float32))
    y = dev.allocate(400)
    assert not view_to_numpy(y).any()
    y.fill(0, np.float32(1).tobytes(), 100)
    views = [view_of(m, 0, (100,), np.float32) for m in (x, y)]
    assert run.launch([*views, 2.0]) == ()
    dev.sync()
    assert (view_to_numpy(y) == 1 + 2 * np.arange(100)).all()
    # A part of a memory: its number lies inside of another one's.
    views = [view_of(m, 4 * 50, (50,), np.float32) for m in (x, y)]
    run.launch([*views, 1.0])
    want = 1 + 2 * np.arange(100) + np.arange(100) * (np.arange(100) >= 50)
    assert (view_to_numpy(y) == want).all()


def view_to_numpy(memory):
    out = np.empty(100, np.float32)
    memory.read(0, out)
    return out


def test_host_arrays_are_copied_there_and_back(dev):
    run = OpenclExecutable(dev, saxpy(dev))
    x, y = np.arange(10, dtype=np.float32), np.ones(10, np.float32)
    run.launch([x, y, 3.0])
    assert (y == 1 + 3 * x).all()


def test_a_binary_makes_the_program_again(dev):
    artifact = saxpy(dev)
    dev.context._programs.clear()
    artifact.texts.clear()
    run = OpenclExecutable(dev, artifact)
    x, y = np.arange(10, dtype=np.float32), np.ones(10, np.float32)
    run.launch([x, y, 3.0])
    assert (y == 1 + 3 * x).all()


@pytest.mark.parametrize("damage", [lambda code: code[: len(code) // 2], lambda code: b"no code"])
def test_a_damaged_binary_is_a_value_error(dev, damage):
    artifact = saxpy(dev)
    dev.context._programs.clear()
    artifact.code = damage(artifact.code)
    with pytest.raises(ValueError):
        OpenclExecutable(dev, artifact)


def test_fill_copy_read_write(dev):
    one, two = dev.allocate(1000), dev.allocate(1000)
    one.fill(8, b"\x01\x02\x03\x04\x05\x06\x07\x08", 100)
    one.fill(3, b"\xaa\xbb", 2)  # which OpenCL does not do by itself
    two.copy(100, one, 0, 500)
    out = np.empty(1000, np.uint8)
    two.read(0, out)
    want = np.zeros(1000, np.uint8)
    want[100 + 8 : 600] = np.tile(np.arange(1, 9, dtype=np.uint8), 100)[:492]
    want[103:107] = 0xAA, 0xBB, 0xAA, 0xBB
    assert (out == want).all()
    one.write(1, np.arange(999, dtype=np.uint8))
    part = np.empty(4, np.uint8)
    one.read(7, part)
    assert list(part) == [6, 7, 8, 9]
    with pytest.raises(ValueError, match="from 990 on"):
        one.read(990, out[:11])


def test_numbers_of_memory_are_never_used_twice(dev):
    seen = set()
    for _ in range(10):
        memory = dev.allocate(100)
        assert memory.address not in seen
        seen.add(memory.address)
        inside = dev.buffers[memory.address + 99]
        assert inside[1] == 99
        memory.free()
        assert memory.address not in dev.buffers
    for address in seen:
        with pytest.raises(KeyError):
            dev.buffers[address + 99]
    assert dev.used == 0


def test_a_launch_with_freed_memory_says_so(dev):
    run = OpenclExecutable(dev, saxpy(dev))
    x, y = dev.allocate(40), dev.allocate(40)
    views = [view_of(m, 0, (10,), np.float32) for m in (x, y)]
    x.free()
    with pytest.raises(QuadrantsRuntimeError, match="freed before the launch"):
        run.launch([*views, 1.0])


def test_out_of_memory_says_what_there_is(dev):
    with pytest.raises(OpenclMemoryError, match=r"asked for, of .* in all.*for one array") as found:
        dev.allocate(dev.hardware.largest + 1)
    assert isinstance(found.value, MemoryError)


def test_device_memory_fraction():
    dev = device.OpenclDevice(CompileConfig(device_memory_fraction=1e-5).freeze())
    try:
        kept = dev.allocate(dev.limit // 2)
        with pytest.raises(OpenclMemoryError, match="device_memory_fraction"):
            dev.allocate(dev.limit)
        kept.free()
        dev.allocate(dev.limit // 2)
    finally:
        dev.end()


def test_threads_launch_at_once(dev):
    run = OpenclExecutable(dev, saxpy(dev))
    arrays = [[np.full(100, k, np.float32), np.zeros(100, np.float32)] for k in range(4)]

    def work(x, y):
        for _ in range(50):
            run.launch([x, y, 1.0])

    threads = [threading.Thread(target=work, args=pair) for pair in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [float(y[99]) for _, y in arrays] == [0, 50, 100, 150]


def test_streams_and_events(dev):
    run = OpenclExecutable(dev, saxpy(dev))
    streams = dev.streams
    stream, event = streams.create_stream(), streams.create_event()
    x, y = dev.allocate(400), dev.allocate(400)
    x.fill(0, np.float32(1).tobytes(), 100)
    views = [view_of(m, 0, (100,), np.float32) for m in (x, y)]
    streams.after_memory(stream)
    run.launch([*views, 1.0], stream=stream)
    streams.record(event, stream)
    streams.hold(0, event)
    run.launch([*views, 2.0])
    dev.sync()
    assert (view_to_numpy(y) == 3).all()
    streams.wait_event(event)
    streams.destroy_event(event)
    streams.destroy_stream(stream)
    with pytest.raises(QuadrantsRuntimeError, match="no stream"):
        streams.wait(stream)


def test_a_program_that_does_not_build_shows_the_log(dev):
    source = build.Source("k", "__kernel void k(__global int *x)\n{\n    x[0] = nothing;\n}\n")
    with pytest.raises(QuadrantsCompilationError) as found:
        build.build(dev.context, source, CompileConfig())
    text = str(found.value)
    assert "nothing" in text and "3 | x[0] = nothing;" in text and dev.name in text


def test_results_wait(dev):
    text = "__kernel void sum(__global uchar *kernarg, __global uchar *x_mem, ulong x_at, int n)"
    text += "{ int s = 0; for (int i = 0; i < n; ++i) s += ((__global int *)(x_mem + x_at))[i];"
    text += "*(__global int *)(kernarg + %d) = s; }"
    params = (Param("x", "ndarray", i32, 1),)
    at = abi.layout(params, (i32,), 0, 0, 64).results

    def args(layout):
        return ((MEMORY, layout.params[0]), ("i", layout.params[0] + 8))

    artifact = made(dev, text % at, "sum", args, params, (i32,), 1, written=())
    artifact.facts["tasks"] = (artifact.facts["tasks"][0]._replace(grid=grids.ONE),)
    run = OpenclExecutable(dev, artifact)
    assert run.launch([np.arange(10, dtype=np.int32)]) == (45,)
