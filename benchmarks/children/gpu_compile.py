"""First calls on a GPU, caches off: `gpu_compile.py ours|reference ARCH SAMPLE...`.

The first kernel of the process, then every kernel of the samples with its smallest workload: from
the call to the result, with the code generator loaded.
"""

import sys
import time

from wire import Wire

wire = Wire()

import language  # noqa: E402
import numpy as np  # noqa: E402

name, arch, *samples = sys.argv[1:]
engine = language.load(name, arch)


def timed(kernel, args):
    start = time.perf_counter()
    kernel(*args)
    engine.sync()
    return (time.perf_counter() - start) * 1e3


from launch_kernel import bump  # noqa: E402

wire.send(kernel="first of the process", ms=timed(bump, (np.zeros(8, np.float32),)))
for sample in samples:
    try:
        for title, kernel in language.kernels_of(sample).items():
            args = language.smallest_case(kernel)
            wire.send(kernel=f"{sample}.{title}", ms=timed(kernel, args))
    except Exception as error:
        wire.send(kernel=f"{sample}", failed=f"{type(error).__name__}: {error}")
