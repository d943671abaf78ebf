"""``qd.simt.subgroup``: operations of the iterations of a subgroup.

A subgroup is 32 consecutive iterations of a block (see `block`); the last one of a block may be
smaller. Its iterations, the *lanes*, see each other's values without an array between them::

    qd.loop_config(block_dim=128)
    for i in range(n):
        total = qd.simt.subgroup.reduce_add(x[i])
        if qd.simt.subgroup.elect():
            sums[i // 32] = total

All lanes of a subgroup must reach the same operation. A lane that has ended (by ``continue``) is
not waited for any more, and has no value. On the CPU and in the interpreter, where one thread runs
a whole block, all iterations of the block must reach it.

Functions with ``_tiled`` work on groups of ``2**log2_size`` lanes each, the others on the whole
subgroup. Lanes for which there is no iteration take no part.
"""

# The bodies of functions that kernels inline are no Python: types are those of the kernel.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

from ...frontend.registry import intrinsic
from ...ir.attrs import SUBGROUP_SIZE
from ...types import Template, i32, u32, u64
from ..func import FunctionOfKernels, func, named
from ..functions import cast, min, only_in_kernels
from ..loops import static
from .block import add, identity_of, larger, smaller, thread_idx, threads_in_block

__all__ = [
    "all_equal", "all_equal_tiled", "all_true", "all_true_tiled", "any_true", "any_true_tiled",
    "ballot", "ballot_first_n", "ballot_full_subgroup", "barrier", "bitonic_sort_kv",
    "bitonic_sort_kv_tiled", "broadcast", "broadcast_first", "elect", "exclusive_add",
    "exclusive_add_tiled", "exclusive_and", "exclusive_and_tiled", "exclusive_max",
    "exclusive_max_tiled", "exclusive_min", "exclusive_min_tiled", "exclusive_mul",
    "exclusive_mul_tiled", "exclusive_or", "exclusive_or_tiled", "exclusive_xor",
    "exclusive_xor_tiled", "group_size", "inclusive_add", "inclusive_add_tiled", "inclusive_and",
    "inclusive_and_tiled", "inclusive_max", "inclusive_max_tiled", "inclusive_min",
    "inclusive_min_tiled", "inclusive_mul", "inclusive_mul_tiled", "inclusive_or",
    "inclusive_or_tiled", "inclusive_xor", "inclusive_xor_tiled", "invocation_id", "lanemask_eq",
    "lanemask_ge", "lanemask_gt", "lanemask_le", "lanemask_lt", "log2_group_size", "mem_fence",
    "memory_barrier", "reduce_add", "reduce_add_tiled", "reduce_all_add", "reduce_all_add_tiled",
    "reduce_all_max", "reduce_all_max_tiled", "reduce_all_min", "reduce_all_min_tiled",
    "reduce_max", "reduce_max_tiled", "reduce_min", "reduce_min_tiled", "segmented_reduce_add",
    "segmented_reduce_add_tiled", "segmented_reduce_max", "segmented_reduce_max_tiled",
    "segmented_reduce_min", "segmented_reduce_min_tiled", "shuffle", "shuffle_down", "shuffle_up",
    "shuffle_xor", "sync",
]  # fmt: skip

LOG2_SIZE = SUBGROUP_SIZE.bit_length() - 1


# What all else is made of


@intrinsic("subgroup_shuffle")
def shuffle(value: Any, index: Any) -> Any:
    """The value of lane ``index``; the own one where there is no such lane."""
    return only_in_kernels("simt.subgroup.shuffle")


@intrinsic("subgroup_ballot")
def ballot_bits(predicate: Any) -> Any:
    """The lanes whose ``predicate`` is not 0, as the bits of a u32."""
    return only_in_kernels("simt.subgroup.ballot")


@intrinsic("subgroup_sync")
def sync() -> None:
    """Wait until all lanes of the subgroup reach the barrier."""
    only_in_kernels("simt.subgroup.sync")


@intrinsic("subgroup_sync")
def barrier() -> None:
    """The old name of `sync`."""
    only_in_kernels("simt.subgroup.barrier")


@intrinsic("mem_fence.block")
def mem_fence() -> None:
    """A fence: earlier writes of this lane become visible to its subgroup before later ones."""
    only_in_kernels("simt.subgroup.mem_fence")


@intrinsic("mem_fence.block")
def memory_barrier() -> None:
    """The old name of `mem_fence`."""
    only_in_kernels("simt.subgroup.memory_barrier")


@intrinsic("subgroup_constant")
def group_size() -> int:
    """The number of lanes of a subgroup, 32: known at compile time."""
    return SUBGROUP_SIZE


@intrinsic("subgroup_constant")
def log2_group_size() -> int:
    """The logarithm of `group_size` to base 2."""
    return LOG2_SIZE


# Lanes


@func
def invocation_id():
    """The lane: the place of the iteration in its subgroup, from 0 to 31."""
    return thread_idx() % 32


@func
def lanes_there():
    """The number of lanes in the subgroup."""
    return min(32, threads_in_block() - (thread_idx() - thread_idx() % 32))


@func
def elect():
    """1 in the first lane, 0 in the others."""
    return cast(invocation_id() == 0, i32)


@func
def shuffle_down(value, offset):
    """The value of the lane ``offset`` further; the own one where there is no such lane."""
    return shuffle(value, invocation_id() + offset)


@func
def shuffle_up(value, offset):
    """The value of the lane ``offset`` before; the own one where there is no such lane."""
    return shuffle(value, invocation_id() - offset)


@func
def shuffle_xor(value, mask):
    """The value of the lane whose number is the own one with the bits of ``mask`` flipped."""
    return shuffle(value, invocation_id() ^ mask)


@func
def broadcast(value, index):
    """The value of lane ``index``, which is the same for all lanes."""
    return shuffle(value, index)


@func
def broadcast_first(value):
    """The value of the first lane."""
    return shuffle(value, 0)


@func
def lanemask_eq(lane_id):
    """A u32 with the bit of this lane alone."""
    return cast(1, u32) << cast(lane_id, u32)


@func
def lanemask_lt(lane_id):
    """A u32 with the bits of the lanes before this one."""
    return lanemask_eq(lane_id) - cast(1, u32)


@func
def lanemask_le(lane_id):
    """A u32 with the bits of this lane and those before."""
    return lanemask_lt(lane_id) | lanemask_eq(lane_id)


@func
def lanemask_gt(lane_id):
    """A u32 with the bits of the lanes after this one."""
    return ~lanemask_le(lane_id)


@func
def lanemask_ge(lane_id):
    """A u32 with the bits of this lane and those after."""
    return ~lanemask_lt(lane_id)


# Votes


@func
def ballot(predicate):
    """The lanes whose ``predicate`` is not 0, as the bits of a u64."""
    return cast(ballot_bits(predicate), u64)


@func
def ballot_full_subgroup(predicate):
    """The old name of `ballot`."""
    return ballot(predicate)


@func
def ballot_first_n(predicate, n: Template):
    """Those of the first ``n`` lanes whose ``predicate`` is not 0, as the bits of a u32."""
    return ballot_bits(predicate) & cast(static((1 << n) - 1), u32)


@func
def _tile_mask(log2_size: Template):
    """The bits of the lanes of the own group."""
    ones = cast(static((1 << (1 << log2_size)) - 1), u32)
    first = invocation_id() & static(-(1 << log2_size))
    return ones << cast(first, u32)


@func
def any_true_tiled(predicate, log2_size: Template):
    """1 if ``predicate`` is not 0 in some lane of the group, else 0."""
    return cast((ballot_bits(predicate) & _tile_mask(log2_size)) != 0, i32)


@func
def all_true_tiled(predicate, log2_size: Template):
    """1 if ``predicate`` is not 0 in all lanes of the group, else 0."""
    return cast((ballot_bits(predicate == 0) & _tile_mask(log2_size)) == 0, i32)


@func
def all_equal_tiled(value, log2_size: Template):
    """1 if all lanes of the group have the same value, else 0."""
    first = shuffle(value, invocation_id() & static(-(1 << log2_size)))
    return all_true_tiled(value == first, log2_size)


@func
def any_true(predicate):
    """1 if ``predicate`` is not 0 in some lane, else 0."""
    return any_true_tiled(predicate, LOG2_SIZE)


@func
def all_true(predicate):
    """1 if ``predicate`` is not 0 in all lanes, else 0."""
    return all_true_tiled(predicate, LOG2_SIZE)


@func
def all_equal(value):
    """1 if all lanes have the same value, else 0."""
    return all_equal_tiled(value, LOG2_SIZE)


# Operations


@func
def _mul(a, b):
    return a * b


@func
def _and(a, b):
    return a & b


@func
def _or(a, b):
    return a | b


@func
def _xor(a, b):
    return a ^ b


# One value of all


@func
def _reduced(value, op: Template, log2_size: Template):
    """``op`` of the values of the group; valid in its first lane."""
    lane = invocation_id()
    there = min(lanes_there(), (lane & static(-(1 << log2_size))) + static(1 << log2_size))
    total = value
    for level in static(range(log2_size)):
        offset = static(1 << (log2_size - 1 - level))
        other = shuffle(total, lane + offset)
        if lane + offset < there:
            total = op(total, other)
    return total


@func
def _reduced_for_all(value, op: Template, log2_size: Template):
    """``op`` of the values of the group, for each of its lanes."""
    return shuffle(_reduced(value, op, log2_size), invocation_id() & static(-(1 << log2_size)))


# One value for each


@func
def _inclusive(value, op: Template, log2_size: Template):
    """``op`` of the values of the group up to the own one."""
    lane = invocation_id()
    place = lane & static((1 << log2_size) - 1)
    total = value
    for level in static(range(log2_size)):
        offset = static(1 << level)
        other = shuffle(total, lane - offset)
        if place >= offset:
            total = op(other, total)
    return total


@func
def _exclusive(value, op: Template, identity, log2_size: Template):
    """``op`` of the values of the group before the own one; ``identity`` in its first lane."""
    lane = invocation_id()
    before = shuffle(_inclusive(value, op, log2_size), lane - 1)
    total = identity
    if (lane & static((1 << log2_size) - 1)) > 0:
        total = before
    return total


@func
def _segmented(value, head_flag, op: Template, log2_size: Template):
    """``op`` of the values from the last head up to the own one."""
    lane = invocation_id()
    place = lane & static((1 << log2_size) - 1)
    total = value
    begun = cast(head_flag != 0, i32)
    for level in static(range(log2_size)):
        offset = static(1 << level)
        other = shuffle(total, lane - offset)
        other_begun = shuffle(begun, lane - offset)
        if place >= offset and begun == 0:
            total = op(other, total)
            begun = other_begun
    return total


# Folds by operation


Pair = tuple[FunctionOfKernels, FunctionOfKernels]
"""A function of the whole subgroup, and the one of groups."""


def _pair(name: str, text: str, whole: Any, tiled: Any) -> Pair:
    """text: the summary of both, with {} for what their lanes are."""
    return (
        named(whole, name, text.format("subgroup")),
        named(tiled, f"{name}_tiled", text.format("group")),
    )


def _fold(name: str, text: str, fold: Any, op: Any) -> Pair:
    def whole(value):
        return fold(value, op, LOG2_SIZE)

    def tiled(value, log2_size: Template):
        return fold(value, op, log2_size)

    return _pair(name, text, whole, tiled)


def _reduce(how: str, op: Any, what: str) -> Pair:
    text = f"The {what} of the values of the {{}}; valid in its first lane."
    return _fold(f"reduce_{how}", text, _reduced, op)


def _reduce_all(how: str, op: Any, what: str) -> Pair:
    text = f"The {what} of the values of the {{}}, for each of its lanes."
    return _fold(f"reduce_all_{how}", text, _reduced_for_all, op)


def _upto(how: str, op: Any, what: str) -> Pair:
    return _fold(f"inclusive_{how}", f"The {what} of the {{}}'s values up to the own one.",
                 _inclusive, op)  # fmt: skip


def _before(how: str, op: Any, what: str, none: str) -> Pair:
    def whole(value):
        return _exclusive(value, op, identity_of(value, how), LOG2_SIZE)

    def tiled(value, log2_size: Template):
        return _exclusive(value, op, identity_of(value, how), log2_size)

    text = f"The {what} of the {{}}'s values before the own one; {none} in its first lane."
    return _pair(f"exclusive_{how}", text, whole, tiled)


def _since_head(how: str, op: Any, what: str) -> Pair:
    def whole(value, head_flag):
        return _segmented(value, head_flag, op, LOG2_SIZE)

    def tiled(value, head_flag, log2_size: Template):
        return _segmented(value, head_flag, op, log2_size)

    text = f"The {what} of the {{}}'s values since the last ``head_flag`` that is not 0."
    return _pair(f"segmented_reduce_{how}", text, whole, tiled)


reduce_add, reduce_add_tiled = _reduce("add", add, "sum")
reduce_min, reduce_min_tiled = _reduce("min", smaller, "smallest")
reduce_max, reduce_max_tiled = _reduce("max", larger, "largest")
reduce_all_add, reduce_all_add_tiled = _reduce_all("add", add, "sum")
reduce_all_min, reduce_all_min_tiled = _reduce_all("min", smaller, "smallest")
reduce_all_max, reduce_all_max_tiled = _reduce_all("max", larger, "largest")
inclusive_add, inclusive_add_tiled = _upto("add", add, "sum")
inclusive_mul, inclusive_mul_tiled = _upto("mul", _mul, "product")
inclusive_min, inclusive_min_tiled = _upto("min", smaller, "smallest")
inclusive_max, inclusive_max_tiled = _upto("max", larger, "largest")
inclusive_and, inclusive_and_tiled = _upto("and", _and, "bitwise and")
inclusive_or, inclusive_or_tiled = _upto("or", _or, "bitwise or")
inclusive_xor, inclusive_xor_tiled = _upto("xor", _xor, "bitwise exclusive or")
exclusive_add, exclusive_add_tiled = _before("add", add, "sum", "0")
exclusive_mul, exclusive_mul_tiled = _before("mul", _mul, "product", "1")
exclusive_min, exclusive_min_tiled = _before("min", smaller, "smallest", "the largest number")
exclusive_max, exclusive_max_tiled = _before("max", larger, "largest", "the lowest number")
exclusive_and, exclusive_and_tiled = _before("and", _and, "bitwise and", "all bits")
exclusive_or, exclusive_or_tiled = _before("or", _or, "bitwise or", "0")
exclusive_xor, exclusive_xor_tiled = _before("xor", _xor, "bitwise exclusive or", "0")
segmented_reduce_add, segmented_reduce_add_tiled = _since_head("add", add, "sum")
segmented_reduce_min, segmented_reduce_min_tiled = _since_head("min", smaller, "smallest")
segmented_reduce_max, segmented_reduce_max_tiled = _since_head("max", larger, "largest")


# Sorting


@func
def bitonic_sort_kv_tiled(key, value, log2_size: Template):
    """Pairs in ascending order of ``key``, then of ``value``: (key, value) for the lane's own rank.

    Each lane counts the pairs that come before its own, then reads the pair for its own position.
    """
    lane = invocation_id()
    first = lane & static(-(1 << log2_size))
    lanes = lanes_there()
    rank = 0
    for j in range(static(1 << log2_size)):
        other_key = shuffle(key, first + j)
        other = shuffle(value, first + j)
        less = other_key < key or (other_key == key and other < value)
        same = other_key == key and other == value and first + j < lane
        if first + j < lanes and (less or same):
            rank += 1
    source = lane
    for j in range(static(1 << log2_size)):
        if shuffle(rank, first + j) == lane - first and first + j < lanes:
            source = first + j
    return shuffle(key, source), shuffle(value, source)


@func
def bitonic_sort_kv(key, value):
    """Pairs of the subgroup in ascending order of ``key``, then of ``value``."""
    return bitonic_sort_kv_tiled(key, value, LOG2_SIZE)
