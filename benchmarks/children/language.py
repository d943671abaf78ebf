"""The two engines under one name, so that the same kernel files run on both.

The samples say `from qd_studio import engine as qd`. `load("ours")` imports just that;
`load("reference")` puts Quadrants there instead, with the two decorators it lacks (`workload` and
`check`) attached to each kernel. A launch goes straight to the engine's own kernel object: nothing
of this file is in its way.
"""

import importlib
import itertools
import sys
import time
import types
from pathlib import Path

SAMPLES = Path(__file__).parents[2] / "sample_kernels"

INIT_MS: list[float] = []
"""Milliseconds of `init`, on the clock and of the processor; `load` fills it."""


class Workload:
    """As much of a workload as the benchmarks need: its cases, in order."""

    def __init__(self, function, sizes):
        self.function, self.sizes = function, sizes

    def cases(self):
        for values in itertools.product(*self.sizes.values()):
            sizes = dict(zip(self.sizes, values, strict=True))
            label = ", ".join(f"{name}={value}" for name, value in sizes.items())
            yield label, sizes, lambda sizes=sizes: self.function(**sizes)


def with_workloads(kernel):
    kernel.workloads, kernel.checks = [], []

    def workload(*, bytes=None, flops=None, **sizes):
        def register(function):
            kernel.workloads.append(Workload(function, sizes))
            return function

        return register

    def check(function):
        kernel.checks.append(function)
        return function

    kernel.workload, kernel.check = workload, check
    return kernel


def reference_as_engine():
    import quadrants

    disguise = types.ModuleType("qd_studio.engine")
    disguise.__dict__.update(
        {name: value for name, value in vars(quadrants).items() if not name.startswith("__")}
    )

    def kernel(function=None, **options):
        if function is None:
            return lambda function: kernel(function, **options)
        made = quadrants.kernel(**options)(function) if options else quadrants.kernel(function)
        return with_workloads(made)

    disguise.kernel = kernel
    parent = types.ModuleType("qd_studio")
    parent.engine = disguise
    sys.modules |= {"qd_studio": parent, "qd_studio.engine": disguise}
    return disguise


def load(name, arch="cpu"):
    """The engine called `name`, initialised for `arch` with every cache off."""
    sys.path.insert(0, str(SAMPLES))
    if name == "reference":
        engine = reference_as_engine()
        began = time.perf_counter(), time.process_time()
        engine.init(arch=getattr(engine, arch), offline_cache=False, log_level="error")
    else:
        engine = importlib.import_module("qd_studio.engine")
        began = time.perf_counter(), time.process_time()
        engine.init(arch=getattr(engine, arch), offline_cache=False)
    ended = time.perf_counter(), time.process_time()
    INIT_MS[:] = [(end - begin) * 1e3 for begin, end in zip(began, ended, strict=True)]
    return engine


def kernels_of(sample):
    """Name -> kernel, of one sample file, in the order they have in it."""
    module = importlib.import_module(sample)
    return {name: value for name, value in vars(module).items() if hasattr(value, "workloads")}


def smallest_case(kernel):
    _label, _sizes, make = next(iter(kernel.workloads[0].cases()))
    return make()
