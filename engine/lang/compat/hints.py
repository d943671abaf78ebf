"""Hints to the compiler in kernels of the reference, and its query of addresses.

The engine decides by itself what a hint asks for, so hints have no effect. Their arguments are
evaluated.
"""

from __future__ import annotations

from typing import Any

from ...frontend.registry import intrinsic
from ..functions import only_in_kernels

__all__ = ["assume_in_range", "block_local", "cache_read_only", "get_addr", "no_activate"]


@intrinsic("block_local")
def block_local(*args: Any) -> None:
    """Hint to keep fields in the fast memory of a block; the compiler decides that by itself."""
    only_in_kernels("block_local")


@intrinsic("cache_read_only")
def cache_read_only(*args: Any) -> None:
    """Hint that fields are only read; the compiler finds that out by itself."""
    only_in_kernels("cache_read_only")


@intrinsic("no_activate")
def no_activate(*args: Any) -> None:
    """Hint that the next loop activates no cells; fields are dense, so no loop does."""
    only_in_kernels("no_activate")


@intrinsic("assume_in_range")
def assume_in_range(val: Any, base: Any, low: Any, high: Any) -> Any:
    """``val``, which the program promises to be in ``[base + low, base + high)``."""
    return val


@intrinsic("get_addr")
def get_addr(f: Any, indices: Any) -> int:
    """The address of an element of the field ``f``, or of its node ``f.snode``, as a u64.

    Differences of addresses of one field are bytes on all backends; interp's begin at synthetic
    numbers.
    """
    only_in_kernels("get_addr")
