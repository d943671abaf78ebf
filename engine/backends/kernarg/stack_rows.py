"""A `StackPlan` as numbers in an argument buffer, laid out by `kernarg.abi.StackArea`."""

from __future__ import annotations

import struct
from typing import Final

from ...errors import QuadrantsInternalError
from ..base import ArgumentBuffer, KernelMeta, StackPlan, TaskMeta, TaskPlan
from . import abi

__all__ = ["StackWriter"]


class StackWriter:
    """Writes plans into the argument buffers of one kernel. areas: of its tasks."""

    def __init__(self, meta: KernelMeta, layout: abi.ArgumentLayout, threads: int) -> None:
        self.meta: Final = meta
        self.threads: Final = threads
        counts = [(len(task.stacks), bool(task.predicate)) for task in meta.tasks]
        self.areas: Final = abi.stack_areas(counts, threads, layout.stacks)[0]
        self._start: Final = layout.stacks
        slots = sum(5 + 2 * a.stacks + (1 + threads) * (a.claims >= 0) for a in self.areas if a)
        self._pack: Final = struct.Struct(f"<{slots}q").pack_into

    def write(self, args: ArgumentBuffer, plan: StackPlan) -> None:
        """Let the next launches with ``args`` use this plan."""
        values: list[int] = []
        try:
            for area, task, given in zip(self.areas, self.meta.tasks, plan.tasks, strict=True):
                if area is not None:
                    values += self._task(area, task, given, plan)
        except ValueError:
            raise self._unfit() from None
        args.plan = None  # should the values not fit, it holds no plan
        self._pack(args.view, self._start, *values)
        args.plan = plan

    def _task(
        self, area: abi.StackArea, task: TaskMeta, given: TaskPlan | None, plan: StackPlan
    ) -> list[int]:
        if given is None or not len(given.capacities) == len(given.offsets) == area.stacks:
            raise self._unfit()
        if given.predicated and area.claims < 0:
            raise self._unfit()
        values = [
            given.real_rows, given.integer_rows, given.real_stride, given.integer_stride,
            int(given.predicated),
        ]  # fmt: skip
        for stack, capacity, offset in zip(
            task.stacks, given.capacities, given.offsets, strict=True
        ):
            values += (capacity, (plan.real_heap if stack.real else plan.integer_heap) + offset)
        if area.claims >= 0:
            # Without a predicate a thread has the row of its number; with one each launch clears
            # this.
            values += (0, *range(self.threads))
        return values

    def _unfit(self) -> QuadrantsInternalError:
        return QuadrantsInternalError(f"the plan for adstacks is not one for {self.meta.name}")
