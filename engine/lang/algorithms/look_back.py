"""Parts of `qd.algorithms` for GPUs: a scan and a radix sort that read their data once a pass.

A block of 256 threads works on a tile of 4,096 elements. It publishes the totals of its tile, each
as a word with a mark, and adds up what the tiles before it have published, back to the first one
that knows the total of all before it: *decoupled look-back*. Tiles are numbered in the order in
which blocks begin, by a counter, so that a block only waits for blocks that run.

Sources: D. Merrill, M. Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back",
NVIDIA NVR-2016-002; A. Adinets, D. Merrill, "Onesweep: A Faster Least Significant Digit Radix Sort
for GPUs", arXiv:2206.01784.

A warp has 512 neighbouring elements, in rows of 32: each row is one access. Results are the same
whatever the order in which blocks run. The functions are right on every backend; `algorithms` uses
them where the threads of a block run at the same time.
"""

# Functions of kernels have no annotations.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Final

from ...types import Template, i32, u16, u32, u64
from ..atomics import atomic_add, atomic_min, volatile_load
from ..func import func
from ..functions import bit_cast, cast, max, popcnt, select
from ..loops import loop_config, static
from ..simt import block, subgroup
from ..values.matrix import Vector
from .tiles import first, unsigned_of

__all__ = [
    "MOST_SORTED", "count_digits", "scan_span", "scan_words", "sort_digit", "sort_words",
    "threads_for",
]  # fmt: skip

SPAN: Final = 4096
"""Elements of a tile."""
MOST_SORTED: Final = (1 << 30) - 1
"""The most elements that `sort_digit` can count: two bits of a word are marks."""


def _spans(n: int) -> int:
    return -(-n // SPAN)


def threads_for(n: int) -> int:
    """The iterations of the loops of this module for n elements."""
    return 256 * _spans(n)


def scan_words(n: int) -> int:
    """The length of the words of `scan_span`, u64, for n elements."""
    return 1 + _spans(n)


def sort_words(n: int, bits: int) -> int:
    """The length of the words of `sort_digit`, u32, for n keys of so many bits."""
    digits = bits // 8
    return 256 * digits + 16 + 256 * digits * _spans(n)


@func
def sums_of_lanes(value):
    """The sum of ``value`` over the lanes of the warp up to this one."""
    lane = subgroup.invocation_id()
    total = value
    for k in range(5):
        other = subgroup.shuffle_up(total, 1 << k)
        total = total + select(lane >= 1 << k, other, 0)
    return total


@func
def sum_before(words: Template, tile, epoch, total):
    """The sum of the totals of all tiles before this one; publish the own one. See `scan_span`."""
    nearest = block.SharedArray((1,), i32)
    earlier = block.SharedArray((1,), i32)
    tid = block.thread_idx()
    mark = cast(epoch, u64) << cast(33, u64)
    all_before = cast(1, u64) << cast(32, u64)
    if tid == 0:
        nearest[0] = 256
        word = mark | cast(bit_cast(total, u32), u64)
        if tile == 0:
            word = word | all_before
        words[1 + tile] = word
    block.sync()
    # 256 tiles at a time, one for each thread.
    back = tile - 1
    while back >= 0:
        word = all_before
        if back >= tid:
            word = volatile_load(words[1 + back - tid])
            while (word >> cast(33, u64)) != cast(epoch, u64):
                word = volatile_load(words[1 + back - tid])
        if (word & all_before) != 0:
            atomic_min(nearest[0], tid)
        block.sync()
        found = nearest[0]
        part = 0
        if tid <= found:
            part = bit_cast(cast(word & cast(0xFFFFFFFF, u64), u32), i32)
        part = sums_of_lanes(part)
        if tid % 32 == 31:
            atomic_add(earlier[0], part)
        block.sync()
        back = back - 256
        if found < 256:
            back = -1
    if tid == 0 and tile > 0:
        words[1 + tile] = mark | all_before | cast(bit_cast(earlier[0] + total, u32), u64)
    return earlier[0]


@func(requires_top_level=True)
def scan_span(x: Template, words: Template, epoch, n, threads):
    """``x[i]`` becomes the sum of ``x[0 : i + 1]``, of i32.

    words: `scan_words` of u64, 0 at first, of no other use: a counter, then for each tile 31 bits
    of the epoch, a bit that is 1 if all tiles before it are in the sum, and the sum. epoch: a
    number from 1 to ``2 ** 31 - 1`` that was not used with these words before.
    """
    loop_config(block_dim=256)
    for _i in range(threads):
        tid = block.thread_idx()
        lane = tid % 32
        warp = tid // 32
        held = block.SharedArray((4352,), i32)  # 16 elements of a thread, 17 apart from the next's
        offsets = block.SharedArray((256,), i32)
        sums = block.SharedArray((8,), i32)
        tile_of = block.SharedArray((1,), i32)
        if tid == 0:
            tile_of[0] = cast(atomic_add(words[0], cast(1, u64)), i32)
            if tile_of[0] == threads // 256 - 1:
                words[0] = cast(0, u64)  # every tile has its block
        block.sync()
        tile = tile_of[0]
        place = warp * 512 + lane
        at = 4096 * tile + place
        for r in static(range(16)):
            if at + static(32 * r) < n:
                held[place + static(34 * r) + place // 16] = x[first(x) + at + static(32 * r)]
        subgroup.sync()
        running = 0
        for k in range(16):
            running = running + held[17 * tid + k]
            held[17 * tid + k] = running
        upto = sums_of_lanes(running)
        if lane == 31:
            sums[warp] = upto
        block.sync()
        before = 0
        total = 0
        for w in static(range(8)):
            if w < warp:
                before = before + sums[w]
            total = total + sums[w]
        before = before + sum_before(words, tile, epoch, total)
        offsets[tid] = before + upto - running
        subgroup.sync()
        for r in static(range(16)):
            if at + static(32 * r) < n:
                here = held[place + static(34 * r) + place // 16]
                x[first(x) + at + static(32 * r)] = here + offsets[place // 16 + static(2 * r)]


@func
def ordered(key, dtype: Template):
    """The bits of a key as an unsigned number whose order is that of the keys.

    The sign bit is flipped for signed integers and for floats that are not negative; negative
    floats have all bits flipped.
    """
    bits = bit_cast(key, static(unsigned_of(dtype)))
    top = static(dtype.bits - 1)
    one = cast(1, static(unsigned_of(dtype)))
    if static(dtype.is_real):
        bits = select((bits >> top) != 0, ~bits, bits ^ (one << top))
    elif static(dtype.is_signed):
        bits = bits ^ (one << top)
    return bits


@func
def digit_at(key, dtype: Template, shift):
    """Eight bits of the order of a key."""
    return cast((ordered(key, dtype) >> cast(shift, static(unsigned_of(dtype)))) & 255, i32)


@func(requires_top_level=True)
def count_digits(keys: Template, words: Template, n, threads, length, dtype: Template):
    """Count each digit of all keys, into the first 256 words for every digit; clear the others.

    words: of u32. length: `sort_words`.
    """
    for i in range(length):
        words[i] = cast(0, u32)
    loop_config(block_dim=256)
    for i in range(threads):
        tid = block.thread_idx()
        counts = block.SharedArray((static(32 * dtype.bits),), u32)
        at = 16 * (i - tid) + tid
        for _q in range(4):
            held = Vector([cast(0, dtype) for _ in range(4)])
            for r in static(range(4)):
                if at + static(256 * r) < n:
                    held[r] = keys[first(keys) + at + static(256 * r)]
            for r in static(range(4)):
                if at + static(256 * r) < n:
                    bits = ordered(held[r], dtype)
                    for d in static(range(dtype.bits // 8)):
                        digit = cast((bits >> static(8 * d)) & 255, i32)
                        atomic_add(counts[static(256 * d) + digit], cast(1, u32))
            at = at + 1024
        block.sync()
        for d in static(range(dtype.bits // 8)):
            count = counts[static(256 * d) + tid]
            if count != 0:
                atomic_add(words[static(256 * d) + tid], count)


@func
def count_and_rank(source: Template, n, tile, digit, dtype: Template, counts, ranks):
    """The rank of each element among those of its warp that have the same digit; their counts.

    counts: by warp and digit. ranks: by place in the tile.
    """
    lane = subgroup.invocation_id()
    warp = block.thread_idx() // 32
    place = warp * 512 + lane
    lower = subgroup.lanemask_lt(lane)
    for _q in range(8):
        for r in static(range(2)):
            at = 4096 * tile + place + static(32 * r)
            d = 255  # past the end: behind all others
            if at < n:
                d = digit_at(source[first(source) + at], dtype, 8 * digit)
            same = cast(0xFFFFFFFF, u32)
            for b in range(8):
                bit = (d >> b) & 1
                vote = subgroup.ballot_first_n(bit, 32)
                same = same & select(bit != 0, vote, ~vote)
            old = counts[256 * warp + d]
            subgroup.sync()
            inside = cast(popcnt(same & lower), i32)
            if inside == 0:
                counts[256 * warp + d] = old + cast(popcnt(same), i32)
            subgroup.sync()
            ranks[place + static(32 * r)] = cast(old + inside, u16)
        place = place + 64


@func
def before_in_block(first_value, second_value):
    """The sums of two values over the threads of the block before this one."""
    sums = block.SharedArray((16,), i32)
    warp = block.thread_idx() // 32
    one = sums_of_lanes(first_value)
    two = sums_of_lanes(second_value)
    if subgroup.invocation_id() == 31:
        sums[warp] = one
        sums[8 + warp] = two
    block.sync()
    one = one - first_value
    two = two - second_value
    for w in range(8):
        if w < warp:
            one = one + sums[w]
            two = two + sums[8 + w]
    return one, two


@func
def begins_of_warps(counts, begin):
    """Replace the counts of this thread's digit by the places where each warp's keys begin."""
    tid = block.thread_idx()
    at = begin
    for w in range(8):
        count = counts[256 * w + tid]
        counts[256 * w + tid] = at
        at = at + count


@func
def keys_before(words: Template, status, tile, own):
    """The number of keys with the digit of this thread in all tiles before this one."""
    earlier = cast(0, u32)
    back = tile - 1
    while back >= 0:
        # Eight reads are under way at a time; one that comes too early is made again.
        seen = Vector([cast(0, u32) for _ in range(8)])
        for k in static(range(8)):
            seen[k] = volatile_load(words[status + 256 * max(back - k, 0)])
        if seen[0] != 0:
            # The marks decide without branches: all bits are 1 as long as tiles count themselves.
            going = cast(0xFFFFFFFF, u32)
            ended = cast(0, u32)
            for k in static(range(8)):
                word = seen[k] & going
                earlier = earlier + (word & cast(0x3FFFFFFF, u32))
                ended = ended | word
                going = cast(0, u32) - ((word >> cast(30, u32)) & cast(1, u32))
                back = back + bit_cast(going, i32)
            if ended >= cast(0x80000000, u32):
                back = -1
    if tile > 0:
        words[status + 256 * tile] = (own + earlier) | cast(0x80000000, u32)
    return cast(earlier, i32)


@func(requires_top_level=True)
def sort_digit(
    source: Template, target: Template, values: Template, moved: Template, words: Template,
    n, threads, digit, dtype: Template, value_type: Template,
):  # fmt: skip
    """Move the elements of source, and of values, into the order of one digit; stable.

    words: as `count_digits` leaves them: counts of digits, counters of tiles, then for each pass,
    tile and digit a count with two marks in its highest bits: of the tile, or of all up to it.
    value_type: that of values; None if there are none, "far" if each is moved by itself.
    """
    loop_config(block_dim=256)
    for _i in range(threads):
        tid = block.thread_idx()
        tile_of = block.SharedArray((1,), i32)
        ranks = block.SharedArray((4096,), u16)
        counts = block.SharedArray((2048,), i32)
        targets = block.SharedArray((256,), i32)
        sorted_keys = block.SharedArray((4096,), dtype)
        near = static(value_type not in (None, "far"))
        sorted_values = block.SharedArray(
            (static(4096 if near else 1),), static(value_type if near else i32)
        )
        if tid == 0:
            counter = static(32 * dtype.bits) + digit
            tile_of[0] = cast(atomic_add(words[counter], cast(1, u32)), i32)
        block.sync()
        tile = tile_of[0]
        count_and_rank(source, n, tile, digit, dtype, counts, ranks)
        block.sync()
        # From here on a thread has a digit, its own number.
        total = 0
        for w in range(8):
            total = total + counts[256 * w + tid]
        mark = select(tile == 0, cast(0x80000000, u32), cast(0x40000000, u32))
        status = static(32 * dtype.bits + 16) + digit * threads + tid
        words[status + 256 * tile] = cast(total, u32) | mark
        here, start = before_in_block(total, cast(words[256 * digit + tid], i32))
        begins_of_warps(counts, here)
        block.sync()
        place = tid // 32 * 512 + tid % 32
        for _q in range(8):
            for r in static(range(2)):
                at = 4096 * tile + place + static(32 * r)
                if at < n:
                    key = source[first(source) + at]
                    d = digit_at(key, dtype, 8 * digit)
                    to = counts[256 * (tid // 32) + d] + cast(ranks[place + static(32 * r)], i32)
                    sorted_keys[to] = key
                    if static(value_type == "far"):
                        ranks[place + static(32 * r)] = cast(to, u16)
                    elif static(near):
                        sorted_values[to] = values[first(values) + at]
            place = place + 64
        targets[tid] = start - here + keys_before(words, status, tile, cast(total, u32))
        block.sync()
        # Neighbours in the tile's order are mostly neighbours in the result.
        for q in range(16):
            at = tid + 256 * q
            if 4096 * tile + at < n:
                key = sorted_keys[at]
                to = first(target) + targets[digit_at(key, dtype, 8 * digit)] + at
                target[to] = key
                if static(near):
                    moved[first(moved) - first(target) + to] = sorted_values[at]
                if static(value_type == "far"):
                    other = 4096 * tile + at
                    d = digit_at(source[first(source) + other], dtype, 8 * digit)
                    to = targets[d] + cast(ranks[at], i32)
                    moved[first(moved) + to] = values[first(values) + other]
