"""make_thread_local: a reduction accumulates in a local, and updates shared memory once.

An atomic update of an address that is the same in all iterations would make all threads wait for
one word. On a CPU, in a task that consists of chunks (see `make_cpu_multithreaded_range_for`), each
chunk makes one update::

    $9 : range_for $b, $e body {            <*f32> $20 = alloca
      ...                                   $21 : local_store $20, <-0.0>
      <f32> $5 = atomic_add $1, $4          $9 : range_for $b, $e body {
    }                                         ...
                                              <f32> $5 = atomic_add $20, $4
                                            }
                                            <f32> $22 = local_load $20
                                            <f32> $23 = atomic_add $1, $22

where ``$1`` is an address that does not change in the loop: a global temporary or an element such
as ``out[0]``. The next `demote_atomics` turns the update of the local into plain ops. All updates
must be the same operation (add, mul, min, max, and, or, xor), their results must be unused, and
nothing else in the task may access that memory. The local starts with the neutral value: for floats
-0.0 for add; for min and max NaN, or an infinity where ``fast_math`` rules that out. If updates are
conditional and none ran (the local still holds the neutral value), the shared memory is not
accessed, because its address may be invalid.

On a GPU, the task becomes one of threads, which share the iterations, and each block makes one
update::

    $2 : offloaded {kind='range_for'} header {     $2 : offloaded {... block_dim=256 unit='thread'}
      $4 : bounds <0>, $n                            $4 : bounds <0>, $n
    } body {                                       } body {
      <i32> $5 = loop_index $2 [0]                   <*f32> $20 = alloca, with <-0.0>
      ...                                            $30 : range_for <0>, $n {shared=True} {
      <f32> $8 = atomic_add $sum, $7                   <i32> $5 = loop_index $30 [0]
    }                                                  ... $7 is added to $20
                                                     }
                                                     <*f32> $40 = array_alloca {shared, 256}
                                                     $40[thread] = $20
                                                     block_sync
                                                     the first 16 threads add up 16 elements each
                                                     block_sync
                                                     the first thread adds up those 16, and updates
                                                       $sum if there is anything to add
                                                   }

Any number of blocks is right: a backend starts as many as the device holds at once, and assigns the
iterations of the shared loop to the threads. Values are added in pairs, so that a sum of floats has
the error of a tree. Its order depends on the grid and on the block that comes first: results differ
in the last bits from launch to launch, as those of atomics do. Many reductions take turns with the
shared arrays, 16 KB at a time, since a block that asks for too much cannot be launched.

A task makes accumulators for its first 8192 places on a CPU, 64 KB of a stack at most, and for 512
on a GPU, where more take more than ten seconds to compile. An accumulator that has no register is
still a hundred times as fast as threads that wait for one word. Other places are updated by each
iteration.

It leaves alone xchg and cas, results that are used, addresses that vary; on a CPU tasks without
chunks; and on a GPU tasks whose iterations wait for each other, those with adstacks, and loops that
are known to be short.
"""

from __future__ import annotations

import math
from typing import Final

from ..analysis import (
    Location,
    MemoryLocations,
    bounds_of,
    cell_loop,
    contains,
    is_invariant,
    needs_blocks,
    use_counts,
)
from ..analysis.alias import bit_set
from ..analysis.effects import FENCE, INIT, KIND
from ..config import CompileConfig
from ..ir import Block, Builder, ForAttr, Func, Op, set_block, walk
from ..ir import codes as C
from ..ir.edit import clone_into, move_body
from ..ir.semantics import ATOMIC_OPERATION, neutral
from ..named_tuple import NamedTuple
from ..types import DataType, PointerType, i32
from .grid import block_dim_of
from .hoist import before_loop
from .manager import PassCx
from .registry import register

__all__ = ["make_thread_local"]

_FEW: Final = 32
"""Iterations that may update a word one by one."""
_CHUNK_MOST: Final = 8192
"""Accumulators of a chunk."""
_THREAD_MOST: Final = 512
"""Accumulators of a thread of a GPU."""
_SHARED_BYTES: Final = 16384
"""Of arrays in which a block combines the values of its threads."""


@register("make_thread_local", optional=True, per_task=True)
def make_thread_local(func: Func, cx: PassCx) -> bool:
    """Give reductions an accumulator for each thread, and one update for each chunk or block."""
    task, config = cx.task, cx.config
    on_gpu = cx.kind is not None and cx.kind.is_gpu
    if task is None or task.attr.unit != ("cell" if on_gpu else "chunk"):
        return False
    loop = cell_loop(task)
    ops = walk(task.regions[1])
    updates = [op for op in ops if C.ATOMIC[op.code]]
    if loop is None or not updates or (on_gpu and not config.opt_level):
        return False
    why_not = _why_no_blocks(task, ops) if on_gpu else ""
    if why_not:
        cx.remark(updates[0], f"no accumulator for each thread: {why_not}")
        return False
    found = _reductions(func, cx, task, loop, _THREAD_MOST if on_gpu else _CHUNK_MOST)
    if found and on_gpu:
        _in_blocks(func, task, found, config)
        cx.remark(task, "threads add up for themselves, and blocks update once")
    elif found:
        _in_chunks(func, task, loop, found, config.fast_math)
    return bool(found)


def _why_no_blocks(task: Op, ops: list[Op]) -> str:
    """The reason that threads of a GPU must not share the iterations; empty if they may."""
    if needs_blocks(task.regions[1]):
        return "its iterations wait for each other"
    if any(op.code == C.AD_STACK_ALLOCA for op in ops):
        return "the loop has stacks"
    bounds = bounds_of(task)
    if all(bound.code == C.CONST for bound in bounds):
        ends = zip(bounds[::2], bounds[1::2], strict=True)
        if math.prod([max(0, int(end.attr) - int(begin.attr)) for begin, end in ends]) <= _FEW:
            return "the loop is short"
    return ""


def _reductions(func: Func, cx: PassCx, task: Op, loop: Op, most: int) -> list[list[Op]]:
    """The updates in ``loop`` of each place that a thread can make in a variable of its own, for
    so many places."""
    ops = walk(task.regions[1])
    calls = [op for op in ops if op.code == C.CALL]
    if calls:
        cx.remark(calls[0], "no accumulators: the function may touch any element")
        return []
    memory = MemoryLocations(func)
    touching: dict[Location, list[Op]] = {}
    for op in ops:
        kind = KIND[op.code]
        if kind not in (0, INIT, FENCE) and op.args[0].code != C.ALLOCA:
            location = memory.location(op.args[0])
            touching.setdefault(location, []).append(op)
    touched = bit_set([location.number for location in touching])
    counts = use_counts(task.regions[1])
    invariant: dict[Op, bool] = {}
    found: list[list[Op]] = []
    for location, accesses in touching.items():
        if C.ATOMIC[accesses[0].code]:
            if len(found) == most:
                cx.remark(
                    accesses[0], f"no accumulator for each thread: the loop has {most} others"
                )
                break
            why_not = _why_not(location, accesses, touched, memory, loop, counts, invariant)
            if why_not:
                cx.remark(accesses[0], f"no accumulator for each thread: {why_not}")
            else:
                found.append(accesses)
                for op in accesses:
                    cx.rewrote(op, op, "each thread adds up in a variable of its own")
    return found


def _why_not(
    location: Location,
    accesses: list[Op],
    touched: int,
    memory: MemoryLocations,
    loop: Op,
    counts: dict[Op, int],
    invariant: dict[Op, bool],
) -> str:
    """The reason that ``location`` is not a reduction; empty if it is one.

    touched: a bit set of all locations in the loop. invariant: what is known of addresses.
    """
    first = accesses[0]
    elem = location.ptr.type.elem if isinstance(location.ptr.type, PointerType) else None
    if first.code in (C.ATOMIC_XCHG, C.ATOMIC_CAS):
        return f"{first.name} is no reduction"
    if not isinstance(elem, DataType):
        return "the element is no number"
    if any(op.code != first.code for op in accesses):
        return "it is also loaded, stored to or updated by another operation"
    if any(op in counts for op in accesses):
        return "the old value is used"
    if not all(contains(loop, op) for op in accesses):
        return "it is also updated outside of the loop"
    if not is_invariant(location.ptr, loop, invariant):
        return "its address varies"
    if memory.may_alias(location) & touched:
        return "other accesses may hit the same element"
    return ""


class _Sum(NamedTuple):
    """A reduction. code / type: of its updates. always: each iteration makes one. dest: their
    address. local: the accumulator. none: its first value."""

    code: int
    type: DataType
    always: bool
    dest: Op
    local: Op
    none: int | float

    def update(self, b: Builder, total: Op) -> None:
        """Update the address with ``total``, unless that may be the neutral value, and is."""
        if self.always:
            b.emit(self.code, (self.dest, total))
            return
        nan = self.none != self.none
        other = total if nan else b.const(self.none, self.type)
        some = b.binary(C.CMP_EQ if nan else C.CMP_NE, total, other)
        with b.inside(b.if_(some).regions[0]):
            b.emit(self.code, (self.dest, total))


def _accumulate(
    b: Builder, loop: Op, found: list[list[Op]], fast_math: bool, on_gpu: bool
) -> list[_Sum]:
    """Let updates go to accumulators, which ``b`` makes."""
    sums: list[_Sum] = []
    body = loop.regions[-1]
    # A block may have no iterations.
    in_all = not on_gpu and not any(op.code == C.CONTINUE for op in walk(body))
    moved: dict[Op, Op] = {}
    constants: dict[object, Op] = {}
    for updates in found:
        first = updates[0]
        t = first.type
        assert isinstance(t, DataType)
        b.loc = first.loc
        dest = before_loop(b.func, first.args[0], loop, b, moved)
        none = neutral(first.code, t, fast_math)
        local = b.alloca(t, "accumulator")
        value = constants.get((t, first.code))
        if value is None:
            value = constants[t, first.code] = b.const(none, t)
        b.store(local, value)
        for op in updates:
            op.args = (local, *op.args[1:])
        always = in_all and any(op.block is body for op in updates)
        sums.append(_Sum(first.code, t, always, dest, local, none))
    return sums


def _in_chunks(func: Func, task: Op, loop: Op, found: list[list[Op]], fast_math: bool) -> None:
    """Each chunk, which has iterations, makes one update."""
    body = task.regions[1]
    b = Builder(func, body, task.loc, [])
    sums = _accumulate(b, loop, found, fast_math, on_gpu=False)
    b.ops.append(loop)
    for one in sums:
        one.update(b, b.load(one.local))
    at = body.ops.index(loop)
    body.ops[at : at + 1] = b.ops


def _in_blocks(func: Func, task: Op, found: list[list[Op]], config: CompileConfig) -> None:
    """Each block, whose threads share the iterations, makes one update."""
    attr, body = task.attr, task.regions[1]
    size = block_dim_of(task, config, few=True)
    b = Builder(func, Block(), task.loc)
    thread = b.loop_index(task, 0)
    sums = _accumulate(b, task, found, config.fast_math, on_gpu=True)
    b.loc = task.loc
    mapping: dict[Op, Op] = {}
    *header, last = task.regions[0].ops
    clone_into(func, header, mapping, b.block)
    bounds = tuple([mapping[op] for op in last.args])
    loop = b.range_for(bounds, ForAttr(axes=attr.axes, shared=True))
    move_body(task, loop)
    _combine(b, sums, thread, size)
    task.attr = attr._replace(unit="thread", block_dim=size)
    body.ops = b.block.ops
    set_block(body.ops, body)


def _combine(b: Builder, sums: list[_Sum], thread: Op, size: int) -> None:
    """After the loop: one update for each block. thread: its index in the block."""
    kinds: dict[DataType, list[_Sum]] = {}
    for one in sums:
        kinds.setdefault(one.type, []).append(one)
    room = _SHARED_BYTES // (len(kinds) * size)
    arrays = {
        t: [
            b.array(t, size, "partial results", "shared", clear=False)
            for _ in mine[: max(1, room // t.size)]
        ]
        for t, mine in kinds.items()
    }
    turns = max(-(-len(mine) // len(arrays[t])) for t, mine in kinds.items())
    for turn in range(turns):
        if turn:
            b.emit(C.BLOCK_SYNC)
        pairs = [
            pair
            for t, mine in kinds.items()
            for pair in zip(mine[turn * len(arrays[t]) :], arrays[t], strict=False)
        ]
        _combine_in(b, pairs, thread, size)


def _combine_in(b: Builder, sums: list[tuple[_Sum, Op]], thread: Op, size: int) -> None:
    """One update for each of these reductions. sums: they, and the shared array of each."""
    for one, array in sums:
        b.store(b.element(array, thread), b.load(one.local))
    b.emit(C.BLOCK_SYNC)
    columns = max(n for n in range(1, math.isqrt(size) + 1) if size % n == 0)
    rows = size // columns
    if columns > 1:
        some = b.if_(b.binary(C.CMP_LT, thread, b.const(columns, i32)))
        with b.inside(some.regions[0]):
            places = [thread] + [
                b.binary(C.ADD, thread, b.const(k * columns, i32)) for k in range(1, rows)
            ]
            for one, array in sums:
                b.store(b.element(array, thread), _tree(b, one, array, places))
        b.emit(C.BLOCK_SYNC)
    first = b.if_(b.binary(C.CMP_EQ, thread, b.const(0, i32)))
    with b.inside(first.regions[0]):
        for one, array in sums:
            left = [b.const(k, i32) for k in range(columns if columns > 1 else rows)]
            one.update(b, _tree(b, one, array, left))


def _tree(b: Builder, one: _Sum, array: Op, places: list[Op]) -> Op:
    """Elements of an array, combined in pairs."""
    code = ATOMIC_OPERATION[one.code]
    values = [b.load(b.element(array, place)) for place in places]
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=False)
        odd = values[len(values) // 2 * 2 :]
        values = [b.emit(code, pair, None, one.type) for pair in pairs] + odd
    return values[0]
