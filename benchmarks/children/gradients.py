"""Gradients of the samples on one of the two engines: `gradients.py ours|reference`.

The samples say `import quadrants as qd`; our engine answers that through its alias, so both engines
run the very same text. Forward kernels are compiled and run before any clock starts.
"""

import sys
import time
from pathlib import Path

from wire import Wire

wire = Wire()

if sys.argv[1] == "ours":
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

    return timing.calls_within(budget_s, call)


def gated(share, budget_s):
    """Seconds of gradient launches with this share of the particles awake."""
    module = sample("gated")
    module.begin(share)
    module.gradients()

    def call():
        module.fall.grad()
        qd.sync()

    return timing.calls_within(budget_s, call)


wire.serve({"cold": cold, "results": results, "launch": launch, "ragged": ragged, "gated": gated})
