"""Nests of loops that are like a matrix product: what `pack_products` must know of one.

`product_task` uses parts of it for GPUs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..ir import Func, Op
from ..ir import codes as C
from ..named_tuple import NamedTuple
from .grid import is_plain
from .iterations import Space, accesses_of, flat, held, is_row_major, why_shared
from .linear_form import form_of

__all__ = [
    "COLUMN", "INNER", "OTHER", "ROW", "Depends", "Nest", "Plan", "axis_of", "depends_of",
    "has_rows", "nest_of", "only_loop", "plan_of", "staged_of", "stores_array",
]  # fmt: skip

ROW, COLUMN, INNER, OTHER = range(4)
"""A value depends on the index of rows, of columns, of the inner loop, or on what may change."""
_MOST_OPS: Final = 40
_MOST_STAGED: Final = 4
_MOST_SUMS: Final = 4
_MAY_TRAP: Final = frozenset({C.DIV, C.FLOORDIV, C.MOD, C.FLOORMOD})

Depends = dict[Op, frozenset[int]]


class Nest(NamedTuple):
    """Loops over rows, columns and the inner one.

    axes: the loop and its axis, of rows and of columns. around: ops of the rows' loop outside of
    that of the columns. inner: the inner loop. before / after: ops around it.
    """

    axes: tuple[tuple[Op, int], tuple[Op, int]]
    around: list[Op]
    before: list[Op]
    inner: Op
    after: list[Op]

    def bounds(self, axis: int) -> tuple[Op, Op]:
        loop, number = (*self.axes, (self.inner, 0))[axis]
        return loop.args[2 * number], loop.args[2 * number + 1]


class Plan(NamedTuple):
    """depends: what each op depends on. sums: variables of an iteration. staged: loads of the inner
    loop for rows and for columns. needed: ops of it whose values are used."""

    nest: Nest
    depends: Depends
    sums: list[Op]
    staged: tuple[list[Op], list[Op]]
    needed: set[Op]


def nest_of(loop: Op) -> Nest | None:
    around: list[Op] = []
    ops = loop.regions[0].ops
    if len(loop.args) == 4:
        first, second = loop.attr.axes or (0, 1)
        axes = (loop, first), (loop, second)
    elif len(loop.args) == 2:
        columns = only_loop(ops)
        if columns is None:
            return None
        around = [op for op in ops if op is not columns]
        if not all(C.PURE[op.code] for op in around):
            return None
        axes = (loop, 0), (columns, 0)
        ops = columns.regions[0].ops
    else:
        return None
    inner = only_loop(ops)
    if inner is None or loop.attr.reversed:
        return None
    at = ops.index(inner)
    return Nest(axes, around, ops[:at], inner, ops[at + 1 :])


def only_loop(ops: list[Op]) -> Op | None:
    """The one loop among ops, over one axis; the others may be conditions."""
    found = [op for op in ops if op.regions and op.code != C.IF]
    if len(found) != 1 or found[0].code != C.RANGE_FOR or len(found[0].args) != 2:
        return None
    return None if found[0].attr.reversed else found[0]


def plan_of(func: Func, nest: Nest) -> Plan | str | None:
    """The plan; None where the loop is not like a product, the reason where it must not be one."""
    inner = nest.inner.regions[0].ops
    early, late = flat(nest.before), flat(nest.after)
    everything = [*nest.around, *early, *inner, *late]
    if any(op.regions for op in inner) or any(stores_array(op) for op in inner):
        return None
    memory = accesses_of(everything)
    depends = depends_of(lambda op: axis_of(nest, op), everything, memory.written)
    staged = staged_of(inner, depends)
    if staged is None:
        return None
    rows, columns, needed = staged
    if len(everything) > _MOST_OPS or len(rows + columns) > _MOST_STAGED:
        return "its body is too long"
    sums = [op for op in nest.before if op.code == C.ALLOCA]
    found = Plan(nest, depends, sums, (rows, columns), needed)
    return why_shared(func, memory, nest.axes) or _why_not(found, everything) or found


def _why_not(plan: Plan, everything: list[Op]) -> str:
    """The reason that the iterations must stay as they are; empty if there is none."""
    nest, depends = plan.nest, plan.depends
    if not all(_is_simple(op) for op in everything):
        return "it does more than compute, load and store"
    if any(depends.get(b, ()) for axis in range(3) for b in nest.bounds(axis)[axis == 0 :]):
        return "the bounds of its loops are not the same in all iterations"
    inner = nest.inner.regions[0].ops
    if not 1 <= len(plan.sums) <= _MOST_SUMS or not all(map(held, plan.sums)):
        return "the number or the types of its variables"
    own = {*plan.sums, *(op for op in everything if op.code == C.ALLOCA)}
    if any(_is_local(op) and op.args[0] not in own for op in everything):
        return "a variable is used in several iterations"
    outside = {*nest.around, *nest.before} - set(plan.sums)
    for op in [*inner, *flat(nest.after)]:
        if any(arg in outside and OTHER in depends[arg] for arg in op.args):
            return "values of an iteration cross its inner loop"
    for op in plan.needed:
        if op.code == C.GLOBAL_LOAD and {ROW, COLUMN} & depends[op] and (
            OTHER in depends[op] or {ROW, COLUMN} <= depends[op]):  # fmt: skip
            return "a load depends on both axes, or on what an iteration has computed"
        if op.code in _MAY_TRAP and not op.type.is_real:
            return "a division could fail for iterations that do not exist"
    return ""


def _is_simple(op: Op) -> bool:
    if op.regions and op.code != C.IF:
        return False
    return op.code != C.CONTINUE and not C.ATOMIC[op.code] and is_plain(op)


def _is_local(op: Op) -> bool:
    return op.code in (C.LOCAL_LOAD, C.LOCAL_STORE)


def stores_array(op: Op) -> bool:
    """True for an op that writes to an array, and for a condition around one."""
    if op.code == C.IF:
        return any(stores_array(inner) for inner in op.regions[0].ops)
    return bool(C.WRITE[op.code]) and op.args[0].code != C.ALLOCA


def axis_of(nest: Nest, op: Op) -> int:
    """The axis whose index an op is; -1 for none."""
    if op.code == C.LOOP_INDEX:
        for axis, loop in enumerate((*nest.axes, (nest.inner, 0))):
            if (op.args[0], op.attr) == loop:
                return axis
    return -1


def depends_of(
    axis_of: Callable[[Op], int], ops: list[Op], written: set[Space] | None,
    other: frozenset[int] = frozenset((OTHER,)),
) -> Depends:  # fmt: skip
    """For each op the axes and other things that its value depends on.

    axis_of: the axis whose index an op is; -1 for none. written: arrays; None if loads of any may
    change. other: for what is not computed from operands alone.
    """
    found: Depends = {}
    for op in ops:
        axis = axis_of(op)
        if axis >= 0:
            found[op] = frozenset((axis,))
            continue
        args = frozenset[int]().union(*(found.get(arg, frozenset()) for arg in op.args))
        constant = C.PURE[op.code] or (
            op.code == C.GLOBAL_LOAD
            and written is not None
            and op.args[0].code == C.EXTERNAL_PTR
            and op.args[0].args[0].attr not in written
        )
        found[op] = args if constant else args | other
    return found


def staged_of(inner: list[Op], depends: Depends) -> tuple[list[Op], list[Op], set[Op]] | None:
    """The loads to stage for rows and for columns, and what the inner loop needs; see `Plan`."""
    loads = [op for op in inner if op.code == C.GLOBAL_LOAD]
    rows, columns = (
        [op for op in loads if depends[op] == frozenset((axis, INNER))] for axis in (ROW, COLUMN)
    )
    needed = _needed(inner, {*rows, *columns})
    rows, columns = ([op for op in found if op in needed] for found in (rows, columns))
    return (rows, columns, needed) if rows and columns else None


def has_rows(func: Func, plan: Plan, load: Op, along: int) -> bool:
    """True if the elements of a staged load are rows of neighbours in memory.

    along: the axis of the loop that the rows are along: the last index depends on it.
    """
    pointer = load.args[0]
    if not is_row_major(func, pointer):
        return False
    for n, index in enumerate(pointer.args[1:], 2 - len(pointer.args)):
        for op, factor in form_of(index).terms.items():
            found = plan.depends.get(op)
            if found and op.code != C.LOOP_INDEX:
                return False
            if found and along in found and (n < 0 or factor != 1):
                return False
    return True


def _needed(inner: list[Op], staged: set[Op]) -> set[Op]:
    """The ops of the inner loop that its stores use, but for the addresses of staged loads."""
    needed: set[Op] = set()
    for op in reversed(inner):
        if C.WRITE[op.code] or op in needed:
            needed.add(op)
            if op not in staged:
                needed.update(op.args)
    return needed
