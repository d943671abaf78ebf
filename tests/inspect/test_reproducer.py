"""`inspect.reproducer`: a small script that fails while a fault is there; and 50 planted faults."""

import runpy
import time

import pytest
from qd_studio import engine as qd
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect import KernelCapture
from qd_studio.engine.inspect.reproducer import reproducer_of

from .seeded import seeded


def run(path):
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    return ended.value.code


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50))
def test_a_planted_fault_is_named_and_reproduced(seed, tmp_path):
    qd.init(arch=qd.cpu)
    began = time.monotonic()
    fault, found = seeded(seed, tmp_path)
    assert (found.state, found.pass_name, found.stage) == ("found", fault.pass_name, fault.phase)
    with fault.plant():
        capture = KernelCapture(fault.kernel, ("cpu",), CompileConfig(), calls=fault.calls)
        capture.compile()
        made = reproducer_of(capture, "cpu", seconds=6.0)
    assert made.script, made.reason
    assert made.lines <= 20
    script = tmp_path / "repro.py"
    script.write_text(made.script)
    with fault.plant():
        assert run(script) == 1
    assert run(script) == 0
    assert time.monotonic() - began < 60
