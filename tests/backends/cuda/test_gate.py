"""The kernel that holds up a stream: on a device it does; elsewhere its code is good."""

import time

import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.cuda import gate, ptxas
from qd_studio.engine.runtime import program

from tests import cuda_sim

pytest.importorskip("cuda.bindings.driver", reason="cuda-python is not installed")


@pytest.mark.skipif(ptxas.find("ptxas") is None, reason="ptxas of a CUDA toolkit is not installed")
@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_processors_take_its_code(arch):
    assert list(ptxas.assemble(gate.PTX, arch).kernels) == ["hold"]


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
