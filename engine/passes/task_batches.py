"""Tasks are prepared for the machine in batches of tasks that are alike.

A round of `full_simplify` visits every op as long as one of them changes. In a kernel of thousands
of loops there is always one, and each round would visit all loops. So in a kernel with many tasks
the passes run on a hundred of them at a time, which fit into the processor's caches, too. Tasks
with the same opcodes come one after the other: for most passes there is nothing to do in a batch.

The result is the same, but for the ids of new ops: passes look at other tasks only for what these
load from global temporaries, and for how many draw random numbers. Tasks with global temporaries
are one batch, in their order. All tasks are one in a kernel with random numbers, graph regions or
real functions, and in one that an instrument observes, for which a pass runs once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..ir import Func, Op, walk
from ..ir import codes as C

__all__ = ["in_batches"]

_OPS: Final = 1000
"""Ops of a batch: the fixed costs of running all passes are then a fiftieth of its time."""
_RANDOM: Final = bytes([C.RAND, C.LAUNCH_SEED])


def in_batches(func: Func, prepare: Callable[[], None]) -> None:
    """Call ``prepare`` for each batch, with the tasks of that batch as all that ``func`` has."""
    order, stage = func.body.ops, func.stage
    batches = _batches(func)
    if len(batches) < 2:
        prepare()
        return
    left: set[Op] = set()
    # Tasks have a number in their batch alone. It is of use for random numbers, which are not here.
    shared, func.shared = func.shared, None
    for batch in batches:
        func.body.ops, func.stage = batch, stage
        func.version += 1
        prepare()
        left.update(func.body.ops)
    assert left.issubset(order)
    func.body.ops, func.shared = [task for task in order if task in left], shared
    func.version += 1


def _batches(func: Func) -> list[list[Op]]:
    """The tasks by batch; one batch where they have to stay together."""
    order = func.body.ops
    if func.callees or any(op.code != C.OFFLOADED for op in order):
        return [order]
    codes = [bytes([op.code for region in task.regions for op in walk(region)]) for task in order]
    few = sum(map(len, codes)) <= 2 * _OPS
    if few or any(len(found.translate(None, _RANDOM)) < len(found) for found in codes):
        return [order]
    together = [task for task, c in zip(order, codes, strict=True) if C.GLOBAL_TMP in c]
    batches = [together]
    size = _OPS if together else 0
    for i in sorted(range(len(order)), key=codes.__getitem__):
        if C.GLOBAL_TMP in codes[i]:
            continue
        if size >= _OPS:
            batches.append([])
            size = 0
        batches[-1].append(order[i])
        size += len(codes[i])
    return batches
