"""``qd.simt``: groups of iterations that work together.

============ =====================================================================================
`block`      shared arrays, barriers, reductions and scans over a block of iterations
`grid`       fences for all iterations of a kernel
`subgroup`   groups of threads that run in step, where a backend has them
`warp`       the same by their CUDA names
============ =====================================================================================
"""

from . import block, grid, subgroup, warp

__all__ = ["block", "grid", "subgroup", "warp"]
