"""Loops that count into small arrays: threads with copies of their own leave what one leaves.

Sizes are on both sides of where copies pay: 64 iterations for each element, 4096 elements.
"""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import passes
from qd_studio.engine.backends import interp
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.frontend.build import build
from qd_studio.engine.frontend.specialization import NdarrayKey
from qd_studio.engine.pipeline_kind import PipelineKind

N1 = qd.types.NDArray[qd.i32, 1]
N2 = qd.types.NDArray[qd.i32, 2]
F1 = qd.types.NDArray[qd.f32, 1]
D1 = qd.types.NDArray[qd.f64, 1]
U1 = qd.types.NDArray[qd.u64, 1]
N3 = qd.types.NDArray[qd.i32, 3]


def count(h: N1, keys: N1):
    for i in keys:
        h[keys[i]] += 1


def count_pairs(h: N2, keys: N1):
    for i, j in qd.ndrange((3, keys.shape[0]), (1, 4)):
        if (i + j) % 5 != 0:
            k = keys[i] % (h.shape[0] * h.shape[1])
            h[k // h.shape[1], k % h.shape[1]] += j


def count_triples(h: N3, keys: N1):
    for i in keys:
        h[keys[i] % h.shape[0], i % 5, keys[i] % 3] += i


def least(h: N1, keys: N1):
    for i in range(keys.shape[0]):
        qd.atomic_min(h[keys[i]], 7 - i)


def bits(h: U1, keys: N1):
    for i in keys:
        h[keys[i]] |= qd.cast(1, qd.u64) << qd.cast(i % 64, qd.u64)
        h[(keys[i] * 7) % h.shape[0]] |= qd.cast(3, qd.u64)


def quarters(h: F1, keys: N1):
    for i in keys:
        h[keys[i]] += 0.25 * (i % 9)


def zeros(h: D1, keys: N1):
    for i in keys:
        if keys[i] % 2 == 0:
            h[keys[i]] += -0.0
        elif keys[i] % 3 == 0:
            h[keys[i]] += 0.0


@pytest.fixture(autouse=True)
def ended():
    yield
    qd.reset()


def run(body, shape, dtype, n, **options):
    qd.init(fast_math=False, tiered="off", **options)
    rng = np.random.default_rng(n)
    h = rng.integers(0, 3, shape).astype(dtype)
    if body is zeros:
        h = -0.0 * h
    keys = rng.integers(0, h.size, n).astype(np.int32)
    qd.kernel(body)(h, keys)
    return h


CASES = [
    (count, (5,), "int32"), (count, (4096,), "int32"), (count, (4097,), "int32"),
    (count_pairs, (3, 70), "int32"), (count_triples, (2, 5, 3), "int32"),
    (least, (17,), "int32"), (bits, (33,), "uint64"),
    (quarters, (21,), "float32"), (zeros, (12,), "float64"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "shape", "dtype"), CASES)
@pytest.mark.parametrize("threads", [2, 7])
def test_copies_leave_what_one_thread_leaves(body, shape, dtype, threads):
    cpu = {"arch": qd.cpu, "cpu_max_num_threads": threads}
    size = int(np.prod(shape))
    for n in (0, 1, 64 * size - 1, 64 * size, 64 * size + 12_000):
        found = run(body, shape, dtype, n, **cpu)
        other = run(body, shape, dtype, n, skip_passes="privatize_scatter", **cpu)
        assert found.tobytes() == other.tobytes()
        if n < 64 * size or size < 100:
            oracle = run(body, shape, dtype, n, arch=qd.interp)
            assert found.tobytes() == oracle.tobytes()


def test_fields_with_an_origin():
    """A field knows its size; its copy begins at its first element."""
    found = []
    for options in ({"arch": qd.cpu, "cpu_max_num_threads": 4}, {"arch": qd.interp}):
        qd.init(tiered="off", **options)
        h = qd.field(qd.i32)
        qd.root.dense(qd.ij, (6, 8)).place(h, offset=(-2, 3))

        @qd.kernel
        def scatter(n: qd.i32, h: qd.template()):
            for i in range(n):
                h[i % 5 - 2, (i * i) % 7 + 3] += i % 3

        scatter(20_000, h)
        found.append(h.to_numpy())
    assert found[0].sum() > 10_000
    assert np.array_equal(found[0], found[1])


@pytest.mark.parametrize("kind", [PipelineKind.CPU, PipelineKind.GPU])
def test_copies_of_several_axes_are_good_ir(kind):
    keys = np.random.default_rng(1).integers(0, 30, 2000).astype(np.int32)
    config = CompileConfig(cpu_max_num_threads=2)
    found: list[np.ndarray] = []
    for instruments in ((), (passes.VerifyEach(), remarks := passes.Remarks())):
        key = (NdarrayKey(qd.i32, 3, False), NdarrayKey(qd.i32, 1, False))
        func = build(qd.kernel(count_triples).decl, key, config, True).func
        if instruments:
            passes.run(func, config, kind, instruments)
        h = np.zeros((2, 5, 3), np.int32)
        interp.run(func, [h, keys])
        found.append(h)
    assert any("a copy of a small array" in remark.text for _, remark in remarks.found)
    assert np.array_equal(*found)
