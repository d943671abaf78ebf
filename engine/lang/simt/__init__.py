"""``qd.simt``: groups of iterations that work together.

============ =====================================================================================
`block`      shared arrays, barriers, reductions and scans over a block of iterations
`grid`       fences for all iterations of a kernel
`subgroup`   exchanges, votes, reductions and scans over 32 iterations of a block
`warp`       the same by their CUDA names
============ =====================================================================================
"""

from typing import TYPE_CHECKING, Any

from . import block, grid, subgroup, warp

__all__ = ["block", "grid", "subgroup", "warp"]

if TYPE_CHECKING:  # programs use them in code for some devices only
    Tile16x16: Any
    Tile32x32: Any
else:

    def __getattr__(name: str) -> Any:
        from ...types.taichi_names import why_absent  # only for errors

        reason = why_absent("qd.simt", name)
        raise AttributeError(reason or f"module {__name__!r} has no attribute {name!r}")
