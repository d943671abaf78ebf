"""The mapping for GPUs on the embedded device: every shape of work gives what the interpreter does.

Grids are made small, so that work-items take tiles of few iterations too.
"""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.llvm import tiles
from qd_studio.engine.passes import map_to_grid

pytest.importorskip("pyopencl")
Row = qd.types.ndarray(qd.f32, 1)
Plate = qd.types.ndarray(qd.f32, 2)


@pytest.fixture(autouse=True)
def always_tiled(monkeypatch):
    monkeypatch.setattr(tiles, "ENOUGH", 0)
    monkeypatch.setattr(map_to_grid, "ENOUGH", 0)
    yield
    qd.reset()


def text_of(kernel):
    variant = list(kernel.launchers.variants.values())[-1]
    return variant.compiled.artifact.texts["opencl_c"]


def compare(kernel, cases, **options):
    """Launch with each case's arguments on both backends; the OpenCL C."""
    results = []
    text = ""
    for arch in ("interp", "opencl"):
        more = {"opencl_mapping": "lanes", "enable_fallback": False} if arch == "opencl" else {}
        qd.init(arch=getattr(qd, arch), offline_cache=False, log_level="error", **more, **options)
        found = []
        for case in cases:
            args = [a.copy() if isinstance(a, np.ndarray) else a for a in case]
            found.append((kernel(*args), args))
        results.append(found)
        text = text_of(kernel) if arch == "opencl" else ""
        qd.reset()
    for k, ((a, before), (b, after)) in enumerate(zip(*results, strict=True)):
        assert a == b or np.isclose(a, b, rtol=1e-5)
        for x, y in zip(before, after, strict=True):
            np.testing.assert_allclose(y, x, rtol=2e-6, err_msg=f"case {k}")
    return text


def rows(*sizes, dtype=np.float32):
    rng = np.random.default_rng(3)
    return [rng.integers(0, 99, n).astype(dtype) for n in sizes]


@qd.kernel
def saxpy(x: Row, y: Row, a: qd.f32):
    for i in range(x.shape[0]):
        y[i] = a * x[i] + y[i]


def test_neighbouring_cells_become_vectors():
    cases = [(*rows(n, n), 2.0) for n in (0, 1, 1023, 1024, 1025, 3001)]
    text = compare(saxpy, cases)
    assert "float4" in text
    assert text.count("get_global_id") == 1


@qd.kernel
def shifted(x: Row, y: Row, n: qd.i32):
    for i in range(3, n):
        z = x[i - 1] + x[i + 2]
        y[i] = z
        y[i - 3] = y[i - 3] + x[i]


def test_what_is_read_after_it_is_written_stays_in_order():
    # Of one work-group: iterations of two that meet in an element have no order.
    text = compare(shifted, [(*rows(n, n), n - 2) for n in (8, 1000)])
    assert "float4" in text  # loads of x
    assert "(__global float4 *)(y" not in text


@qd.kernel
def sweep(u: Plate, v: Plate):
    for i, j in qd.ndrange((1, u.shape[0] - 1), (1, u.shape[1] - 1)):
        v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


def test_rows_that_neighbours_share_are_loaded_once():
    shapes = [(2, 2), (5, 7), (33, 260), (40, 512), (35, 133)]
    rng = np.random.default_rng(1)
    cases = [tuple(rng.random((2, *shape)).astype(np.float32)) for shape in shapes]
    text = compare(sweep, cases)
    inside = text[text.index("if (tiled)") : text.index("for (int each")]
    assert inside.count("const float4 w") == 4
    assert inside.count("*(__global float4 *)") == 2


@qd.kernel
def turned(x: Plate, y: Plate):
    for i, j in x:
        y[j, i] = x[i, j] + 1.0


Points = qd.types.ndarray(qd.types.vector(3, qd.f32), 1)


@qd.kernel
def lengths(p: Points, out: Row):
    for i in range(p.shape[0]):
        out[i] = p[i][0] * p[i][0] + p[i][1] * p[i][1] + p[i][2] * p[i][2]
        p[i][1] = 0.0


def test_other_strides():
    rng = np.random.default_rng(1)
    x = rng.random((70, 64)).astype(np.float32)
    compare(turned, [(x, x.T.copy())])
    p = rng.random((1500, 3)).astype(np.float32)
    text = compare(lengths, [(p, p[:, 0].copy())])
    assert "float4" in text


KINDS = (qd.u8, qd.i16, qd.f64, qd.f16, qd.u1)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("t", KINDS, ids=str)
def test_other_types(t):
    kind = qd.types.ndarray(t, 1)

    @qd.kernel
    def choose(x: kind, y: kind, n: qd.i32):
        for i in range(n):
            y[i] = qd.max(x[i], y[i])

    x, y = rows(2100, 2100, dtype=np.dtype(t.np))
    text = compare(choose, [(x, y, 2100), (x, y, 1999)])
    wide = {"u8": "uchar8", "i16": "short8", "f64": "double2", "u1": "uchar8"}.get(t.name)
    assert wide is None or wide in text


@qd.kernel
def extremes(x: Row, low: Row, high: Row, hits: qd.types.ndarray(qd.i32, 1)) -> qd.f32:
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
        qd.atomic_min(low[0], x[i])
        qd.atomic_max(high[0], x[i])
        hits[2] += 1
    return total


@pytest.mark.sampled(5)
@pytest.mark.parametrize("size", [32, 96, 256])
def test_sums_of_groups(size):
    cases = []
    for n in (0, 1, 70, 5000):
        (x,) = rows(n)
        cases.append((x, x[:1] + 5, x[:1] - 5, np.zeros(3, np.int32)) if n else
                     (x, x + 5, x - 5, np.zeros(3, np.int32)))  # fmt: skip
    text = compare(extremes, cases, default_gpu_block_dim=size, fast_math=False)
    assert text.count("__local") == 4
    assert "barrier" in text


@qd.kernel
def heavy(x: qd.types.ndarray(qd.i32, 3), lo: qd.i32):
    for i, j, k in qd.ndrange((lo, x.shape[0]), x.shape[1], (2, x.shape[2])):
        s = 0
        for m in range(k):
            if m % 3 == 1:
                continue
            s += m * i
        if s > 400:
            continue
        x[i, j, k] = s + j


def test_bodies_with_loops_take_cells_one_by_one():
    cases = [(np.zeros(s, np.int32), lo) for s, lo in (((9, 8, 11), 1), ((3, 0, 5), 0),
             ((4, 5, 2), 3), ((2, 3, 4), 7))]  # fmt: skip
    text = compare(heavy, cases)
    assert "tiled" not in text
    assert "qd_quotient" in text


@qd.kernel
def blocks_of_indirect_size(n: qd.types.ndarray(qd.i32, 1), x: qd.types.ndarray(qd.i32, 1)):
    qd.loop_config(block_dim=8)
    for i in range(n[0]):
        s = qd.simt.block.SharedArray((8,), qd.i32)
        s[i % 8] = i + 1
        qd.simt.block.sync()
        if s[0] % 16 == 1:
            qd.simt.block.sync()
            x[i] = s[7 - i % 8]


def test_the_device_says_how_many_groups_there_are():
    cases = [(np.array([n], np.int32), np.full(40, -1, np.int32)) for n in (0, 1, 8, 29)]
    text = compare(blocks_of_indirect_size, cases)
    assert "_blocks(" in text
    assert "bool live = " in text


@qd.kernel
def products(x: Row, y: Plate, out: Row):
    for i in range(out.shape[0]):
        s = 0.0
        for j in range(x.shape[0]):
            s += x[j] * x[j] + y[i, j]
        out[i] = s


def test_inner_loops_over_neighbours_take_four_at_a_time():
    cases = []
    for n, m in ((0, 3), (1, 1), (4, 9), (67, 5)):
        x, out = rows(n, m)
        cases.append((x, np.arange(m * n, dtype=np.float32).reshape(m, n), out))
    assert "partial_sum" in compare(products, cases)  # lanes share the inner loop
    text = compare(products, cases, skip_passes="subgroup_reduce")
    assert "#pragma unroll" in text
    assert text.count("const float4 w") == 1


@qd.kernel
def alone(x: Row, out: Row):
    for _ in range(1):
        least = 10.0
        for i in range(6):
            least = qd.min(least, x[i])
        out[0] += least


def test_few_cells_update_one_by_one():
    text = compare(alone, [(rows(6)[0] + 1, rows(1)[0])])
    assert "__local" not in text


Bytes = qd.types.ndarray(qd.u8, 2)
Shorts = qd.types.ndarray(qd.i16, 2)


@qd.kernel
def narrow(x: Bytes, y: Shorts, m: qd.i32):
    for i, j in qd.ndrange((1, x.shape[0] - 1), (3, x.shape[1] - 3)):
        y[i, j] = x[i, j - 1] + x[i, j + 1] + i * m
        y[i, j] = x[i + 1, j + 1] + y[i, j]


def test_each_copy_of_a_body_has_its_own_texts():
    """An expression may be short enough to go where it is used in one copy, and not in another."""
    x, y = rows(20 * 260, 20 * 260, dtype=np.uint8)
    compare(narrow, [(x.reshape(20, 260), y.reshape(20, 260).astype(np.int16), 3)])
