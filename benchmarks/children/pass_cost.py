"""What each pass costs an op, on one large generated kernel: `pass_cost.py FILE ROUNDS`.

The clock is the pass manager's own, one reading for each run of a pass; ops are counted outside of
it, before the pass touches them. A pass that runs once for each task is charged for the ops of its
task only. Of several rounds each pass keeps its fastest, because only passing disturbances make
the same work slower.
"""

import importlib.util
import statistics
import sys
from collections import defaultdict

from wire import Wire

wire = Wire()

from qd_studio import engine as qd  # noqa: E402
from qd_studio.engine import ir, passes  # noqa: E402
from qd_studio.engine.config import CompileConfig  # noqa: E402
from qd_studio.engine.frontend import build as frontend  # noqa: E402
from qd_studio.engine.frontend.specialization import ndarray_key  # noqa: E402
from qd_studio.engine.pipeline_kind import PipelineKind  # noqa: E402


def kernel_in(path):
    spec = importlib.util.spec_from_file_location("generated", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.generated


def spec_keys():
    """What the generated kernel is compiled for: two arrays of f32 and a scalar."""
    array = ndarray_key(qd.f32, 1)
    return (array, array, qd.f32)


class Meter(passes.Instrument):
    """Notes (pass, ops, nanoseconds) of every run."""

    def __init__(self):
        self.runs = []
        self._ops = 0

    def before(self, run, func):
        body = func.body if run.task is None else func.tasks()[run.task].regions[1]
        self._ops = len(ir.walk(body))
        return True

    def after(self, run, func):
        self.runs.append((run.name, self._ops, run.ns))


def main(path, rounds):
    decl = kernel_in(path).decl
    config = CompileConfig()
    first_ops, attempts = 0, []
    for _ in range(rounds):
        func = frontend.build(decl, spec_keys(), config).func
        first_ops = len(ir.walk(func.body))
        meter = Meter()
        passes.run(func, config, PipelineKind.CPU, instruments=(meter,))
        attempts.append(meter.runs)
    table = defaultdict(lambda: [0, 0, 0.0])
    for same_run in zip(*attempts, strict=True):
        name, ops, _ = same_run[0]
        row = table[name]
        row[0] += 1
        row[1] += ops
        row[2] += min(ns for _, _, ns in same_run) / 1e6
    totals = [sum(ns for _, _, ns in runs) / 1e6 for runs in attempts]
    wire.send(passes=table, first_ops=first_ops, total_ms=statistics.median(totals))


main(sys.argv[1], int(sys.argv[2]))
