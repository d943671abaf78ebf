"""First calls of large kernels: six times as many statements cost some six times as much.

A part that is quadratic soon costs most of a compile. The limit leaves room for what a busy machine
does to single figures.
"""

import importlib.util
import sys
import time
from pathlib import Path

import pytest
from qd_studio import engine as qd

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from bench.shapes import SHAPES, source

from tests.fuzz.tiers import no_helper

LIMIT = 9.0
"""Linear is 6, quadratic is 36."""
GRADIENTS = ["block", "chain", "branches", "calls", "loops"]
SIZES = (80, 480, 2880)
CUT = (80, 1200, 7200)
"""The last is in several functions."""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.not_on_device("it times compiles for processors"),
    pytest.mark.filterwarnings("ignore:qd.static unrolled"),
]


def seconds(folder, shape, statements, gradient):
    """The processor time of this thread for a first call."""
    file = folder / f"{shape}_{statements}.py"
    file.write_text(source(shape, statements))
    spec = importlib.util.spec_from_file_location("generated", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x, y = (qd.ndarray(qd.f32, max(statements, 64), needs_grad=gradient) for _ in "xy")
    kernel = module.generated.grad if gradient else module.generated
    begin = time.thread_time()
    kernel(x, y, 0.5)
    return time.thread_time() - begin


@pytest.mark.parametrize(
    ("shape", "gradient", "sizes"),
    [
        *[(shape, False, SIZES) for shape in SHAPES],
        *[(shape, True, SIZES) for shape in GRADIENTS],
        ("updates", False, CUT),
    ],
)
def test_the_time_of_a_first_call_is_linear_in_the_size(tmp_path, shape, gradient, sizes):
    ratios = []
    first, *others = sizes
    with no_helper():  # which would be busy with full code for minutes
        qd.init(arch=qd.cpu, tiered=True, offline_cache=False)
        seconds(tmp_path, shape, first, gradient)
        while len(ratios) < 3 and min(ratios, default=LIMIT) >= LIMIT:
            qd.init(arch=qd.cpu, tiered=True, offline_cache=False)
            small, large = (seconds(tmp_path, shape, size, gradient) for size in others)
            ratios.append(large / small)
        qd.reset()
    assert min(ratios) < LIMIT
