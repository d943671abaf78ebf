"""Blocks of iterations: shared arrays, barriers, votes, reductions, scans.

The interpreter runs the iterations of a block as generators; the CPU runs the loop that
demote_block_sync has split. Both must give what the plain Python here computes.
"""

import itertools

import numpy as np
import pytest
from qd_studio import engine as qd

pytestmark = [pytest.mark.sampled(3), pytest.mark.usefixtures("configured")]

B = 8
Ints = qd.types.ndarray(dtype=qd.i32, ndim=1)
Reals = qd.types.ndarray(dtype=qd.f32, ndim=1)
block = qd.simt.block


def ints(kernel, count, *args):
    out = np.zeros(count, np.int32)
    kernel(out, *args)
    return out.tolist()


def blocks(count, size=B):
    return [list(range(k, min(k + size, count))) for k in range(0, count, size)]


@qd.kernel
def neighbours(out: Ints, n: qd.i32):
    qd.loop_config(block_dim=B)
    for i in range(n):
        tid = i % B
        row = block.SharedArray((B,), qd.i32)
        row[tid] = i * i
        mine = i + 1
        block.sync()
        mine += row[B - 1 - tid]
        block.sync()
        row[tid] = mine
        block.sync()
        out[i] = mine + 1000 * row[(tid + 1) % B]


@pytest.mark.parametrize("n", [0, 5, 8, 37])
def test_values_and_variables_cross_barriers(n):
    expected = []
    for ids in blocks(n):
        row = [0] * B
        for i in ids:
            row[i % B] = i * i
        mine = {i: i + 1 + row[B - 1 - i % B] for i in ids}
        for i in ids:
            row[i % B] = mine[i]
        expected += [mine[i] + 1000 * row[(i + 1) % B] for i in ids]
    assert ints(neighbours, n, n) == expected


@qd.kernel
def waves(out: Ints, m: qd.i32):
    qd.loop_config(block_dim=B)
    for i in range(3, 24):
        t = block.thread_idx()
        s = block.SharedArray((2, B), qd.i32)
        s[0, t] = i
        total = 0
        now = 0
        for k in range(m):
            block.sync()
            s[1 - now, t] = s[now, (t + B - 1) % B] + k
            total += s[now, 0]
            now = 1 - now
            if k == 2:
                continue
            if k == 4:
                break
            total += 1
        block.sync()
        out[block.global_thread_idx()] = 10000 * total + s[now, t]


@pytest.mark.parametrize("m", [0, 1, 4, 9])
def test_loops_around_barriers_can_be_left(m):
    expected = []
    for ids in blocks(21):
        s = [[i + 3 for i in ids] + [0] * (B - len(ids)), [0] * B]
        total = now = 0
        for k in range(m):
            s[1 - now][: len(ids)] = [s[now][(t + B - 1) % B] + k for t in range(len(ids))]
            total += s[now][0]
            now = 1 - now
            if k == 2:
                continue
            if k == 4:
                break
            total += 1
        expected += [10000 * total + s[now][t] for t in range(len(ids))]
    assert ints(waves, 21, m) == expected


@qd.kernel
def some_end(out: Ints):
    qd.loop_config(block_dim=B)
    for i in range(21):
        sums = block.SharedArray(2, qd.i32)
        if i % 3 == 2:
            out[i] = -1
            continue
        sums[0] += i
        block.sync()
        if sums[0] > 40:
            sums[1] += 1
            block.sync()
        out[i] = sums[0] + 100 * sums[1]


def test_iterations_that_have_ended_are_not_waited_for():
    expected = []
    for ids in blocks(21):
        left = [i for i in ids if i % 3 != 2]
        total = sum(left)
        each = total + 100 * (len(left) if total > 40 else 0)
        expected += [-1 if i % 3 == 2 else each for i in ids]
    assert ints(some_end, 21) == expected


@qd.kernel
def votes_and_scans(out: qd.types.ndarray(dtype=qd.i32, ndim=2), x: Ints):
    qd.loop_config(block_dim=B)
    for i in range(x.shape[0]):
        v = x[i]
        out[i, 0] = block.reduce_all_add(v, B, qd.i32)
        out[i, 1] = block.reduce_all_min(v, B, qd.i32)
        out[i, 2] = block.reduce_all_max(v, B, qd.i32)
        out[i, 3] = block.inclusive_add(v, B, qd.i32)
        out[i, 4] = block.exclusive_add(v, B, qd.i32)
        out[i, 5] = block.inclusive_min(v, B, qd.i32)
        out[i, 6] = block.exclusive_max(v, B, qd.i32)
        out[i, 7] = block.sync_count_nonzero(v % 3)
        out[i, 8] = block.sync_any_nonzero(v > 40)
        out[i, 9] = block.sync_all_nonzero(v != 7)


def test_votes_reductions_and_scans():
    rng = np.random.default_rng(5)
    x = rng.integers(0, 50, 29).astype(np.int32)
    out = np.zeros((29, 10), np.int32)
    votes_and_scans(out, x)
    for ids in blocks(29):
        v = [int(x[i]) for i in ids]
        sums = list(itertools.accumulate(v))
        least = list(itertools.accumulate(v, min))
        most = [-(2**31), *itertools.accumulate(v, max)]
        for k, i in enumerate(ids):
            assert out[i].tolist() == [
                sum(v), min(v), max(v), sums[k], sums[k] - v[k], least[k], most[k],
                sum(n % 3 != 0 for n in v), any(n > 40 for n in v), all(n != 7 for n in v),
            ]  # fmt: skip


@qd.kernel
def over_axes(out: qd.types.ndarray(dtype=qd.i32, ndim=2)):
    qd.loop_config(block_dim=B)
    for i, j in qd.ndrange((1, 4), 7):
        t = block.thread_idx()
        s = block.SharedArray(B, qd.i32)
        s[t] = 10 * i + j
        block.sync()
        out[i - 1, j] = 1000 * s[0] + s[t] + 100000 * block.global_thread_idx()


def test_blocks_of_several_axes():
    out = np.zeros((3, 7), np.int32)
    over_axes(out)
    flat = [10 * i + j for i in range(1, 4) for j in range(7)]
    expected = [1000 * flat[ids[0]] + flat[k] + 100000 * k for ids in blocks(21) for k in ids]
    assert out.ravel().tolist() == expected


def test_without_a_barrier_a_shared_array_is_still_one_for_the_block():
    @qd.kernel
    def count(out: Ints):
        qd.loop_config(block_dim=4)
        for i in range(6):
            n = block.SharedArray(1, qd.i32)
            qd.atomic_add(n[0], 1)
            out[i // 4] = n[0]

    assert ints(count, 2) == [4, 2]


def test_what_cannot_be():
    @qd.kernel
    def array(out: Ints):
        s = block.SharedArray(3, qd.i32)
        out[0] = s[0]

    with pytest.raises(qd.QuadrantsCompilationError, match="outside of a parallel loop"):
        array(np.zeros(4, np.int32))
    with pytest.raises(qd.QuadrantsAssertionError, match="can only be used in a kernel"):
        block.sync()


@qd.kernel
def torn(out: Ints):
    qd.loop_config(block_dim=4)
    for i in range(4):
        if i < 2:
            out[i] = 1
            block.sync()
        else:
            block.sync()
            out[i] = 3
        out[i] += 2


@pytest.mark.parametrize("backend", ["cpu", "interp"])
def test_disagreement_on_the_way_to_a_barrier_is_reported(backend):
    qd.init(arch=getattr(qd, backend), debug=True, log_level="error")
    with pytest.raises(qd.QuadrantsAssertionError, match=r"wait at different|take different paths"):
        torn(np.zeros(4, np.int32))


def test_an_index_out_of_a_shared_array_is_reported():
    qd.init(arch=qd.cpu, debug=True, log_level="error")

    @qd.kernel
    def far(out: Ints, k: qd.i32):
        for i in range(4):
            s = block.SharedArray((2, 3), qd.i32)
            s[1, k] = i
            out[i] = s[1, k]

    out = np.zeros(4, np.int32)
    with pytest.raises(
        qd.QuadrantsAssertionError,
        match=r"array 's' with indices \[1, 3\] \(shape \[2, 3\]\)",
    ):
        far(out, 3)


Vec3 = qd.types.vector(3, qd.f32)
Mat2 = qd.types.matrix(2, 2, qd.i32)


@qd.kernel
def compound(out: Reals):
    qd.loop_config(block_dim=8)
    for i in out:
        s = block.SharedArray((8,), Vec3)
        m = block.SharedArray((2, 4), Mat2)
        t = i % 8
        s[t] = Vec3(i, 2 * i, 3)
        s[t][1] += 1
        s[t].z = t
        m[t // 4, t % 4] = Mat2(i, 1, 2, 3)
        block.sync()
        a = s[7 - t]
        b = m[1 - t // 4, t % 4]
        out[i] = a[0] + a.y * 100 + a[2] * 10000 + b[0, 0] + b[1, 1] * 7


def test_shared_vectors_and_matrices():
    out = np.zeros(16, np.float32)
    compound(out)
    for i in range(16):
        other = i - i % 8 + 7 - i % 8
        cross = i - i % 8 + (i % 8 + 4) % 8
        assert out[i] == other + (2 * other + 1) * 100 + (7 - i % 8) * 10000 + cross + 21


def test_blocks_of_a_loop_over_a_field():
    field = qd.field(qd.i32, shape=(4, 6))

    @qd.kernel
    def count():
        qd.loop_config(block_dim=4)
        for i, j in field:
            n = block.SharedArray(1, qd.i32)
            n[0] += 1
            block.sync()
            field[i, j] = n[0] * 100 + block.thread_idx()

    count()
    assert field.to_numpy().ravel().tolist() == [400 + k % 4 for k in range(24)]


def test_fences_and_their_old_names():
    @qd.kernel
    def fence(out: Ints):
        for i in out:
            out[i] = 1
            block.mem_sync()
            qd.simt.grid.mem_fence()
            out[i] += 1

    out = np.zeros(4, np.int32)
    with pytest.warns(DeprecationWarning, match="use qd.simt.block.mem_fence"):
        fence(out)
    assert out.tolist() == [2] * 4


@qd.kernel
def next_one(x: Ints, out: Ints):
    qd.loop_config(block_dim=B)
    for i in range(B - 1):
        mine = x[i]
        block.sync()
        x[i + 1] = mine + 10
        block.sync()
        out[i] = x[i] * 100 + mine


def test_an_element_that_only_others_write_is_loaded_again_behind_a_barrier():
    x = np.arange(B, dtype=np.int32)
    out = np.zeros(B - 1, np.int32)
    next_one(x, out)
    assert out.tolist() == [0] + [(i - 1 + 10) * 100 + i for i in range(1, B - 1)]


@qd.kernel
def much_memory(x: Ints, out: Ints):
    qd.loop_config(block_dim=B)
    for i in range(x.shape[0]):
        t = i % B
        few = block.SharedArray((B,), qd.i32)
        many = block.SharedArray((B, 1600), qd.f32)
        few[t] = x[i]
        many[t, 1599] = 2.0 * x[i]
        block.sync()
        other = B - 1 - t
        out[i] = few[other] + 10 * qd.cast(many[other, 1599] + many[other, 1598], qd.i32)


def test_more_memory_than_a_gpu_gives_a_block_by_itself():
    x = np.arange(3 * B, dtype=np.int32)
    out = np.zeros(3 * B, np.int32)
    much_memory(x, out)
    assert out.tolist() == [21 * (i // B * B + B - 1 - i % B) for i in range(3 * B)]


@qd.kernel
def count_odd(h: qd.types.ndarray(dtype=qd.u32, ndim=2), k: Ints, begin: qd.i32, end: qd.i32):
    for i in range(begin, end):
        if k[i] % 2 == 0:
            continue
        h[k[i] // 4, k[i] % 4] += qd.cast(i, qd.u32)


@qd.kernel
def collect_bits(h: Ints, k: Ints):
    for i in k:
        h[k[i]] |= 1 << (i % 31)


@pytest.mark.parametrize("size", [3, 40])
def test_counts_in_small_arrays_and_in_larger_ones(size):
    """On GPUs, whether a block has a copy depends on the sizes."""
    for n in (0, 5, 700):
        k = np.random.default_rng(n).integers(0, size, n).astype(np.int32)
        rows = -(-size // 4)
        h, want = np.zeros((rows, 4), np.uint32), np.zeros(4 * rows, np.uint32)
        count_odd(h, k, min(3, n), n)
        for i in range(3, n):
            want[k[i]] += i * (k[i] % 2)
        assert (h.ravel() == want).all()
        bits, expected = np.zeros(size, np.int32), np.zeros(size, np.int32)
        if n:
            collect_bits(bits, k)
        for i in range(n):
            expected[k[i]] |= 1 << (i % 31)
        assert (bits == expected).all()


Table = qd.types.ndarray(dtype=qd.f32, ndim=2)


@qd.kernel
def transposed(y: Table, x: Table):
    for i, j in x:
        y[j, i] = 2.0 * x[i, j]


@qd.kernel
def add_transposed(y: Table, x: Table, w: Table, first: qd.i32):
    for i, j in qd.ndrange((first, y.shape[0]), y.shape[1]):
        y[i, j] += x[j, i] * w[i, j] + w[j, i]


@pytest.mark.parametrize("shape", [(1, 1), (3, 70), (70, 33), (0, 4)], ids=str)
def test_arrays_are_read_along_one_axis_and_written_along_another(shape):
    """On GPUs a tile goes through shared memory."""
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    y = np.full(shape[::-1], -1, np.float32)
    transposed(y, x)
    assert (y == 2 * x.T).all()
    n = max(shape)
    w = np.random.default_rng(1).integers(0, 9, (n, n)).astype(np.float32)
    x, y = w + 1, np.ones((n, n), np.float32)
    add_transposed(y, x, w, 1)
    want = np.ones((n, n), np.float32)
    want[1:] += (x.T * w + w.T)[1:]
    assert (y == want).all()
