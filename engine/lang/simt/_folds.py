"""The functions of `subgroup` other than exchanges: reductions, scans, segments, sorting."""

# The bodies of functions that kernels inline are no Python: types are those of the kernel.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from ...types import Template, i32
from ..func import func
from ..functions import cast, max, min
from ..loops import static
from ._lanes import LOG2_SIZE, identity_of, invocation_id, lanes_there, shuffle

__all__ = [
    "bitonic_sort_kv", "bitonic_sort_kv_tiled", "exclusive_add", "exclusive_add_tiled",
    "exclusive_and", "exclusive_and_tiled", "exclusive_max", "exclusive_max_tiled",
    "exclusive_min", "exclusive_min_tiled", "exclusive_mul", "exclusive_mul_tiled", "exclusive_or",
    "exclusive_or_tiled", "exclusive_xor", "exclusive_xor_tiled", "inclusive_add",
    "inclusive_add_tiled", "inclusive_and", "inclusive_and_tiled", "inclusive_max",
    "inclusive_max_tiled", "inclusive_min", "inclusive_min_tiled", "inclusive_mul",
    "inclusive_mul_tiled", "inclusive_or", "inclusive_or_tiled", "inclusive_xor",
    "inclusive_xor_tiled", "reduce_add", "reduce_add_tiled", "reduce_all_add",
    "reduce_all_add_tiled", "reduce_all_max", "reduce_all_max_tiled", "reduce_all_min",
    "reduce_all_min_tiled", "reduce_max", "reduce_max_tiled", "reduce_min", "reduce_min_tiled",
    "segmented_reduce_add", "segmented_reduce_add_tiled", "segmented_reduce_max",
    "segmented_reduce_max_tiled", "segmented_reduce_min", "segmented_reduce_min_tiled",
]  # fmt: skip


# Operations


@func
def _add(a, b):
    return a + b


@func
def _mul(a, b):
    return a * b


@func
def _min(a, b):
    return min(a, b)


@func
def _max(a, b):
    return max(a, b)


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


@func
def reduce_add_tiled(value, log2_size: Template):
    """The sum of the values of the group; valid in its first lane."""
    return _reduced(value, _add, log2_size)


@func
def reduce_add(value):
    """The sum of the values of the subgroup; valid in its first lane."""
    return _reduced(value, _add, LOG2_SIZE)


@func
def reduce_min_tiled(value, log2_size: Template):
    """The smallest of the values of the group; valid in its first lane."""
    return _reduced(value, _min, log2_size)


@func
def reduce_min(value):
    """The smallest of the values of the subgroup; valid in its first lane."""
    return _reduced(value, _min, LOG2_SIZE)


@func
def reduce_max_tiled(value, log2_size: Template):
    """The largest of the values of the group; valid in its first lane."""
    return _reduced(value, _max, log2_size)


@func
def reduce_max(value):
    """The largest of the values of the subgroup; valid in its first lane."""
    return _reduced(value, _max, LOG2_SIZE)


@func
def reduce_all_add_tiled(value, log2_size: Template):
    """The sum of the values of the group, for each of its lanes."""
    return _reduced_for_all(value, _add, log2_size)


@func
def reduce_all_add(value):
    """The sum of the values of the subgroup, for each of its lanes."""
    return _reduced_for_all(value, _add, LOG2_SIZE)


@func
def reduce_all_min_tiled(value, log2_size: Template):
    """The smallest of the values of the group, for each of its lanes."""
    return _reduced_for_all(value, _min, log2_size)


@func
def reduce_all_min(value):
    """The smallest of the values of the subgroup, for each of its lanes."""
    return _reduced_for_all(value, _min, LOG2_SIZE)


@func
def reduce_all_max_tiled(value, log2_size: Template):
    """The largest of the values of the group, for each of its lanes."""
    return _reduced_for_all(value, _max, log2_size)


@func
def reduce_all_max(value):
    """The largest of the values of the subgroup, for each of its lanes."""
    return _reduced_for_all(value, _max, LOG2_SIZE)


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
def inclusive_add_tiled(value, log2_size: Template):
    """The sum of the group's values up to the own one."""
    return _inclusive(value, _add, log2_size)


@func
def inclusive_add(value):
    """The sum of the subgroup's values up to the own one."""
    return _inclusive(value, _add, LOG2_SIZE)


@func
def inclusive_mul_tiled(value, log2_size: Template):
    """The product of the group's values up to the own one."""
    return _inclusive(value, _mul, log2_size)


@func
def inclusive_mul(value):
    """The product of the subgroup's values up to the own one."""
    return _inclusive(value, _mul, LOG2_SIZE)


@func
def inclusive_min_tiled(value, log2_size: Template):
    """The smallest of the group's values up to the own one."""
    return _inclusive(value, _min, log2_size)


@func
def inclusive_min(value):
    """The smallest of the subgroup's values up to the own one."""
    return _inclusive(value, _min, LOG2_SIZE)


@func
def inclusive_max_tiled(value, log2_size: Template):
    """The largest of the group's values up to the own one."""
    return _inclusive(value, _max, log2_size)


@func
def inclusive_max(value):
    """The largest of the subgroup's values up to the own one."""
    return _inclusive(value, _max, LOG2_SIZE)


@func
def inclusive_and_tiled(value, log2_size: Template):
    """The bitwise and of the group's values up to the own one."""
    return _inclusive(value, _and, log2_size)


@func
def inclusive_and(value):
    """The bitwise and of the subgroup's values up to the own one."""
    return _inclusive(value, _and, LOG2_SIZE)


@func
def inclusive_or_tiled(value, log2_size: Template):
    """The bitwise or of the group's values up to the own one."""
    return _inclusive(value, _or, log2_size)


@func
def inclusive_or(value):
    """The bitwise or of the subgroup's values up to the own one."""
    return _inclusive(value, _or, LOG2_SIZE)


@func
def inclusive_xor_tiled(value, log2_size: Template):
    """The bitwise exclusive or of the group's values up to the own one."""
    return _inclusive(value, _xor, log2_size)


@func
def inclusive_xor(value):
    """The bitwise exclusive or of the subgroup's values up to the own one."""
    return _inclusive(value, _xor, LOG2_SIZE)


@func
def exclusive_add_tiled(value, log2_size: Template):
    """The sum of the group's values before the own one; 0 in its first lane."""
    return _exclusive(value, _add, identity_of(value, "add"), log2_size)


@func
def exclusive_add(value):
    """The sum of the values before the own one; 0 in the first lane."""
    return _exclusive(value, _add, identity_of(value, "add"), LOG2_SIZE)


@func
def exclusive_mul_tiled(value, log2_size: Template):
    """The product of the group's values before the own one; 1 in its first lane."""
    return _exclusive(value, _mul, identity_of(value, "mul"), log2_size)


@func
def exclusive_mul(value):
    """The product of the values before the own one; 1 in the first lane."""
    return _exclusive(value, _mul, identity_of(value, "mul"), LOG2_SIZE)


@func
def exclusive_min_tiled(value, log2_size: Template):
    """The smallest of the group's values before the own one; the largest in its first lane."""
    return _exclusive(value, _min, identity_of(value, "min"), log2_size)


@func
def exclusive_min(value):
    """The smallest of the values before the own one; the largest there is in the first lane."""
    return _exclusive(value, _min, identity_of(value, "min"), LOG2_SIZE)


@func
def exclusive_max_tiled(value, log2_size: Template):
    """The largest of the group's values before the own one; the lowest in its first lane."""
    return _exclusive(value, _max, identity_of(value, "max"), log2_size)


@func
def exclusive_max(value):
    """The largest of the values before the own one; the lowest there is in the first lane."""
    return _exclusive(value, _max, identity_of(value, "max"), LOG2_SIZE)


@func
def exclusive_and_tiled(value, log2_size: Template):
    """The bitwise and of the group's values before the own one; all bits in its first lane."""
    return _exclusive(value, _and, identity_of(value, "and"), log2_size)


@func
def exclusive_and(value):
    """The bitwise and of the values before the own one; all bits in the first lane."""
    return _exclusive(value, _and, identity_of(value, "and"), LOG2_SIZE)


@func
def exclusive_or_tiled(value, log2_size: Template):
    """The bitwise or of the group's values before the own one; 0 in its first lane."""
    return _exclusive(value, _or, identity_of(value, "or"), log2_size)


@func
def exclusive_or(value):
    """The bitwise or of the values before the own one; 0 in the first lane."""
    return _exclusive(value, _or, identity_of(value, "or"), LOG2_SIZE)


@func
def exclusive_xor_tiled(value, log2_size: Template):
    """The bitwise exclusive or of the group's values before the own one; 0 in its first lane."""
    return _exclusive(value, _xor, identity_of(value, "xor"), log2_size)


@func
def exclusive_xor(value):
    """The bitwise exclusive or of the values before the own one; 0 in the first lane."""
    return _exclusive(value, _xor, identity_of(value, "xor"), LOG2_SIZE)


# Segments


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


@func
def segmented_reduce_add_tiled(value, head_flag, log2_size: Template):
    """The sum of the group's values since the last ``head_flag`` that is not 0."""
    return _segmented(value, head_flag, _add, log2_size)


@func
def segmented_reduce_add(value, head_flag):
    """The sum of the values from the last ``head_flag`` that is not 0 up to the own one."""
    return _segmented(value, head_flag, _add, LOG2_SIZE)


@func
def segmented_reduce_min_tiled(value, head_flag, log2_size: Template):
    """The smallest of the group's values since the last ``head_flag`` that is not 0."""
    return _segmented(value, head_flag, _min, log2_size)


@func
def segmented_reduce_min(value, head_flag):
    """The smallest of the values from the last ``head_flag`` that is not 0 up to the own one."""
    return _segmented(value, head_flag, _min, LOG2_SIZE)


@func
def segmented_reduce_max_tiled(value, head_flag, log2_size: Template):
    """The largest of the group's values since the last ``head_flag`` that is not 0."""
    return _segmented(value, head_flag, _max, log2_size)


@func
def segmented_reduce_max(value, head_flag):
    """The largest of the values from the last ``head_flag`` that is not 0 up to the own one."""
    return _segmented(value, head_flag, _max, LOG2_SIZE)


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
