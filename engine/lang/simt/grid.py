"""``qd.simt.grid``: fences for all iterations of a kernel."""

from __future__ import annotations

from ...frontend.registry import intrinsic
from ..functions import only_in_kernels

__all__ = ["mem_fence", "memfence"]


@intrinsic("mem_fence.grid")
def mem_fence() -> None:
    """A fence: earlier writes of this iteration become visible to others before later ones."""
    only_in_kernels("simt.grid.mem_fence")


@intrinsic("mem_fence.grid")
def memfence() -> None:
    """The old name of `mem_fence`."""
    only_in_kernels("simt.grid.memfence")
