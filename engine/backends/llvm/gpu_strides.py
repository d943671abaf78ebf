"""The iterations of a thread as the first tier has them: as little code as can be.

Where the launch knows how many there are, it has a thread for each, and there is no loop
(`schedule.Schedule.once`). Else the steps are the whole grid, as in `schedule`, one iteration at a
time. A thread divides twice by each extent, before the loop: its number, and the grid's size. A
step then adds the indices of the two, with carries, in 32 bits, where full code divides a 64-bit
number in each iteration: a 64-bit division is a function for the driver's compiler, which needs
4 ms for each, and a 32-bit one costs it a tenth of a stencil::

    %i, %j = first / extent, first % extent        next:  %j += step % extent
    %a, %b = step / extent, step % extent                 carry, and %j -= extent, if %j >= extent
                                                          %i += step / extent + carry
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ...ir import Op
    from .gpu_emitter import GpuEmitter

__all__ = ["Strides", "extent_of", "thread_number", "total_of"]


def extent_of(e: GpuEmitter, begin: str, end: str) -> str:
    """The length of an axis, 0 if it is empty; unsigned."""
    if begin.lstrip("-").isdigit() and end.lstrip("-").isdigit():
        return str(max(0, int(end) - int(begin)))
    if begin == "0":
        return e.call("smax", "i32", f"i32 {end}, i32 0", flags=False)
    some = e.value(f"icmp slt i32 {begin}, {end}")
    return e.value(f"select i1 {some}, i32 {e.value(f'sub i32 {end}, {begin}')}, i32 0")


def total_of(e: GpuEmitter, extents: Sequence[str]) -> str:
    """The product of extents, as i64."""
    total = as_i64(e, extents[0])
    for extent in extents[1:]:
        total = e.value(f"mul i64 {total}, {as_i64(e, extent)}")
    return total


def as_i64(e: GpuEmitter, text: str) -> str:
    return text if text.isdigit() else e.value(f"zext i32 {text} to i64")


def thread_number(e: GpuEmitter, block_dim: int) -> str:
    """The number of this thread in the grid, as i32."""
    before = e.value(f"mul nuw i32 {e.register('ctaid')}, {block_dim}")
    return e.value(f"add nuw i32 {before}, {e.register('tid')}")


class Strides:
    """The iterations, for what `GpuEmitter.in_first_tier` replaces.

    loop: its op. order: the axes, from the slowest to the fastest. bounds: of the axes, operands,
    i32. once: a thread has one iteration at most.
    """

    def __init__(
        self, e: GpuEmitter, loop: Op, order: Sequence[int], bounds: list[str], block_dim: int,
        once: bool,
    ) -> None:  # fmt: skip
        self.e: Final = e
        self.block_dim: Final = block_dim
        self.once: Final = once
        self.bounds: Final = [(bounds[2 * axis], bounds[2 * axis + 1]) for axis in order]
        self.places = {axis: f"%place.{loop.id}.{axis}" for axis in order}
        self.begins: Final = {axis: bounds[2 * axis] for axis in order}
        self.body = ""
        self.extents: list[str] = []
        self.steps: list[str] = []

    def open(self, body: str, latch: str) -> None:
        """Begin an iteration. body: its label. latch: of the block with `close`."""
        e = self.e
        self.body = body
        self.extents = [extent_of(e, *pair) for pair in self.bounds]
        first = thread_number(e, self.block_dim)
        total = total_of(e, self.extents)
        some = e.value(f"icmp ult i64 {e.value(f'zext i32 {first} to i64')}, {total}")
        split = e.label("split")
        e.branch(some, split, e.stop)
        e.place(split)
        firsts = self._split(first)
        if self.once:
            self.places = dict(zip(self.places, firsts, strict=True))
            e.jump(body)
            e.place(body)
            return
        self.steps = self._split(e.value(f"mul nuw i32 {e.register('nctaid')}, {self.block_dim}"))
        e.jump(body)
        e.place(body)
        for place, start in zip(self.places.values(), firsts, strict=True):
            e.line(f"{place} = phi i32 [ {start}, %{split} ], [ {place}.next, %{latch} ]")

    def _split(self, number: str) -> list[str]:
        """The places along the axes of an iteration; that along the slowest may be beyond it."""
        e, places = self.e, list[str]()
        for extent in self.extents[:0:-1]:
            quotient = e.value(f"udiv i32 {number}, {extent}")
            whole = e.value(f"mul i32 {quotient}, {extent}")
            places.insert(0, e.value(f"sub i32 {number}, {whole}"))
            number = quotient
        return [number, *places]

    def define(self, axis: int, narrow: str, wide: str) -> None:
        """Define the index along an axis, as i32, if that has a name, and in 64 bits."""
        e, begin = self.e, self.begins[axis]
        index = self.places[axis]
        if narrow:
            e.line(f"{narrow} = add i32 {begin}, {index}")
            index = narrow
        elif begin != "0":
            index = e.value(f"add i32 {begin}, {index}")
        e.line(f"{wide} = sext i32 {index} to i64")

    def close(self) -> None:
        """The step to the next iteration. No sum wraps: extents and steps are below 2 ** 31."""
        e, carry = self.e, ""
        if self.once:
            e.jump(e.stop)
            return
        places = list(self.places.values())
        for k in range(len(places) - 1, -1, -1):
            place, step, extent = places[k], self.steps[k], self.extents[k]
            moved = f"add nuw i32 {place}, {step}"
            if carry:
                moved = f"add nuw i32 {e.value(moved)}, {carry}"
            if k == 0:
                e.line(f"{place}.next = {moved}")
                more = e.value(f"icmp ult i32 {place}.next, {extent}")
                e.branch(more, self.body, e.stop)
                return
            after = e.value(moved)
            over = e.value(f"icmp uge i32 {after}, {extent}")
            less = e.value(f"sub i32 {after}, {extent}")
            e.line(f"{place}.next = select i1 {over}, i32 {less}, i32 {after}")
            carry = e.value(f"zext i1 {over} to i32")
