"""The layout of an argument buffer: one block of memory for each launch in flight.

::

    byte 0    error     i64   0, else 1 + number of the assertion that failed first, or what
                              `stack_error` returns
         8    parallel  ptr   void (ptr args, ptr task, i32 begin, i32 end): runs task chunks
        16    print     ptr   void (i64 handle, i32 site, ptr values)
        24    handle    i64   identifies the printing kernel to the callback
        32    threads   i64   most threads that may work on one task
        40    overlap   ptr   i32 (ptr args, ptr table): 1 if a written array overlaps another
        48    resume    i64   before a launch 1 + the label of the checkpoint to begin at, 0 for the
                              start; after it 1 + the label of the one that yielded, 0 for none
        56    seed      i64   `launch_seed`
        64    parameters: a scalar in 8 bytes; an array as data pointer, gradient pointer if it has
              one, then the extent of each axis (not of those of an element) in 8 bytes
         .    the addresses of the fields, 8 bytes each: they stay as they are from launch to launch
         .    results, 8 bytes each
         .    values of the failed assertion, 8 bytes each
         .    for each report: how often its condition failed, and the two values of the first time
         .    for a timed kernel the time before its first task and after each, a `timespec` each
         .    for each task with adstacks what its `TaskPlan` assigns to it (see `StackArea`)
         .    global temporaries, aligned to 64

A value is stored in its own type at the start of its 8 bytes; ``u1`` as a byte 0 or 1. A kernel is
``i32 kernel(ptr args)``; a task is ``void task(ptr args, i32 chunk, i32 thread)``, where the
calling thread is number 0 and all are less than ``threads``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ...named_tuple import NamedTuple

if TYPE_CHECKING:
    from ...ir import Param
    from ...types import DataType

__all__ = [
    "ASSERTED", "DONE", "ERROR", "HANDLE", "INTEGER_ROWS", "INTEGER_STRIDE", "LATE", "OVERLAP",
    "OVERLAPPED", "PARALLEL", "PARAMS", "PREDICATED", "PRINT", "REAL_ROWS", "REAL_STRIDE", "REPORT",
    "RESUME", "SEED", "STACKS", "STAMP", "THREADS", "ArgumentLayout", "StackArea", "layout",
    "stack_areas", "stack_error", "stack_of_error",
]  # fmt: skip

ERROR: Final = 0
PARALLEL: Final = 8
PRINT: Final = 16
HANDLE: Final = 24
THREADS: Final = 32
OVERLAP: Final = 40
RESUME: Final = 48
SEED: Final = 56
PARAMS: Final = 64
REPORT: Final = 24
"""Size of one report."""
STAMP: Final = 16
"""Size of a time: seconds and nanoseconds."""

DONE: Final = 0
"""A kernel returns this after a launch without fault,"""
OVERLAPPED: Final = 1
"""this when it has done nothing, because a written array overlaps another,"""
ASSERTED: Final = 2
"""and this when an assertion failed."""
LATE: Final = -1
"""The error of a launch that was interrupted, and the number that its entry function returns."""


class ArgumentLayout(NamedTuple):
    """The layout of the argument buffer of a kernel with this signature; offsets in bytes.

    params: of each parameter. fields: of the first field's address. results / failed / reports: of
    the first result, of the first value of a failed assertion, of the first report. stamps: of the
    first time. stacks: of the first `StackArea`. tmp: of the global temporaries. size: of the whole
    buffer.
    """

    params: tuple[int, ...]
    fields: int
    results: int
    failed: int
    reports: int
    stamps: int
    stacks: int
    tmp: int
    size: int


def param_slots(param: Param) -> int:
    """The number of 8-byte slots that a parameter needs."""
    return 1 + param.needs_grad + param.ndim if param.kind == "ndarray" else 1


class StackArea(NamedTuple):
    """The offsets of the facts about one task's adstacks in the argument buffer; 8 bytes each.

    ::

        at        float rows
           8      integer rows
          16      bytes of a row of the floats
          24      bytes of a row of the integers
          32      predicated: whether threads claim their rows
          40      for each stack its capacity, and its address in row 0
        claims    how many rows have been claimed
           8      for each thread its row of the floats, -1 while it has none

    stacks: how many there are. claims: -1 in a task without an adstack predicate, where the row of
    a thread is its number.
    """

    at: int
    stacks: int
    claims: int

    def stack(self, number: int) -> int:
        """The offset of the capacity of a stack; its address follows."""
        return self.at + STACKS + 16 * number


REAL_ROWS: Final = 0
INTEGER_ROWS: Final = 8
REAL_STRIDE: Final = 16
INTEGER_STRIDE: Final = 24
PREDICATED: Final = 32
STACKS: Final = 40


def stack_areas(
    tasks: Iterable[tuple[int, bool]], threads: int, at: int
) -> tuple[list[StackArea | None], int]:
    """The areas of tasks with so many stacks and maybe a predicate, from ``at`` on, and their
    end."""
    areas: list[StackArea | None] = []
    for stacks, predicated in tasks:
        if not stacks:
            areas.append(None)
            continue
        claims = at + STACKS + 16 * stacks
        areas.append(StackArea(at, stacks, claims if predicated else -1))
        at = claims + 8 * (1 + threads) * predicated
    return areas, at


_FULL: Final = 1 << 62


def stack_error(task: int, stack: int) -> int:
    """The error of a full stack; with -1 for ``stack`` that of a task with too few rows."""
    return _FULL + (task << 24) + 1 + stack


def stack_of_error(error: int) -> tuple[int, int] | None:
    """Return the arguments that `stack_error` had for this error; None for other errors."""
    if error < _FULL:
        return None
    task, stack = divmod(error - _FULL, 1 << 24)
    return task, stack - 1


def layout(
    params: Sequence[Param], results: Sequence[DataType], failed: int, reports: int, tmp_size: int,
    stamps: int = 0, stacks: Iterable[tuple[int, bool]] = (), threads: int = 0,
) -> ArgumentLayout:  # fmt: skip
    """The layout for a kernel. failed: most values an assertion shows. reports, stamps: how many.

    stacks, threads: as for `stack_areas`.
    """
    at = PARAMS
    offsets = [0] * len(params)
    # Fields come after all that a launch writes, in their own order.
    order = sorted(range(len(params)), key=lambda i: params[i].kind == "field")
    fields = PARAMS
    for i in order:
        offsets[i] = at
        at += 8 * param_slots(params[i])
        if params[i].kind != "field":
            fields = at
    results_at = at
    failed_at = results_at + 8 * len(results)
    reports_at = failed_at + 8 * failed
    stamps_at = reports_at + REPORT * reports
    stacks_at = stamps_at + STAMP * stamps
    end = stack_areas(stacks, threads, stacks_at)[1]
    tmp = (end + 63) & -64
    size = (tmp + tmp_size + 63) & -64
    return ArgumentLayout(
        tuple(offsets), fields, results_at, failed_at, reports_at, stamps_at, stacks_at, tmp, size
    )
