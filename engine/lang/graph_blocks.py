"""Blocks of kernels that are not part of `qd.graph`: checkpoints, streams, and deprecated names.

All of it is for kernels; `frontend.graphs` and `frontend.checkpoints` define its meaning.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from ..frontend.registry import intrinsic
from ..runtime.status import GraphStatus
from .functions import only_in_kernels

__all__ = [
    "GraphStatus", "checkpoint", "graph_do_while", "graph_parallel", "graph_parallel_context",
    "stream_parallel",
]  # fmt: skip


@intrinsic("checkpoint")
def checkpoint(cp_id: int = 0, yield_on: Any = None) -> Any:
    """A block of a graph at which a launch may stop, and another one begin.

    ``with qd.checkpoint(1, yield_on=flag):`` in a kernel with ``graph=True, checkpoints=True``. If
    the one element of ``flag`` (an array of i32 without axes) is not 0 after the block, nothing
    more of the launch runs, and the call returns a `GraphStatus` that says so.
    ``kernel.resume(..., from_checkpoint=1)`` launches the kernel from this block on.

    cp_id: an int literal or a member of an IntEnum, unique in the kernel.

    Outside of kernels it does nothing.
    """
    return nullcontext()


@intrinsic("stream_parallel")
def stream_parallel() -> Any:
    """A block of a kernel that has a stream of its own: ``with qd.stream_parallel():``.

    The blocks run concurrently; the kernel ends when all of them have ended. A kernel with such
    blocks holds nothing else. On backends without streams they run one after the other.

    Outside of kernels it does nothing.
    """
    return nullcontext()


@intrinsic("graph.do_while_old")
def graph_do_while(condition: Any) -> bool:
    """Deprecated: write ``qd.graph.do_while(flag)``."""
    only_in_kernels("graph_do_while")


@intrinsic("graph.parallel_old")
def graph_parallel() -> Any:
    """Deprecated: write ``qd.graph.parallel()``."""
    return nullcontext()


@intrinsic("graph.parallel_context_old")
def graph_parallel_context() -> Any:
    """Deprecated: write ``qd.graph.parallel_context()``."""
    return nullcontext()
