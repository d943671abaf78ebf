"""``qd.simt.block``: operations of the iterations of a block.

A block is ``block_dim`` consecutive iterations of a parallel loop (``loop_config(block_dim=...)``,
else 128); the last block may be smaller. Its iterations can share an array and wait for each
other::

    qd.loop_config(block_dim=64)
    for i in range(n):
        tid = qd.simt.block.thread_idx()
        tile = qd.simt.block.SharedArray((64,), qd.f32)
        tile[tid] = x[i]
        qd.simt.block.sync()
        ...

Every iteration of a block must come to the same barriers; one that has ended (by ``continue``) is
waited for no more. On the CPU one thread runs a whole block.

The functions with a ``block_dim`` take the loop's own. ``op`` is a function of two values, a
``@qd.func``, for which the order of operands and their grouping do not matter.
"""

# The bodies of functions that kernels inline are no Python: types are those of the kernel.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

from ...frontend.registry import intrinsic
from ...types import Template, i32
from ..atomics import atomic_add
from ..func import FunctionOfKernels, func, named
from ..functions import cast, max, min, only_in_kernels
from ..loops import static

__all__ = [
    "SharedArray", "exclusive_add", "exclusive_max", "exclusive_min", "exclusive_scan",
    "global_thread_idx", "inclusive_add", "inclusive_max", "inclusive_min", "inclusive_scan",
    "mem_fence", "mem_sync", "radix_rank_match_atomic_or", "reduce", "reduce_add", "reduce_all",
    "reduce_all_add", "reduce_all_max", "reduce_all_min", "reduce_max", "reduce_min", "sync",
    "sync_all_nonzero", "sync_any_nonzero", "sync_count_nonzero", "thread_idx",
]  # fmt: skip


@intrinsic("shared_array")
def SharedArray(shape: Any, dtype: Any) -> Any:
    """An array that the iterations of a block share, 0 when the block starts.

    shape: an extent or a tuple of them, known at compile time. dtype: a data type, or the type of
    a vector or matrix.
    """
    only_in_kernels("simt.block.SharedArray")


@intrinsic("block_sync")
def sync() -> None:
    """Wait until all iterations of the block reach the barrier."""
    only_in_kernels("simt.block.sync")


@intrinsic("mem_fence.block")
def mem_fence() -> None:
    """A fence: earlier writes of this iteration become visible to its block before later ones."""
    only_in_kernels("simt.block.mem_fence")


@intrinsic("mem_fence.block")
def mem_sync() -> None:
    """The old name of `mem_fence`."""
    only_in_kernels("simt.block.mem_sync")


@intrinsic("thread_idx")
def thread_idx() -> int:
    """The place of the iteration in its block, counted from 0."""
    return only_in_kernels("simt.block.thread_idx")


@intrinsic("global_thread_idx")
def global_thread_idx() -> int:
    """The number of the iteration in its loop, counted from 0 in the order in which it runs."""
    return only_in_kernels("simt.block.global_thread_idx")


@intrinsic("threads_in_block")
def threads_in_block() -> int:
    """The number of iterations in the block."""
    return only_in_kernels("simt.block")


# Votes


@func
def sync_count_nonzero(predicate):
    """A barrier that returns the number of the block's iterations with a predicate other than 0."""
    count = SharedArray((1,), i32)
    sync()
    count[0] = 0
    sync()
    if predicate != 0:
        atomic_add(count[0], 1)
    sync()
    return count[0]


@func
def sync_any_nonzero(predicate):
    """A barrier that returns 1 if the predicate of some iteration is not 0, else 0."""
    return min(sync_count_nonzero(predicate), 1)


@func
def sync_all_nonzero(predicate):
    """A barrier that returns 1 if the predicates of all iterations are not 0, else 0."""
    zero = 0
    if predicate == 0:
        zero = 1
    return 1 - min(sync_count_nonzero(zero), 1)


# Reductions


@func
def reduce_all(value, block_dim: Template, op: Template, dtype: Template):
    """``op`` of the values of all iterations of the block, for each of them."""
    part = SharedArray((block_dim,), dtype)
    tid = thread_idx()
    size = threads_in_block()
    sync()
    part[tid] = value
    sync()
    for level in static(range(block_dim.bit_length() - 1)):
        stride = static(block_dim >> (level + 1))
        if tid < stride and tid + stride < size:
            part[tid] = op(part[tid], part[tid + stride])
        sync()
    return part[0]


@func
def reduce(value, block_dim: Template, op: Template, dtype: Template):
    """``op`` of the values of all iterations of the block; valid in the first of them."""
    return reduce_all(value, block_dim, op, dtype)


@func
def add(a, b):
    return a + b


@func
def smaller(a, b):
    return min(a, b)


@func
def larger(a, b):
    return max(a, b)


def _reduce(name: str, op: Any, what: str, who: str) -> FunctionOfKernels:
    def reduced(value, block_dim: Template, dtype: Template):
        return reduce_all(value, block_dim, op, dtype)

    return named(reduced, name, f"The {what} of the block's values{who}.")


_EACH = ", for every iteration"
_FIRST = "; valid in the first iteration of the block"

reduce_all_add = _reduce("reduce_all_add", add, "sum", _EACH)
reduce_all_min = _reduce("reduce_all_min", smaller, "smallest", _EACH)
reduce_all_max = _reduce("reduce_all_max", larger, "largest", _EACH)
reduce_add = _reduce("reduce_add", add, "sum", _FIRST)
reduce_min = _reduce("reduce_min", smaller, "smallest", _FIRST)
reduce_max = _reduce("reduce_max", larger, "largest", _FIRST)


# Scans


@func
def inclusive_scan(value, block_dim: Template, op: Template, dtype: Template):
    """``op`` of the values of the block's iterations up to this one."""
    part = SharedArray((block_dim,), dtype)
    tid = thread_idx()
    sync()
    part[tid] = value
    sync()
    for level in static(range(block_dim.bit_length() - 1)):
        stride = static(1 << level)
        mine = part[tid]
        if tid >= stride:
            mine = op(part[tid - stride], mine)
        sync()
        part[tid] = mine
        sync()
    return part[tid]


@func
def exclusive_scan(value, block_dim: Template, op: Template, identity, dtype: Template):
    """``op`` of the values of the block's iterations before this one; ``identity`` in the first."""
    before = SharedArray((block_dim,), dtype)
    tid = thread_idx()
    upto = inclusive_scan(value, block_dim, op, dtype)
    before[tid] = upto
    sync()
    result = cast(identity, dtype)
    if tid > 0:
        result = before[tid - 1]
    sync()
    return result


@intrinsic("identity")
def identity_of(value: Any, operation: str) -> Any:
    """The identity element of an operation, in the type of ``value``."""
    return only_in_kernels("simt")


def _upto(name: str, op: Any, what: str) -> FunctionOfKernels:
    def scanned(value, block_dim: Template, dtype: Template):
        return inclusive_scan(value, block_dim, op, dtype)

    text = f"The {what} of the values of the block's iterations up to this one."
    return named(scanned, f"inclusive_{name}", text)


def _before(name: str, op: Any, what: str, none: str) -> FunctionOfKernels:
    def scanned(value, block_dim: Template, dtype: Template):
        identity = identity_of(cast(value, dtype), name)
        return exclusive_scan(value, block_dim, op, identity, dtype)

    text = f"The {what} of the values before this one; {none} in the first iteration of the block."
    return named(scanned, f"exclusive_{name}", text)


inclusive_add = _upto("add", add, "sum")
inclusive_min = _upto("min", smaller, "smallest")
inclusive_max = _upto("max", larger, "largest")
exclusive_add = _before("add", add, "sum", "0")
exclusive_min = _before("min", smaller, "smallest", "the largest value of the type")
exclusive_max = _before("max", larger, "largest", "the lowest value of the type")


@intrinsic("no_subgroups")
def radix_rank_match_atomic_or(
    key: Any, block_dim: Any, radix_bits: Any, bit_start: Any, num_bits: Any, bins: Any,
    excl_prefix: Any,
) -> Any:  # fmt: skip
    """The rank of a key's digit in its block; not supported by any backend of this version."""
    only_in_kernels("simt.block.radix_rank_match_atomic_or")
