"""``qd.simt.warp``: operations of subgroups by their CUDA names.

``mask`` says which lanes take part, as the bits of a u32, ``qd.u32(0xFFFFFFFF)`` for all. As with
`subgroup`, which says the rest, all lanes must come to an operation, those outside of the mask too;
these have no influence on the others' results.
"""

# The bodies of functions that kernels inline are no Python: types are those of the kernel.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false

from __future__ import annotations

from ...types import f32, i32, u32
from ..func import func
from ..functions import cast
from . import subgroup
from .subgroup import ballot_bits

__all__ = [
    "active_mask", "all_nonzero", "any_nonzero", "ballot", "match_all", "match_any",
    "shfl_down_f32", "shfl_down_i32", "shfl_sync_f32", "shfl_sync_i32", "shfl_up_f32",
    "shfl_up_i32", "shfl_xor_i32", "sync", "unique",
]  # fmt: skip


@func
def active_mask():
    """The active lanes."""
    return ballot_bits(1)


@func
def sync(mask):
    """Wait until all lanes reach the barrier."""
    subgroup.sync()


@func
def ballot(predicate):
    """The lanes whose ``predicate`` is not 0, as the bits of a u32."""
    return ballot_bits(predicate)


@func
def all_nonzero(mask, predicate):
    """1 if ``predicate`` is not 0 in all lanes of the mask, else 0."""
    return cast((ballot_bits(predicate == 0) & cast(mask, u32)) == 0, i32)


@func
def any_nonzero(mask, predicate):
    """1 if ``predicate`` is not 0 in some lane of the mask, else 0."""
    return cast((ballot_bits(predicate) & cast(mask, u32)) != 0, i32)


@func
def unique(mask, predicate):
    """1 if ``predicate`` is not 0 in all lanes of the mask, or in none of them; else 0."""
    return cast(all_nonzero(mask, predicate) == 1 or any_nonzero(mask, predicate) == 0, i32)


@func
def match_any(mask, value):
    """The lanes of the mask that have the value of this one."""
    found = cast(0, u32)
    for lane in range(32):
        same = ballot_bits(value == subgroup.shuffle(value, lane))
        if lane == subgroup.invocation_id():
            found = same
    return found & cast(mask, u32)


@func
def match_all(mask, val):
    """The mask if all of its lanes have the same value, else 0."""
    lanes = cast(mask, u32) & ballot_bits(1)
    same = match_any(lanes, val) == lanes
    result = cast(0, u32)
    if all_nonzero(lanes, same) == 1:
        result = lanes
    return result


@func
def shfl_sync_i32(mask, val, offset):
    """The value of lane ``offset``, as an i32."""
    return subgroup.shuffle(cast(val, i32), offset)


@func
def shfl_sync_f32(mask, val, offset):
    """The value of lane ``offset``, as an f32."""
    return subgroup.shuffle(cast(val, f32), offset)


@func
def shfl_up_i32(mask, val, offset):
    """The value of the lane ``offset`` before, as an i32."""
    return subgroup.shuffle_up(cast(val, i32), offset)


@func
def shfl_up_f32(mask, val, offset):
    """The value of the lane ``offset`` before, as an f32."""
    return subgroup.shuffle_up(cast(val, f32), offset)


@func
def shfl_down_i32(mask, val, offset):
    """The value of the lane ``offset`` further, as an i32."""
    return subgroup.shuffle_down(cast(val, i32), offset)


@func
def shfl_down_f32(mask, val, offset):
    """The value of the lane ``offset`` further, as an f32."""
    return subgroup.shuffle_down(cast(val, f32), offset)


@func
def shfl_xor_i32(mask, val, offset):
    """The value of the lane whose number has the bits of ``offset`` flipped, as an i32."""
    return subgroup.shuffle_xor(cast(val, i32), offset)
