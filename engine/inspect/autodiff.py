"""The `AutodiffRecord`: facts about differentiation from a compile and a launch.

`described` looks at a compile: which snapshots are before and after, which ops of the two belong
together, the stacks with their formulas. `sized` adds the sizes that a launch assigned to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec.structs import replace

from ..adstack import predicate as predicates
from ..adstack.formulas import TreeRow, formula, tree
from ..adstack.host_eval import Env, evaluate
from ..adstack.max_reducer import substituted
from ..adstack.size_expr import Arg, Const, MaxOver, Read, Shape, SizeExpr, free_vars, parse, walk
from ..backends.base import KernelMeta, StackMeta, StackPlan, TaskMeta, TaskPlan
from ..errors import QuadrantsRuntimeError
from ..named_tuple import NamedTuple
from ..passes import registry
from .record import AutodiffRecord, CompileRecord, PassRun, Remark, Snapshot
from .record_autodiff import (
    LoopPlan,
    OpLink,
    PredicateRecord,
    SizeLeaf,
    SizeRow,
    StackRecord,
    StackTask,
)

if TYPE_CHECKING:
    from ..ir import Param

__all__ = ["described", "links_of", "plan_of", "sides_of", "sized"]

_PREDICATES: Final = "recognize_predicates"
_PLAN: Final = "checkpoint_loops"
_RECOMPUTED: Final = "eliminate_recomputable_ad_stack_pushes"
_MOST_COUNTED: Final = 1 << 26
_MOST_CELLS: Final = 1 << 20
"""A maximum over more than this is not found again only to be shown."""


# ---- the compile


def described(
    compiled: CompileRecord, mode: str, meta: KernelMeta | None = None, reason: str = ""
) -> AutodiffRecord:
    """Return what is known without a launch. meta: of the kernel, if its compile was finished."""
    before, after = sides_of(compiled.runs)
    links: tuple[OpLink, ...] = ()
    if before >= 0 and after >= 0:
        origins = {int(new): old for new, old in compiled.origins.items()}
        links = links_of(compiled.snapshots[before], compiled.snapshots[after], origins)
    tasks: tuple[StackTask, ...] = ()
    if meta is not None:
        remarks = _predicate_remarks(compiled.runs)
        tasks = tuple(
            _task(i, task, meta.params, remarks.get(i))
            for i, task in enumerate(meta.tasks)
            if task.stacks
        )
    return AutodiffRecord(
        mode=mode,
        forward=before,
        reverse=after,
        links=links,
        tasks=tasks,
        plan=plan_of(compiled),
        reason=reason,
    )


def plan_of(compiled: CompileRecord) -> tuple[LoopPlan, ...]:
    """The choices of `checkpoint_loops`, and before them the values that need no stack at all."""
    chosen: list[LoopPlan] = []
    recomputed: list[LoopPlan] = []
    for run in compiled.runs:
        for remark in run.remarks:
            line = compiled.locs[remark.loc].line if remark.loc >= 0 else 0
            choice, colon, text = remark.text.partition(": ")
            if run.name == _PLAN and colon and choice in ("keep", "checkpoint"):
                chosen.append(LoopPlan(line=line, choice=choice, text=text))
            elif run.name == _RECOMPUTED and "is computed again" in remark.text:
                recomputed.append(LoopPlan(line=line, choice="recompute", text=remark.text))
    return (*recomputed, *chosen) if chosen else ()


def sides_of(runs: Sequence[PassRun]) -> tuple[int, int]:
    """The snapshots before and after differentiation; -1 for a missing one."""
    known = {info.name for info in registry.all_passes() if ".autodiff." in info.fn.__module__}
    mine = [r for r in runs if r.name in known and r.name != _PREDICATES]
    if not mine:
        return -1, -1
    tidied = [r for r in runs if r.stage == "post_autodiff"]
    last = max([*mine, *tidied], key=lambda run: run.index)
    whole = last.state != "failed"
    return mine[0].before, last.after if whole else -1


def links_of(before: Snapshot, after: Snapshot, origins: Mapping[int, int]) -> tuple[OpLink, ...]:
    """For each op of ``after`` the op of ``before`` that it belongs to, if there is one."""
    known = {op for op in before.ids if op >= 0}
    # Of the ops of one place the last is the value, those before it lead there.
    by_location = {loc: op for op, loc in zip(before.ids, before.locs, strict=True) if op >= 0}
    by_location.pop(-1, None)
    out: list[OpLink] = []
    for op, loc in zip(after.ids, after.locs, strict=True):
        if op < 0:
            continue
        if op in known:
            out.append(OpLink(forward=op, reverse=op, by="same"))
            continue
        source = origins.get(op)
        while source is not None and source not in known:
            source = origins.get(source)
        if source is not None:
            out.append(OpLink(forward=source, reverse=op, by="made"))
        elif loc in by_location:
            out.append(OpLink(forward=by_location[loc], reverse=op, by="place"))
    return tuple(out)


def _predicate_remarks(runs: Sequence[PassRun]) -> dict[int, Remark]:
    """The reasons why adstack predicates were not captured, by task."""
    return {
        run.task: run.remarks[-1]
        for run in runs
        if run.name == _PREDICATES and run.task is not None and run.remarks
    }


def _task(index: int, task: TaskMeta, params: Sequence[Param], remark: Remark | None) -> StackTask:
    trip = formula(parse(task.trip), params) if task.trip else ""
    return StackTask(
        index=index,
        name=task.name,
        line=task.loc.line,
        trip=trip,
        predicate=_predicate(task, params, remark),
        stacks=tuple([_stack(stack, params) for stack in task.stacks]),
    )


def _predicate(
    task: TaskMeta, params: Sequence[Param], remark: Remark | None
) -> PredicateRecord | None:
    if task.predicate:
        return PredicateRecord(
            state="captured", formula=predicates.formula(predicates.parse(task.predicate), params)
        )
    if not any(stack.real for stack in task.stacks) or task.kind == "serial":
        return None
    reason = "" if remark is None else remark.text.removeprefix("no predicate: ")
    return PredicateRecord(state="not captured", reason=reason)


def _counted(predicate: PredicateRecord | None, source: str, env: Env) -> PredicateRecord | None:
    """An adstack predicate with the number of iterations that pass it."""
    if predicate is None or not source:
        return predicate
    found = predicates.parse(source)
    if np.size(env.values[found.param]) > _MOST_COUNTED:
        return predicate
    return replace(predicate, count=predicates.count(found, env, _MOST_COUNTED))


def _stack(stack: StackMeta, params: Sequence[Param]) -> StackRecord:
    found = StackRecord(
        name=stack.name,
        dtype=stack.dtype.name,
        real=stack.real,
        adjoint=stack.adjoint,
        max_size=stack.max_size,
        formula=str(stack.max_size) if stack.max_size else "",
        forced_by=stack.forced_by,
        line=stack.loc.line,
        entry=stack.entry,
    )
    if stack.max_size or not stack.size:
        return found
    e = parse(stack.size)
    return replace(
        found,
        size=stack.size,
        formula=formula(e, params),
        tree=tuple(_rows(tree(e, params), 0, None)),
        leaves=_leaves(e, params, None),
    )


# ---- the launch


class _Launch(NamedTuple):
    """The arguments of a launch, and the maxima that were found for it."""

    env: Env
    results: Mapping[SizeExpr, int]


def sized(
    record: AutodiffRecord,
    meta: KernelMeta,
    plan: StackPlan,
    values: Sequence[Any],
    workload: str,
    results: Mapping[SizeExpr, int],
) -> AutodiffRecord:
    """Return ``record`` with the stack sizes of a launch with ``values``. results: maxima found."""
    env = _Launch(Env(meta.params, values), results)
    tasks = [_sized_task(task, meta, plan.tasks[task.index], env) for task in record.tasks]
    most = max((x.total for task in tasks for x in task.stacks), default=0)
    marked: list[StackTask] = []
    for task in tasks:
        stacks: list[StackRecord] = []
        for x in task.stacks:
            peak = most > 0 and x.total == most
            stacks.append(replace(x, peak=True) if peak else x)
            most = 0 if peak else most  # of equal ones the first
        marked.append(replace(task, stacks=tuple(stacks)))
    return replace(record, tasks=tuple(marked), sized=True, workload=workload, reason="")


def _sized_task(
    task: StackTask, meta: KernelMeta, plan: TaskPlan | None, env: _Launch
) -> StackTask:
    if plan is None:
        return task
    stacks = meta.tasks[task.index].stacks
    return replace(
        task,
        stacks=tuple(
            _sized_stack(x, stack, slots, plan, env)
            for x, stack, slots in zip(task.stacks, stacks, plan.capacities, strict=True)
        ),
        predicate=_counted(task.predicate, meta.tasks[task.index].predicate, env.env),
        real_rows=plan.real_rows,
        integer_rows=plan.integer_rows,
        real_stride=plan.real_stride,
        integer_stride=plan.integer_stride,
    )


def _sized_stack(
    x: StackRecord, stack: StackMeta, slots: int, plan: TaskPlan, env: _Launch
) -> StackRecord:
    rows = plan.real_rows if stack.real else plan.integer_rows
    size = slots * stack.entry
    found = replace(x, slots=slots, bytes=size, rows=rows, total=size * rows)
    if not stack.size or stack.max_size:
        return found
    e = parse(stack.size)
    return replace(
        found,
        tree=tuple(_rows(tree(e, env.env.params), 0, env)),
        leaves=_leaves(e, env.env.params, env),
    )


def _rows(row: TreeRow, depth: int, env: _Launch | None) -> list[SizeRow]:
    """A tree as flat rows; with an environment also its values."""
    text = f"{row.role} {row.label}".strip()
    out = [SizeRow(depth=depth, text=text, value=_value(row.node, env))]
    for below in row.rows:
        out += _rows(below, depth + 1, env)
    return out


def _value(e: SizeExpr, env: _Launch | None) -> int | None:
    """The value of a node that has one; None if finding it again needs too long."""
    if env is None or isinstance(e, Const) or free_vars(e):
        return None
    rest = substituted(e, env.results)
    try:
        left = [node for node in walk(rest) if isinstance(node, MaxOver)]
        if any(_cells(node, env.env) > _MOST_CELLS for node in left):
            return None
        return evaluate(rest, env.env)
    except (QuadrantsRuntimeError, ValueError):
        return None


def _cells(e: MaxOver, env: Env) -> int:
    """The number of values in a range; 0 for a range that depends on variables."""
    if free_vars(e.begin) or free_vars(e.end):
        return 0
    return evaluate(e.end, env) - evaluate(e.begin, env)


def _leaves(e: SizeExpr, params: Sequence[Param], env: _Launch | None) -> tuple[SizeLeaf, ...]:
    """The parts of the arguments that the size depends on, each once. For elements whose index
    varies, the value is the largest of the array."""
    out: dict[str, int | None] = {}
    for node in walk(e):
        if isinstance(node, Arg | Shape) or (isinstance(node, Read) and not free_vars(node)):
            out.setdefault(formula(node, params), _value(node, env))
        elif isinstance(node, Read):
            largest = None if env is None else _largest(env.env, node.param)
            out.setdefault(f"largest in {params[node.param].name}", largest)
    return tuple([SizeLeaf(text=text, value=value) for text, value in out.items()])


def _largest(env: Env, param: int) -> int | None:
    array: Any = env.values[param]
    if not 0 < array.size <= _MOST_COUNTED:
        return None
    from .contents import elements

    return int(np.max(elements(env.params[param].layout, array)))
