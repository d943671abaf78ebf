"""Launches on CUDA: when they happen, and what they cost."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.cuda import code
from qd_studio.engine.backends.injected import InjectedCache

from tests.runtime.cudakit import add, array, below, shift, start, total

real = pytest.importorskip("cuda.bindings.driver", reason="cuda-python is not installed")
Result = real.CUresult
OK = (Result.CUDA_SUCCESS,)


# --- when launches happen ------------------------------------------------------------------------


def test_launches_do_not_wait(sim):
    start()
    x, y = array(np.arange(300.0)), array(np.zeros(300))
    for k in range(5):
        add(x, y, k)
        assert sim.launched == []
    qd.sync()
    assert sim.launched == ["add_kernel_0_range_for"] * 5
    assert (y.to_numpy() == 10 * np.arange(300)).all()


def test_with_the_drivers_own_switch_they_do(sim, monkeypatch):
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    start(debug=True)
    x = array(np.arange(300.0))
    for most in (1000.0, 500.0, 400.0):
        below(x, most)
    assert len(sim.launched) == 3
    with pytest.raises(qd.QuadrantsAssertionError, match="a value is too large"):
        below(x, 200.0)
    below(x, 1000.0)


def test_results_are_waited_for(sim):
    start()
    x = array(np.ones(300))
    for n in range(1, 5):
        assert total(x) == 300 * n
        add(x, x, 0.0)
        x.from_numpy(np.full(300, n + 1, np.float32))


def test_the_array_of_a_prepared_launch_may_change(sim):
    start()
    for n in (10, 1000, 3, 1, 5000):
        x, y = array(np.arange(n, dtype=np.float32)), array(np.ones(n))
        add(x, y, 2.0)
        assert (y.to_numpy() == 1 + 2 * np.arange(n)).all()


# --- arrays of the host, and of others -----------------------------------------------------------


def test_arrays_of_the_host_are_copied_there_and_back(sim):
    start()
    x, y = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
    for k in range(1, 5):
        add(x, y, 1.0)
        assert (y == k * x).all()
    assert (x == np.arange(300)).all()
    order = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))

    @qd.kernel
    def scale(z: qd.types.ndarray(qd.f32, 2)):
        for i, j in z:
            z[i, j] *= 2

    for _ in range(3):
        scale(order)
    assert (order == 8 * np.arange(6).reshape(2, 3)).all()
    point = np.zeros((), np.float32)

    @qd.kernel
    def count(z: qd.types.ndarray(qd.f32, 0)):
        z[None] += 1

    for _ in range(3):
        count(point)
    assert point == 3
    with pytest.raises(ValueError, match="read-only"):
        point.flags.writeable = False
        count(point)


def test_arrays_of_the_host_that_overlap_share_their_copy(sim):
    start()
    data = np.zeros(40, np.int32)
    for _ in range(3):
        data[:] = np.arange(40)
        shift(data[:30], data[25:])
        assert (data[26:] == np.arange(100, 114)).all()
        assert (data[:26] == np.arange(26)).all()
    for _ in range(3):
        data[:] = 7
        add_one = data
        shift(add_one, np.zeros(40, np.int32))
        assert (data == 7).all()


def test_one_array_twice(sim):
    start()
    for _ in range(4):
        x = array(np.arange(8), qd.i32)
        shift(x, x)
        y = np.arange(8, dtype=np.int32)
        shift(y, y)
        assert (x.to_numpy() == y).all()


class Cupy:
    """An array of a library that keeps its memory on the device."""

    def __init__(self, device, values, strides=None, stream=None, read_only=False, offset=0):
        data = np.asarray(values)
        self.memory = device.allocate(data.nbytes + offset)
        self.memory.write(offset, data)
        self.values = data
        self.offset = offset
        self.__cuda_array_interface__ = {
            "data": (self.memory.address + offset, read_only), "shape": data.shape,
            "typestr": data.dtype.str, "strides": strides, "version": 3, "stream": stream,
        }  # fmt: skip

    def get(self):
        out = np.empty_like(self.values)
        self.memory.read(self.offset, out)
        return out


def test_arrays_of_others_on_the_device_are_taken_as_they_are(sim):
    device = start()
    x = Cupy(device, np.arange(300, dtype=np.float32), strides=(4,), stream=1)
    y = Cupy(device, np.zeros(300, np.float32), offset=12)
    for k in range(1, 4):
        add(x, y, 1.0)
        assert (y.get() == k * np.arange(300)).all()
    own = array(np.zeros(300))
    add(x, own, 1.0)
    assert (own.to_numpy() == np.arange(300)).all()


def test_arrays_of_others_that_do_not_fit(sim):
    device = start()
    y = array(np.zeros(4))
    strided = Cupy(device, np.zeros(4, np.float32), strides=(8,))
    with pytest.raises(ValueError, match="strided arrays are not supported"):
        add(strided, y, 1.0)
    with pytest.raises(ValueError, match="dtype=f32, array with dtype=f64"):
        add(Cupy(device, np.zeros(4)), y, 1.0)
    with pytest.raises(
        ValueError, match="argument y: the kernel writes to it, but it is read-only"
    ):
        add(y, Cupy(device, np.zeros(4, np.float32), read_only=True), 1.0)
    elsewhere = Cupy(device, np.zeros(4, np.float32))
    data = np.zeros(64, np.float32)
    elsewhere.__cuda_array_interface__["data"] = (data.ctypes.data, False)
    with pytest.raises(TypeError, match="is not on the program's device, Simulated"):
        add(elsewhere, y, 1.0)


def test_arrays_of_others_may_overlap(sim):
    device = start()
    whole = Cupy(device, np.arange(40, dtype=np.int32))
    part = Cupy(device, np.zeros(30, np.int32))
    part.__cuda_array_interface__["data"] = (whole.memory.address + 40, False)
    head = Cupy(device, np.zeros(30, np.int32))
    head.__cuda_array_interface__["data"] = (whole.memory.address, False)
    shift(head, part)
    assert whole.get()[11] == 100
    (variant,) = shift.launchers.variants.values()
    assert variant._overlapping is not None


# --- code and its caches -------------------------------------------------------------------------


def test_equal_code_is_loaded_once(sim):
    start()

    def made():
        @qd.kernel
        def one(x: qd.types.ndarray(qd.f32, 1)):
            for i in x:
                x[i] = 1.0

        return one

    x = array(np.zeros(4))
    kernels = [made() for _ in range(3)]
    for kernel in kernels:
        kernel(x)
    qd.sync()
    assert sim.calls["cuModuleLoadDataEx"] == 1


def test_code_that_no_one_uses_is_unloaded(sim):
    import gc

    start()
    x = array(np.zeros(4))

    def once():
        @qd.kernel
        def two(y: qd.types.ndarray(qd.f32, 1)):
            for i in y:
                y[i] = 2.0

        two(x)

    once()
    assert "cuModuleUnload" not in sim.calls
    qd.sync()
    gc.collect()
    qd.sync()
    assert sim.calls["cuModuleUnload"] == 1
    assert (x.to_numpy() == 2).all()


def test_the_caches_hear_what_the_driver_did(sim):
    device = start()

    class Layers(InjectedCache):
        def __init__(self):
            self.reported = []

        def submitted(self, ptx):
            return super().submitted(ptx + "// a nonce\n")

        def loaded(self, compiled, ms):
            self.reported.append((compiled, ms > 0))

    add(array(np.ones(4)), array(np.ones(4)), 1.0)
    (variant,) = add.launchers.variants.values()
    layers = Layers()
    code.load(device, variant.compiled.artifact.code + b"// another\n", "add", layers)
    assert layers.reported == [(False, True)]


# --- times ---------------------------------------------------------------------------------------


def test_tasks_are_timed_by_events(sim, capsys):
    start(kernel_profiler=True)
    x, y = array(np.ones(300)), array(np.zeros(300))
    for _ in range(3):
        add(x, y, 1.0)
    assert sim.calls["cuEventElapsedTime"] == 6
    found = qd.profiler.query_kernel_profiler_info("add")
    assert found.counter == 3
    assert 0 <= found.min <= found.avg <= found.max
    qd.profiler.print_kernel_profiler_info()
    assert "(count) on cuda, Simulated CUDA device" in capsys.readouterr().out


# --- what a launch costs -------------------------------------------------------------------------


def test_a_prepared_launch_is_one_call_of_the_driver(sim):
    start()
    x, y = array(np.ones(300)), array(np.zeros(300))
    for _ in range(3):
        add(x, y, 1.0)
    qd.sync()
    before = dict(sim.calls)
    for _ in range(10):
        add(x, y, 1.0)
    assert {n: c - before.get(n, 0) for n, c in sim.calls.items() if c != before.get(n, 0)} == {
        "cuLaunchKernel": 10
    }
