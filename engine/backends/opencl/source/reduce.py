"""Reductions of a parallel task on a GPU: work-items add up for themselves, groups for their items.

An atomic update of an address that is the same in all iterations would make all work-items queue
for one word. Where no other op uses the word meanwhile (`llvm.block_reduce.sums` finds such
updates), each work-item keeps a variable in its place, and when the task ends::

    partial[item] = sum;                       what each has
    barrier
    half of them take the other half's         again, until one is left
    first item                                 updates the word, once a group, if there is anything

The order of a sum of floats depends on the grid and on which group comes first: results differ in
the last bits from launch to launch, as those of atomics do.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from ....ir import Op
from ....ir.semantics import ATOMIC_OPERATION, neutral
from ....types import DataType
from .emitter import UNARY, Emitter
from .names import MEMORY, VALUE, literal
from .scalars import combined

if TYPE_CHECKING:
    from .per_iteration import IterationEmitter

__all__ = ["BARRIER", "accumulate", "finale", "open_sums"]

BARRIER: Final = "barrier(CLK_LOCAL_MEM_FENCE);"


def open_sums(e: IterationEmitter, found: tuple[Op, ...]) -> None:
    """Give each of the updates its variable."""
    variables: dict[tuple[int, int], str] = {}
    for op in found:
        t = op.type
        assert isinstance(t, DataType)
        key = (op.args[0].id, op.code)
        if key not in variables:
            name = variables[key] = e.names.fresh("sum")
            first = literal(neutral(op.code, t, e.program.config.fast_math), t)
            e.line(f"{VALUE[t.name]} {name} = {first};")
        e.sums[op.id] = variables[key]


def accumulate(e: IterationEmitter, op: Op) -> None:
    """An update, made in the work-item's variable."""
    t, name = op.type, e.sums[op.id]
    value = e.at(op.args[1], UNARY)
    e.statement(op, f"{name} = {combined(e, ATOMIC_OPERATION[op.code], t, name, value)};")


def finale(e: IterationEmitter, found: tuple[Op, ...], size: int) -> None:
    """Emit the code that follows the loop: every work-item of the group comes here."""
    made: set[str] = set()
    for op in found:
        name = e.sums.pop(op.id)
        if name in made:
            continue
        e.op_id = op.id
        if size > 1:
            _together(e, op, name, size)
        made.add(name)
        _update(e, op, name)


def _together(e: IterationEmitter, op: Op, name: str, size: int) -> None:
    """The sum of the whole group, in the variable of its first work-item."""
    t = op.type
    ctype = MEMORY[t.name] if t.bits == 1 else VALUE[t.name]
    part, count = e.names.fresh("partial"), e.names.fresh("left")
    e.head.append(f"__local {ctype} {part}[{size}];")
    e.line(f"{part}[get_local_id(0)] = {name};")
    # An odd one out is left for the next round: there are no more than twice as many.
    e.open(f"for (uint {count} = {size}; {count} > 1;) {{")
    rest = e.names.fresh("rest")
    e.line(f"const uint {rest} = {count};")
    e.line(f"{count} = ({count} + 1) / 2;")
    e.line(BARRIER)
    e.open(f"if (get_local_id(0) + {count} < {rest}) {{")
    other = f"{part}[get_local_id(0) + {count}]"
    both = combined(e, ATOMIC_OPERATION[op.code], t, name, other)
    e.line(f"{part}[get_local_id(0)] = {name} = {both};")
    e.close()
    e.close()


def _update(e: IterationEmitter, op: Op, name: str) -> None:
    """The update of the word by the first work-item.

    If no iteration of the group has made one, because none came to it, none may be made: the
    address may be of nothing.
    """
    t = op.type
    assert isinstance(t, DataType)
    none = neutral(op.code, t, e.program.config.fast_math)
    test = f"{name} != {literal(none, t)}"
    if t.is_real and math.isnan(none):
        test = f"{name} == {name}"
    elif t.bits == 1:
        test = f"{'!' if none else ''}{name}"
    e.open(f"if (get_local_id(0) == 0 && {test}) {{")
    _address(e, op.args[0], set())
    value = op.args[1]
    before = e.v.get(value.id), e.low.pop(value.id, None), e.raw.pop(value.id, None)
    e.v[value.id] = name
    Emitter.table[op.code](e, op)
    if before[0] is not None:
        e.v[value.id] = before[0]
    e.close()


def _address(e: IterationEmitter, op: Op, made: set[Op]) -> None:
    """Compute an address again: the names of the body are out of scope here."""
    if op in made:
        return
    made.add(op)
    for a in op.args:
        _address(e, a, made)
    if op.id not in e.unused:
        e.op_id = op.id
        e.raw.pop(op.id, None)
        e.low.pop(op.id, None)
        e.table[op.code](e, op)
