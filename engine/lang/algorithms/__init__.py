"""``qd.algorithms``: reductions, scans, compaction and sorting of one-dimensional data.

The functions are called at the top level of a kernel; each of their phases is then a parallel task
of its own. ``arr`` and the other buffers are fields, arrays or tensors of one axis. ``n`` is the
number of elements that are used and may be a value of run time, up to ``256 ** log256_max_n``.
``log256_max_n`` is a constant: the number of levels of totals. ``scratch`` is a buffer of
``qd.u32`` (``qd.u64`` for reductions and scans of types of 8 bytes); the ``..._scratch_slots``
functions return its length, in Python as in kernels.

Element types are i32, u32, f32, i64, u64 and f64. Results do not depend on the number of threads.

`PrefixSumExecutor` and `parallel_sort` are called from Python. On CUDA they read their data once a
pass (`look_back`).
"""

from .executors import PrefixSumExecutor, parallel_sort
from .phases import (
    exclusive_scan_add,
    exclusive_scan_max,
    exclusive_scan_min,
    exclusive_scan_scratch_slots,
    reduce_add,
    reduce_by_key_add,
    reduce_by_key_scratch_slots,
    reduce_max,
    reduce_min,
    reduce_scratch_slots,
    select,
    select_scratch_slots,
    sort,
    sort_scratch_slots,
)

__all__ = [
    "PrefixSumExecutor", "exclusive_scan_add", "exclusive_scan_max", "exclusive_scan_min",
    "exclusive_scan_scratch_slots", "parallel_sort", "reduce_add", "reduce_by_key_add",
    "reduce_by_key_scratch_slots", "reduce_max", "reduce_min", "reduce_scratch_slots", "select",
    "select_scratch_slots", "sort", "sort_scratch_slots",
]  # fmt: skip
