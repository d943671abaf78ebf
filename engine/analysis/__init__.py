"""Facts about IR that passes ask for: pure functions of a `Func` that change nothing.

============ ===================================================================================
`uses`       the ops of some opcodes, the number of uses of each value, and its users
`loops`      enclosing loops, nesting of ops and loops, loop invariance
`alias`      which addresses are the same, cannot be the same, or may be
`unique`     which arrays a parallel task divides among its iterations
`cfg`        the control-flow graph of a task, as an object that can be shown
`effects`    what opcodes do to memory; those of subgroups
`dataflow`   reaching definitions and live variables on it
`blocks`     which loops run in blocks of iterations that wait for each other
`calls`      whether real functions call themselves
============ ===================================================================================

A pass keeps results with ``cx.analysis(key, make)``: they live until ``func.version`` changes.

Every name is imported from its module when it is first asked for: most kernels need no control-flow
graph.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .alias import DIFFERENT, MAYBE, SAME, Location, MemoryLocations
    from .blocks import block_dim, is_parallel, needs_blocks, shared_arrays
    from .calls import recursive
    from .cfg import Cfg, CfgNode, build_cfg
    from .dataflow import Flow, analyze
    from .effects import SUBGROUP_OPS
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

_MODULES: Final = {
    "alias": "DIFFERENT MAYBE SAME Location MemoryLocations",
    "blocks": "block_dim is_parallel needs_blocks shared_arrays",
    "calls": "recursive",
    "cfg": "Cfg CfgNode build_cfg",
    "dataflow": "Flow analyze",
    "effects": "SUBGROUP_OPS",
    "loops": "bounds_of cell_loop chunk_loop contains enclosing_loops is_index is_invariant",
    "unique": "uniquely_accessed",
    "uses": "use_counts users",
}
_HOME: Final = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{module}", __name__), name)
    return value
