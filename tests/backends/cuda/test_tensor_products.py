"""Matrix products of f16 on tensor cores: as IR in the interpreter, as code on a CUDA device.

The shapes of tests are small: so are the tiles.
"""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import passes
from qd_studio.engine.backends import interp
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.ir import all_ops
from qd_studio.engine.ir import codes as C
from qd_studio.engine.passes import tensor_products
from qd_studio.engine.passes.fragment_tiles import Shape
from qd_studio.engine.pipeline_kind import PipelineKind

from tests.frontend.harness import built

from .ptxkit import artifact, assemble, needs_ptxas
from .schedulekit import Placed, cuda, ptx_of

SMALL = Shape(fragments=(2, 4), depth=32, stages=3)
"""Tiles of 64 by 64."""
GROUPS = (Shape((8, 1), (1, 8), 64, 4, 3), Shape((4, 1), (1, 4), 64, 3))
"""Tiles of 128 by 64, if there are three, else of 64 by 32."""

H, F = (qd.types.ndarray(dtype=t, ndim=2) for t in (qd.f16, qd.f32))


@qd.kernel
def rows(a: H, b: H, c: F):
    for i, j in c:
        total = 0.0
        for k in range(a.shape[1]):
            total += qd.cast(a[i, k], qd.f32) * qd.cast(b[k, j], qd.f32)
        c[i, j] = total


@qd.kernel
def transposed(a: H, b: H, c: F):
    for i, j in c:
        for k in range(a.shape[0]):
            c[i, j] -= qd.cast(a[k, i], qd.f32) * b[j, k]


@qd.kernel
def later(a: H, b: H, c: F, begin: qd.i32):
    for i, j in c:
        total = 1.0
        for k in range(begin, a.shape[1]):
            total += qd.cast(a[i, k], qd.f32) * b[k, j]
        c[i, j] = total


@qd.kernel
def halves(a: H, b: H, c: H):
    for i, j in qd.ndrange((2, c.shape[0]), (3, c.shape[1])):
        total = qd.cast(c[i, j], qd.f32)
        for k in range(a.shape[1]):
            total += qd.cast(b[j, k], qd.f32) * qd.cast(a[i, k], qd.f32)
        if a.shape[1] > 2:
            c[i, j] = qd.cast(qd.max(total, -3.0), qd.f16)


def placed(kernel, m, depth, n, seed=1):
    """The arrays of a product, and its result in f64."""
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, depth), (depth, n)))
    c = rng.standard_normal((m, n)).astype(np.float16 if kernel is halves else np.float32)
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    if kernel is later:
        return [a, b, c, 1], wanted - np.outer(a[:, 0].astype(np.float64), b[0]) + 1
    if kernel is transposed:
        wanted = c - wanted
        return [np.ascontiguousarray(a.T), np.ascontiguousarray(b.T), c], wanted
    if kernel is halves:
        wanted, old = c.astype(np.float64), wanted
        if depth > 2:
            wanted[2:, 3:] = np.maximum(wanted + old, -3)[2:, 3:]
        return [a, np.ascontiguousarray(b.T), c], wanted
    return [a, b, c], wanted


def assert_close(found, wanted):
    tolerance = 2e-3 if found.dtype == np.float16 else 1e-5
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=10 * tolerance)


KERNELS = [rows, transposed, halves, later]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
@pytest.mark.parametrize(
    ("stages", "m", "depth", "n"),
    [
        (2, 68, 136, 64),
        (3, 68, 136, 64),
        (4, 68, 136, 64),
        (3, 70, 41, 131),
        (3, 66, 2, 67),
        (3, 66, 0, 67),
        (3, 63, 40, 64),  # no whole tile
    ],
)
def test_the_interpreter_gets_the_same_from_fragments(monkeypatch, kernel, stages, m, depth, n):
    depth = max(depth, int(kernel is later))
    monkeypatch.setattr(tensor_products, "SHAPE", SMALL._replace(stages=stages))
    arrays, wanted = placed(kernel, m, depth, n)
    func, remarks = built(kernel, CompileConfig()).func, passes.Remarks()
    watching = (passes.VerifyEach(), remarks)
    passes.run(func, CompileConfig(), PipelineKind.TENSOR_GPU, watching)
    assert any("runs on tensor cores" in remark.text for _, remark in remarks.found)
    interp.run(func, arrays)
    assert_close(arrays[2], wanted)


def test_the_interpreter_shows_what_is_read_before_it_was_waited_for(monkeypatch):
    monkeypatch.setattr(tensor_products, "SHAPE", SMALL)
    arrays, _ = placed(rows, 64, 128, 64)
    func = built(rows, CompileConfig()).func
    passes.run(func, CompileConfig(), PipelineKind.TENSOR_GPU)
    for op in all_ops(func):
        if op.code == C.ASYNC_WAIT:
            op.attr += 1
    interp.run(func, arrays)
    assert np.isnan(arrays[2]).all()


@pytest.mark.parametrize(
    "kind", [PipelineKind.GPU, PipelineKind.GPU_NO_SUBGROUPS, PipelineKind.CPU]
)
def test_other_machines_have_no_fragments(kind):
    func, remarks = built(rows, CompileConfig()).func, passes.Remarks()
    passes.run(func, CompileConfig(), kind, (remarks,))
    said = any("there are none on this device" in remark.text for _, remark in remarks.found)
    assert said == kind.is_gpu


def test_small_blocks_have_no_fragments():
    config = CompileConfig().replace(max_block_dim=64)
    func, remarks = built(rows, config).func, passes.Remarks()
    passes.run(func, config, PipelineKind.TENSOR_GPU, (remarks,))
    assert any("allows blocks of 64 threads" in remark.text for _, remark in remarks.found)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
@pytest.mark.parametrize(
    ("m", "depth", "n"), [(268, 200, 128), (131, 41, 70), (68, 130, 68), (66, 0, 67), (63, 40, 64)]
)
def test_the_interpreter_gets_the_same_from_warpgroups(monkeypatch, kernel, m, depth, n):
    depth = max(depth, int(kernel is later))
    monkeypatch.setattr(tensor_products, "WARPGROUPS", GROUPS)
    arrays, wanted = placed(kernel, m, depth, n)
    func, remarks = built(kernel, CompileConfig()).func, passes.Remarks()
    watching = (passes.VerifyEach(), remarks)
    passes.run(func, CompileConfig(), PipelineKind.WARPGROUP_GPU, watching)
    texts = [remark.text for _, remark in remarks.found if "warpgroups multiply" in remark.text]
    assert [("3 tiles or more" in text) for text in texts] == [True, False]
    interp.run(func, arrays)
    assert_close(arrays[2], wanted)


def test_the_interpreter_shows_sums_that_were_not_waited_for(monkeypatch):
    monkeypatch.setattr(tensor_products, "WARPGROUPS", GROUPS[1:])
    arrays, wanted = placed(rows, 64, 128, 64)
    func = built(rows, CompileConfig()).func
    passes.run(func, CompileConfig(), PipelineKind.WARPGROUP_GPU)
    for op in all_ops(func):
        if op.code == C.WARPGROUP_WAIT:
            op.attr += 1
    interp.run(func, arrays)
    assert not np.isclose(arrays[2], wanted).any()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
@pytest.mark.parametrize("off", [0, 1, 8])
@pytest.mark.parametrize(("arch", "word"), [("sm_80", "mma.sync"), ("sm_90a", "wgmma.mma_async")])
def test_on_a_device(monkeypatch, kernel, off, arch, word):
    monkeypatch.setattr(tensor_products, "SHAPE", SMALL)
    monkeypatch.setattr(tensor_products, "WARPGROUPS", GROUPS)
    with cuda(cuda_arch=arch):
        for m, depth, n in ((268, 136, 128), (70, 41, 131), (67, 2, 68), (5, 7, 9)):
            arrays, wanted = placed(kernel, m, depth, n)
            held = [Placed(array, off) for array in arrays[:3]]
            kernel(*held, *arrays[3:])
            assert_close(held[2].values(), wanted)
        assert word in ptx_of(kernel) and "cp.async" in ptx_of(kernel)


@needs_ptxas
def test_the_code_has_the_registers_that_it_needs(tmp_path):
    qd.init(arch=qd.cpu)
    a = np.zeros((2, 2), np.float16)
    made = artifact(rows, a, a, np.zeros((2, 2), np.float32), arch="sm_80")
    assemble(made, tmp_path)
    assert made.text("ptx").count("mma.sync") == 256
    made = artifact(transposed, a, a, np.zeros((2, 2), np.float32), arch="sm_90a")
    assemble(made, tmp_path)
    assert made.text("ptx").count("wgmma.mma_async") == 16
    old = artifact(rows, a, a, np.zeros((2, 2), np.float32), arch="sm_75")
    assert "mma.sync" not in old.text("ptx")
