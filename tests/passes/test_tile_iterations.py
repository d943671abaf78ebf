"""Loops in tiles, past the cache or not: what NumPy's transposes give, compiled and interpreted."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import passes
from qd_studio.engine.backends import interp
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.frontend.build import build
from qd_studio.engine.frontend.specialization import NdarrayKey
from qd_studio.engine.ir import all_ops
from qd_studio.engine.ir import codes as C
from qd_studio.engine.passes import needs, tile_iterations
from qd_studio.engine.pipeline_kind import PipelineKind
from qd_studio.engine.types import dtype_of

A = qd.types.ndarray(ndim=2)


def plain(x: A, y: A, z: A):
    for i, j in x:
        y[j, i] = x[i, j]


def other_order(x: A, y: A, z: A):
    for j, i in qd.ndrange(x.shape[1], x.shape[0]):
        y[j, i] = x[i, j]


def twice(x: A, y: A, z: A):
    for i, j in y:
        y[i, j] = x[j, i] * 2


def both(x: A, y: A, z: A):
    for i, j in x:
        y[j, i] = x[i, j]
        z[j, i] = x[i, j] + z[j, i]


def inside(x: A, y: A, z: A):
    for i, j in qd.ndrange((1, x.shape[0] - 3), (2, x.shape[1])):
        y[j, i] = x[i, j] + 1


def expected(body, x, y, z):
    if body is inside:
        y[2:, 1:-3] = x[1:-3, 2:].T + 1
        return
    y[:] = x.T * 2 if body is twice else x.T
    if body is both:
        z += x.T


BODIES = [plain, other_order, twice, both, inside]
TYPES = ["uint8", "int16", "float16", "float32", "float64", "uint64", "bool"]


def arrays(n, m, dtype):
    rng = np.random.default_rng(n * m)
    return [rng.integers(0, 50, size).astype(dtype) for size in ((n, m), (m, n), (m, n))]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("least", [0, 1 << 40])
def test_tiles_leave_what_the_loop_leaves(body, dtype, least, monkeypatch):
    monkeypatch.setattr(tile_iterations, "_STREAMED", least)
    qd.init(arch=qd.cpu, offline_cache=False, tiered="off", cpu_max_num_threads=3)
    if dtype == "bool" and body not in (plain, other_order):
        pytest.skip("no arithmetic on bool")
    kernel = qd.kernel(body)
    for n, m in ((63, 200), (64, 64), (80, 129), (300, 520), (413, 131), (1, 1000), (0, 70)):
        found, wanted = arrays(n, m, dtype), arrays(n, m, dtype)
        kernel(*found)
        expected(body, *wanted)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("body", BODIES)
def test_interpreter_runs_the_tiles(body, monkeypatch):
    for name, value in {"_STREAMED": 0, "SHORTEST": 8, "_ALONG": 16, "_MOST_ACROSS": 8}.items():
        monkeypatch.setattr(tile_iterations, name, value)
    monkeypatch.setattr(needs, "SHORTEST", 8)
    found, wanted = arrays(21, 39, "float32"), arrays(21, 39, "float32")
    kernel = qd.kernel(body)
    keys = tuple([NdarrayKey(dtype_of(a.dtype), 2, False) for a in found])
    config = CompileConfig(debug=True)
    func = passes.run(build(kernel.decl, keys, config).func, config, PipelineKind.CPU)
    moves = [op.attr.move for op in all_ops(func) if op.code == C.RANGE_FOR]
    assert "transposed" in moves and "streamed" in moves
    interp.run(func, found)
    expected(body, *wanted)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
