"""Loops of unknown length that count their iterations up to a limit, as `while` in the IR::

    <*i32> $1 = alloca            # starts at 0, or at what is stored here
    $2 : while body {
      <i32> $3 = local_load $1
      <u1> $4 = cmp_lt $3, $limit
      $5 : while_control $4       # or a conjunction with this comparison
      ...
      <i32> $6 = local_load $1
      <i32> $7 = add $6, <1>
      $8 : local_store $1, $7     # in every iteration that another one follows
    }

Such a loop runs at most as often as its counter says, whatever else ends it. `mask_loops` makes a
second loop for groups of iterations; it runs no more often than the loop that it comes from.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...ir import Op, walk
from ...ir import codes as C
from ...named_tuple import NamedTuple

__all__ = ["Counter", "counter_of", "masked"]


class Counter(NamedTuple):
    """The counter of a loop. start: its first value; None for 0. limit: it goes on below that, or,
    if ``closed``, up to it. step: what an iteration adds."""

    start: Op | None
    limit: Op
    closed: bool
    step: int


def counter_of(loop: Op) -> Counter | None:
    """A counter that bounds the iterations of a `while`, if it has one that is easily seen."""
    body = loop.regions[0]
    inside = walk(body)
    if any(op.code == C.CONTINUE for op in inside):
        return None  # what follows may not be in every iteration
    for op in body.ops:
        for test in _implied(op.args[0]) if op.code == C.WHILE_CONTROL else ():
            for value, limit, closed in _below(test):
                found = _counter(loop, inside, value, limit, closed)
                if found is not None:
                    return found
    return None


def _implied(cond: Op) -> Iterator[Op]:
    """Conditions that hold wherever this one does."""
    yield cond
    if cond.code == C.BIT_AND:
        for part in cond.args:
            yield from _implied(part)
    elif cond.code == C.LOCAL_LOAD:
        yield from _stored(cond)


def _stored(load: Op) -> Iterator[Op]:
    """Of ``a and b``: v is a; where a holds, v is b; v is read."""
    variable, ops = load.args[0], _siblings(load)
    before = [op for op in ops[: ops.index(load)] if variable in _written(op)]
    if len(before) != 2:
        return
    store, branch = before
    if store.code != C.LOCAL_STORE or branch.code != C.IF or branch.args[0] is not store.args[1]:
        return
    inner = [op for op in walk(branch.regions[0]) if variable in op.args]
    if any(variable in op.args for op in walk(branch.regions[1])) or len(inner) != 1:
        return
    if inner[0].code == C.LOCAL_STORE and inner[0].block is branch.regions[0]:
        yield from _implied(store.args[1])
        yield from _implied(inner[0].args[1])


def _siblings(op: Op) -> list[Op]:
    """The ops of the block that an op is in."""
    assert op.block is not None
    return op.block.ops


def _written(op: Op) -> set[Op]:
    """The pointers that an op, or one in it, names and does not just read."""
    inner = [op, *[x for region in op.regions for x in walk(region)]]
    return {arg for x in inner if x.code != C.LOCAL_LOAD for arg in x.args}


def _below(test: Op) -> Iterator[tuple[Op, Op, bool]]:
    """(value, limit, value may be the limit) of a comparison of integers."""
    if test.args and test.args[0].type.is_int:
        a, b = test.args[0], test.args[-1]
        if test.code in (C.CMP_LT, C.CMP_LE):
            yield a, b, test.code == C.CMP_LE
        elif test.code in (C.CMP_GT, C.CMP_GE):
            yield b, a, test.code == C.CMP_GE


def _counter(loop: Op, inside: list[Op], value: Op, limit: Op, closed: bool) -> Counter | None:
    """The counter that ``value`` reads, if each iteration increases it by a constant.

    inside: the ops of the loop.
    """
    if value.code != C.LOCAL_LOAD or value not in inside:
        return None
    variable = value.args[0]
    if variable.code != C.ALLOCA or variable.block is not loop.block:
        return None
    stores = [op for op in inside if op.code != C.LOCAL_LOAD and variable in op.args]
    if len(stores) != 1 or stores[0].code != C.LOCAL_STORE:
        return None
    if stores[0].block is not loop.regions[0]:
        return None  # it is not in every iteration
    step = _step(stores[0].args[1], variable, inside)
    if step < 1:
        return None
    ops = _siblings(loop)
    between = ops[ops.index(variable) + 1 : ops.index(loop)]
    before = [op for op in between if variable in _written(op)]
    if not before:
        return Counter(None, limit, closed, step)
    last = before[-1]
    # One store, and last: an op with regions, or a call, may set the counter to anything.
    plain = last.code == C.LOCAL_STORE and last.args[0] is variable
    return Counter(last.args[1], limit, closed, step) if plain else None


def _step(value: Op, variable: Op, inside: list[Op]) -> int:
    """n if a value is the sum of n and what the variable is in this iteration; else 0."""
    if value.code != C.ADD:
        return 0
    for one, other in (value.args, value.args[::-1]):
        if other.code == C.CONST and one.code == C.LOCAL_LOAD and one.args[0] is variable:
            return int(other.attr) if one in inside else 0
    return 0


def masked(branch: Op) -> dict[Op, Op]:
    """The `while` that `mask_loops` made for groups of iterations -> the one that it comes from.

    branch: an `if`. The pass puts the first in one branch, with its arrays, and leaves the other
    one, which runs the iterations one by one, in the else branch.
    """
    from ...passes.mask_loops import LANES

    then, other = branch.regions
    if not any(op.code == C.ARRAY_ALLOCA and op.attr.name == LANES for op in then.ops):
        return {}
    groups = [op for op in walk(then) if op.code == C.WHILE]
    ops = walk(other)
    alone = [op for op in ops if op.code == C.WHILE]
    if len(groups) != 1 or len(alone) != 1:
        return {}
    nest = any(
        op.code == C.RANGE_FOR and op.loc is groups[0].loc and alone[0] in walk(op.regions[0])
        for op in ops
    )
    return {groups[0]: alone[0]} if nest else {}
