"""``qd.simt.warp``: operations of subgroups by their CUDA names.

``mask`` says which lanes take part, as the bits of a u32, ``qd.u32(0xFFFFFFFF)`` for all. As with
`subgroup`, which says the rest, all lanes must come to an operation, those outside of the mask too;
these have no influence on the others' results.
"""

# The bodies of functions that kernels inline are no Python: types are those of the kernel.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

from ...types import DataType, f32, i32, u32
from ..func import FunctionOfKernels, func, named
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


def _exchange(name: str, exchange: Any, whose: str, t: DataType) -> FunctionOfKernels:
    def exchanged(mask, val, offset):
        return exchange(cast(val, t), offset)

    return named(exchanged, f"shfl_{name}_{t}", f"The value of {whose}, as an {t}.")


_OF = "lane ``offset``"
_BEFORE = "the lane ``offset`` before"
_AFTER = "the lane ``offset`` further"
_FLIPPED = "the lane whose number has the bits of ``offset`` flipped"

shfl_sync_i32 = _exchange("sync", subgroup.shuffle, _OF, i32)
shfl_sync_f32 = _exchange("sync", subgroup.shuffle, _OF, f32)
shfl_up_i32 = _exchange("up", subgroup.shuffle_up, _BEFORE, i32)
shfl_up_f32 = _exchange("up", subgroup.shuffle_up, _BEFORE, f32)
shfl_down_i32 = _exchange("down", subgroup.shuffle_down, _AFTER, i32)
shfl_down_f32 = _exchange("down", subgroup.shuffle_down, _AFTER, f32)
shfl_xor_i32 = _exchange("xor", subgroup.shuffle_xor, _FLIPPED, i32)
