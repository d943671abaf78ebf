"""The kernel that holds up a stream: on a device it does; elsewhere its code is good."""

import ctypes
import time

import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.cuda import ptxas, stream_stall
from qd_studio.engine.runtime import program

from tests import cuda_sim

pytest.importorskip("cuda.bindings.driver", reason="cuda-python is not installed")


@pytest.mark.skipif(ptxas.find("ptxas") is None, reason="ptxas of a CUDA toolkit is not installed")
@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_processors_take_its_code(arch):
    assert list(ptxas.assemble(stream_stall.PTX, arch).kernels) == ["hold"]


class Driver:
    """Takes what a gate asks of a device, and reads parameters of a launch as a driver does."""

    def __init__(self):
        self.waited, self.owned, self.doomed = [], [], []

    def own(self, thing):
        self.owned.append(thing)

    def call(self, doing, function, *args):
        if function == "cuLaunchKernel":
            assert args[0] == "hold of module" and args[1:7] == (1,) * 6
            (first,) = (ctypes.c_void_p * 1).from_address(args[9])
            self.waited.append(ctypes.c_uint64.from_address(first).value)
            return None
        if function == "cuModuleGetFunction":
            return f"{args[1].decode()} of {args[0]}"
        assert function == "cuModuleLoadDataEx" and args[0].endswith(b"}\n\0")
        return "module"


def test_the_kernel_gets_nanoseconds_by_the_address_of_its_parameters():
    driver = Driver()
    found = stream_stall.StreamStall(driver)
    found.stall(10.0)
    found.stall(2000.0)
    assert driver.waited == [10_000, 2_000_000]
    assert driver.owned == [found]
    found.device_ended()
    assert driver.doomed == ["module"]


def test_a_stream_is_held_up():
    with cuda_sim.cuda() as sim:
        qd.init(arch=qd.cuda, enable_fallback=False)
        device = program.current().device
        loaded = 0 if sim is None else sim.calls.get("cuModuleLoadDataEx", 0)
        held = device.hold(10.0)
        device.sync()
        began = time.perf_counter()
        assert device.hold(2000.0) == held
        device.sync()
        took = time.perf_counter() - began
        if sim is None:
            assert held and took > 1.9e-3
        else:  # which runs no code but ours; the second time it is not asked
            assert not held and sim.calls["cuModuleLoadDataEx"] == loaded + 1
