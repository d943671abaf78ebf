"""The base of `subgroup`: lanes, exchanges of values, votes."""

# The bodies of functions that kernels inline are no Python: types are those of the kernel.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

from ...frontend.registry import intrinsic
from ...ir.attrs import SUBGROUP_SIZE
from ...types import Template, i32, u32, u64
from ..func import func
from ..functions import cast, min, only_in_kernels
from ..loops import static
from .block import thread_idx, threads_in_block

__all__ = [
    "all_equal", "all_equal_tiled", "all_true", "all_true_tiled", "any_true", "any_true_tiled",
    "ballot", "ballot_first_n", "ballot_full_subgroup", "barrier", "broadcast", "broadcast_first",
    "elect", "group_size", "invocation_id", "lanemask_eq", "lanemask_ge", "lanemask_gt",
    "lanemask_le", "lanemask_lt", "log2_group_size", "mem_fence", "memory_barrier", "shuffle",
    "shuffle_down", "shuffle_up", "shuffle_xor", "sync",
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


@intrinsic("subgroup_identity")
def identity_of(value: Any, operation: str) -> Any:
    """The identity element of an operation, in the type of ``value``."""
    return only_in_kernels("simt.subgroup")


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
