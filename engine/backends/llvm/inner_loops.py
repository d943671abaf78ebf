"""Inner loops of a GPU task whose body is there many times, with vector access.

`passes.unroll_inner_loops` has chosen them. The arrays that they read must begin at multiples of 16
bytes: the task is made twice, and the kernel checks which version to use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir import Op, walk
from ...ir import codes as C
from ...named_tuple import NamedTuple
from ...passes.strides import WIDEST

if TYPE_CHECKING:
    from .gpu_emitter import GpuEmitter

__all__ = ["Unrolled", "assume_aligned", "choose_version", "unrolled"]


class Unrolled(NamedTuple):
    """counts: how often to unroll a loop, by its id. arrays: parameters that must be aligned."""

    counts: dict[int, int]
    arrays: tuple[int, ...]


def unrolled(task: Op) -> Unrolled | None:
    """The loops of ``task`` to unroll; None if there are none."""
    loops = [op for op in walk(task.regions[1]) if op.code == C.RANGE_FOR and op.attr.unroll]
    arrays = dict.fromkeys([number for loop in loops for number in loop.attr.unroll[1:]])
    counts = {loop.id: loop.attr.unroll[0] for loop in loops}
    return Unrolled(counts, tuple(arrays)) if loops else None


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
