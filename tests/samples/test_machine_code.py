"""The studio shows PTX of every sample, and what ptxas says of it, on any machine.

One worker process compiles samples for an old and a new processor, as `qd-studio --backend
cuda:sm_75,cuda:sm_90` does; nothing is launched. It compiles every fifth sample: that all become
PTX that ptxas takes is tested in `tests/backends/cuda/test_ptx_samples.py`.
"""

import pytest
from qd_studio.app.core.views import machine
from qd_studio.app.panels import code
from qd_studio.app.worker.once import collect
from qd_studio.app.worker.protocol import Limits
from qd_studio.engine.backends.cuda import ptxas

from tests.samples.sample_files import FILES, PORTABLE

TARGETS = ("cuda:sm_75", "cuda:sm_90")
SAMPLES = sorted([*FILES, *PORTABLE])[::5]
needs_ptxas = pytest.mark.skipif(
    ptxas.find("ptxas") is None, reason="ptxas of a CUDA toolkit is not installed"
)


@pytest.fixture(scope="module")
def kernels():
    return collect(SAMPLES, backends=TARGETS, launch=False, limits=Limits()).kernels


@pytest.fixture
def shown(kernels):
    """(kernel, backend) of all that was compiled."""
    return [(k, b) for k in kernels for b in k.backends if b.compile is not None]


def test_every_kernel_of_a_sample_is_compiled_for_both(kernels, shown):
    assert {k.file for k in kernels} >= {str(p) for p in SAMPLES if p.stem != "geometry_lib"}
    wrong = [
        (k.id, b.backend, b.reason)
        for k in kernels
        for b in k.backends
        if not k.primal and b.status != "ok" and "is a template" not in b.reason
    ]
    assert wrong == []
    assert len(shown) >= 2 * len(SAMPLES)


def test_every_record_holds_ptx_with_source_lines(shown):
    plain = 0
    for kernel, backend in shown:
        arch = backend.backend.partition(":")[2]
        texts = {a.name: a for a in backend.compile.artefacts}
        ptx = texts["ptx"]
        assert f".target {arch}" in ptx.text, kernel.id
        assert {"llvm_ir", "llvm_ir_optimized"} <= set(texts)
        lines = code.code_lines(backend, code.artefacts_of(backend).index("ptx"))
        plain += not any(line.line for line in lines)
        found = backend.compile.machine
        assert (found.arch, found.ptx_bytes) == (arch, len(ptx.text.encode()))
        assert {k.task for k in found.kernels} >= {t.index for t in backend.compile.tasks}
    # Where the locations themselves make LLVM decide otherwise, no line is attributed.
    assert plain < max(2, len(shown) / 10)


@needs_ptxas
def test_all_of_it_assembles_and_the_panel_says_what_it_takes(shown):
    for kernel, backend in shown:
        found = backend.compile.machine
        assert found.reason == "", (kernel.id, backend.backend)
        assert all(k.known and k.registers > 0 for k in found.kernels), kernel.id
        assert all(k.blocks_held > 0 for k in found.kernels if k.block_dim), kernel.id
        rows = machine.machine_rows(backend.compile)
        assert len(rows) == len(found.kernels) and all(row[2].isdigit() for row in rows)
