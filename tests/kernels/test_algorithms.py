"""`qd.algorithms`: reductions, scans, compaction, runs, sorting, against NumPy."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.lang.algorithms import executors, look_back

from tests.frontend.harness import load

ALG = qd.algorithms
SIZES = (0, 1, 255, 256, 257, 1000, 70000)


pytestmark = pytest.mark.usefixtures("arch")


def sizes(arch, *more):
    return [n for n in (*SIZES, *more) if arch == "cpu" or n <= 1000]


def kernels(tmp_path, depth, dtype):
    wide = "u64" if dtype.bits == 64 else "u32"
    text = f"""
A = qd.algorithms
X = qd.types.ndarray(dtype=qd.{dtype}, ndim=1)
S = qd.types.ndarray(dtype=qd.{wide}, ndim=1)
"""
    for name in ("add", "min", "max"):
        text += f"""

@qd.kernel
def reduce_{name}(x: X, out: X, scratch: S, n: qd.i32):
    A.reduce_{name}(x, out, scratch, n, qd.{dtype}, {depth})


@qd.kernel
def scan_{name}(x: X, out: X, scratch: S, n: qd.i32):
    A.exclusive_scan_{name}(x, out, scratch, n, qd.{dtype}, {depth})
"""
    return load(text, tmp_path)


def numbers(n, dtype):
    rng = np.random.default_rng(n)
    if dtype.is_real:
        return rng.integers(-50, 50, n).astype(dtype.np)
    return rng.integers(0 if not dtype.is_signed else -1000, 1000, n).astype(dtype.np)


FOLDS = {"add": np.add, "min": np.minimum, "max": np.maximum}


def neutral(how, dtype):
    if how == "add":
        return 0
    if dtype.is_real:
        return np.inf if how == "min" else -np.inf
    return dtype.max if how == "min" else dtype.min


@pytest.mark.sampled(5)
@pytest.mark.parametrize("dtype", [qd.i32, qd.u32, qd.f32, qd.i64, qd.f64], ids=str)
@pytest.mark.parametrize("how", FOLDS)
def test_reductions_and_scans(how, dtype, arch, tmp_path):
    made = {depth: kernels(tmp_path, depth, dtype) for depth in (1, 2, 3)}
    for n in sizes(arch):
        for depth in (1, 2, 3):
            if n > 256**depth or (depth == 1 and n > 256):
                continue
            x = numbers(max(n, 1), dtype)
            scratch = np.zeros(ALG.reduce_scratch_slots(n, depth), f"u{dtype.size}")
            want = [neutral(how, dtype)]
            with np.errstate(all="ignore"):
                want = np.array([*want, *FOLDS[how].accumulate(x[:n])]).astype(dtype.np)
            out = np.zeros(1, dtype.np)
            made[depth][f"reduce_{how}"](x, out, scratch, n)
            assert out[0] == want[n], (n, depth)
            out = np.full(max(n, 1), 77, dtype.np)
            made[depth][f"scan_{how}"](x, out, scratch, n)
            assert (out[:n] == want[:n]).all(), (n, depth)


U32 = qd.types.ndarray(dtype=qd.u32, ndim=1)
I32 = qd.types.ndarray(dtype=qd.i32, ndim=1)
F32 = qd.types.ndarray(dtype=qd.f32, ndim=1)


@qd.kernel
def compact(x: F32, flags: I32, out: F32, count: I32, scratch: U32, n: qd.i32):
    ALG.select(x, flags, out, count, scratch, n, 3)


@qd.kernel
def runs(
    keys: I32, values: F32, found: I32, sums: F32, count: I32, scratch: U32, n: qd.i32
):  # fmt: skip
    ALG.reduce_by_key_add(keys, values, found, sums, count, scratch, n, qd.f32, 3)


def test_select_keeps_the_order(arch):
    for n in sizes(arch):
        x, flags = numbers(max(n, 1), qd.f32), numbers(max(n, 1), qd.i32) % 3
        out, count = np.zeros(max(n, 1), np.float32), np.zeros(1, np.int32)
        compact(x, flags, out, count, np.zeros(ALG.select_scratch_slots(n), np.uint32), n)
        want = x[:n][flags[:n] != 0]
        assert count[0] == len(want) and (out[: len(want)] == want).all(), n


def test_sums_over_runs_of_keys(arch):
    for n in sizes(arch):
        rng = np.random.default_rng(n)
        keys = np.repeat(rng.integers(0, 9, n + 1), rng.integers(1, 5, n + 1))[: max(n, 1)]
        keys = keys.astype(np.int32)
        values = numbers(max(n, 1), qd.f32)
        found, sums = np.zeros(max(n, 1), np.int32), np.zeros(max(n, 1), np.float32)
        count = np.zeros(1, np.int32)
        scratch = np.zeros(ALG.reduce_by_key_scratch_slots(n), np.uint32)
        runs(keys, values, found, sums, count, scratch, n)
        heads = np.flatnonzero(np.diff(keys[:n], prepend=-1)) if n else np.zeros(0, int)
        assert count[0] == len(heads)
        assert (found[: len(heads)] == keys[heads]).all()
        if n:
            assert (sums[: len(heads)] == np.add.reduceat(values[:n], heads)).all()


@qd.kernel
def sort_low_bits(
    keys: U32, tmp: U32, values: I32, tmp_values: I32, scratch: U32, n: qd.i32
):  # fmt: skip
    ALG.sort(keys, tmp, values, tmp_values, scratch, n, qd.u32, True, 16, 3)


def test_sort_by_low_bits_is_stable(arch):
    for n in sizes(arch):
        keys = np.random.default_rng(n).integers(0, 1 << 32, max(n, 1)).astype(np.uint32)
        values = np.arange(len(keys), dtype=np.int32)
        order = np.argsort(keys[:n] & 0xFFFF, kind="stable")
        want = keys[:n][order]
        scratch = np.zeros(ALG.sort_scratch_slots(n, 3), np.uint32)
        sort_low_bits(keys, np.zeros_like(keys), values, np.zeros_like(values), scratch, n)
        assert (keys[:n] == want).all() and (values[:n] == order).all(), n


@pytest.fixture(params=["phases", "once"])
def scheme(request, arch, monkeypatch):
    """Sums and sorting as elsewhere, and as on CUDA: from then on the tiles have 4,096 elements."""
    if arch not in ("cuda", "opencl"):
        monkeypatch.setattr(executors, "_looks_back", lambda: request.param == "once")
    elif request.param == "once":
        pytest.skip("the arch has its scheme")
    return request.param


@pytest.mark.sampled(6)
@pytest.mark.parametrize("dtype", [qd.i32, qd.u32, qd.f32, qd.i64, qd.u64, qd.f64], ids=str)
def test_parallel_sort(dtype, arch, scheme):
    for n in (1, 300, 70000) if arch == "cpu" and dtype is qd.f32 else (300,):
        rng = np.random.default_rng(n)
        a = (rng.standard_normal(n) * 1000).astype(dtype.np)
        if not dtype.is_signed:
            a = rng.integers(0, dtype.max, n, dtype=dtype.np)
        order = np.argsort(a, kind="stable")
        keys, values = qd.field(dtype, shape=n), qd.Vector.field(2, qd.i32, shape=n)
        keys.from_numpy(a)
        values.from_numpy(np.stack([np.arange(n), -np.arange(n)], 1).astype(np.int32))
        ALG.parallel_sort(keys, values)
        assert (keys.to_numpy() == a[order]).all()
        assert (values.to_numpy() == np.stack([order, -order], 1)).all()
        array = qd.ndarray(dtype, n)
        array.from_numpy(a)
        ALG.parallel_sort(array)
        assert (array.to_numpy() == a[order]).all()


def test_fields_share_the_code_of_arrays(arch, monkeypatch):
    """But for those whose elements are not one after the other."""
    monkeypatch.setattr(executors, "_looks_back", lambda: True)
    rng = np.random.default_rng(2)
    n = 300

    def sort(keys, values):
        given = rng.integers(-50, 50, n).astype(np.int32)
        keys.from_numpy(given)
        values.from_numpy(np.arange(n, dtype=np.int32))
        ALG.parallel_sort(keys, values)
        order = np.argsort(given, kind="stable")
        assert (keys.to_numpy() == given[order]).all()
        assert (values.to_numpy() == order).all()
        return len(set(executors._sort_digit.launchers.variants.values()))

    fields = [qd.field(qd.i32, n, offset=k) for k in (0, -7)]
    used = sort(*fields)
    assert sort(*fields[::-1]) == sort(qd.ndarray(qd.i32, n), qd.ndarray(qd.i32, n)) == used
    mixed = qd.field(qd.i32), qd.field(qd.i32)
    qd.root.dense(qd.i, n).place(*mixed)
    assert sort(*mixed) > used


def test_prefix_sums(arch, scheme):
    for n in sizes(arch)[1:]:
        for data in (qd.field(qd.i32, shape=n), qd.ndarray(qd.i32, n), qd.tensor(qd.i32, n)):
            a = numbers(n, qd.i32)
            sums = ALG.PrefixSumExecutor(n)
            for _ in range(2):
                data.from_numpy(a)
                sums.run(data)
                assert (data.to_numpy() == np.cumsum(a)).all()
            sums._epoch = (1 << 31) - 1  # the next one begins again
            sums.run(data)
            assert (data.to_numpy() == np.cumsum(np.cumsum(a), dtype=np.int32)).all()


@pytest.mark.parametrize("values", [qd.i32, qd.u8, qd.f64], ids=str)
def test_values_of_a_sort_near_and_far(values, arch, scheme):
    """Those of up to 32 bits beside keys of 32 bits go through shared memory."""
    n = 5000 if arch == "cpu" else 300
    a = np.random.default_rng(3).integers(0, 1 << 12, n).astype(np.uint32)
    for _ in range(2):  # with buffers of its own, then with those of the first
        keys, moved = qd.ndarray(qd.u32, n), qd.ndarray(values, n)
        keys.from_numpy(a)
        moved.from_numpy(np.arange(n).astype(values.np))
        ALG.parallel_sort(keys, moved)
        order = np.argsort(a, kind="stable")
        assert (keys.to_numpy() == a[order]).all()
        assert (moved.to_numpy() == order.astype(values.np)).all()


def test_slots():
    assert [ALG.reduce_scratch_slots(n) for n in (0, 256, 257, 65536, 65537)] == [1, 1, 2, 256, 259]
    assert [ALG.exclusive_scan_scratch_slots(1000, d) for d in (1, 2, 3)] == [1, 4, 5]
    assert [ALG.sort_scratch_slots(n) for n in (0, 1, 257, 65537)] == [1, 256, 514, 66051]


@qd.kernel
def slots_in_a_kernel(n: qd.i32) -> qd.i32:
    return ALG.reduce_scratch_slots(n, 3) + ALG.sort_scratch_slots(n, 2)


def test_slots_in_a_kernel():
    assert slots_in_a_kernel(1000) == 5 + 1028


def test_mistakes_say_what_is_wrong():
    with pytest.raises(TypeError, match="of one axis"):
        ALG.parallel_sort(qd.field(qd.f32, shape=(2, 2)))
    with pytest.raises(TypeError, match="of one length"):
        ALG.parallel_sort(qd.field(qd.f32, shape=2), qd.field(qd.f32, shape=3))
    with pytest.raises(TypeError, match="works on i32"):
        ALG.parallel_sort(qd.field(qd.i8, shape=2))
    with pytest.raises(TypeError, match="takes i32 data of 3 elements, not f32"):
        ALG.PrefixSumExecutor(3).run(qd.field(qd.f32, shape=3))


def shifted(name, dtype, n, used):
    """A field of n elements whose first index is none of the others'."""
    offset = (-3, 40, -1000, 7, 250, 1 << 20)[len(used) % 6]
    used.append(qd.field(dtype, n, offset=offset, name=name))
    return used[-1]


def test_fields_with_offsets(arch):
    """Elements are counted from a field's first one, in data, results and scratch alike."""
    n, used = 700, []
    x, flags, keys = numbers(n, qd.i32), numbers(n, qd.i32) % 3, np.sort(numbers(n, qd.i32) % 5)
    names = ("arr", "flags", "keys", "out", "scanned", "packed", "heads", "sums")
    f = {name: shifted(name, qd.i32, n, used) for name in names}
    one = {name: shifted(name, qd.i32, 1, used) for name in ("total", "count", "runs")}
    scratch = shifted("scratch", qd.u32, 2 * n, used)
    for field, data in ((f["arr"], x), (f["flags"], flags), (f["keys"], keys)):
        field.from_numpy(data)

    @qd.kernel
    def all_of_them():
        ALG.reduce_add(f["arr"], one["total"], scratch, n, qd.i32, 2)
        ALG.exclusive_scan_max(f["arr"], f["scanned"], scratch, n, qd.i32, 2)
        ALG.select(f["arr"], f["flags"], f["packed"], one["count"], scratch, n, 2)
        ALG.reduce_by_key_add(
            f["keys"], f["arr"], f["heads"], f["sums"], one["runs"], scratch, n, qd.i32, 2
        )

    all_of_them()
    assert one["total"].to_numpy() == x.sum()
    assert (f["scanned"].to_numpy()[1:] == np.maximum.accumulate(x)[:-1]).all()
    assert one["count"].to_numpy() == np.count_nonzero(flags)
    assert (f["packed"].to_numpy()[: np.count_nonzero(flags)] == x[flags != 0]).all()
    assert one["runs"].to_numpy() == len(set(keys))
    sums = [x[keys == key].sum() for key in np.unique(keys)]
    assert (f["sums"].to_numpy()[: len(sums)] == sums).all()
    assert (f["out"].to_numpy() == 0).all()


def test_sorting_and_sums_of_fields_with_offsets(arch):
    n = 1000
    x = numbers(n, qd.i32)
    keys = qd.field(qd.i32, n, offset=-7)
    values = qd.Vector.field(2, qd.f32, n, offset=4096)
    keys.from_numpy(x)
    values.from_numpy(np.stack([x, -x], 1).astype(np.float32))
    ALG.parallel_sort(keys, values)
    assert (keys.to_numpy() == np.sort(x)).all()
    assert (values.to_numpy() == np.stack([np.sort(x), -np.sort(x)], 1)).all()
    keys.from_numpy(x)
    ALG.PrefixSumExecutor(n).run(keys)
    assert (keys.to_numpy() == np.cumsum(x)).all()


@qd.kernel
def looked_back(words: U32, found: I32, tile: qd.i32):
    for i in range(1):
        found[i] = look_back.keys_before(words, 0, tile, qd.cast(5, qd.u32))


@pytest.mark.parametrize("done", [0, 1, 2, 9, 11, 19, 39])
def test_a_tile_adds_up_what_others_have_counted(done, arch):
    """Tiles up to `done` know the sum of all up to them, later ones their own count alone."""
    rng, tile = np.random.default_rng(done), 40
    counts = rng.integers(0, 4097, tile)
    counts[rng.integers(0, tile, 10)] = 0
    words = np.zeros(256 * (tile + 1), np.uint32)
    sums = np.cumsum(counts)
    every = np.arange(tile)
    words[: 256 * tile : 256] = np.where(every <= done, sums | 1 << 31, counts | 1 << 30)
    words[256:] += np.where(np.arange(256 * tile) % 256 != 0, np.uint32(7), np.uint32(0))
    found = np.zeros(1, np.int32)
    looked_back(words, found, tile)
    assert found[0] == sums[-1]
    assert words[256 * tile] == (sums[-1] + 5) | 1 << 31
