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

from __future__ import annotations

from ._folds import (
    bitonic_sort_kv,
    bitonic_sort_kv_tiled,
    exclusive_add,
    exclusive_add_tiled,
    exclusive_and,
    exclusive_and_tiled,
    exclusive_max,
    exclusive_max_tiled,
    exclusive_min,
    exclusive_min_tiled,
    exclusive_mul,
    exclusive_mul_tiled,
    exclusive_or,
    exclusive_or_tiled,
    exclusive_xor,
    exclusive_xor_tiled,
    inclusive_add,
    inclusive_add_tiled,
    inclusive_and,
    inclusive_and_tiled,
    inclusive_max,
    inclusive_max_tiled,
    inclusive_min,
    inclusive_min_tiled,
    inclusive_mul,
    inclusive_mul_tiled,
    inclusive_or,
    inclusive_or_tiled,
    inclusive_xor,
    inclusive_xor_tiled,
    reduce_add,
    reduce_add_tiled,
    reduce_all_add,
    reduce_all_add_tiled,
    reduce_all_max,
    reduce_all_max_tiled,
    reduce_all_min,
    reduce_all_min_tiled,
    reduce_max,
    reduce_max_tiled,
    reduce_min,
    reduce_min_tiled,
    segmented_reduce_add,
    segmented_reduce_add_tiled,
    segmented_reduce_max,
    segmented_reduce_max_tiled,
    segmented_reduce_min,
    segmented_reduce_min_tiled,
)
from ._lanes import (
    all_equal,
    all_equal_tiled,
    all_true,
    all_true_tiled,
    any_true,
    any_true_tiled,
    ballot,
    ballot_first_n,
    ballot_full_subgroup,
    barrier,
    broadcast,
    broadcast_first,
    elect,
    group_size,
    invocation_id,
    lanemask_eq,
    lanemask_ge,
    lanemask_gt,
    lanemask_le,
    lanemask_lt,
    log2_group_size,
    mem_fence,
    memory_barrier,
    shuffle,
    shuffle_down,
    shuffle_up,
    shuffle_xor,
    sync,
)

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
