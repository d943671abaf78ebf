"""The GPU benchmark on one of the two kernel engines: `run_gpu.py ours|reference [ARCH]`.

Arrays are the engine's own, filled on the device. Times are those of many launches and one wait,
over the number of launches: what a program sees.
"""

import sys
import time

from wire import Wire

wire = Wire()

import language  # noqa: E402

ENGINE = sys.argv[1]
ARCH = sys.argv[2] if len(sys.argv) > 2 else "cuda"
qd = language.load(ENGINE, ARCH)

import gpu_kernels  # noqa: E402
import jacobi  # noqa: E402
import nbody  # noqa: E402
import numpy as np  # noqa: E402
import reduction  # noqa: E402
import saxpy  # noqa: E402

kept = {}


def row(n, scale=1.0 / 1024):
    x = qd.ndarray(qd.f32, (n,))
    gpu_kernels.fill(x, scale)
    return x


def plate(n, scale=1.0 / 1024):
    x = qd.ndarray(qd.f32, (n, n))
    gpu_kernels.fill_plate(x, scale)
    return x


def of(values):
    x = qd.ndarray(qd.f32, values.shape)
    x.from_numpy(values)
    return x


def bodies(n):
    rng = np.random.default_rng(4)
    places = [of(rng.standard_normal(n, dtype=np.float32)) for _ in range(3)]
    mass = of(rng.random(n, dtype=np.float32) / n)
    return (*places, mass, *(qd.ndarray(qd.f32, (n,)) for _ in range(3)), 0.05)


# Kernel, arguments for a size, the argument that holds the result.
CASES = {
    "saxpy": (saxpy.saxpy, lambda n: (row(n), row(n, 1.0 / 512), 1e-3), 1),
    "jacobi": (jacobi.sweep, lambda n: (plate(n), plate(n, 1.0 / 512)), 1),
    "sum": (gpu_kernels.sum_into, lambda n: (row(n), row(1, 0.0)), 1),
    "sum returned": (reduction.array_sum, lambda n: (row(n),), None),
    "saxpy on a plate": (
        gpu_kernels.scale_plate, lambda n: (plate(n), plate(n, 1.0 / 512), 1e-3), 1
    ),
    "nbody": (nbody.accelerations, bodies, 4),
}  # fmt: skip


def prepare(case, size):
    """Compile, run once, and answer with a number that the result makes."""
    kernel, make, result = CASES[case]
    args = make(size)
    value = kernel(*args)
    qd.sync()
    kept[case] = kernel, args
    if result is None:
        return value
    weigh = gpu_kernels.weigh if len(args[result].shape) == 1 else gpu_kernels.weigh_plate
    return weigh(args[result])


def steady(case, launches):
    """Seconds of a launch."""
    kernel, args = kept[case]
    kernel(*args)
    qd.sync()
    start = time.perf_counter()
    for _ in range(launches):
        kernel(*args)
    qd.sync()
    return (time.perf_counter() - start) / launches


def forget(case):
    del kept[case]


def copy(size, copies):
    """Bytes a second that a copy on the device reads and writes."""
    from cuda.bindings import driver as cu

    def call(result):
        if int(result[0]):
            raise RuntimeError(str(result[0]))
        return result[1] if len(result) > 1 else None

    call(cu.cuInit(0))
    context = call(cu.cuDevicePrimaryCtxRetain(call(cu.cuDeviceGet(0))))
    call(cu.cuCtxPushCurrent(context))
    one, other = (call(cu.cuMemAlloc(size)) for _ in range(2))
    seconds = []
    for _ in range(3):
        call(cu.cuCtxSynchronize())
        start = time.perf_counter()
        for _ in range(copies):
            call(cu.cuMemcpyDtoDAsync(other, one, size, 0))
        call(cu.cuCtxSynchronize())
        seconds.append((time.perf_counter() - start) / copies)
    for memory in (one, other):
        call(cu.cuMemFree(memory))
    call(cu.cuCtxPopCurrent())
    return 2 * size / min(seconds)


def launch(name, cells, launches):
    """Microseconds of a launch."""
    if name == "four_tasks_graph":
        from gpu_graphs import four_tasks_graph as kernel
    else:
        kernel = getattr(gpu_kernels, name)
    x = row(cells)
    for _ in range(50):
        kernel(x)
    qd.sync()
    start = time.perf_counter()
    for _ in range(launches):
        kernel(x)
    qd.sync()
    return (time.perf_counter() - start) / launches * 1e6


def loop(how, cells, rounds):
    """Microseconds of a round: on the device, or on the host, which asks after each."""
    x, left = row(cells, 0.0), qd.ndarray(qd.i32, ())

    def run(count):
        left.from_numpy(np.array(count, np.int32))
        if how == "device":
            gpu_graphs.rounds(x, left)
        else:
            gpu_kernels.count_down(x, left)
            while left.to_numpy() != 0:
                gpu_kernels.count_down(x, left)
        qd.sync()

    if how == "device":
        import gpu_graphs
    run(10)
    before = float(x.to_numpy()[0])
    start = time.perf_counter()
    run(rounds)
    seconds = time.perf_counter() - start
    if float(x.to_numpy()[0]) - before != rounds:
        raise RuntimeError("the loop ran another number of rounds")
    return seconds / rounds * 1e6


wire.serve(
    {"prepare": prepare, "steady": steady, "forget": forget, "copy": copy, "launch": launch,
     "loop": loop}
)  # fmt: skip
