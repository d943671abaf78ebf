"""`qd.graph`: constructs of kernels that are recorded as a graph.

All of it is used in kernels only; `frontend.graphs` defines its meaning. `graph_blocks` has more.
"""

from __future__ import annotations

import importlib
from typing import Any

from ..frontend.registry import intrinsic
from ..types.taichi_names import GRAPH_BUILDER
from .functions import only_in_kernels

__all__ = ["do_while", "parallel", "parallel_context"]


@intrinsic("graph.do_while")
def do_while(condition: Any) -> bool:
    """Repeat a part of a graph: ``while qd.graph.do_while(flag):``.

    The body runs, and again as long as the one element of ``flag`` is not 0 after it. flag: an
    array of i32 without axes, as a parameter or a member of one; nothing else is an error. The
    kernel needs ``graph=True``. On CUDA devices of compute capability 9.0 and above the loop runs
    on the device, elsewhere the host reads the element after each round.
    """
    only_in_kernels("graph.do_while")


@intrinsic("graph.parallel_context")
def parallel_context() -> Any:
    """A part of a graph whose sections may run at the same time; it ends when all have.

    ``with qd.graph.parallel_context():`` holds nothing but ``with qd.graph.parallel():`` blocks.
    """
    only_in_kernels("graph.parallel_context")


@intrinsic("graph.parallel")
def parallel() -> Any:
    """One section of a `parallel_context`: its loops run in order, next to the other sections."""
    only_in_kernels("graph.parallel")


def __getattr__(name: str) -> Any:
    if name in GRAPH_BUILDER:
        return getattr(importlib.import_module(".graph_builder", __package__), name)
    raise AttributeError(f"qd.graph has no attribute {name!r}")
