"""Loops whose iterations wait for each other, as Python generators.

::

    $2 : range_for $0, $1 {block_dim=64} body {        def b2(i2_0):
      <*i32> $4 = array_alloca {space='shared' ...}        if 0: yield
      ...                                        ->        ...
      $8 : block_sync                                      yield op8
      ...                                                  ...
    }                                                  for k in blocks(product(range(0, v1)), 64):
                                                           a4 = [0] * 64
                                                           run_block([b2(*i) for i in k])

Each iteration is a generator that stops at a barrier; a block steps all of its iterations to their
next barrier before any goes on. An iteration that has ended waits for nobody. This is the plain
reading of the table, before any pass splits loops at barriers.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ...analysis import block_dim, shared_arrays
from ...errors import QuadrantsAssertionError, QuadrantsUnsupportedError
from ...ir import Block, Op, walk
from ...ir import codes as C

if TYPE_CHECKING:
    from .emit import Emitter

__all__ = ["NAMES", "block_loop", "block_sync", "mem_fence"]


def block_loop(e: Emitter, op: Op, bounds: Op, body: Block) -> None:
    """Emit the parallel loop ``op`` in blocks. bounds: the op whose operands are the bounds."""
    parameters, ranges = e.axes_of(op, bounds)
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
        e.line("nonlocal " + ", ".join(f"a{number}" for number in sorted(outer)))
    if e.counted:
        e.line(f"cx.steps -= {max(1, len(inside))}")
        e.line("if cx.steps < 0: cx.too_long()")
    e.block(body)
    e.end_body(saved)
    e.op = op
    e.line(f"for k in blocks(product({ranges}), {block_dim(op)}):")
    for array in shared_arrays(body):
        e.line(" " + e.fresh_array(array))
    e.line(f" run_block([b{op.id}(*i) for i in k])")


def block_sync(e: Emitter, op: Op) -> None:
    """Stop until the others are here."""
    if e.body_of is None:
        raise QuadrantsUnsupportedError.from_loc(
            "a barrier stands outside of a parallel loop", op.loc
        )
    name = f"op{op.id}"
    e.names[name] = op
    e.line(f"yield {name}")


def mem_fence(e: Emitter, op: Op) -> None:
    """Nothing to do: each iteration sees what those before it did."""


def _blocks(indices: Iterable[tuple[int, ...]], size: int) -> Iterator[list[tuple[int, ...]]]:
    """``indices`` in lists of ``size``, the last one maybe shorter."""
    left = iter(indices)
    while found := list(islice(left, size)):
        yield found


def _run_block(iterations: list[Generator[Op]]) -> None:
    """Run the iterations of one block to their ends, barrier by barrier."""
    while iterations:
        at: Op | None = None
        waiting: list[Generator[Op]] = []
        for iteration in iterations:
            barrier = next(iteration, None)
            if barrier is None:
                continue
            if at is not None and barrier is not at:
                raise QuadrantsAssertionError.from_loc(
                    "iterations of one block wait at different barriers", barrier.loc
                )
            at = barrier
            waiting.append(iteration)
        iterations = waiting


NAMES: Final[dict[str, Any]] = {"blocks": _blocks, "run_block": _run_block}
"""What the emitted source calls."""
