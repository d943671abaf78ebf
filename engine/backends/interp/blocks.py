"""Loops whose iterations wait for each other, as Python generators.

::

    $2 : range_for $0, $1 {block_dim=64} body {        def b2(i2_0):
      <*i32> $4 = array_alloca {space='shared' ...}        if 0: yield
      ...                                        ->        ...
      $8 : block_sync                                      yield op8, 0, 0
      ...                                                  ...
    }                                                  for k in blocks(product(range(0, v1)), 64):
                                                           a4 = [0] * 64
                                                           run_block([b2(*i) for i in k])

Each iteration is a generator that stops at a barrier; a block steps all of its iterations to their
next barrier before any goes on. The others do not wait for an iteration that has ended. This is the
plain reading of the table, before any pass splits loops at barriers.

The body of a task of threads runs likewise for each thread of a grid of `_BLOCKS` blocks.

Iterations of a subgroup stop in the same way to exchange values: they yield the op and their part,
and the value of the ``yield`` is their result.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ...analysis import block_dim, is_parallel, needs_blocks, shared_arrays
from ...errors import QuadrantsAssertionError, QuadrantsUnsupportedError
from ...ir import Block, Func, Op, walk
from ...ir import codes as C
from ...ir.attrs import SUBGROUP_SIZE
from .fragments import FRAGMENT_OPS, multiplied, parts_of

if TYPE_CHECKING:
    from .emit import Emitter

__all__ = [
    "BLOCK_OPS", "NAMES", "block_loop", "block_sync", "exchanged", "in_blocks", "mem_fence",
    "share",
]  # fmt: skip

_BLOCKS: Final = 2
"""Of the grid of a task of threads: any number is right."""


def _of_threads(op: Op) -> bool:
    return op.code == C.OFFLOADED and op.attr.unit == "thread"


def in_blocks(func: Func, op: Op, body: Block) -> bool:
    """True if a loop runs in blocks."""
    return _of_threads(op) or (is_parallel(func, op) and needs_blocks(body))


def block_loop(e: Emitter, op: Op, bounds: Op, body: Block) -> None:
    """Emit the parallel loop ``op`` in blocks. bounds: the op whose operands are the bounds."""
    parameters, ranges = e.axes_of(op, bounds)
    threads = _of_threads(op)
    if threads:
        parameters = f"i{op.id}_0, thread"
    e.line(f"def b{op.id}({parameters}):")
    saved = e.begin_body(op)
    e.line("if 0: yield")
    inside = walk(body)
    mine = set(inside)
    outer = {
        x.args[0].id
        for x in inside
        if (C.WRITE[x.code] or C.ATOMIC[x.code])
        and x.args[0].code == C.ALLOCA
        and x.args[0] not in mine
    }
    if outer:
        e.line(f"{e.outer} " + ", ".join(f"a{number}" for number in sorted(outer)))
    if any(x.code == C.ASYNC_WAIT for x in inside):
        e.line("copies, products = [[]], []")
    if e.counted:
        e.line(f"cx.steps -= {max(1, len(inside))}")
        e.line("if cx.steps < 0: cx.too_long()")
    e.block(body)
    e.end_body(saved)
    e.op = op
    size = block_dim(op)
    if threads:
        starts = f"range(0, {_BLOCKS * size}, {size})"
        e.line(f"for k in [[(i, b + i) for i in range({size})] for b in {starts}]:")
    else:
        e.line(f"for k in blocks(product({ranges}), {size}):")
    for array in shared_arrays(body):
        e.line(" " + e.fresh_array(array))
    e.line(f" run_block([b{op.id}(*i) for i in k])")


def share(e: Emitter, ranges: str, names: str) -> str:
    """The iterations of a shared loop that the thread runs."""
    assert e.body_of is not None
    threads = _BLOCKS * block_dim(e.body_of)
    if "," not in names:
        return f"{ranges}[thread::{threads}]"
    return f"islice(product({ranges}), thread, None, {threads})"


def block_sync(e: Emitter, op: Op) -> None:
    """Stop until the others are here."""
    e.line(_stop(e, op, "0, 0"))


def _stop(e: Emitter, op: Op, parts: str) -> str:
    if e.body_of is None:
        raise QuadrantsUnsupportedError.from_loc("a barrier is outside of a parallel loop", op.loc)
    name = f"op{op.id}"
    e.names[name] = op
    return f"yield {name}, {parts}"


def shuffle(e: Emitter, op: Op) -> None:
    """The value of another iteration of the subgroup."""
    e.value(op, f"({_stop(e, op, f'{e.arg(op, 0)}, {e.arg(op, 1)}')})")


def ballot(e: Emitter, op: Op) -> None:
    """For which iterations of the subgroup the condition holds."""
    e.value(op, f"({_stop(e, op, f'{e.arg(op, 0)}, 0')})")


def multiply(e: Emitter, op: Op) -> None:
    """The part of this iteration of the product of fragments."""
    sums, parts = parts_of(e, op)
    e.line(f"{sums} = ({_stop(e, op, f'{parts}, 0')})")


def mem_fence(e: Emitter, op: Op) -> None:
    """Nothing to do: each iteration sees what those before it did."""


def _blocks(indices: Iterable[tuple[int, ...]], size: int) -> Iterator[list[tuple[int, ...]]]:
    """``indices`` in lists of ``size``, the last one maybe shorter."""
    left = iter(indices)
    while found := list(islice(left, size)):
        yield found


Stop = tuple[Op, Any, Any]
"""The op at which an iteration waits, and its part in what is done there."""
Iteration = Generator[Stop, Any]


def _run_block(iterations: list[Iteration]) -> None:
    """Run the iterations of one block to their ends, barrier by barrier."""
    groups: list[dict[int, Iteration]] = []
    for first in range(0, len(iterations), SUBGROUP_SIZE):
        groups.append(dict(enumerate(iterations[first : first + SUBGROUP_SIZE])))
    while any(groups):
        at: Op | None = None
        for group in groups:
            barrier = _run_subgroup(group)
            if barrier is None:
                continue
            if at is not None and barrier is not at:
                raise QuadrantsAssertionError.from_loc(
                    "iterations of one block wait at different barriers", barrier.loc
                )
            at = barrier


def _run_subgroup(group: dict[int, Iteration]) -> Op | None:
    """Run iterations, by lane, to a barrier of the block, which is returned, or to their ends."""
    results: dict[int, Any] = {}
    while group:
        stops: dict[int, Stop] = {}
        at: Op | None = None
        for lane, iteration in list(group.items()):
            try:
                stop = stops[lane] = iteration.send(results.get(lane))
            except StopIteration:
                del group[lane]
                continue
            if at is not None and stop[0] is not at:
                raise QuadrantsAssertionError.from_loc(
                    "iterations of one block wait at different barriers", stop[0].loc
                )
            at = stop[0]
        if at is None or at.code == C.BLOCK_SYNC:
            return at
        results = exchanged(at, stops)
    return None


def exchanged(op: Op, stops: dict[int, Stop]) -> dict[int, Any]:
    """The result of an operation of a subgroup for each of its lanes."""
    if op.code == C.SUBGROUP_SHUFFLE:
        return {
            lane: stops[wanted][1] if wanted in stops else value
            for lane, (_, value, wanted) in stops.items()
        }
    if op.code == C.SUBGROUP_BALLOT:
        bits = sum(1 << lane for lane, (_, cond, _) in stops.items() if cond)
        return dict.fromkeys(stops, bits)
    if op.code == C.FRAGMENT_MMA:
        if len(stops) < SUBGROUP_SIZE:
            raise QuadrantsAssertionError.from_loc("a subgroup is not whole", op.loc)
        return multiplied(op, {lane: parts for lane, (_, parts, _) in stops.items()})
    return {}


NAMES: Final[dict[str, Any]] = {"blocks": _blocks, "islice": islice, "run_block": _run_block}
"""The functions that the emitted source calls."""

BLOCK_OPS: Final[dict[int, Callable[[Emitter, Op], None]]] = {
    C.BLOCK_SYNC: block_sync, C.SUBGROUP_SYNC: block_sync, C.MEM_FENCE: mem_fence,
    C.SUBGROUP_SHUFFLE: shuffle, C.SUBGROUP_BALLOT: ballot, C.FRAGMENT_MMA: multiply,
    **FRAGMENT_OPS,
}  # fmt: skip
