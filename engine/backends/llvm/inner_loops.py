"""Loops inside of a GPU task that are worth many copies of their body, with vector access.

All threads of a warp that run the same loop over the elements of an array load the same element
at the same time. The hardware serves one such load in a step, for 4 bytes or for 16; so a loop that
computes little with each element waits for its loads. Unrolled, with neighbours loaded together,
it runs at twice the speed. For that the arrays must begin at multiples of 16 bytes: the task is
made twice, and the kernel checks which version to use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...ir import Op, walk
from ...ir import codes as C
from ...named_tuple import NamedTuple
from ...passes.map_to_grid import weight
from ...passes.strides import WIDEST, access

if TYPE_CHECKING:
    from .gpu_emitter import GpuEmitter

__all__ = ["Unrolled", "assume_aligned", "choose_version", "unrolled"]

_BUDGET: Final = 1024
_MOST: Final = 16
_LEAST: Final = 4
_EXCLUDED: Final = frozenset({
    C.ASSERT, C.PRINT, C.CALL, C.RAND, C.BLOCK_SYNC, C.AD_STACK_ALLOCA, C.CLOCK,
})  # fmt: skip


class Unrolled(NamedTuple):
    """counts: how often to unroll a loop, by its id. arrays: parameters that must be aligned."""

    counts: dict[int, int]
    arrays: tuple[int, ...]


def unrolled(task: Op, apart: list[bool]) -> Unrolled | None:
    """The loops of ``task`` to unroll; None if there are none."""
    ops = walk(task.regions[1])
    if any(op.code in _EXCLUDED for op in ops):
        return None
    counts: dict[int, int] = {}
    arrays: dict[int, None] = {}
    for loop in ops:
        if loop.code != C.RANGE_FOR or loop.attr.shared or not _plain(loop):
            continue
        found = _neighbours(loop, task, apart)
        count = _BUDGET // max(1, sum(weight(op) for op in loop.regions[0].ops))
        if found and count >= _LEAST:
            counts[loop.id] = min(_MOST, 1 << count.bit_length() - 1)
            arrays |= dict.fromkeys(found)
    return Unrolled(counts, tuple(arrays)) if counts else None


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


def assume_aligned(e: GpuEmitter, arrays: tuple[int, ...]) -> None:
    """Emit the assumption that these arrays begin at multiples of 16 bytes."""
    e.state.declares["@llvm.assume"] = "declare void @llvm.assume(i1)"
    for number in arrays:
        fact = f'["align"(ptr {e.array(number)}, i64 {WIDEST})]'
        e.head.append(f"  call void @llvm.assume(i1 true) {fact}")


def choose_version(e: GpuEmitter, arrays: tuple[int, ...], aligned: str, other: str) -> None:
    """Call the version of the task for aligned arrays, or the other one."""
    bits = ""
    for number in arrays:
        address = e.value(f"ptrtoint ptr {e.array(number)} to i64")
        bits = e.value(f"or i64 {bits}, {address}") if bits else address
    low = e.value(f"and i64 {bits}, {WIDEST - 1}")
    yes, no = e.label("aligned"), e.label("any")
    e.branch(e.value(f"icmp eq i64 {low}, 0"), yes, no)
    for label, call in ((yes, aligned), (no, other)):
        e.place(label)
        e.line(call)
        e.line("ret void")
