"""Threads of a block: shared arrays, barriers, and subgroups."""

import numpy as np

from .... import engine as qd
from ..feature import Group
from .kit import F32, I32, filled, of, zeros

feature = Group("blocks", "Blocks", ("blocks",))


@feature("shared arrays and barriers", [[31, 30, 29], [63, 62, 61]])
def shared():
    @qd.kernel
    def k(x: I32):
        qd.loop_config(block_dim=32)
        for i in range(64):
            row = qd.simt.block.SharedArray((32,), qd.i32)
            t = qd.simt.block.thread_idx()
            row[t] = x[i]
            qd.simt.block.sync()
            x[i] = row[31 - t]

    x = filled(k, np.arange(64, dtype=np.int32))
    return [x[:3], x[32:35]]


@feature("shared arrays of two axes, and of vectors", [[0, 4, 8, 12, 1, 5], 5.0])
def shared_planes():
    @qd.kernel
    def k(x: I32, y: F32):
        qd.loop_config(block_dim=16)
        for i in range(16):
            tile = qd.simt.block.SharedArray((4, 4), qd.i32)
            pairs = qd.simt.block.SharedArray((16,), qd.types.vector(2, qd.f32))
            tile[i // 4, i % 4] = x[i]
            pairs[i] = qd.Vector([i * 1.0, 2.0])
            qd.simt.block.sync()
            x[i] = tile[i % 4, i // 4]
            y[i] = pairs[15 - i].sum()

    x, y = np.arange(16, dtype=np.int32), zeros(qd.f32, 16)
    k(x, y)
    return [x[:6], y[12]]


@feature("barriers in a loop: a sum in steps", [[2016, 6112]])
def tree():
    @qd.kernel
    def k(x: I32, out: I32):
        qd.loop_config(block_dim=64)
        for i in range(128):
            part = qd.simt.block.SharedArray((64,), qd.i32)
            t = i % 64
            part[t] = x[i]
            qd.simt.block.sync()
            step = 32
            while step > 0:
                if t < step:
                    part[t] += part[t + step]
                qd.simt.block.sync()
                step //= 2
            if t == 0:
                out[i // 64] = part[0]

    return [filled(k, np.arange(128, dtype=np.int32), zeros(qd.i32, 2))]


@feature("atomic updates of shared arrays", [[8, 8, 8, 8]])
def shared_atomics():
    @qd.kernel
    def k(x: I32, out: I32):
        qd.loop_config(block_dim=32)
        for i in range(32):
            count = qd.simt.block.SharedArray((4,), qd.i32)
            if i < 4:
                count[i] = 0
            qd.simt.block.sync()
            count[x[i] % 4] += 1
            qd.simt.block.sync()
            if i < 4:
                out[i] = count[i]

    return [filled(k, np.arange(32, dtype=np.int32), zeros(qd.i32, 4))]


@feature("what other threads wrote to arrays is seen after a barrier", [[1, 2, 3, 0]])
def global_memory():
    @qd.kernel
    def k(x: I32, y: I32):
        qd.loop_config(block_dim=32)
        for i in range(32):
            x[i] = i
            qd.simt.block.sync()
            y[i] = x[(i + 1) % 4]

    y = filled(k, zeros(qd.i32, 32), zeros(qd.i32, 32))
    return [y[:4]]


@feature("a last block that is not full", [[9, 8, 7], [39, 38]])
def partial_blocks():
    @qd.kernel
    def k(x: I32):
        qd.loop_config(block_dim=32)
        for i in range(40):
            row = qd.simt.block.SharedArray((32,), qd.i32)
            t = qd.simt.block.thread_idx()
            row[t] = i
            qd.simt.block.sync()
            n = 8 if i >= 32 else 10
            x[i] = row[n - 1 - t] if t < n else i

    x = filled(k, zeros(qd.i32, 40))
    return [x[:3], x[32:34]]


@feature("block.reduce and block.reduce_all", [[10, 10, 26], [1, 5], [4, 8], [24, 1680], [10, 26]])
def reductions():
    b = qd.simt.block

    @qd.func
    def times(x, y):
        return x * y

    @qd.kernel
    def k(x: I32, out: qd.types.NDArray[qd.i32, 2]):
        qd.loop_config(block_dim=4)
        for i in range(8):
            out[0, i] = b.reduce_all_add(x[i], 4, qd.i32)
            out[1, i] = b.reduce_all_min(x[i], 4, qd.i32)
            out[2, i] = b.reduce_all_max(x[i], 4, qd.i32)
            out[3, i] = b.reduce_all(x[i], 4, times, qd.i32)
            a = b.reduce_add(x[i], 4, qd.i32)
            if b.thread_idx() == 0:
                out[4, i] = a

    out = filled(k, np.arange(1, 9, dtype=np.int32), zeros(qd.i32, 5, 8))
    return [out[0, [0, 3, 4]], out[1, [0, 4]], out[2, [0, 4]], out[3, [0, 4]], out[4, [0, 4]]]


@feature("block scans", [[3, 4, 8, 10], [0, 3, 4, 8], [3, 1, 1, 1], [1, 3, 3, 12]])
def scans():
    b = qd.simt.block

    @qd.func
    def times(x, y):
        return x * y

    @qd.kernel
    def k(x: I32, out: qd.types.NDArray[qd.i32, 2]):
        qd.loop_config(block_dim=4)
        for i in range(4):
            out[0, i] = b.inclusive_add(x[i], 4, qd.i32)
            out[1, i] = b.exclusive_add(x[i], 4, qd.i32)
            out[2, i] = b.inclusive_min(x[i], 4, qd.i32)
            out[3, i] = b.exclusive_scan(x[i], 4, times, 1, qd.i32)

    return filled(k, of(qd.i32, 3, 1, 4, 2), zeros(qd.i32, 4, 4))


@feature("votes of a block", [[2, 2], [0, 0], [1, 1]])
def votes():
    b = qd.simt.block

    @qd.kernel
    def k(x: qd.types.NDArray[qd.i32, 2]):
        qd.loop_config(block_dim=4)
        for i in range(4):
            x[0, i] = b.sync_count_nonzero(i % 2)
            x[1, i] = b.sync_any_nonzero(i > 5)
            x[2, i] = b.sync_all_nonzero(i < 5)

    x = filled(k, zeros(qd.i32, 3, 4))
    return x[:, 1:3]


@feature("fences and thread numbers", [[0, 1, 2, 3]])
def fences():
    @qd.kernel
    def k(x: I32):
        for i in range(4):
            x[i] = qd.simt.block.global_thread_idx()
            qd.simt.block.mem_fence()
            qd.simt.grid.mem_fence()

    return [filled(k, zeros(qd.i32, 4))]


# ---- subgroups

lanes = Group("subgroups", "Subgroups", ("blocks", "subgroups"))
_sg = qd.simt.subgroup


def _on_lanes(rows, body, dtype=qd.i32):
    """Return an array of ``rows`` rows of 32 lanes, after ``body(i, array)`` ran in each lane."""

    @qd.kernel
    def k(x: qd.types.NDArray[dtype, 2]):
        qd.loop_config(block_dim=32)
        for i in range(32):
            body(i, x)

    return filled(k, zeros(dtype, rows, 32))


@lanes("lane numbers, election, masks", [[2, 0, 7, 4, 7], 1])
def lane_numbers():
    @qd.func
    def body(i, x: qd.template()):
        lane = _sg.invocation_id()
        x[0, i] = lane
        x[1, i] = _sg.elect()
        x[2, i] = _sg.lanemask_eq(lane) | _sg.lanemask_lt(lane)
        x[3, i] = _sg.lanemask_le(lane) & _sg.lanemask_ge(lane)
        x[4, i] = ~_sg.lanemask_gt(lane)

    x = _on_lanes(5, body, qd.u32)
    return [x[:, 2], x[1, 0]]


@lanes("shuffle, up, down, xor, broadcast", [961, 900, 0, 0, 1, 2, 1, 0, 7])
def shuffles():
    @qd.func
    def body(i, x: qd.template()):
        x[0, i] = _sg.shuffle(i * i, 31 - i)
        x[1, i] = _sg.shuffle_up(i, 1)
        x[2, i] = _sg.shuffle_down(i, 1)
        x[3, i] = _sg.shuffle_xor(i, 1)
        x[4, i] = _sg.broadcast(i, 7) + _sg.broadcast_first(i)

    x = _on_lanes(5, body)
    return [*x[0, :2], *x[1, :2], *x[2, :2], *x[3, :2], x[4, 9]]


@lanes("shuffles of floats and of 64 bits", [0.5 * 31, 2**40 * 30], ("f64",))
def wide_shuffles():
    @qd.kernel
    def k(x: F32, y: qd.types.NDArray[qd.i64, 1]):
        qd.loop_config(block_dim=32)
        for i in range(32):
            x[i] = _sg.shuffle(0.5 * i, 31 - i)
            y[i] = _sg.shuffle_xor(qd.cast(i, qd.i64) << 40, 31)

    x, y = zeros(qd.f32, 32), zeros(qd.i64, 32)
    k(x, y)
    return [x[0], y[1]]


@lanes("votes: ballot, any, all, equal", [8738, 10, 7, 11, 11, 1])
def lane_votes():
    @qd.func
    def body(i, x: qd.template()):
        x[0, i] = _sg.ballot(i % 4 == 1) & 0xFFFF
        x[1, i] = _sg.ballot_first_n(i % 2, 4)
        x[2, i] = _sg.ballot(i < 3)
        x[3, i] = _sg.any_true(i == 9) + 10 * _sg.all_true(i < 32) + 100 * _sg.all_equal(i)
        x[4, i] = _sg.any_true_tiled(i == 1, 2) + 10 * _sg.all_true_tiled(i < 4, 2)
        x[5, i] = _sg.all_equal_tiled(i // 2, 1)

    return _on_lanes(6, body, qd.u64)[:, 0]


@lanes("reductions of a subgroup and of tiles", [527, 527, 33, [1, 1, 5, 5], 1508])
def lane_reductions():
    @qd.func
    def body(i, x: qd.template()):
        x[0, i] = _sg.reduce_add(i) + _sg.reduce_min(i) + _sg.reduce_max(i)
        x[1, i] = _sg.reduce_all_add(i) + _sg.reduce_all_min(i) + _sg.reduce_all_max(i)
        x[2, i] = (
            _sg.reduce_add_tiled(i, 2) + _sg.reduce_min_tiled(i, 2) + _sg.reduce_max_tiled(i, 2)
        )
        x[3, i] = _sg.reduce_all_add_tiled(i, 1)
        x[4, i] = _sg.reduce_all_min_tiled(i, 3) + 100 * _sg.reduce_all_max_tiled(i, 3)

    x = _on_lanes(5, body)
    return [x[0, 0], x[1, 9], x[2, 4], x[3, :4], x[4, 9]]


@lanes("scans of a subgroup", [[6, 3, 24, 5, 3, 2, 9, 6, 3]])
def lane_scans():
    @qd.func
    def body(i, x: qd.template()):
        x[0, i] = _sg.inclusive_add(i)
        x[1, i] = _sg.exclusive_add(i)
        x[2, i] = _sg.inclusive_mul(2) + _sg.exclusive_mul(2)
        x[3, i] = _sg.inclusive_min(5 - i) + _sg.inclusive_max(i)
        x[4, i] = _sg.exclusive_min(5 - i)
        x[5, i] = _sg.exclusive_max(i)
        x[6, i] = _sg.inclusive_and(7 - i % 2) + _sg.inclusive_or(i) + _sg.inclusive_xor(i)
        x[7, i] = _sg.exclusive_and(i) + _sg.exclusive_or(i) + _sg.exclusive_xor(i)
        x[8, i] = _sg.exclusive_add_tiled(i, 2)

    return [_on_lanes(9, body)[:, 3]]


@lanes("segmented reductions", [[35, 5, -5, 17, 8, -8]])
def segments():
    @qd.func
    def body(i, x: qd.template()):
        head = i % 5 == 0
        x[0, i] = _sg.segmented_reduce_add(i, head)
        x[1, i] = _sg.segmented_reduce_min(i, head)
        x[2, i] = _sg.segmented_reduce_max(-i, head)
        x[3, i] = _sg.segmented_reduce_add_tiled(i, head, 2)
        x[4, i] = _sg.segmented_reduce_min_tiled(i, head, 2)
        x[5, i] = _sg.segmented_reduce_max_tiled(-i, head, 2)

    return [_on_lanes(6, body)[:, 9]]


@lanes("sorting pairs", [[0, 1, 2, 3], [0, 23, 14, 5], [-3, -2, -1, 0]])
def lane_sort():
    @qd.func
    def body(i, x: qd.template()):
        key, value = _sg.bitonic_sort_kv((i * 7) % 32, i)
        x[0, i] = key
        x[1, i] = value
        small, _ = _sg.bitonic_sort_kv_tiled(-i, i, 2)
        x[2, i] = small

    return _on_lanes(3, body)[:, :4]


@lanes("names of warps: votes, matches, shuffles", [15, 1, 240, 7, 1, 8, 8])
def warps():
    w = qd.simt.warp

    @qd.func
    def body(i, x: qd.template()):
        every = qd.u32(0xFFFFFFFF)
        x[0, i] = w.active_mask() & w.ballot(i < 4)
        x[1, i] = w.all_nonzero(qd.u32(6), i) + 10 * w.any_nonzero(qd.u32(1), i)
        x[2, i] = w.match_any(every, i // 4)
        x[3, i] = w.match_all(qd.u32(7), i // 4)
        x[4, i] = w.unique(every, i > 40)
        x[5, i] = w.shfl_sync_i32(every, i, 3) + w.shfl_xor_i32(every, i, 1)
        x[6, i] = w.shfl_up_i32(every, i, 1) + w.shfl_down_i32(every, i, 1)

    return _on_lanes(7, body, qd.u32)[:, 4]


@lanes("two subgroups in a block", [[496, 1520]])
def two_subgroups():
    @qd.kernel
    def k(x: I32, out: I32):
        qd.loop_config(block_dim=64)
        for i in range(64):
            total = _sg.reduce_add(x[i])
            if _sg.elect():
                out[i // 32] = total

    return [filled(k, np.arange(64, dtype=np.int32), zeros(qd.i32, 2))]
