"""One process, one sample: how long the first call of each of its kernels takes, source to result.

    first_call.py ours|reference SAMPLE virgin|warm

`virgin` times the first kernel of the file as the first kernel of the process. `warm` compiles
another, trivial kernel before, so that loading the code generator is not part of it, and times
every kernel of the file. Import, `init` and making the arguments are outside in both; `init` is
timed by itself. Results are checked, after the clock.
"""

import sys
import time

from wire import Wire

wire = Wire()

import language  # noqa: E402
import numpy as np  # noqa: E402

engine_name, sample, state = sys.argv[1:]
engine = language.load(engine_name)
kernels = language.kernels_of(sample)

if state == "warm":
    from launch_kernel import bump

    bump(np.zeros(8, np.float32))
    engine.sync()
    time.sleep(0.2)  # what else is loaded, or compiled in the background, is no part of it either
else:
    name, kernel = next(iter(kernels.items()))
    kernels = {name: kernel}

for name, kernel in kernels.items():
    args = language.smallest_case(kernel)
    before = tuple(arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args)
    start, cpu = time.perf_counter(), time.process_time()
    result = kernel(*args)
    engine.sync()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    for check in kernel.checks:
        check(before, args, result)
    wire.send(kernel=name, ms=seconds * 1e3, cpu=cpu * 1e3, init=language.INIT_MS)
