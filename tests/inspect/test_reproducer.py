"""`inspect.reproducer`: a small script that fails while a fault is there; and 30 planted faults."""

import random
import runpy
import time
from functools import partial

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect import KernelCapture
from qd_studio.engine.inspect.arguments import Call
from qd_studio.engine.inspect.record_bisection import SCRIPT
from qd_studio.engine.inspect.reproducer import reproducer_of
from qd_studio.engine.inspect.small_values import text_of

from tests.fuzz.frontends import load_file

from .miscompiles import FAULTS, planted
from .seeded import PLAIN, seeded


def run(path):
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    return ended.value.code


FIELD = """from qd_studio import engine as ti

SIZE = 40
real = ti.f32
total = ti.field(real, shape=())


def unused():
    return SIZE


@ti.func
def part(a, b):
    c = a * 2.0
    return c - b


@ti.kernel
def collect(x: ti.types.NDArray[ti.f32, 1], y: ti.types.NDArray[ti.f32, 1], k: ti.f32):
    for i in range(SIZE):
        if x[i] > 0.25:
            y[i] = part(x[i], y[i]) + k
        x[i] = x[i] + 1.0
        total[None] += x[i] * k
"""


def of_file(folder, text, name, fault, pass_name, phase, seconds=1.0):
    """(the reproducer of a kernel in a file, a function that plants the fault)."""
    path = folder / "kernels.py"
    path.write_text(text)
    module = load_file(path, f"reproduced_{folder.name}")
    plant = partial(
        planted, pass_name, FAULTS[fault], lambda cx: cx.phase == phase, partial(random.Random, 3)
    )
    arrays = [np.linspace(0, 1, 40, dtype=np.float32) for _ in range(2)]
    with plant():
        config = CompileConfig(fast_math=False)
        call = Call((*arrays, 1.5))
        capture = KernelCapture(getattr(module, name), ("cpu",), config, calls=[call])
        capture.compile()
        return reproducer_of(capture, "cpu", seconds=seconds), plant


def test_a_script_has_what_the_kernel_needs_and_no_more(tmp_path):
    qd.init(arch=qd.cpu)
    made, plant = of_file(tmp_path, FIELD, "collect", "swapped_operands", "die", "simplify_II")
    assert made.bisection.pass_name == "die"
    (change, *_) = made.bisection.changes
    lines = made.script.splitlines()
    start, end = lines.index("@ti.kernel"), lines.index("arguments = [")
    assert change.file == SCRIPT and start < change.line - 1 < end
    assert lines[change.line - 1].strip()
    assert "from qd_studio import engine as ti" in made.script
    assert "ti.init(arch=ti.cpu, fast_math=False)" in made.script
    assert "unused" not in made.script
    assert made.lines <= made.lines_before == 7
    assert "# The IR before die (simplify_II" in made.script
    script = tmp_path / "repro.py"
    script.write_text(made.script)
    with plant():
        assert run(script) == 1
    assert run(script) == 0


def test_it_says_why_there_is_no_script(tmp_path):
    qd.init(arch=qd.cpu)
    made, _ = of_file(tmp_path, FIELD, "collect", "swapped_operands", "die", "simplify_II")
    kernel = load_file(tmp_path / "kernels.py", "right_ones").collect
    capture = KernelCapture(kernel, ("cpu",), CompileConfig())
    capture.compile()
    assert reproducer_of(capture, "cpu").script == ""
    judged = reproducer_of(capture, "cpu", lambda values: False)
    assert (judged.bisection.state, judged.script) == ("found", "")
    assert "the predicate is another judge" in judged.reason
    assert made.script


@pytest.mark.parametrize(
    "value",
    [
        np.zeros(3, np.float32), np.arange(6, dtype=np.int32).reshape(2, 3), 1.5, 3, True,
        np.array([np.nan, np.inf, -1.5]), np.arange(200, dtype=np.int64) ** 2, np.float32(0.1),
        np.full((2, 2), 7, np.uint8), np.array([True, False]), np.zeros((0, 2)),
    ],
    ids=str,
)  # fmt: skip
def test_values_are_stated_exactly(value):
    import base64
    import zlib

    back = eval(text_of(value), {"np": np, "base64": base64, "zlib": zlib})
    assert np.array_equal(
        np.asarray(back), np.asarray(value), equal_nan=np.asarray(value).dtype.kind == "f"
    )
    if isinstance(value, np.ndarray):
        assert (back.dtype, back.shape) == (value.dtype, value.shape)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_planted_fault_is_named_and_reproduced(seed, tmp_path):
    qd.init(arch=qd.cpu)
    began = time.process_time()
    fault, found = seeded(seed, tmp_path)
    assert (found.state, found.pass_name, found.stage) == ("found", fault.pass_name, fault.phase)
    with fault.plant():
        capture = KernelCapture(fault.kernel, ("cpu",), PLAIN, calls=fault.calls)
        capture.compile()
        made = reproducer_of(capture, "cpu", seconds=15.0)
    assert made.script, made.reason
    assert made.lines <= 20
    script = tmp_path / "repro.py"
    script.write_text(made.script)
    with fault.plant():
        assert run(script) == 1
    assert run(script) == 0
    assert time.process_time() - began < 60
