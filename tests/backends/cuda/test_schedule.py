"""Iterations of a GPU task on threads: all iterations once, whatever sizes, begins, alignments and
grids."""

import re

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.llvm import tiles
from qd_studio.engine.passes import map_to_grid

from .schedulekit import Placed, cuda, ptx_of

SIZES = (1, 3, 4, 5, 31, 127, 128, 129, 255, 256, 257, 516, 1031)
BLOCK = 32


@pytest.fixture(autouse=True)
def _tiles_at_any_size(monkeypatch):
    """Few iterations make tiles, too: the launch asks for a block a tile, not for one an
    iteration."""
    monkeypatch.setattr(tiles, "ENOUGH", 0)
    monkeypatch.setattr(map_to_grid, "ENOUGH", 0)


@qd.kernel
def saxpy(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1], a: qd.f32):
    qd.loop_config(block_dim=32)
    for i in range(x.shape[0]):
        y[i] = a * x[i] + y[i]


@pytest.mark.parametrize("offsets", [(0, 0), (1, 0), (0, 3), (2, 2)])
def test_every_cell_of_one_axis_once(offsets):
    rng = np.random.default_rng(1)
    with cuda():
        for n in SIZES:
            x, y = (rng.integers(-9, 9, n).astype(np.float32) for _ in range(2))
            one, other = Placed(x, offsets[0]), Placed(y, offsets[1])
            saxpy(one, other, 2.0)
            np.testing.assert_array_equal(other.values(), 2 * x + y)
            np.testing.assert_array_equal(one.values(), x)
        ptx = ptx_of(saxpy)
    assert "ld.global.nc.v4" in ptx
    assert "st.global.v4" in ptx


@qd.kernel
def shifted(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1], b: qd.i32, e: qd.i32):
    qd.loop_config(block_dim=32)
    for i in range(b, e):
        y[i + 40] = x[i + 41] - x[i + 39]


@pytest.mark.parametrize("bounds", [(-39, 300), (-38, 301), (-37, -30), (-3, 2), (5, 5), (9, -9),
                                    (0, 259), (1, 258), (2, 300), (3, 131)])  # fmt: skip
def test_loops_begin_and_end_anywhere(bounds):
    begin, end = bounds
    x = np.random.default_rng(2).integers(-99, 99, 400).astype(np.float32)
    with cuda():
        y = np.zeros(400, np.float32)
        shifted(x, y, begin, end)
    expected = np.zeros(400, np.float32)
    for i in range(begin, end):
        expected[i + 40] = x[i + 41] - x[i + 39]
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
                                  "uint64", "float16", "float32", "float64"])  # fmt: skip
def test_elements_of_all_sizes(name):
    t = {"int": "i", "uint": "u", "float": "f"}[name.rstrip("0123456789")] + name[
        len(name.rstrip("0123456789")) :
    ]
    dtype = getattr(qd, t)

    @qd.kernel
    def double(x: qd.types.ndarray(dtype, 1), y: qd.types.ndarray(dtype, 1)):
        qd.loop_config(block_dim=32)
        for i in range(x.shape[0]):
            y[i] = x[i] + x[i]

    bits = 8 * np.dtype(name).itemsize
    with cuda():
        for n, off in ((5, 0), (261, 0), (515, 1), (777, 0)):
            x = np.random.default_rng(3).integers(0, 30, n).astype(name)
            one, other = Placed(x), Placed(np.zeros_like(x), off)
            double(one, other)
            np.testing.assert_array_equal(other.values(), x + x)
        ptx = ptx_of(double)
    wide = {8: r"ld.global.nc.b64", 16: "ld.global.nc.v4.b32"}.get(bits, "ld.global.nc.v")
    assert wide in ptx or "ld.global.nc.v2" in ptx


@qd.kernel
def sweep(u: qd.types.NDArray[qd.f32, 2], v: qd.types.NDArray[qd.f32, 2]):
    qd.loop_config(block_dim=64)
    for i, j in qd.ndrange((1, u.shape[0] - 1), (1, u.shape[1] - 1)):
        v[i, j] = u[i - 1, j] + u[i + 1, j] + 2 * (u[i, j - 1] + u[i, j + 1])


@pytest.mark.parametrize("off", [0, 1])
def test_a_stencil_on_plates_of_any_shape(off):
    rng = np.random.default_rng(4)
    with cuda():
        for shape in ((3, 3), (2, 9), (5, 4), (4, 131), (9, 260), (21, 256), (18, 129), (6, 513)):
            u = rng.integers(0, 9, shape).astype(np.float32)
            one, other = Placed(u, off), Placed(np.zeros_like(u))
            sweep(one, other)
            expected = np.zeros_like(u)
            expected[1:-1, 1:-1] = u[:-2, 1:-1] + u[2:, 1:-1] + 2 * (u[1:-1, :-2] + u[1:-1, 2:])
            np.testing.assert_array_equal(other.values(), expected)
        ptx = ptx_of(sweep)
        blocks = re.findall(r"^(each|full|some)\d+:", ptx_of(sweep, "llvm_ir"), re.MULTILINE)
    # What incomplete groups need takes no registers from the loads of whole ones.
    assert blocks == ["each", "full", "some"]
    # Four rows of u for two of v, each with what lies to both sides of the middle ones; where the
    # second row is missing, three for one.
    assert ptx.count("ld.global.nc.v4") == 4 + 3
    assert ptx.count("st.global.v4") == 2 + 1


@qd.kernel
def in_space(u: qd.types.NDArray[qd.f32, 3], v: qd.types.NDArray[qd.f32, 3]):
    qd.loop_config(block_dim=64)
    for i, j, k in qd.ndrange((1, u.shape[0] - 1), (1, u.shape[1] - 1), (1, u.shape[2] - 1)):
        v[i, j, k] = (
            u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k]
            + 2 * (u[i, j, k - 1] + u[i, j, k + 1])
        )  # fmt: skip


def test_a_stencil_in_space():
    """Rows along two axes, with edges where rows, planes and groups of neighbours are missing."""
    rng = np.random.default_rng(5)
    with cuda():
        for shape in ((3, 3, 3), (4, 10, 128), (5, 11, 132), (2, 9, 9), (6, 19, 260)):
            u = rng.integers(0, 9, shape).astype(np.float32)
            one, other = Placed(u), Placed(np.zeros_like(u))
            in_space(one, other)
            expected = np.zeros_like(u)
            inner = (slice(1, -1),) * 3
            for axis, times in ((0, 1), (1, 1), (2, 2)):
                for step in (-1, 1):
                    expected[inner] += times * np.roll(u, step, axis)[inner]
            np.testing.assert_array_equal(other.values(), expected)
        ptx = ptx_of(in_space)
    # Of 2 rows in each of 4 planes: those, and what lies around; then of one row, with its middle.
    assert ptx.count("ld.global.nc.v4") == 2 * 6 + 2 * 4 + 5
    assert ptx.count("st.global.v4") == 8 + 1


@qd.kernel
def turned(x: qd.types.NDArray[qd.i32, 3], y: qd.types.NDArray[qd.i32, 3]):
    qd.loop_config(block_dim=32)
    for k, i, j in qd.ndrange(x.shape[2], (1, x.shape[0]), x.shape[1]):
        y[i, j, k] = x[i, j, k] * 3 + k


def test_long_bodies_that_memory_bounds_run_two_rows_a_thread():
    directions = [(a, b, c) for a in (-1, 0, 1) for b in (-1, 0, 1) for c in (-1, 0, 1)]
    count = 19

    @qd.kernel
    def collide(old: qd.types.ndarray(qd.f32, 4), new: qd.types.ndarray(qd.f32, 4)):
        for i, j, k in qd.ndrange(*[(1, n - 1) for n in old.shape[1:]]):
            f = qd.Vector([0.0] * count)
            total = 0.0
            for s in qd.static(range(count)):
                e = qd.static(directions[s])
                f[s] = old[s, i - e[0], j - e[1], k - e[2]]
                total += f[s]
            for s in qd.static(range(count)):
                some = (f[s] - total * 0.25) * (f[s] + total * (1.0 + s))
                new[s, i, j, k] = some * some - f[s] * (total - f[s] * some)

    rng = np.random.default_rng(5)
    old = rng.integers(0, 4, (count, 5, 4, 70)).astype(np.float32)
    new = np.zeros_like(old)
    with cuda():
        collide(old, new)
        ptx = ptx_of(collide)
    inner = (slice(None), *[slice(1, -1)] * 3)
    f = np.stack([np.roll(x, e, (0, 1, 2)) for x, e in zip(old, directions, strict=False)])[inner]
    total = f.sum(axis=0)
    scales = (1 + np.arange(count, dtype=np.float32))[:, None, None, None]
    some = (f - total * np.float32(0.25)) * (f + total * scales)
    expected = some * some - f * (total - f * some)
    np.testing.assert_allclose(new[inner], expected, rtol=1e-4, atol=1)
    # Both rows together; one of them, where the other is missing; a single iteration.
    assert 3 * count < ptx.count("st.global.b32") <= 4 * count


def test_lanes_go_along_the_axis_of_neighbours():
    with cuda():
        for shape in ((2, 3, 5), (3, 2, 129), (4, 1, 256), (1, 4, 64), (3, 3, 132)):
            x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
            y = np.full_like(x, -1)
            turned(x, y)
            expected = x * 3 + np.arange(shape[2], dtype=np.int32)
            expected[0] = -1
            np.testing.assert_array_equal(y, expected)
        assert "st.global.v4" in ptx_of(turned)


@qd.kernel
def running(x: qd.types.NDArray[qd.i32, 1], y: qd.types.NDArray[qd.i32, 1]):
    qd.loop_config(block_dim=32)
    for i in range(x.shape[0] - 8):
        y[i] = x[i + 8] + 1


def test_arrays_that_overlap_are_not_read_ahead_of_stores():
    """An iteration may overwrite what another iteration reads; here only the same thread's later
    iterations."""
    with cuda():
        buffer = np.arange(300, dtype=np.int32)
        running(buffer, np.zeros(300, np.int32))
        assert "st.global.v4" in ptx_of(running)
        running(buffer, buffer)
        assert "st.global.v4" not in ptx_of_overlapping(running)


def ptx_of_overlapping(kernel):
    return list(kernel.launchers.variants.values())[-1].overlapping().artifact.text("ptx")


@qd.kernel
def gathered(x: qd.types.NDArray[qd.f32, 1], at: qd.types.NDArray[qd.i32, 1],
             y: qd.types.NDArray[qd.f32, 1]):  # fmt: skip
    qd.loop_config(block_dim=32)
    for i in range(at.shape[0]):
        y[i] = x[at[i]]


@qd.kernel
def counted(at: qd.types.NDArray[qd.i32, 1], bins: qd.types.NDArray[qd.i32, 1]):
    qd.loop_config(block_dim=32)
    for i in range(at.shape[0]):
        bins[at[i]] += 1


def test_gathers_and_histograms():
    rng = np.random.default_rng(5)
    with cuda():
        for n in (1, 7, 130, 517):
            x = rng.random(64).astype(np.float32)
            at = rng.integers(0, 64, n).astype(np.int32)
            y, bins = np.zeros(n, np.float32), np.zeros(64, np.int32)
            gathered(x, at, y)
            np.testing.assert_array_equal(y, x[at])
            counted(at, bins)
            np.testing.assert_array_equal(bins, np.bincount(at, minlength=64))


@qd.kernel
def pull(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1]):
    for i in range(y.shape[0]):
        total = 0.0
        for j in range(x.shape[0]):
            total += x[j] * y[i]
        y[i] = total


@pytest.mark.parametrize("off", [0, 1])
def test_inner_loops_over_aligned_arrays_have_a_version(off):
    with cuda():
        for n in (0, 1, 15, 16, 17, 40, 64):
            x = np.arange(1, n + 1, dtype=np.float32)
            y = np.arange(1, 4, dtype=np.float32)
            one, other = Placed(x, off), Placed(y)
            if n:
                pull(one, other)
                np.testing.assert_array_equal(other.values(), y * x.sum())
        assert "ld.global.nc.v4" in ptx_of(pull)
