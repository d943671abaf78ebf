"""Subgroups: exchanges, votes, reductions, scans, segments, sorting; the CUDA names of some.

Each operation is compared with what plain Python says about groups of at most 32 values, with
blocks and loops that end in the middle of a subgroup, too.
"""

import itertools

import numpy as np
import pytest
from qd_studio import engine as qd

sg = qd.simt.subgroup
warp = qd.simt.warp
Ints = qd.types.ndarray(dtype=qd.i32, ndim=1)
Table = qd.types.ndarray(dtype=qd.i32, ndim=2)
# Kernels of many operations take seconds to compile.
pytestmark = [pytest.mark.sampled(5), pytest.mark.usefixtures("configured")]


SIZES = {64: (1, 37, 100), 32: (32,), 16: (70,)}
"""By iterations of a block, for which a kernel is compiled: iterations of the loop."""


def groups(n, block, size=32):
    """Numbers of iterations by group of ``size`` lanes."""
    out = []
    for first in range(0, n, block):
        ids = list(range(first, min(first + block, n)))
        for k in range(0, len(ids), 32):
            lanes = ids[k : k + 32]
            out += [lanes[j : j + size] for j in range(0, len(lanes), size)]
    return out


def run(kernel, n, rows, *more, seed=0, high=9):
    x = np.random.default_rng(seed).integers(-high, high, n).astype(np.int32)
    out = np.full((rows, n), 77, np.int32)
    kernel(x, out, *more)
    return x, out


def groups_of(kernel, rows, block):
    """Input, output and iterations of each group, for all sizes of loops."""
    for n in SIZES[block]:
        x, out = run(kernel, n, rows, block)
        for ids in groups(n, block):
            yield x, out, ids


@qd.kernel
def shuffles(x: Ints, o: Table, block: qd.Template):
    qd.loop_config(block_dim=block)
    for i in range(x.shape[0]):
        o[0, i] = sg.invocation_id()
        o[1, i] = sg.shuffle(x[i], 3)
        o[2, i] = sg.shuffle_down(x[i], 5)
        o[3, i] = sg.shuffle_up(x[i], 2)
        o[4, i] = sg.shuffle_xor(x[i], 9)
        o[5, i] = sg.broadcast(x[i], 1)
        o[6, i] = sg.broadcast_first(x[i])
        o[7, i] = sg.shuffle(x[i], -1) + sg.shuffle(x[i], 32)
        o[8, i] = sg.elect()
        o[9, i] = warp.shfl_sync_i32(qd.u32(0xFFFFFFFF), x[i], x[i] & 7)
        o[10, i] = warp.shfl_down_i32(qd.u32(1), x[i], 1) + warp.shfl_up_i32(qd.u32(1), x[i], 1)
        o[11, i] = warp.shfl_xor_i32(qd.u32(1), x[i], 1)


@pytest.mark.parametrize("block", SIZES)
def test_values_of_other_lanes(block):
    for x, out, ids in groups_of(shuffles, 12, block):

        def of(lane, i, ids=ids, x=x):
            return x[ids[lane]] if 0 <= lane < len(ids) else x[i]

        for lane, i in enumerate(ids):
            up, down = of(lane - 1, i), of(lane + 1, i)
            expected = [
                lane, of(3, i), of(lane + 5, i), of(lane - 2, i), of(lane ^ 9, i), of(1, i),
                x[ids[0]], 2 * x[i], int(lane == 0), of(x[i] & 7, i), down + up, of(lane ^ 1, i),
            ]  # fmt: skip
            assert out[:, i].tolist() == expected, (lane, i)


@pytest.mark.parametrize("dtype", [qd.u1, qd.i8, qd.u16, qd.i64, qd.u64, qd.f16, qd.f32, qd.f64])
def test_values_of_every_type_are_exchanged(dtype):
    @qd.kernel
    def turn(x: qd.types.ndarray(dtype=dtype, ndim=1)):
        qd.loop_config(block_dim=32)
        for i in range(48):
            x[i] = sg.shuffle(x[i], 15 - sg.invocation_id())

    numbers = np.arange(48) * (1 << 40) if dtype in (qd.i64, qd.u64) else np.arange(48)
    x = (numbers % 2 if dtype is qd.u1 else numbers * 1.5).astype(dtype.np)
    expected = x.copy()
    expected[:16], expected[32:] = x[15::-1], x[47:31:-1]
    turn(x)
    assert x.tolist() == expected.tolist()


@qd.kernel
def votes(x: Ints, o: Table, block: qd.Template):
    qd.loop_config(block_dim=block)
    for i in range(x.shape[0]):
        p = x[i] > 0
        o[0, i] = sg.any_true(p)
        o[1, i] = sg.all_true(x[i] > -8)
        o[2, i] = sg.any_true_tiled(x[i] > 6, 2)
        o[3, i] = sg.all_true_tiled(p, 1)
        o[4, i] = sg.all_equal(x[i])
        o[5, i] = sg.all_equal_tiled(x[i] & 1, 1)
        o[6, i] = qd.cast(sg.ballot(p), qd.i32)
        o[7, i] = qd.cast(sg.ballot_first_n(p, 7), qd.i32)
        o[8, i] = qd.cast(sg.ballot_full_subgroup(p) >> 32, qd.i32)
        o[9, i] = qd.cast(warp.ballot(p), qd.i32)
        o[10, i] = warp.any_nonzero(qd.u32(0xF0), p)
        o[11, i] = warp.all_nonzero(qd.u32(0x3), p)
        o[12, i] = warp.unique(qd.u32(0x7), p)
        o[13, i] = qd.cast(warp.match_any(qd.u32(0xFFFFFFFF), x[i] & 3), qd.i32)
        o[14, i] = qd.cast(warp.match_all(qd.u32(0x3), x[i] & 1), qd.i32)
        o[15, i] = qd.cast(warp.active_mask(), qd.i32)


def bits(flags):
    return int(np.uint32(sum(1 << k for k, flag in enumerate(flags) if flag)).astype(np.int32))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("block", SIZES)
def test_votes(block):
    for x, out, ids in groups_of(votes, 16, block):
        v = [int(x[i]) for i in ids]
        p = [a > 0 for a in v]
        for lane, i in enumerate(ids):
            fours = v[lane & ~3 : (lane & ~3) + 4]
            twos = v[lane & ~1 : (lane & ~1) + 2]
            low = [a & 1 for a in v[:2]]
            expected = [
                any(p), all(a > -8 for a in v), any(a > 6 for a in fours), all(a > 0 for a in twos),
                len(set(v)) == 1, len({a & 1 for a in twos}) == 1, bits(p), bits(p[:7]), 0, bits(p),
                any(p[4:8]), all(p[:2]), len(set(p[:3])) == 1,
                bits([a & 3 == v[lane] & 3 for a in v]),
                bits([True] * len(low)) if len(set(low)) == 1 else 0, bits([True] * len(v)),
            ]  # fmt: skip
            found = out[:, i].tolist()
            # The lanes of a match are those that have the value of the asking lane.
            assert found == [int(e) for e in expected], (lane, i)


@qd.kernel
def folds(x: Ints, o: Table, block: qd.Template):
    qd.loop_config(block_dim=block)
    for i in range(x.shape[0]):
        o[0, i] = sg.reduce_all_add(x[i])
        o[1, i] = sg.reduce_all_min(x[i])
        o[2, i] = sg.reduce_all_max(x[i])
        o[3, i] = sg.reduce_all_add_tiled(x[i], 3)
        o[4, i] = sg.reduce_all_min_tiled(x[i], 0)
        o[5, i] = sg.reduce_all_max_tiled(x[i], 4)


@pytest.mark.parametrize("block", SIZES)
def test_one_value_of_all(block):
    for x, out, ids in groups_of(folds, 6, block):
        v = [int(x[i]) for i in ids]
        for lane, i in enumerate(ids):
            eights = v[lane & ~7 : (lane & ~7) + 8]
            half = v[lane & ~15 : (lane & ~15) + 16]
            assert out[:, i].tolist() == [
                sum(v), min(v), max(v), sum(eights), v[lane], max(half)
            ]  # fmt: skip


@qd.kernel
def first_folds(x: Ints, o: Table, block: qd.Template):
    qd.loop_config(block_dim=block)
    for i in range(x.shape[0]):
        a = sg.reduce_add(x[i]) + 100 * sg.reduce_min(x[i]) + 10000 * sg.reduce_max(x[i])
        o[0, i] = sg.broadcast_first(a)
        b = sg.reduce_add_tiled(x[i], 5) + 100 * sg.reduce_min_tiled(x[i], 5)
        o[1, i] = sg.broadcast_first(b + 10000 * sg.reduce_max_tiled(x[i], 5))


@pytest.mark.parametrize("block", SIZES)
def test_the_first_has_one_value(block):
    for x, out, ids in groups_of(first_folds, 2, block):
        v = [int(x[i]) for i in ids]
        expected = sum(v) + 100 * min(v) + 10000 * max(v)
        assert (out[:, ids] == expected).all()


OPS = {
    "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "min": min, "max": max,
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
}  # fmt: skip
FIRST = {
    "add": 0, "mul": 1, "min": 2**31 - 1, "max": -(2**31), "and": -1, "or": 0, "xor": 0,
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("op", sorted(OPS))
def test_scans(op):
    inclusive, exclusive = getattr(sg, f"inclusive_{op}"), getattr(sg, f"exclusive_{op}")
    tiled, before = getattr(sg, f"inclusive_{op}_tiled"), getattr(sg, f"exclusive_{op}_tiled")

    @qd.kernel
    def scans(x: Ints, o: Table):
        qd.loop_config(block_dim=64)
        for i in range(x.shape[0]):
            o[0, i] = inclusive(x[i])
            o[1, i] = exclusive(x[i])
            o[2, i] = tiled(x[i], 2)
            o[3, i] = before(x[i], 2)

    x, out = run(scans, 75, 4, high=4)
    for size, row in ((32, 0), (4, 2)):
        for ids in groups(75, 64, size):
            sums = list(itertools.accumulate([int(x[i]) for i in ids], OPS[op]))
            wrapped = [int(np.int64(s).astype(np.int32)) for s in sums]
            assert out[row, ids].tolist() == wrapped
            assert out[row + 1, ids].tolist() == [FIRST[op], *wrapped[:-1]]


def test_scans_of_floats_begin_with_what_changes_nothing():
    @qd.kernel
    def k(o: qd.types.ndarray(dtype=qd.f32, ndim=2)):
        qd.loop_config(block_dim=32)
        for i in range(32):
            o[0, i] = sg.exclusive_min(1.5 - i)
            o[1, i] = sg.exclusive_max(qd.f32(i))
            o[2, i] = sg.exclusive_mul(2.0)

    out = np.zeros((3, 32), np.float32)
    k(out)
    assert out[:, :4].tolist() == [[np.inf, 1.5, 0.5, -0.5], [-np.inf, 0, 1, 2], [1, 2, 4, 8]]


def test_segments():
    @qd.kernel
    def k(x: Ints, h: Ints, o: Table):
        qd.loop_config(block_dim=64)
        for i in range(x.shape[0]):
            o[0, i] = sg.segmented_reduce_add(x[i], h[i])
            o[1, i] = sg.segmented_reduce_min(x[i], h[i])
            o[2, i] = sg.segmented_reduce_max(x[i], h[i])
            o[3, i] = sg.segmented_reduce_add_tiled(x[i], h[i], 3)
            o[4, i] = sg.segmented_reduce_min_tiled(x[i], h[i], 3)
            o[5, i] = sg.segmented_reduce_max_tiled(x[i], h[i], 3)

    rng = np.random.default_rng(4)
    x = rng.integers(-9, 9, 75).astype(np.int32)
    h = (rng.random(75) < 0.2).astype(np.int32) * 5
    out = np.zeros((6, 75), np.int32)
    k(x, h, out)
    for size, row in ((32, 0), (8, 3)):
        for ids in groups(75, 64, size):
            run_ = []
            for i in ids:
                run_ = [int(x[i])] if h[i] else [*run_, int(x[i])]
                assert out[row : row + 3, i].tolist() == [sum(run_), min(run_), max(run_)]


def test_pairs_are_sorted():
    @qd.kernel
    def k(x: Ints, o: Table):
        qd.loop_config(block_dim=64)
        for i in range(x.shape[0]):
            a, b = sg.bitonic_sort_kv(x[i], -i)
            c, d = sg.bitonic_sort_kv_tiled(x[i] & 3, i & 1, 2)
            o[0, i] = a
            o[1, i] = b
            o[2, i] = c
            o[3, i] = d

    x, out = run(k, 70, 4)
    for ids in groups(70, 64):
        pairs = sorted((int(x[i]), -i) for i in ids)
        assert list(zip(*out[:2, ids].tolist(), strict=True)) == pairs
    for ids in groups(70, 64, 4):
        pairs = sorted((int(x[i]) & 3, i & 1) for i in ids)
        assert list(zip(*out[2:, ids].tolist(), strict=True)) == pairs


def test_barriers_of_subgroups_order_memory():
    @qd.kernel
    def k(o: Ints):
        qd.loop_config(block_dim=64)
        for i in range(64):
            row = qd.simt.block.SharedArray((64,), qd.i32)
            t = qd.simt.block.thread_idx()
            row[t] = i * i
            sg.mem_fence()
            sg.sync()
            o[i] = row[t ^ 1]
            sg.barrier()
            warp.sync(qd.u32(0xFFFFFFFF))

    out = np.zeros(64, np.int32)
    k(out)
    assert out.tolist() == [(i ^ 1) ** 2 for i in range(64)]


def test_masks_and_sizes_are_known_when_compiled():
    @qd.kernel
    def k(o: Ints):
        for _ in range(1):
            o[0] = qd.static(sg.group_size() + sg.log2_group_size())
            for n in qd.static(range(3)):
                o[1 + n] = n
            lane = 4
            o[4] = qd.cast(sg.lanemask_eq(lane), qd.i32)
            o[5] = qd.cast(sg.lanemask_lt(lane), qd.i32)
            o[6] = qd.cast(sg.lanemask_le(lane), qd.i32)
            o[7] = qd.cast(sg.lanemask_gt(lane), qd.i32)
            o[8] = qd.cast(sg.lanemask_ge(lane), qd.i32)

    out = np.zeros(9, np.int32)
    k(out)
    assert out.tolist() == [37, 0, 1, 2, 16, 15, 31, ~31, ~15]
    assert (sg.group_size(), sg.log2_group_size()) == (32, 5)


def test_lanes_that_have_ended_are_waited_for_no_more():
    @qd.kernel
    def k(o: Ints):
        qd.loop_config(block_dim=32)
        for i in range(32):
            if i >= 20:
                continue
            o[i] = qd.cast(warp.ballot(1), qd.i32)

    out = np.zeros(32, np.int32)
    k(out)
    assert out.tolist() == [(1 << 20) - 1] * 20 + [0] * 12


def test_exchanges_in_loops_and_branches_that_all_lanes_take():
    @qd.kernel
    def k(o: Ints, rounds: qd.i32):
        qd.loop_config(block_dim=32)
        for i in range(32):
            v = i
            for _ in range(rounds):
                v = sg.shuffle(v, (sg.invocation_id() + 1) % 32)
            if rounds > 2:
                v += 100 * sg.broadcast_first(v)
            o[i] = v

    for rounds in (0, 1, 3):
        out = np.zeros(32, np.int32)
        k(out, rounds)
        first = 100 * rounds if rounds > 2 else 0
        assert out.tolist() == [(i + rounds) % 32 + first for i in range(32)]
