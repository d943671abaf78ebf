"""The first call of a large kernel: `large_call.py ours|reference FILE`.

Seconds of CPU time and on the clock, the peak of memory in MB, and the sum of what the arrays hold
afterwards, for a comparison. `init` is outside.
"""

import importlib.util
import resource
import sys
import time

from wire import Wire

wire = Wire()

import numpy as np  # noqa: E402


def main(engine, path):
    if engine == "ours":
        from qd_studio import engine as qd
    else:
        import quadrants as qd
    qd.init(arch=qd.cpu, offline_cache=False)
    sys.modules["qd"] = qd
    spec = importlib.util.spec_from_file_location("generated", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["generated"] = module
    spec.loader.exec_module(module)
    args = module.arguments()
    cpu, wall = time.process_time(), time.perf_counter()
    module.generated(*args)
    qd.sync()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    total = sum(float(x.sum(dtype=np.float64)) for x in args if isinstance(x, np.ndarray))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    wire.send(cpu=cpu, wall=wall, peak=peak, total=total)


main(*sys.argv[1:])
