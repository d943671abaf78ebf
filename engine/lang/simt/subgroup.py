"""``qd.simt.subgroup``: groups of threads that run in step.

Their iterations exchange values without shared memory. No backend of this version has such groups,
so each of these raises QuadrantsUnsupportedError where a kernel uses it. `block` has reductions
and scans that run everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...frontend.registry import intrinsic
from ..functions import only_in_kernels

_NAMES = [
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


def _operation(name: str) -> Callable[..., Any]:
    def operation(*args: Any, **kwargs: Any) -> Any:
        only_in_kernels(f"simt.subgroup.{name}")

    operation.__name__ = operation.__qualname__ = name
    operation.__doc__ = f"``{name}`` of a subgroup; not supported by any backend of this version."
    return intrinsic("no_subgroups")(operation)


globals().update({name: _operation(name) for name in _NAMES})

__all__ = [*_NAMES]  # pyright: ignore[reportUnsupportedDunderAll]
