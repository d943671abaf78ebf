"""A kernel that costs its process the device: the worker starts again, and the rest is done."""

import pytest
from qd_studio.app.worker.events import Exited
from qd_studio.app.worker.once import collect
from qd_studio.app.worker.protocol import Limits

from tests.hygiene.tree import ROOT

pytest.importorskip("cuda.bindings.driver", reason="cuda-python is not installed")

SIMULATED = f"""\
import sys

sys.path.insert(0, {str(ROOT)!r})

from tests import cuda_sim
from tests.cuda_sim.state import Result

# Where the driver gives a process no other context after a kernel has failed.
simulated = cuda_sim.simulated(recovers=False)
sim = simulated.__enter__()
sim.die(Result.CUDA_ERROR_ILLEGAL_ADDRESS, "breaks_kernel_0_range_for")

"""
FILE = """\
from qd_studio import engine as qd

A1 = qd.types.ndarray(dtype=qd.f32, ndim=1)


@qd.kernel
def before(x: A1):
    for i in x:
        x[i] += 1


@qd.kernel
def breaks(x: A1):
    for i in x:
        x[i] += 2


@qd.kernel
def after(x: A1):
    for i in x:
        x[i] += 3
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["cuda", "cuda:sm_90"])
def test_a_kernel_that_costs_the_device_fails_alone(tmp_path, name):
    path, other = tmp_path / "one.py", tmp_path / "two.py"
    path.write_text(SIMULATED + FILE)
    other.write_text(FILE.replace("breaks", "works"))  # the simulator is of the whole process
    seen = []
    record = collect(
        [path, other], backends=("cpu", name), on_event=seen.append,
        config={"enable_fallback": False}, limits=Limits(measure_s=0.01),
    )  # fmt: skip
    found = {
        (k.file.rsplit("/")[-1], k.name, b.backend): b for k in record.kernels for b in k.backends
    }
    failed = {key: b for key, b in found.items() if b.status != "ok"}
    assert len(found) == 12
    assert set(failed) == {("one.py", "breaks", name)}
    (error,) = failed["one.py", "breaks", name].errors
    assert "a kernel accessed memory at an illegal address" in error.message
    assert (error.kind, error.kernel, error.stage) == ("CudaError", "breaks", "launch")
    assert all(b.agreement.state == "ok" for key, b in found.items() if key not in failed)
    ended = [event.reason for event in seen if isinstance(event, Exited) and not event.expected]
    assert len(ended) == 1
    assert "a kernel has ended the context of its device" in ended[0]
