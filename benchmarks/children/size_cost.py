"""What one compile of a generated kernel costs, part by part: `size_cost.py FILE [record]`.

CPU time of this process in seconds: the frontend, each pass, the emitter of LLVM IR, first-tier
code, LLVM's pipeline; with `record` instead the whole of it under the studio's recorder. `peak` is
the most memory in MB until first-tier code is there, and of a recorded compile.
"""

import contextlib
import gc
import importlib.util
import resource
import sys
import time
from collections import defaultdict
from pathlib import Path

from wire import Wire

wire = Wire()

from qd_studio import engine as qd  # noqa: E402
from qd_studio.engine import ir, passes  # noqa: E402
from qd_studio.engine.backends.cpu import code as cpu_code  # noqa: E402
from qd_studio.engine.backends.cpu import first_tier  # noqa: E402
from qd_studio.engine.backends.cpu.backend import BACKEND  # noqa: E402
from qd_studio.engine.backends.llvm import kernel as llvm_kernel  # noqa: E402
from qd_studio.engine.backends.llvm import toolchain  # noqa: E402
from qd_studio.engine.config import CompileConfig  # noqa: E402
from qd_studio.engine.frontend import build as frontend  # noqa: E402
from qd_studio.engine.frontend.specialization import ndarray_key  # noqa: E402
from qd_studio.engine.runtime.compile import collector_pause  # noqa: E402


def kernel_in(path):
    spec = importlib.util.spec_from_file_location("generated", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["generated"] = module
    spec.loader.exec_module(module)
    return module.generated


class Meter(passes.Instrument):
    """Sums up the CPU time of passes."""

    def __init__(self):
        self.spent = defaultdict(float)
        self.start = 0.0

    def before(self, run, func):
        self.start = time.thread_time()
        return True

    def after(self, run, func):
        self.spent[run.name] += time.thread_time() - self.start


def parts(kernel):
    config = CompileConfig()
    array = ndarray_key(qd.f32, 1)
    clock = time.process_time
    out = {}
    at = clock()
    func = frontend.build(kernel.decl, (array, array, qd.f32), config).func
    out["frontend"] = clock() - at
    ops = len(ir.walk(func.body))
    at = clock()
    kind = BACKEND.pipeline(config)
    func = passes.run(func, config, kind, share_tasks=True)
    out["passes"] = clock() - at
    shown = {**out, "ops": ops}
    wire.send(shown=shown)
    full, lower = cpu_code.full_code, llvm_kernel.lower_kernel
    texts = []

    def lowered(*words):
        texts.append(lower(*words))
        return texts[0]

    def timed(job):
        """First-tier code, as a program has it at its first call, then full code."""
        shown["emitter"] = clock() - at
        begin = clock()
        first_tier.tier_code(texts[0], 1, job.target)
        shown["first"] = clock() - begin
        shown["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        shown["lines"] = texts[0].source.lines
        wire.send(shown=shown)
        begin = clock()
        try:
            return full(job)
        finally:
            shown["llvm"] = clock() - begin

    cpu_code.full_code, llvm_kernel.lower_kernel = timed, lowered
    toolchain.binding()
    at = clock()
    BACKEND.lower(func, config)
    shown["left"] = len(ir.walk(func.body))
    wire.send(shown=shown)
    # Passes that an instrument watches run on all tasks at once, which takes longer.
    meter = Meter()
    func = frontend.build(kernel.decl, (array, array, qd.f32), config).func
    passes.run(func, config, kind, instruments=(meter,), share_tasks=True)
    wire.send(shown={**shown, "of": dict(meter.spent)})


def record(kernel):
    from qd_studio.engine.inspect.capture import KernelCapture
    from qd_studio.engine.runtime import program

    with contextlib.suppress(AttributeError):
        kernel.workload(n=[64])(lambda n: (qd.ndarray(qd.f32, n), qd.ndarray(qd.f32, n), 0.5))
    toolchain.binding()  # as for `parts`: what is compared is a compile, not an import
    start = time.process_time()
    KernelCapture(kernel, ("cpu",), program.current().config).compile()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    wire.send(shown={"record": time.process_time() - start, "record_peak": peak})


def main(path, mode=""):
    if mode == "record" or "qd.field(" in Path(path).read_text(encoding="utf-8"):
        qd.init(arch=qd.cpu, offline_cache=False)
    kernel = kernel_in(path)
    gc.collect()
    with collector_pause:
        (record if mode == "record" else parts)(kernel)


main(*sys.argv[1:])
