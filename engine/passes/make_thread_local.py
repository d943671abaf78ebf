"""make_thread_local: a reduction accumulates in a local, and updates shared memory once per chunk.

In a task that consists of chunks (see `make_cpu_multithreaded_range_for`)::

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
-0.0 for add; for min and max NaN, or the largest number of the other sign where ``fast_math``
rules out NaN and infinity. If updates are conditional and none ran (the local still holds the
neutral value), the shared memory is not accessed, because its address may be invalid.

It leaves alone xchg and cas, results that are used, addresses that vary, and tasks without chunks.
"""

from __future__ import annotations

from ..analysis import Location, MemoryLocations, cell_loop, contains, is_invariant, use_counts
from ..analysis.dataflow import FENCE, INIT, KIND
from ..config import CompileConfig
from ..ir import Builder, Func, Op, walk
from ..ir import codes as C
from ..ir.semantics import neutral
from ..types import DataType, PointerType
from .hoist import before_loop
from .manager import PassCx
from .registry import register

__all__ = ["accumulator", "make_thread_local", "reductions", "update_once"]


@register("make_thread_local", optional=True, per_task=True, needs=C.ATOMIC)
def make_thread_local(func: Func, cx: PassCx) -> bool:
    """Give reductions an accumulator for each chunk of the loop."""
    task = cx.task
    if task is None or task.attr.unit != "chunk":
        return False
    loop = cell_loop(task)
    ops = walk(task.regions[1])
    if loop is None or not any(C.ATOMIC[op.code] for op in ops):
        return False
    found = reductions(func, cx, task, loop)
    for accesses in found:
        _accumulate(func, task, loop, accesses, cx.config)
    return bool(found)


def reductions(func: Func, cx: PassCx, task: Op, loop: Op) -> list[list[Op]]:
    """The updates in ``loop`` of each place that a thread can make in a variable of its own."""
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
            touching.setdefault(memory.location(op.args[0]), []).append(op)
    counts = use_counts(task.regions[1])
    found: list[list[Op]] = []
    for location, accesses in touching.items():
        if C.ATOMIC[accesses[0].code]:
            why_not = _why_not(location, accesses, touching, memory, loop, counts)
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
    touching: dict[Location, list[Op]],
    memory: MemoryLocations,
    loop: Op,
    counts: dict[Op, int],
) -> str:
    """The reason that ``location`` is not a reduction; empty if it is one."""
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
    if not is_invariant(location.ptr, loop):
        return "its address varies"
    others = memory.may_alias(location)
    if any(others >> other.number & 1 for other in touching):
        return "other accesses may hit the same element"
    return ""


def _accumulate(func: Func, task: Op, loop: Op, accesses: list[Op], config: CompileConfig) -> None:
    body = task.regions[1]
    first = accesses[0]
    dest = first.args[0]
    t = first.type
    assert isinstance(t, DataType)
    before = Builder(func, body, first.loc, [])
    dest = before_loop(func, dest, loop, before)
    none = neutral(first.code, t, config.fast_math, infinite=False)
    local = accumulator(before, first, none)
    for op in accesses:
        op.args = (local, *op.args[1:])
    after = Builder(func, body, first.loc, [])
    total = after.load(local)
    if _always(loop, accesses):
        after.emit(first.code, (dest, total))
    else:
        update_once(after, first, dest, total, none)
    at = body.ops.index(loop)
    body.ops = [*body.ops[:at], *before.ops, loop, *after.ops, *body.ops[at + 1 :]]


def accumulator(b: Builder, update: Op, none: int | float) -> Op:
    """A variable for updates like ``update``, with their neutral value."""
    t = update.type
    assert isinstance(t, DataType)
    local = b.alloca(t, "accumulator")
    b.store(local, b.const(none, t))
    return local


def update_once(b: Builder, update: Op, dest: Op, total: Op, none: int | float) -> None:
    """Make an update with ``total``, unless that is the neutral value."""
    t = update.type
    assert isinstance(t, DataType)
    other = total if none != none else b.const(none, t)
    some = b.binary(C.CMP_EQ if none != none else C.CMP_NE, total, other)
    with b.inside(b.if_(some).regions[0]):
        b.emit(update.code, (dest, total))


def _always(loop: Op, accesses: list[Op]) -> bool:
    """True if each iteration makes one of the updates."""
    body = loop.regions[0]
    return any(op.block is body for op in accesses) and not any(
        op.code == C.CONTINUE for op in walk(body)
    )
