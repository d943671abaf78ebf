"""Every pass of the pipeline keeps the meaning of the sample kernels, by the interpreter's word."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from qd_studio.engine import passes
from qd_studio.engine.backends import interp
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.frontend.build import build
from qd_studio.engine.frontend.specialization import NdarrayKey
from qd_studio.engine.ir import verify, walk
from qd_studio.engine.lang.kernel import Kernel
from qd_studio.engine.passes.demote_operations import is_demoted
from qd_studio.engine.pipeline_kind import PipelineKind
from qd_studio.engine.types import dtype_of

SAMPLES = Path(__file__).parents[2] / "sample_kernels"
MOST = 24  # sizes of workloads are cut to this: the interpreter runs dozens of times


def load(path):
    spec = importlib.util.spec_from_file_location(f"stages_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sample_files():
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(SAMPLES.glob("*.py"))}
    # Those that say `import quadrants` keep their data in fields, which are not arguments.
    own = {path: text for path, text in texts.items() if "import quadrants" not in text}
    return [path for path, text in own.items() if ".workload(" in text]


def arguments(kernel):
    workload = kernel.workloads[0]
    sizes = {
        name: min(values[0], MOST) if isinstance(values[0], int) else values[0]
        for name, values in workload.sizes.items()
    }
    made = workload.function(**sizes)
    return made if isinstance(made, tuple | list) else (made,)


def spec_keys(kernel, args):
    found = []
    for param, value in zip(kernel.decl.params, args, strict=True):
        if param.kind == "ndarray":
            found.append(NdarrayKey(dtype_of(value.dtype), value.ndim, False))
        else:
            found.append(param.dtype if param.kind == "scalar" else value)
    return tuple(found)


def outcome(func, kernel, args):
    values = [
        np.array(value) if param.kind == "ndarray" else value
        for param, value in zip(kernel.decl.params, args, strict=True)
        if param.kind != "template"
    ]
    results = interp.run(func, values, print_fn=lambda text: None)
    return [*results, *values]


def assert_same(old, new, when):
    for a, b in zip(old, new, strict=True):
        np.testing.assert_allclose(
            np.asarray(a, "f8"), np.asarray(b, "f8"), rtol=2e-4, atol=1e-5, err_msg=str(when)
        )


class SameAfterEachPass(passes.Instrument):
    def __init__(self, kernel, args):
        self.kernel = kernel
        self.args = args
        self.changes = 0

    def begin(self, func, cx):
        self.expected = outcome(func, self.kernel, self.args)

    def after(self, run, func):
        assert not verify(func), f"after {run}: {verify(func)}"
        if run.changed:
            self.changes += 1
            now = outcome(func, self.kernel, self.args)
            if run.name == "demote_random":
                self.expected = now  # other numbers from here on, and the same to the end
            assert_same(self.expected, now, run)

    def end(self, func):
        assert not [op for op in walk(func.body) if is_demoted(op)]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("path", sample_files(), ids=lambda path: path.stem)
def test_each_pass_keeps_the_results(path, monkeypatch):
    monkeypatch.syspath_prepend(str(SAMPLES))
    kernels = [value for value in vars(load(path)).values() if isinstance(value, Kernel)]
    assert kernels
    for kernel in kernels:
        args = arguments(kernel)
        config = CompileConfig().replace(cpu_max_num_threads=3)
        func = build(kernel.decl, spec_keys(kernel, args), config).func
        watch = SameAfterEachPass(kernel, args)
        passes.run(func, config, PipelineKind.CPU, (watch,))
        assert watch.changes >= 8
