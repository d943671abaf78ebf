"""Tasks that differ in numbers are set aside, as equal ones are by `share_tasks`.

A record of thousands of loops that differ in coefficients would list the same passes over the same
ops for each of them. So only the first of them is prepared, if a number decides nothing in any
pass: the passes that are left run on a copy of the task and on a template of it (see
`task_templates`) before the recorder sees them, and both must become the same.

A listing names a constant of the task by its text, so no other constant of the task may have it.

`share_loops` does so with loops at the top, before they are tasks.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ..analysis.dataflow import LaterLoads
from ..errors import QuadrantsCompilationError
from ..ir import Func, Op
from ..ir import codes as C
from ..ir.edit import clone, clone_into
from ..ir.printer import format_const
from ..types import DataType
from .share_tasks import Numbers, finished_key, hold_later_loads, ops_of, set_aside, share_tasks
from .task_templates import Parameters, Template, alike_tasks, differing

if TYPE_CHECKING:
    from .manager import PassCx

__all__ = ["decide_nothing", "named", "set_alike_aside", "share_alike"]

_OTHERS: Final = 2
"""Tasks that differ from an earlier one in numbers, from which on a record looks into what these
decide: for a single one that costs as much as the task."""


def decide_nothing(
    func: Func, cx: PassCx, found: list[Template], around: Collection[Op] = ()
) -> list[tuple[Template, list[Op]]] | None:
    """Those of ``found`` whose numbers decide nothing: as a template, the task becomes what it
    becomes with its numbers, and has each of them to the end. Each comes with the ops that it has
    then, other than these. None if there are tasks then that are none of these, or values that one
    stores for another.

    around: of loops, the values of the root that they need.
    """
    assert cx.prepare is not None
    probe = Func(func.name, func.params, func.results, func.loc)
    probe.stage, probe.next_id, probe.noalias = func.stage, func.next_id, func.noalias
    probe.global_tmp_size = func.global_tmp_size
    numbers = Parameters(probe)
    mapping: dict[Op, Op] = {}
    clone_into(probe, around, mapping, probe.body)
    later: LaterLoads | None = cx.held.get(LaterLoads)
    pairs: list[tuple[Op, Template]] = []
    for one in found:
        copy = clone(probe, one.task, mapping, probe.body)
        template = one.again(copy, mapping)
        template.open(numbers)
        whole = clone(probe, one.task, mapping, probe.body)
        pairs.append((whole, template))
        if later is not None:
            later.stand_for(one.task, copy, whole)
    probe.body.ops += [op for whole, template in pairs for op in (whole, template.task)]
    tasks = set(probe.body.ops)
    prepared = cx.prepare(probe, cx.held)
    left = set(probe.body.ops)
    if not left <= tasks or probe.global_tmp_size != func.global_tmp_size:
        return None
    others = differing(probe, prepared, [template for _, template in pairs], left)
    return [
        (one, [op for op in ops_of(template.task.regions) if op not in template.index])
        for one, (whole, template) in zip(found, pairs, strict=True)
        if template not in others and _same(whole, template.task, left)
        and one.used() <= {(op.type, op.attr) for op in template.index}
    ]  # fmt: skip


def _same(a: Op, b: Op, left: set[Op]) -> bool:
    """True if two finished tasks are equal but for ids, locations and the order of constants, or
    have both nothing to do."""
    if a not in left or b not in left:
        return a not in left and b not in left
    for task in (a, b):
        body = task.regions[1]
        body.ops.sort(key=_order)
    key = finished_key(a)
    return key is not None and key == finished_key(b)


def _order(op: Op) -> tuple[str, str]:
    """Constants first, by type and value."""
    return (op.type.name, repr(op.attr)) if op.code == C.CONST else ("~", "")


def share_alike(func: Func, cx: PassCx) -> bool:
    """Set tasks aside that repeat an earlier one, or differ from it in numbers that decide nothing;
    none that others repeat already."""
    if cx.prepare is None:
        return share_tasks(func, cx)
    hold_later_loads(func, cx)
    found = alike_tasks(func, () if func.shared is None else set(func.shared.equal.values()))
    free = set[Op]()
    several = [one for one in found if one.numbers and len(one.values) >= _OTHERS]
    if several:
        with suppress(QuadrantsCompilationError):  # raised again at its place, by the pass there
            free = named(decide_nothing(func, cx, several) or [])
    return set_alike_aside(func, cx, found, free)


def named(settled: list[tuple[Template, list[Op]]]) -> set[Op]:
    """Those tasks of `decide_nothing` whose numbers have a text of their own."""
    return {one.task for one, others in settled if _are_named(one, others)}


def set_alike_aside(func: Func, cx: PassCx, found: list[Template], free: set[Op]) -> bool:
    """Set tasks of ``found`` aside: the others of those that are ``free``, and equal ones."""
    equal: dict[Op, Op] = {}
    numbers: dict[Op, Numbers] = {}
    for one in found:
        task = one.task
        own = [(_type_of(op), op.attr) for op in one.numbers]
        used = one.used()
        made = {tuple([value for _, value in own]): task}
        for other, theirs in one.values.items():
            same = task if task in free else made.setdefault(theirs, other)
            if same is not other:
                equal[other] = same
            if task in free:
                pairs = zip(own, theirs, strict=True)
                changed = {n: value for n, value in pairs if n[1] != value and n in used}
                if changed:
                    numbers[other] = changed
    return set_aside(func, cx, equal, numbers)


def _are_named(one: Template, others: list[Op]) -> bool:
    """True if each number of the task has a text of its own. others: ops of the finished task."""
    numbers = set(one.numbers)
    known = {(op.type, op.attr): format_const(op.attr, _type_of(op)) for op in one.numbers}
    texts = set(known.values())
    return len(texts) == len(known) and texts.isdisjoint([
        format_const(op.attr, _type_of(op)) for op in (*ops_of(one.task.regions), *others)
        if op.code == C.CONST and op not in numbers
    ])  # fmt: skip


def _type_of(constant: Op) -> DataType:
    assert isinstance(constant.type, DataType)
    return constant.type
