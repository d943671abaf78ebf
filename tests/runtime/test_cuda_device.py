"""A CUDA device as programs have it: whether there is one, which one, its memory, its context."""

import gc
import itertools
import os
import threading

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends import base
from qd_studio.engine.backends.cuda import device as devices
from qd_studio.engine.backends.cuda import driver, staging
from qd_studio.engine.errors import BackendUnavailableError, CudaError
from qd_studio.engine.runtime import program

from tests import cuda_sim
from tests.runtime.cudakit import start

real = pytest.importorskip("cuda.bindings.driver", reason="cuda-python is not installed")
Result = real.CUresult
numbers = itertools.count()


@qd.kernel
def double(x: qd.types.ndarray(qd.f32, 1)):
    for i in x:
        x[i] *= 2


@pytest.fixture
def sim(monkeypatch):
    monkeypatch.delenv("QD_VISIBLE_DEVICE", raising=False)
    monkeypatch.delenv("CUDA_LAUNCH_BLOCKING", raising=False)
    # A device of its own for each test: there has been no context on it.
    with cuda_sim.simulated(attributes={"NUMBER": next(numbers)}) as state:
        yield state
        qd.reset()


def ones(n=1000):
    x = qd.ndarray(qd.f32, n)
    x.from_numpy(np.ones(n, np.float32))
    return x


# --- whether there is one ------------------------------------------------------------------------


def test_it_is_available(sim):
    assert base.availability("cuda") == (True, "")
    assert start().name == "Simulated CUDA device"


def test_its_clock(sim):
    start()
    x = qd.field(qd.i64, shape=3)

    @qd.kernel
    def clock() -> qd.f64:
        for i in x:
            a = qd.clock_counter()
            x[i] = 0
            x[i] = qd.clock_counter() - a
        return qd.clock_freq_hz()

    assert clock() == qd.clock_freq_hz() == 1e9
    assert (x.to_numpy() > 0).all()


@pytest.mark.parametrize("text", ["0", "false", "off"])
def test_it_can_be_hidden(sim, monkeypatch, text):
    monkeypatch.setenv("QD_ENABLE_CUDA", text)
    assert base.availability("cuda") == (False, "QD_ENABLE_CUDA=0 hides it")
    with pytest.raises(qd.QuadrantsRuntimeError, match="QD_ENABLE_CUDA=0 hides it"):
        start()
    assert not sim.calls


def test_without_a_device_the_cpu_is_taken_with_the_reason(sim, capsys):
    sim.configuration.devices = 0
    qd.init(arch=qd.cuda)
    assert program.current().backend.name == "cpu"
    said = "".join(capsys.readouterr())
    assert "falling back to CPU (cuda: there is no CUDA device" in said


def test_a_driver_too_old(sim):
    sim.configuration.driver = 11080
    works, reason = base.availability("cuda")
    assert not works
    assert reason == "the driver is too old: it is one of CUDA 11.8, 12.1 or newer is needed"


def test_a_device_too_old(sim):
    sim.configuration.capability = (6, 1)
    works, reason = base.availability("cuda")
    assert not works
    assert "Simulated CUDA device has compute capability 6.1, 7.0 or higher is needed" in reason


def test_a_driver_that_does_not_start(sim):
    sim.fail("cuInit", Result.CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)
    works, reason = base.availability("cuda")
    assert not works
    assert "different versions (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH while starting" in reason


class NoLibrary:
    def cuInit(self, flags):
        raise RuntimeError("Failed to dlopen libcuda.so.1")


def test_no_driver(sim):
    before = driver.install(NoLibrary())
    try:
        works, reason = base.availability("cuda")
    finally:
        driver.install(before)
    assert not works
    assert reason == "no driver was found (libcuda.so.1): install the NVIDIA driver"


def test_no_cuda_python(sim, monkeypatch):
    before = driver.install(None)
    monkeypatch.setitem(__import__("sys").modules, "cuda.bindings.driver", None)
    try:
        works, reason = base.availability("cuda")
    finally:
        driver.install(before)
    assert not works
    assert reason.startswith("cuda-python is not installed")


# --- which one -----------------------------------------------------------------------------------


def test_a_device_by_number_and_by_uuid(sim, monkeypatch):
    sim.configuration.devices = 2
    monkeypatch.setenv("QD_VISIBLE_DEVICE", "1")
    first = start()
    assert first.number == 1
    assert first.dlpack == (2, 1)
    uuid = first.hardware.uuid
    assert uuid.startswith("GPU-5a01")
    for name in (uuid, uuid[:8], uuid[4:10].upper()):
        monkeypatch.setenv("QD_VISIBLE_DEVICE", name)
        assert start().number == 1


@pytest.mark.parametrize(
    ("wanted", "what"),
    [("7", "names no device"), ("-1", "names no device"), ("beef", "names no device"),
     ("5a", "names several devices")],
)  # fmt: skip
def test_a_wrong_device_is_an_error_with_those_there_are(sim, monkeypatch, wanted, what):
    sim.configuration.devices = 2
    monkeypatch.setenv("QD_VISIBLE_DEVICE", wanted)
    with pytest.raises(qd.QuadrantsRuntimeError) as caught:
        qd.init(arch=qd.cuda)
    text = str(caught.value)
    assert f"QD_VISIBLE_DEVICE={wanted} {what}" in text
    assert "0: Simulated CUDA device (GPU-5a00" in text
    assert "1: Simulated CUDA device (GPU-5a01" in text
    monkeypatch.delenv("QD_VISIBLE_DEVICE")
    start()


# --- memory --------------------------------------------------------------------------------------


def test_memory_is_zeroed_filled_and_copied(sim):
    device = start()
    memory = device.allocate(80)
    out = np.ones(80, np.uint8)
    memory.read(0, out)
    assert not out.any()
    for value in (1.0, 3.5, 0.0):
        for count in (10, 1, 0):
            memory.fill(0, np.float64(value).tobytes(), count)
            found = np.empty(count)
            memory.read(0, found)
            assert (found == value).all()
    for pattern in (b"\x07", b"\x01\x02", b"\x01\x02\x03\x04"):
        memory.fill(4, pattern, 5)
        found = np.empty(5 * len(pattern), np.uint8)
        memory.read(4, found)
        assert found.tobytes() == pattern * 5
    other = device.allocate(16)
    other.copy(8, memory, 4, 8)
    found = np.empty(16, np.uint8)
    other.read(0, found)
    assert found.tobytes() == bytes(8) + b"\x01\x02\x03\x04" * 2
    with pytest.raises(ValueError, match="20 bytes from 70 on of a memory of 80"):
        memory.read(70, np.empty(20, np.uint8))
    memory.free()
    memory.free()
    with pytest.raises(ValueError, match="the memory was freed"):
        memory.read(0, out)


def test_patterns_of_eight_bytes_are_doubled_on_the_device(sim):
    device = start()
    count = 100_003
    memory = device.allocate(8 * count)
    memory.fill(0, np.float64(0.1).tobytes(), count)
    found = np.empty(count)
    memory.read(0, found)
    assert (found == 0.1).all()


@pytest.mark.parametrize("at", [0, 1, 2, 6])
@pytest.mark.parametrize("size", [2, 3, 4, 8, 70_000])
def test_patterns_of_any_length_may_begin_anywhere(sim, at, size):
    """The driver sets numbers at their own alignment only."""
    device = start()
    memory = device.allocate(3 * size + 8)
    pattern = bytes(k * 37 % 251 for k in range(size))
    sim.calls.clear()
    memory.fill(at, pattern, 3)
    found = np.empty(3 * size + 8, np.uint8)
    memory.read(0, found)
    assert found.tobytes() == bytes(at) + pattern * 3 + bytes(8 - at)
    wide = "cuMemsetD16Async" in sim.calls or "cuMemsetD32Async" in sim.calls
    assert wide == (size in (2, 4) and at % size == 0)


@pytest.mark.parametrize("pinned", [True, False])
@pytest.mark.parametrize("nbytes", [100, 3 * staging.CHUNK + 5])
def test_copies_go_through_pinned_memory(sim, monkeypatch, pinned, nbytes):
    if not pinned:
        sim.fail("cuMemHostAlloc", Result.CUDA_ERROR_OPERATING_SYSTEM)
    device = start()
    memory = device.allocate(nbytes)
    data = np.arange(nbytes, dtype=np.uint32).astype(np.uint8)
    memory.write(0, data)
    found = np.empty_like(data)
    memory.read(0, found)
    assert (found == data).all()
    asked = 1 if nbytes == 100 or not pinned else 2
    assert sim.calls.get("cuMemHostAlloc", 0) == asked


@pytest.mark.parametrize("nbytes", [100, staging.CHUNK + 5])
def test_copies_within_a_copy_do_not_wait_for_it(sim, nbytes):
    """As of a handler of signals: it runs in the thread that waits for the outer copy."""
    device = start()
    memory = device.allocate(nbytes)
    data = np.arange(nbytes, dtype=np.uint32).astype(np.uint8)
    found = np.empty_like(data)

    def within():
        with device.context.staging._lock:
            memory.write(0, data)
            memory.read(0, found)

    thread = threading.Thread(target=within, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive() and (found == data).all()


def test_out_of_memory_says_what_there_is(sim):
    sim.configuration.memory = 64 << 20
    start()
    x = ones()
    with pytest.raises(qd.QuadrantsRuntimeError) as caught:
        qd.ndarray(qd.f32, 1 << 28)
    text = str(caught.value)
    assert "1.00 GiB asked for" in text
    assert "of 64.00 MiB free" in text
    double(x)
    assert (x.to_numpy() == 2).all()


def test_what_no_one_uses_makes_room(sim):
    sim.configuration.memory = 64 << 20
    device = start()
    loop = [device.allocate(40 << 20)]
    loop.append(loop)
    del loop
    assert device.allocate(40 << 20).nbytes == 40 << 20


def test_a_share_of_the_memory_is_a_limit(sim):
    device = start(device_memory_fraction=0.25)
    assert device.limit == 1 << 28
    kept = device.allocate(200 << 20)
    with pytest.raises(MemoryError, match="device_memory_fraction allows no more"):
        device.allocate(100 << 20)
    kept.free()
    device.allocate(100 << 20)


def test_a_device_without_pools(sim):
    sim.configuration.attributes["MEMORY_POOLS_SUPPORTED"] = 0
    start()
    x = ones()
    double(x)
    assert (x.to_numpy() == 2).all()
    assert sim.calls["cuMemAlloc"]
    assert "cuMemPoolCreate" not in sim.calls


def test_memory_goes_back_at_the_end(sim):
    for _ in range(3):
        start()
        x = ones(100_000)
        double(x)
        qd.reset()
        del x
        gc.collect()
        sim.context.queue.finish()
        assert sim.context.heap.used == 0
    assert sim.calls["cuDevicePrimaryCtxRetain"] == 1


def test_memory_freed_while_kernels_wait_is_freed_after_them(sim):
    device = start()
    source, target = ones(), ones()
    address = source._address

    @qd.kernel
    def copy(x: qd.types.ndarray(qd.f32, 1), y: qd.types.ndarray(qd.f32, 1)):
        for i in x:
            y[i] = x[i] + 4

    copy(source, target)
    device.release(address, 0)
    source._memory.address = 0
    assert (target.to_numpy() == 5).all()


def test_memory_freed_while_another_stream_uses_it(sim):
    device = start()
    stream = device.streams.create_stream()
    source, target = ones(), ones()

    @qd.kernel
    def copy(x: qd.types.ndarray(qd.f32, 1), y: qd.types.ndarray(qd.f32, 1)):
        for i in x:
            y[i] = x[i] + 4

    copy(source, source)
    copy(source, target)
    qd.sync()
    (variant,) = copy.launchers.variants.values()
    variant.executable.launch([source._live(), target._live()], stream=stream)
    source._memory.free()
    assert (target.to_numpy() == 9).all()
    device.streams.destroy_stream(stream)


# --- the context ---------------------------------------------------------------------------------


def test_launches_from_other_threads(sim):
    start()
    x = ones()
    for _ in range(3):
        double(x)  # prepared: the driver finds out that a thread has no context
    thread = threading.Thread(target=double, args=(x,))
    thread.start()
    thread.join()
    assert (x.to_numpy() == 16).all()


def test_another_context_of_the_thread_stays_current(sim):
    start()
    x = ones()
    for _ in range(3):
        double(x)
    mine = sim.context
    other = type(mine)(sim.number(), sim.configuration)
    seen = []

    def run():
        # What a thread has current that works with another device.
        sim.local.stack = [other]
        before = list(sim.local.stack)
        double(x)
        x.to_numpy()
        seen.append(sim.local.stack == before)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [True]
    assert (x.to_numpy() == 16).all()


def test_a_context_that_others_destroyed(sim):
    device = start()
    x = ones()
    for _ in range(3):
        double(x)
    qd.sync()
    sim.context = None  # cuDevicePrimaryCtxReset by somebody else
    sim.retained = 0
    with pytest.raises(CudaError) as caught:
        double(x)
        qd.sync()
    assert "the CUDA context was destroyed by other code of this process" in caught.value.message
    assert "call qd.init() for a new one" in caught.value.hint
    qd.reset()
    assert start() is not device
    y = ones()
    double(y)
    assert (y.to_numpy() == 2).all()


def test_a_context_that_others_destroyed_unseen(sim):
    start()
    double(ones())
    x = ones()
    qd.sync()
    sim.context = None
    sim.retained = 0
    sim.local = threading.local()
    del x  # frees memory that is not there
    start()
    y = ones()
    double(y)
    assert (y.to_numpy() == 2).all()


def test_a_child_process_must_not_use_it(sim):
    start()
    x = ones()
    for _ in range(3):
        double(x)
    qd.sync()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        said = ""
        for what in (lambda: double(x), qd.sync, x.to_numpy):
            try:
                what()
            except CudaError as error:
                said += f"{error.message}|"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    assert said.count("was forked after qd.init(arch=qd.cuda)|") == 3
    double(x)
    assert (x.to_numpy() == 16).all()


def test_the_stack_of_a_thread(sim):
    start(cuda_stack_limit=4096)
    assert sim.calls["cuCtxSetLimit"] == 1


def test_no_code_is_loaded_without_a_program(sim):
    qd.reset()  # the program of an earlier test may still run
    with pytest.raises(BackendUnavailableError, match="no program runs on it"):
        devices.current()
