"""Adstacks, as every backend sees them: their facts for the launch, and the error of a full one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import AdStackOverflowError
from ..ir import Func, Op, pointee, walk
from ..ir import codes as C
from ..named_tuple import NamedTuple
from .base import StackMeta

if TYPE_CHECKING:
    from ..ir import Block

__all__ = [
    "StackLocation", "overflow", "rows_overflow", "stack_locations", "stack_meta", "stack_metas",
]  # fmt: skip


def _stacks(block: Block) -> list[Op]:
    return [op for op in walk(block) if op.code == C.AD_STACK_ALLOCA]


def stack_meta(op: Op) -> StackMeta:
    """The facts of an `ad_stack_alloca`."""
    attr = op.attr
    return StackMeta(
        attr.name, pointee(op), attr.adjoint, attr.size, attr.max_size, attr.forced_by, op.loc
    )


def stack_metas(ops: Sequence[Op]) -> tuple[StackMeta, ...]:
    """The stacks among the operations of a task, in program order."""
    return tuple([stack_meta(op) for op in ops if op.code == C.AD_STACK_ALLOCA])


class StackLocation(NamedTuple):
    """An op that makes a stack, with the indices of the stack and of its task.

    task: -1 where there are no tasks yet. stack: among those of the task.
    """

    task: int
    stack: int
    op: Op


def stack_locations(func: Func) -> list[StackLocation]:
    """Every stack of a function of any stage, in program order."""
    tasks = func.tasks()
    if not tasks:
        return [StackLocation(-1, i, op) for i, op in enumerate(_stacks(func.body))]
    return [
        StackLocation(t, i, op)
        for t, task in enumerate(tasks)
        for i, op in enumerate(_stacks(task.regions[1]))
    ]


def overflow(
    kernel: str, task: int, stack: int, found: StackMeta, capacity: int
) -> AdStackOverflowError:
    """The error of a push on a stack that holds ``capacity`` entries already."""
    name = f"stack {found.name!r}" if found.name else f"stack {stack}"
    where = f" of task {task}" if task >= 0 else ""
    entries = "1 entry" if capacity == 1 else f"{capacity} entries"
    error = AdStackOverflowError.from_loc(
        f"adstack overflow: {name}{where} has {entries}, and one more was pushed",
        found.loc, kernel=kernel,
    )  # fmt: skip
    error.task, error.stack = task, stack
    return error


def rows_overflow(kernel: str, task: int, rows: int) -> AdStackOverflowError:
    """The error of a claim in a predicated task whose rows have all been claimed."""
    error = AdStackOverflowError(
        f"adstack overflow: task {task} has {rows} rows for the iterations that pass its predicate,"
        " and one more was claimed",
        kernel=kernel,
    )
    error.task = task
    return error
