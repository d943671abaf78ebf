"""Every kernel of every sample becomes PTX that ptxas takes, for an old and a new processor."""

import importlib.util
import sys

import pytest
from qd_studio.engine import alias
from qd_studio.engine.ir import parse, to_text
from qd_studio.engine.runtime import compile as compiling

from tests.backends.cuda.ptxkit import ARCHES, artifact, assemble, needs_ptxas, of_func
from tests.samples.sample_files import KERNELS, PORTABLE, kernel_of

pytestmark = [needs_ptxas, pytest.mark.usefixtures("program")]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("sample", "name"), KERNELS, ids=lambda text: text)
def test_kernels_of_samples(sample, name, tmp_path):
    kernel = kernel_of(sample, name)
    _label, _sizes, make = next(iter(kernel.workloads[0].cases()))
    args = make()
    for arch in ARCHES:
        made = artifact(kernel, *args, arch=arch)
        assert f".target {arch}" in made.text("ptx")
        assemble(made, tmp_path)


@pytest.fixture
def portable(request):
    """A sample that says `import quadrants`, imported by a name of its own."""
    name = f"ptx_of_{request.param.stem}"
    alias.install("quadrants")
    spec = importlib.util.spec_from_file_location(name, request.param)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        alias.remove("quadrants")
        del sys.modules[name]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("portable", PORTABLE, indirect=True, ids=lambda path: path.stem)
def test_samples_that_run_on_quadrants_too(portable, tmp_path, monkeypatch):
    """All that they compile on the way: fields, gradients and the engine's own kernels too."""
    texts = {}
    make_code = compiling.make_code

    def noting(func, *args, **named):
        texts[func.name] = to_text(func)
        return make_code(func, *args, **named)

    monkeypatch.setattr(compiling, "make_code", noting)
    portable.simulate(1)
    assert texts
    for text in texts.values():
        for arch in ARCHES:
            assemble(of_func(parse(text), arch), tmp_path)
