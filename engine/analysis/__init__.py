"""Facts about IR that passes ask for: pure functions of a `Func` that change nothing.

============ ===================================================================================
`uses`       the ops of some opcodes, the number of uses of each value, and its users
`loops`      enclosing loops, nesting of ops and loops, loop invariance
`alias`      which addresses are the same, cannot be the same, or may be
`unique`     which arrays a parallel task divides among its iterations
`cfg`        the control-flow graph of a task, as an object that can be shown
`dataflow`   reaching definitions and live variables on it
`blocks`     which loops run in blocks of iterations that wait for each other
`calls`      whether real functions call themselves
============ ===================================================================================

A pass keeps results with ``cx.analysis(key, make)``: they live until ``func.version`` changes.
"""

from .alias import DIFFERENT, MAYBE, SAME, Location, MemoryLocations
from .blocks import SUBGROUP_OPS, block_dim, is_parallel, needs_blocks, shared_arrays
from .calls import recursive
from .cfg import Cfg, CfgNode, build_cfg
from .dataflow import Flow, analyze
from .loops import (
    bounds_of,
    cell_loop,
    chunk_loop,
    contains,
    enclosing_loops,
    is_index,
    is_invariant,
)
from .unique import uniquely_accessed
from .uses import use_counts, users

__all__ = [
    "DIFFERENT",
    "MAYBE",
    "SAME",
    "SUBGROUP_OPS",
    "Cfg",
    "CfgNode",
    "Flow",
    "Location",
    "MemoryLocations",
    "analyze",
    "block_dim",
    "bounds_of",
    "build_cfg",
    "cell_loop",
    "chunk_loop",
    "contains",
    "enclosing_loops",
    "is_index",
    "is_invariant",
    "is_parallel",
    "needs_blocks",
    "recursive",
    "shared_arrays",
    "uniquely_accessed",
    "use_counts",
    "users",
]  # fmt: skip
