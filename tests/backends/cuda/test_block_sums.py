"""Sums of threads and blocks: every operation, every type, any number of blocks."""

import numpy as np
import pytest
from qd_studio import engine as qd

from .schedulekit import DTYPES, Placed, cuda, ptx_of

OPERATIONS = {
    "add": (qd.atomic_add, np.add), "mul": (qd.atomic_mul, np.multiply),
    "min": (qd.atomic_min, np.minimum), "max": (qd.atomic_max, np.maximum),
    "and": (qd.atomic_and, np.bitwise_and), "or": (qd.atomic_or, np.bitwise_or),
    "xor": (qd.atomic_xor, np.bitwise_xor),
}  # fmt: skip
SIZES = (1, 31, 33, 100, 513)


def values(rng, name, n, dtype):
    """Numbers whose result is exact in any order."""
    if name == "mul":
        found = np.ones(n, dtype)
        found[rng.integers(0, n, 3)] = 2
        return found
    if dtype.kind == "f":
        return rng.integers(-2, 3, n).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, n, dtype, endpoint=True)


def reducer(name, dtype):
    operation = OPERATIONS[name][0]
    t = DTYPES[dtype]

    @qd.kernel
    def reduce(x: qd.types.ndarray(t, 1), out: qd.types.ndarray(t, 1)):
        for i in range(x.shape[0]):
            operation(out[1], x[i])

    return reduce


@pytest.mark.sampled(5)
@pytest.mark.parametrize("dtype", list(DTYPES), ids=str)
def test_all_operations(dtype):
    rng = np.random.default_rng(6)
    names = [
        name for name in OPERATIONS if dtype.kind != "f" or name in ("add", "mul", "min", "max")
    ]
    with cuda(saturating_grid_dim=2, default_gpu_block_dim=64):
        for name in names:
            kernel = reducer(name, dtype)
            for n in SIZES:
                x = values(rng, name, n, dtype)
                out = values(rng, name, 3, dtype)
                expected = out.copy()
                with np.errstate(over="ignore"):
                    expected[1] = OPERATIONS[name][1].reduce(np.append(x, out[1]), dtype=dtype)
                kernel(x, out)
                np.testing.assert_array_equal(out, expected, err_msg=f"{name} {n}")
            assert "bar.sync" in ptx_of(kernel)


@pytest.mark.parametrize("block_dim", [1, 31, 48, 160, 1024])
@pytest.mark.parametrize("blocks", [1, 3])
def test_blocks_of_any_size(block_dim, blocks):
    with cuda(saturating_grid_dim=blocks, default_gpu_block_dim=block_dim):
        kernel = reducer("add", np.dtype(np.int32))
        for n in (1, 32, 1000, 5000):
            x = np.arange(n, dtype=np.int32)
            out = np.full(2, 7, np.int32)
            kernel(x, out)
            assert out.tolist() == [7, 7 + x.sum()]


def test_the_option_leaves_updates_one_by_one():
    with cuda(make_thread_local=False):
        kernel = reducer("add", np.dtype(np.int32))
        x, out = np.arange(100, dtype=np.int32), np.zeros(2, np.int32)
        kernel(x, out)
        assert out.tolist() == [0, x.sum()]
        assert "bar.sync" not in ptx_of(kernel)


@qd.kernel
def moments(x: qd.types.NDArray[qd.f32, 2]) -> (qd.f32, qd.i32, qd.f64):
    total, count, largest = 0.0, 0, qd.cast(-1.0, qd.f64)
    for i, j in x:
        total += x[i, j]
        if x[i, j] > 3.0:
            count += 1
        qd.atomic_max(largest, qd.cast(x[i, j], qd.f64))
    return total, count, largest


@pytest.mark.parametrize("off", [0, 1])
def test_several_sums_of_one_task(off):
    rng = np.random.default_rng(7)
    with cuda():
        for shape in ((1, 1), (3, 5), (9, 131), (20, 256)):
            x = rng.integers(0, 8, shape).astype(np.float32)
            expected = (x.sum(), (x > 3).sum(), x.max())
            assert tuple(moments(Placed(x, off))) == expected
        assert ptx_of(moments).count("barrier.sync") + ptx_of(moments).count("bar.sync") == 2


@pytest.mark.parametrize("block_dim", [48, 256])
def test_sums_that_take_turns_with_the_shared_memory(block_dim):
    """All at once would need more than a block can have."""

    @qd.kernel
    def powers(x: qd.types.NDArray[qd.i32, 1], ints: qd.types.NDArray[qd.i32, 1],
               wide: qd.types.NDArray[qd.f64, 1]):  # fmt: skip
        for i in range(x.shape[0]):
            for k in qd.static(range(30)):
                ints[k] += x[i] + k
                ints[k + 30] += x[i] + k + 30
                ints[k + 60] += x[i] + k + 60
            for k in qd.static(range(31)):
                wide[k] += x[i] * k
                qd.atomic_max(wide[k + 31], x[i] - k)

    with cuda(saturating_grid_dim=3, default_gpu_block_dim=block_dim):
        x = np.arange(-400, 300, dtype=np.int32)
        ints, wide = np.zeros(90, np.int32), np.zeros(62)
        powers(x, ints, wide)
        assert np.array_equal(ints, x.sum() + 700 * np.arange(90))
        assert np.array_equal(wide[:31], x.sum() * np.arange(31.0))
        assert np.array_equal(wide[31:], np.maximum(0, 299 - np.arange(31.0)))
        text = ptx_of(powers)
        turns = -(-62 // (16384 // 2 // block_dim // 8))
        assert text.count("barrier.sync") + text.count("bar.sync") == 3 * turns - 1


@qd.kernel
def left_alone(x: qd.types.NDArray[qd.i32, 1], out: qd.types.NDArray[qd.i32, 1],
               seen: qd.types.NDArray[qd.i32, 1], at: qd.i32):  # fmt: skip
    for i in range(x.shape[0]):
        seen[i] = qd.atomic_add(out[0], 1)
        out[at] += x[i]


def test_what_others_look_at_is_updated_at_once():
    """The old value is used, and another update may hit the same element."""
    with cuda():
        x = np.arange(300, dtype=np.int32)
        out, seen = np.zeros(4, np.int32), np.zeros(300, np.int32)
        left_alone(x, out, seen, 2)
        assert out.tolist() == [300, 0, x.sum(), 0]
        assert sorted(seen) == list(range(300))
        assert "bar.sync" not in ptx_of(left_alone)


@qd.kernel
def checked(x: qd.types.NDArray[qd.i32, 1], out: qd.types.NDArray[qd.i32, 1]):
    for i in range(x.shape[0]):
        assert x[i] >= 0
        out[0] += x[i]


def test_threads_that_fail_come_to_the_end_all_the_same():
    """A barrier waits for every thread of a block, also for one whose assertion failed."""
    with cuda(debug=True):
        x, out = np.ones(300, np.int32), np.zeros(1, np.int32)
        checked(x, out)
        assert out[0] == 300
        x[77] = -1
        with pytest.raises(qd.QuadrantsAssertionError):
            checked(x, out)
            qd.sync()


@pytest.mark.parametrize("fast_math", [False, True])
@pytest.mark.parametrize("name", ["min", "max"])
def test_infinity_stays_where_nothing_is_smaller_or_larger(fast_math, name):
    with cuda(fast_math=fast_math):
        kernel = reducer(name, np.dtype(np.float32))
        worst = np.float32(np.inf if name == "min" else -np.inf)
        for x in (np.zeros(0, np.float32), np.full(40, worst)):
            out = np.full(2, worst)
            kernel(x, out)
            assert out.tolist() == [worst, worst]


@qd.kernel
def guarded(x: qd.types.ndarray(qd.f32, 1), out: qd.types.ndarray(qd.f32, 1), at: qd.i32):
    for i in range(x.shape[0]):
        if at >= 0:
            out[at] += x[i]


@pytest.mark.parametrize("fast_math", [False, True])
def test_what_no_cell_updates_is_left_alone(fast_math):
    """The address may be of nothing."""
    with cuda(fast_math=fast_math):
        x, out = np.ones(300, np.float32), np.zeros(4, np.float32)
        held = qd.ndarray(qd.f32, out.shape)
        guarded(x, held, 3)
        guarded(x, held, -(1 << 28))
        assert held.to_numpy().tolist() == [0, 0, 0, 300]
        assert "bar.sync" in ptx_of(guarded)
