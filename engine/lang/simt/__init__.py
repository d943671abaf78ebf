"""``qd.simt``: groups of iterations that work together.

============ =====================================================================================
`block`      shared arrays, barriers, reductions and scans over a block of iterations
`grid`       fences for all iterations of a kernel
`subgroup`   exchanges, votes, reductions and scans over 32 iterations of a block
`warp`       the same by their CUDA names
============ =====================================================================================
"""

from . import block, grid, subgroup, warp

__all__ = ["block", "grid", "subgroup", "warp"]
