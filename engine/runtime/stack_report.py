"""``QD_DEBUG_ADSTACK=1``: the memory of adstacks, reported on standard error when it is planned."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..backends.meta import TaskPlan

__all__ = ["report"]


def report(arch: str, kernel: str, tasks: Sequence[TaskPlan | None]) -> None:
    """Write a line for each task and kind of stack: F for floats, I for integers."""
    for number, task in enumerate(tasks):
        if task is None:
            continue
        source = "predicate" if task.predicated else "threads"
        kinds = (
            ("F", source, task.real_rows, task.real_stride),
            ("I", "threads", task.integer_rows, task.integer_stride),
        )
        for kind, rows_of, rows, stride in kinds:
            if rows * stride:
                sys.stderr.write(
                    f"[adstack_heap] arch={arch} kernel={kernel} task_idx={number} kind={kind}"
                    f" src={rows_of} effective_rows={rows} stride={stride}"
                    f" required_bytes={rows * stride}\n"
                )
