"""The assignment of the iterations of a parallel task to the threads of a GPU.

An *iteration* is one of the user's loop, whatever number of axes that has; they are numbered row by
row, the innermost axis of the loop's nest fastest. `plan` chooses, `blocks_text` returns the number
of blocks for it in the words of the launch, and `emit_iterations` makes the code: a loop whose
steps are the whole grid, so that any number of blocks covers all iterations::

    %first = ctaid * block_dim + tid            for.3:   %c = phi [ %first ], [ %c + %step ]
    %step  = nctaid * block_dim                          %i = %c / extent;  %j = %c % extent
                                                         ... the body
                                                next.3:  more if the iterations left are > %step

An *exact* task, whose blocks share memory or wait for each other, has no such loop: iteration
number ``ctaid * block_dim + tid`` is the thread's only one, and a thread without an iteration ends.

Iterations are counted in 32 bits where their number is sure to fit: with one axis, or with extents
that are known. Else in 64; LLVM's division checks whether 32 bits do, which they nearly always do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ...analysis import block_dim, cell_loop, needs_blocks
from ...ir import Op, walk
from ...ir import codes as C
from ...named_tuple import NamedTuple
from ...passes.map_to_grid import Tile, tile_of
from ..kernarg import grids
from .control import Counter
from .gpu_strides import Strides, as_i64, extent_of, thread_number, total_of
from .inner_loops import Unrolled, unrolled
from .tiles import emit_tiles, tiles_text

if TYPE_CHECKING:
    from ...config import CompileConfig
    from .gpu_emitter import GpuEmitter, Position

__all__ = [
    "MOST_THREADS", "Schedule", "adds_up", "blocks_text", "emit_iterations", "first_blocks",
    "plan", "shared_loop", "thread_number", "total_iterations",
]  # fmt: skip

MOST_THREADS: Final = 1 << 31
"""Threads of a grid are fewer, so that no counter wraps."""


class Schedule(NamedTuple):
    """The assignment of a task's iterations to threads.

    block_dim: threads of a block. grid: one of `grids.COVER`, `grids.SATURATE`, `grids.EXACT`.
    tile: how a thread runs several iterations at a time, if it does. loops: those inside of the
    body that one of two versions unrolls. once: the launch of first-tier code has a thread for each
    iteration (`facts.CudaTask.first`).
    """

    block_dim: int
    grid: str
    tile: Tile | None = None
    loops: Unrolled | None = None
    once: bool = False

    @property
    def limit(self) -> int:
        """Most blocks of a grid; 0 where the number is given."""
        return 0 if self.grid == grids.EXACT else MOST_THREADS // self.block_dim - 1


def plan(task: Op, config: CompileConfig, most: int = 1 << 31) -> Schedule:
    """The schedule of a parallel task. most: threads that a block may have."""
    body = task.regions[1]
    threads, reduces = min(task.attr.block_dim or config.default_gpu_block_dim, most), adds_up(task)
    if needs_blocks(body) and not reduces:
        return Schedule(block_dim(task), grids.EXACT)
    loop = cell_loop(task)
    if config.opt_level == 0 or loop is None or _has_stacks(task):
        return Schedule(threads, grids.COVER)
    tile = tile_of(task)
    if tile is not None and tile.block_dim != threads:
        tile = None  # the device has no blocks of so many
    # Subgroups that add up in each iteration are done with it: a block that ends makes room for the
    # next one, which evens out iterations of different lengths.
    once = reduces and not needs_blocks(loop.regions[-1])
    grid = grids.SATURATE if once and (tile is None or len(tile.shape) == 1) else grids.COVER
    return Schedule(threads, grid, tile, unrolled(task))


def adds_up(task: Op) -> bool:
    """True if the threads of a task share its iterations, and add up: when they have made them, or
    lanes of a subgroup in each."""
    return task.attr.unit == "thread"


def _has_stacks(task: Op) -> bool:
    return any(op.code == C.AD_STACK_ALLOCA for op in walk(task.regions[1]))


def blocks_text(task: Op, schedule: Schedule, text_of: Callable[[Op], str]) -> str:
    """The number of blocks for the launch, as `facts.CudaTask.blocks`; empty if it cannot know.

    text_of: the text of an operand of the bounds; empty if it is not available.
    """
    bounds = task.regions[0].ops[-1].args
    extents: list[tuple[str, str, str]] = []
    for begin, end in zip(bounds[::2], bounds[1::2], strict=True):
        first, last = text_of(begin), text_of(end)
        if not first or not last:
            return ""
        length = f"max(0,{last})" if first == "0" else f"max(0,{last}-{first})"
        extents.append((first, last, length))
    share = schedule.block_dim
    if schedule.tile is not None:
        blocks = tiles_text(schedule.tile, dict(enumerate(extents)), share)
    else:
        blocks = f"({'*'.join([length for *_, length in extents])}+{share - 1})//{share}"
    return f"min({schedule.limit},max(1,{blocks}))" if schedule.limit else f"max(1,{blocks})"


def first_blocks(task: Op, schedule: Schedule, text_of: Callable[[Op], str]) -> str:
    """Blocks with a thread for each iteration, as `facts.CudaTask.first`; empty if that cannot be.

    text_of: as in `blocks_text`, but what it returns is right where arithmetic wraps, too.
    """
    if schedule.grid != grids.COVER or adds_up(task) or _has_stacks(task):
        return ""
    found = blocks_text(task, Schedule(schedule.block_dim, grids.EXACT), text_of)
    known = found and "v" not in found
    return "" if known and grids.evaluate(found, ()) > schedule.limit else found


def emit_iterations(e: GpuEmitter, task: Op, bounds: list[str], schedule: Schedule) -> None:
    """Run the body of a task or a shared loop for the iterations of this thread.

    bounds: operands, i32.
    """
    if schedule.tile is not None:
        emit_tiles(e, task, bounds, schedule.tile, schedule.block_dim, schedule.once)
        return
    order: tuple[int, ...] = task.attr.axes or tuple(range(len(bounds) // 2))
    pairs = list(zip(bounds[::2], bounds[1::2], strict=True))
    start = e.here
    extents = [extent_of(e, *pairs[axis]) for axis in order]
    known = all(text.isdigit() for text in extents)
    total = math.prod(map(int, extents)) if known else 0
    wide = (total >= MOST_THREADS) if known else len(order) > 1
    ty = "i64" if wide else "i32"
    if not known:
        total = total_of(e, extents) if wide else extents[0]
    first = _first_iteration(e, schedule, wide)
    iteration, close = _open(e, task, ty, first, str(total), schedule)
    _indices(e, task, order, pairs, extents, iteration, wide)
    strides = None
    if schedule.once or (wide and not known and schedule.grid != grids.EXACT):
        strides = Strides(e, task, order, bounds, schedule.block_dim, schedule.once)
        body, latch = e.block, e.loops[-1][0]
        with e.in_first_tier(start):
            strides.open(body, latch)
            for axis in order:
                strides.define(axis, *e.loop_values[task.id, axis])
    e.run(task.regions[-1])
    e.op_id = task.id
    start = close()
    if strides is not None:
        with e.in_first_tier(start):
            strides.close()


def shared_loop(e: GpuEmitter, loop: Op) -> None:
    """Run the iterations of this thread, in a task of threads; then the code goes on."""
    assert e.schedule is not None
    before, e.stop = e.stop, e.label("shared")
    depth = len(e.loops)
    emit_iterations(e, loop, [e.v[b.id] for b in loop.args], e.schedule)
    del e.loops[depth:]
    e.place(e.stop)
    e.stop = before


def total_iterations(e: GpuEmitter, bounds: list[str]) -> str:
    """The number of iterations, as i64."""
    pairs = zip(bounds[::2], bounds[1::2], strict=True)
    return total_of(e, [extent_of(e, *pair) for pair in pairs])


def _first_iteration(e: GpuEmitter, schedule: Schedule, wide: bool) -> str:
    """The number of this thread, which an exact grid may have more of than 32 bits can count."""
    if not wide:
        return thread_number(e, schedule.block_dim)
    if schedule.grid != grids.EXACT:
        return e.value(f"zext i32 {thread_number(e, schedule.block_dim)} to i64")
    block, thread = (
        e.value(f"zext nneg i32 {e.register(name)} to i64") for name in ("ctaid", "tid")
    )
    return e.value(f"add i64 {e.value(f'mul i64 {block}, {schedule.block_dim}')}, {thread}")


def _open(
    e: GpuEmitter, task: Op, ty: str, first: str, total: str, schedule: Schedule
) -> tuple[str, Callable[[], Position]]:
    """Begin the loop over iterations: the iteration's number, and what ends the loop, which returns
    where the step begins."""
    body = e.label("iteration")
    some = e.value(f"icmp ult {ty} {first}, {total}")
    if schedule.grid == grids.EXACT:
        e.branch(some, body, "stop")
        e.place(body)
        e.loops.append(("stop", "stop"))

        def done() -> Position:
            e.jump("stop")
            return e.here

        return first, done
    step = e.value(f"mul nuw i32 {e.register('nctaid')}, {schedule.block_dim}")
    if ty == "i64":
        step = e.value(f"zext i32 {step} to i64")
    before, latch = e.block, e.label("next")
    e.branch(some, body, e.stop)
    e.place(body)
    iteration = f"%iteration.{task.id}"
    e.line(f"{iteration} = phi {ty} [ {first}, %{before} ], [ {iteration}.next, %{latch} ]")
    e.loops.append((latch, e.stop))

    def close() -> Position:
        e.jump(latch)
        e.place(latch)
        start = e.here
        # Not compared after the step, which could wrap.
        left = e.value(f"sub nuw {ty} {total}, {iteration}")
        e.line(f"{iteration}.next = add {ty} {iteration}, {step}")
        more = e.value(f"icmp ugt {ty} {left}, {step}")
        e.branch(more, body, e.stop)
        return start

    return iteration, close


def _indices(
    e: GpuEmitter, task: Op, order: tuple[int, ...], pairs: list[tuple[str, str]],
    extents: list[str], iteration: str, wide: bool,
) -> None:  # fmt: skip
    """The loop's indices, from the number of the iteration."""
    ty = "i64" if wide else "i32"
    for axis, extent in zip(order[:0:-1], extents[:0:-1], strict=True):
        length = as_i64(e, extent) if wide else extent
        place = e.value(f"urem {ty} {iteration}, {length}")
        iteration = e.value(f"udiv {ty} {iteration}, {length}")
        e.loop_values[task.id, axis] = _counter(e, place, pairs[axis][0], wide)
    outer = order[0]
    e.loop_values[task.id, outer] = _counter(e, iteration, pairs[outer][0], wide)


def _counter(e: GpuEmitter, place: str, begin: str, wide: bool) -> Counter:
    """The index at a place of an axis."""
    if begin == "0":
        if wide:
            return Counter(e.value(f"trunc nuw nsw i64 {place} to i32"), place)
        return Counter(place, e.value(f"zext nneg i32 {place} to i64"))
    narrow = e.value(f"trunc i64 {place} to i32") if wide else place
    index = e.value(f"add i32 {begin}, {narrow}")
    return Counter(index, e.value(f"sext i32 {index} to i64"))
