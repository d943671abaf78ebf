"""Gradients of the samples on one of the two engines: `gradients.py ours|reference [bytes]`.

With ``bytes`` the reference says what its stacks take, in each launch, so nothing is timed then.
The samples say `import quadrants as qd`; our engine answers that through its alias, so both engines
run the very same text. Forward kernels are compiled and run before any clock starts.
"""

import os
import re
import sys
import tempfile
import time
from pathlib import Path

from wire import Wire

wire = Wire()

OURS = sys.argv[1] == "ours"
if "bytes" in sys.argv:
    os.environ["QD_DEBUG_ADSTACK"] = "1"
if OURS:
    from qd_studio.engine import alias

    alias.install("quadrants")

sys.path.insert(0, str(Path(__file__).parents[2] / "sample_kernels"))

import importlib  # noqa: E402

import numpy as np  # noqa: E402
import quadrants as qd  # noqa: E402
import timing  # noqa: E402

KERNELS = {
    "springs": {"accelerate": (1,), "move": (1,), "measure": ()},
    "diffmpm": {"start": (), "scatter": (0,), "update": (), "gather": (0,), "measure": ()},
    "ragged": {"compute": "trips", "triangle": "trips"},
    "gated": {"fall": ()},
    "fitting": {"residuals": (), "squares": ()},
}
"""Sample -> kernel -> arguments; "trips" is an array that the sample makes."""

CELLS = 400

loaded = {}


def sample(name):
    """The sample's module. Importing it calls `qd.init`, so a process can serve one sample only."""
    if name not in loaded:
        assert not loaded, "another sample owns this process"
        loaded[name] = importlib.import_module(name)
    return loaded[name]


def arguments(module, given, cells=CELLS):
    return (module.trips(cells),) if given == "trips" else given


def warm():
    """Load the code generator, for forward and backward kernels."""
    x = qd.field(qd.f64, shape=4, needs_grad=True)
    y = qd.field(qd.f64, shape=(), needs_grad=True)

    @qd.kernel
    def trivial():
        for i in range(4):
            y[None] += x[i] * x[i]

    trivial()
    trivial.grad()
    qd.sync()


def cold(name):
    """Milliseconds of the first gradient call of each of the sample's kernels."""
    module = sample(name)
    warm()
    found = {}
    for kernel_name, given in KERNELS[name].items():
        kernel, args = getattr(module, kernel_name), arguments(module, given)
        kernel(*args)
        qd.sync()
        start = time.perf_counter()
        kernel.grad(*args)
        qd.sync()
        found[kernel_name] = (time.perf_counter() - start) * 1e3
    return found


def results(name, steps):
    """Fingerprints of what the sample computes, gradients among it."""
    found = sample(name).simulate(steps)
    wide = {key: np.asarray(value, np.float64) for key, value in found.items()}
    return {
        key: [float(w.sum()), float(np.abs(w).sum()), float(np.square(w).sum())]
        for key, w in wide.items()
    }


def launch(name, kernel, launches):
    """Microseconds of a gradient launch; nothing changes in between."""
    module = sample(name)
    if name == "gated":
        module.begin(0.1)
    args = arguments(module, KERNELS[name][kernel])
    grad = getattr(module, kernel).grad
    grad(*args)
    qd.sync()
    start = time.perf_counter()
    for _ in range(launches):
        grad(*args)
    qd.sync()
    return (time.perf_counter() - start) / launches * 1e6


def ragged(cells, budget_s):
    """Seconds of gradient launches of the ragged sample's first kernel on so many elements."""
    module = sample("ragged")
    array = module.trips(cells)
    module.compute.grad(array)

    def call():
        module.compute.grad(array)
        qd.sync()

    return [wall for wall, _ in timing.calls_within(budget_s, call)]


def gated(share, budget_s):
    """Seconds of gradient launches with this share of the particles awake."""
    module = sample("gated")
    module.begin(share)
    module.gradients()

    def call():
        module.fall.grad()
        qd.sync()

    return [wall for wall, _ in timing.calls_within(budget_s, call)]


def sizes(name, kernel, share=None):
    """What the stacks of a gradient launch take: bytes, rows; ours also by the formula."""
    module = sample(name)
    if share is not None:
        module.begin(share)
    args = arguments(module, KERNELS[name][kernel], 40)
    with tempfile.TemporaryFile() as said:
        kept = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            getattr(module, kernel).grad(*args)
            qd.sync()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        said.seek(0)
        text = said.read().decode(errors="replace")
    passing = int((module.awake.to_numpy() > 0.5).sum()) if share is not None else None
    if not OURS:
        taken = dict(re.findall(r"kind=(\w) .*?required_bytes=(\d+)", text))
        return {"bytes": sum(map(int, taken.values())), "passing": passing}
    return {**planned(getattr(module, kernel)), "passing": passing}


def planned(kernel):
    """Bytes of the last launch's plan, and those that the documented formula allows."""
    stacks, executable = of_ours(kernel)
    if not executable.meta.has_stacks:
        return {"bytes": 0, "formula": 0, "rows": 0}
    plan = stacks.sizer(executable).ready.plan
    taken = formula = rows = 0
    for task, meta in zip(plan.tasks, executable.meta.tasks):  # noqa: B905
        if task is None:
            continue
        real, integer = task.real_rows, task.integer_rows
        taken += real * task.real_stride + integer * task.integer_stride
        rows = max(rows, real)
        for stack, entries in zip(meta.stacks, task.capacities):  # noqa: B905
            formula += (real if stack.real else integer) * entries * 2 * stack.dtype.size
    return {"bytes": taken, "formula": formula, "rows": rows}


def of_ours(kernel):
    """The program's stacks, and the code of a kernel's gradient."""
    from qd_studio.engine.runtime import program

    (variant,) = set(kernel.in_mode("reverse").launchers.variants.values())
    return program.current().stacks, variant.executable


def max_over(cells, rounds):
    """Gradient launches over so many cells, nearly all of them without a round of the inner loop.

    launch: seconds of launches after the array was changed. evaluation: of ours the seconds that
    sizing took in each; again: how many maxima were found in as many launches without a change.
    """
    module = sample("ragged")
    array = module.few_trips(cells)
    launches, evaluations, again = [], [], None
    module.compute.grad(array)
    qd.sync()
    if OURS:
        stacks, _ = of_ours(module.compute)
        reduce = stacks.reduce

        def timed(*args):
            start = time.perf_counter()
            found = reduce(*args)
            evaluations.append(time.perf_counter() - start)
            return found

        stacks.reduce = timed
    for turn in range(rounds):
        array[turn] = 2
        start = time.perf_counter()
        module.compute.grad(array)
        qd.sync()
        launches.append(time.perf_counter() - start)
    if OURS:
        before = stacks.dispatched
        for _ in range(2):
            module.compute.grad(array)
        again = stacks.dispatched - before
    return {"launch": launches, "evaluation": evaluations, "again": again}


wire.serve(
    {
        "cold": cold, "results": results, "launch": launch, "ragged": ragged, "gated": gated,
        "sizes": sizes, "max_over": max_over,
    }
)  # fmt: skip
