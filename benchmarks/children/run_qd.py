"""Launches and steady-state runs on one of the two kernel engines: `run_qd.py ours|reference`.

Kernels are the samples' own. Arrays are the engine's own containers, the case each engine is best
at; the launch benchmark takes NumPy arrays as well.
"""

import sys

from wire import Wire

wire = Wire()

import inputs  # noqa: E402
import language  # noqa: E402
import numpy as np  # noqa: E402
import timing  # noqa: E402

qd = language.load(sys.argv[1])

import jacobi  # noqa: E402
import mandelbrot  # noqa: E402
import nbody  # noqa: E402
import reduction  # noqa: E402
import saxpy  # noqa: E402
from launch_kernel import bump, copy, histogram, product, scatter, transpose  # noqa: E402

KERNELS = {
    "saxpy 2^24": saxpy.saxpy,
    "sum 2^24": reduction.array_sum,
    "jacobi 2048^2": jacobi.sweep,
    "nbody 2048": nbody.accelerations,
    "mandelbrot 512^2": mandelbrot.escape_time,
    "copy 8192^2": copy,
    "transpose 8192^2": transpose,
    "product 1024^2": product,
    "histogram 2^24": histogram,
    "scatter 2^24": scatter,
}
DTYPES = {np.dtype(np.float32): qd.f32, np.dtype(np.int32): qd.i32}

prepared = {}


def container(array):
    held = qd.ndarray(DTYPES[array.dtype], array.shape)
    held.from_numpy(array)
    return held


def prepare(case):
    """Compile, run once, and answer with the result's fingerprint."""
    arrays, scalars = inputs.CASES[case]()
    args = [*map(container, arrays), *scalars]
    kernel = KERNELS[case]
    result = kernel(*args)
    qd.sync()
    prepared[case] = (kernel, args)
    if case in inputs.RESULT:
        return inputs.fingerprint(args[inputs.RESULT[case]].to_numpy())
    return [result]


def steady(case, budget_s):
    kernel, args = prepared[case]

    def call():
        kernel(*args)
        qd.sync()

    return timing.calls_within(budget_s, call)


def forget(case):
    del prepared[case]


def launch(cells, storage, launches):
    array = np.zeros(cells, np.float32)
    if storage == "ndarray":
        array = container(array)
    bump(array)
    return timing.microseconds_a_launch(launches, bump, array, qd.sync)


def latencies(cells, launches, rest_s):
    array = container(np.zeros(cells, np.float32))
    for _ in range(5):
        bump(array)
    return timing.latencies(launches, bump, array, qd.sync, rest_s)


wire.serve({
    "prepare": prepare, "steady": steady, "forget": forget, "launch": launch,
    "latencies": latencies,
})  # fmt: skip
