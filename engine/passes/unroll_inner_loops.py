"""unroll_inner_loops: inner loops over neighbours become worth many copies of their body on a GPU.

All threads of a warp that run the same loop over the elements of an array load the same element
at the same time. The hardware serves one such load in a step, for 4 bytes or for 16; so a loop that
computes little with each element waits for its loads. Unrolled, with neighbours loaded together,
it runs at twice the speed::

    $8 : range_for $6, $7 body {           $8 : range_for $6, $7 {unroll=(16, 0)} body {
      $9 = loop_index $8 [0]                 $9 = loop_index $8 [0]
      $10 = external_ptr $2, $9              $10 = external_ptr $2, $9

The body shall be there 16 times, if array 0 begins at a multiple of 16 bytes: backends make the
task twice, and the kernel checks which version to use.

It leaves alone loops that begin at no group of neighbours, have few iterations, or branches and
loops inside; arrays that the task writes, or that may overlap with one; tasks with calls, prints,
assertions, barriers or stacks.
"""

from __future__ import annotations

from typing import Final

from ..analysis import cell_loop, needs_blocks
from ..ir import Func, Op, walk
from ..ir import codes as C
from .manager import PassCx
from .map_to_grid import weight
from .registry import register
from .strides import access, apart

_BUDGET: Final = 1024
_MOST: Final = 16
_LEAST: Final = 4
_EXCLUDED: Final = frozenset({
    C.ASSERT, C.PRINT, C.CALL, C.RAND, C.BLOCK_SYNC, C.AD_STACK_ALLOCA, C.CLOCK,
})  # fmt: skip


@register("unroll_inner_loops", optional=True, per_task=True)
def unroll_inner_loops(func: Func, cx: PassCx) -> bool:
    """Choose the copies of the bodies of inner loops that read neighbouring elements."""
    task = cx.task
    outer = cell_loop(task) if task is not None else None
    if task is None or outer is None:
        return False
    if not any(C.LOOP[op.code] for op in walk(outer.regions[-1])):
        return False
    body = task.regions[1]
    ops = walk(body)
    if (needs_blocks(body) and task.attr.unit != "thread") or any(
        op.code in _EXCLUDED for op in ops
    ):
        return False
    changed = False
    alone = apart(func)
    for loop in ops:
        if loop.code != C.RANGE_FOR or loop.attr.shared or not _plain(loop):
            continue
        found = _neighbours(loop, task, alone)
        count = _BUDGET // max(1, sum(weight(op) for op in loop.regions[0].ops))
        if found and count >= _LEAST:
            times = min(_MOST, 1 << count.bit_length() - 1)
            loop.attr = loop.attr._replace(unroll=(times, *dict.fromkeys(found)))
            cx.remark(loop, f"its body is there {times} times, with loads of 16 bytes where the "
                      "arrays begin at multiples of 16")  # fmt: skip
            changed = True
    return changed


def _plain(loop: Op) -> bool:
    """True if it is a straight loop over one axis that begins at a group of neighbours."""
    if len(loop.args) != 2 or loop.attr.reversed or any(op.regions for op in loop.regions[0].ops):
        return False
    begin, end = loop.args
    if begin.code != C.CONST or begin.attr % _LEAST:
        return False
    return end.code != C.CONST or end.attr - begin.attr > 2 * _MOST


def _neighbours(loop: Op, task: Op, apart: list[bool]) -> list[int]:
    """The arrays that nothing writes and whose elements the loop reads one after the other."""
    found: list[int] = []
    for op in loop.regions[0].ops:
        if op.code != C.GLOBAL_LOAD:
            continue
        seen = access(loop, 0, op.args[0])
        if seen is None or not 0 < seen.step <= 4 or seen.even != ():
            continue
        number = int(seen.base.attr[0])
        if number in task.attr.read_only and apart[number]:
            found.append(number)
    return found
