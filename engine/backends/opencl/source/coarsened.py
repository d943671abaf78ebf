"""A parallel task on a device that is much like a CPU: a work-item runs whole chunks of the loop.

::

    const int chunks = ...;                                           the header
    for (int chunk = get_group_id(0); chunk < chunks; chunk += items) {
        const long first = ..., last = ...;                           the body
        for (int i = first; i < last; ++i)
            y[i] = a * x[i] + y[i];
    }

The IR comes from the pipeline for CPUs, where a task counts chunks (``unit='chunk'``); a loop whose
iterations run one by one is a nest of all its axes, in one work-item.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....ir import Op
from ...kernarg import grids
from ..facts import OpenclTask
from .control import nest
from .fused import ALONE, ITEM

if TYPE_CHECKING:
    from .kernel import ProgramSource

__all__ = ["emit_parallel"]


def emit_parallel(program: ProgramSource, index: int, op: Op, name: str) -> OpenclTask:
    """Write a parallel task."""
    body = program.emitter(op)
    chunked = op.attr.unit == "chunk"
    program.begin(body, index, op, "item" if chunked else "0")
    body.run(op.regions[0])
    bounds = op.regions[0].ops[-1].args
    if chunked:
        first, end = body.v[bounds[0].id], body.atom(bounds[1])
        # Not `item`: PoCL then keeps the function apart, and small launches take a fifth longer.
        start = ITEM if first == "0" else f"{body.at(bounds[0], 12)} + {ITEM}"
        body.open(f"for (int chunk = {start}; chunk < {end}; chunk += items) {{")
        body.loop_values[op.id, 0] = "chunk"
        body.loop_depth += 1
        body.run(op.regions[1])
        body.op_id = op.id
        body.close()
        grid = grids.SATURATE
    else:
        nest(body, op, bounds, op.attr.axes)
        grid = grids.ONE
    program.title(index, op)
    args = program.finish(body, name, ALONE, once=True)
    return OpenclTask(name, args, 1, grid, prints=body.prints)
