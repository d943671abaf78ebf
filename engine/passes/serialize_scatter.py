"""serialize_scatter: runs a parallel task that mostly updates shared memory on one thread.

On a CPU an atomic update costs as much as ten or twenty plain ones, even if no other thread uses
the element. If a task does little else, one thread without atomics is faster than two or four
threads. Such a task becomes a serial one with a loop in it::

    $0 : offloaded {kind='range_for'} header {     $0 : offloaded header {
      $3 : bounds $1, $2                             $3 : bounds
    } body {                                       } body {
      <i32> $4 = loop_index $0 [0]                   $9 : range_for $1, $2 body {
      ...                                              <i32> $4 = loop_index $9 [0]
      <f32> $7 = atomic_add $6, $5                     ...
    }                                                  <f32> $7 = atomic_add $6, $5
                                                     }
                                                   }

and `demote_atomics` turns its updates into plain ones. With ``T`` threads, and other work ``W`` and
shared updates ``A`` of one iteration, the pass does this if ``(W + cost of A atomic) / T`` exceeds
``W + cost of A plain``. The costs are measured. The pass also does this if the task is known to be
so short that one thread would run all of it.

It leaves alone tasks without atomics on shared memory, and loops that set `num_cpu_threads`.
Updates that `make_thread_local` will move out of the loop (of an element that does not
change, with unused results) do not count.
"""

from __future__ import annotations

from typing import Final

from ..analysis import is_invariant, needs_blocks, uniquely_accessed, use_counts
from ..analysis.alias import is_private
from ..ir import Block, ForAttr, Func, Op, walk
from ..ir import codes as C
from ..ir.edit import move_body, set_block
from ..types import void
from .cost import op_cost, trips
from .manager import PassCx
from .registry import register

__all__ = ["prefers_one_thread", "serialize_scatter"]

# Tenths of a nanosecond, measured on the scatter of a material point method. An atomic update
# waits for all memory accesses before it; plain ones overlap, also where they miss the caches.
_PLAIN: Final = 5
_SCATTERED: Final = 45
_CONTENDED: Final = 300
"""Of one element that all threads update, each waiting for the others."""
_SHORT: Final = 100_000
"""A task of this cost is over before a second thread has begun to help."""


@register("serialize_scatter", optional=True, per_task=True)
def serialize_scatter(func: Func, cx: PassCx) -> bool:
    """Run tasks that mostly update shared memory on one thread, where updates are cheap."""
    task = cx.task
    if task is None or task.attr.kind != "range_for" or task.attr.unit != "cell":
        return False
    if task.attr.num_cpu_threads:
        return False
    config = cx.config
    threads = config.cpu_max_num_threads if config.make_cpu_multithreading_loop else 1
    ops = walk(task.regions[1])
    if not any(C.ATOMIC[op.code] for op in ops):
        return False
    if needs_blocks(task.regions[1]):
        return False  # iterations work together
    work, plain, atomic = _weights(func, task, cx)
    if not atomic:
        return False
    bounds = task.regions[0].ops[-1]
    known = all(bound.code == C.CONST for bound in bounds.args)
    short = known and (work + atomic) * trips(bounds) < _SHORT
    if not short and max(threads, 1) * (work + plain) > work + atomic:
        cx.remark(task, f"stays parallel: {threads} threads outweigh the cost of its atomics")
        return False
    cx.remark(
        task,
        "runs on one thread: it is short, and needs no atomics so" if short else
        f"runs on one thread: plain updates save more than {threads} threads would",
    )  # fmt: skip
    _make_serial(func, task)
    return True


def prefers_one_thread(func: Func, task: Op, cx: PassCx, threads: int) -> bool:
    """True if one thread with plain updates is faster than ``threads`` with atomics."""
    work, plain, atomic = _weights(func, task, cx)
    return threads * (work + plain) <= work + atomic


def _weights(func: Func, task: Op, cx: PassCx) -> tuple[int, int, int]:
    """Cost of what is no shared update, and of those that are, if they are plain or atomic."""
    weights = _Weights(func, task, cx.config.make_thread_local)
    work, plain, atomic = weights.block(task.regions[1])
    return work // 2, plain, atomic  # address arithmetic, mostly, which scattered accesses hide


class _Weights:
    """Weighs the body of a task."""

    def __init__(self, func: Func, task: Op, thread_local: bool) -> None:
        self.task = task
        self.unique = uniquely_accessed(func, task)
        self.uses = use_counts(task.regions[1])
        self.thread_local = thread_local
        self.known: dict[Op, bool] = {}

    def block(self, block: Block) -> tuple[int, int, int]:
        """Cost of what is no shared update, and of those that are, if they are plain or atomic."""
        work = plain = atomic = 0
        for op in block.ops:
            factor = 1
            if C.ATOMIC[op.code]:
                cost = self.update(op)
                plain += _PLAIN if cost else 0
                atomic += cost
                work += 0 if cost else _PLAIN
            elif op.regions:
                inner = [self.block(region) for region in op.regions]
                if C.LOOP[op.code]:
                    factor = trips(op)
                work += factor * sum(w for w, _, _ in inner)
                plain += factor * sum(p for _, p, _ in inner)
                atomic += factor * sum(a for _, _, a in inner)
            else:
                work += op_cost(op)
        return work, plain, atomic

    def update(self, op: Op) -> int:
        """The cost of an atomic that stays one; 0 for one that need not be atomic."""
        dest = op.args[0]
        if dest.code == C.ALLOCA or is_private(dest):
            return 0
        if dest.code == C.EXTERNAL_PTR and dest.args[0].attr in self.unique:
            return 0
        if not is_invariant(dest, self.task, self.known):
            return _SCATTERED
        reduces = op.code not in (C.ATOMIC_XCHG, C.ATOMIC_CAS) and not self.uses.get(op)
        return 0 if self.thread_local and reduces else _CONTENDED


def _make_serial(func: Func, task: Op) -> None:
    """Turn the loop that the task is into one inside of it."""
    attr = task.attr
    header, body = task.regions
    bounds = header.ops[-1]
    loop = func.new_op(
        C.RANGE_FOR, void, bounds.args, ForAttr(axes=attr.axes, loop_name=attr.loop_name),
        task.loc, body, 1,
    )  # fmt: skip
    move_body(task, loop)
    body.ops = [*header.ops[:-1], loop]
    set_block(body.ops, body)
    bounds.args = ()
    header.ops = [bounds]
    # One thread needs one row of each adstack, however often, and by whatever predicate, it is
    # used.
    task.attr = attr._replace(kind="serial", axes=None, trip="", predicate="")
