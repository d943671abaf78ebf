"""The result of `gradient_check`, as plain data."""

from __future__ import annotations

import msgspec

__all__ = ["GradientCount", "GradientEntry", "GradientReport", "GradientStep"]


class GradientStep(msgspec.Struct, frozen=True, kw_only=True):
    """An operation between an entry and the loss, and its derivative by the operand on the path.

    file, line: of the operation. op: its name. text: the operation with its values. iteration: of
    the innermost parallel loop. value: of the operation. rule: the derivative that the compiler's
    table states. quotient: the difference quotient of the operation. wrong: they differ. Without
    a derivative (loads, stores), rule and quotient are 1. None: no finite number.
    """

    file: str
    line: int
    op: str
    text: str
    iteration: tuple[int, ...]
    value: float | None
    rule: float | None
    quotient: float | None
    wrong: bool = False


class GradientEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A wrong entry, such as ``x`` and (3,). reverse: by the gradient kernel. differences: by
    differences of the loss. cause, file, line: as of the report."""

    name: str
    index: tuple[int, ...]
    reverse: float | None
    differences: float | None
    cause: str
    file: str
    line: int


class GradientCount(msgspec.Struct, frozen=True, kw_only=True):
    """An array with wrong entries. wrong: those that were found, of ``size``. all: the others are
    right; else they were not compared one by one."""

    name: str
    wrong: int
    size: int
    all: bool


class GradientReport(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on the gradient of a kernel, and the entry with the largest error.

    state: right, wrong, or unknown (``reason`` says why). cause: ``rule``, ``race``,
    ``overwritten``, ``custom`` (the gradient is a Python function), ``other`` for a wrong one;
    ``kink`` or ``noise`` for an unknown one, ``kink`` also for one that is no number; else empty.
    why: the cause in a sentence. backend: where the gradient was computed. workload: the arguments.
    name, index: the entry, such as ``x`` and (3,). dtype: of the array. reverse: its derivative by
    the gradient kernel. differences: by differences of the loss. forward: by dual numbers with the
    compiler's rules; None if the kernel cannot be run that way. error: of ``reverse``. tolerance:
    the error that is allowed. step: of the differences. below, above: one-sided differences. path:
    from the loss to the entry. file, line: of the cause. evaluations: runs of the kernel. entries:
    elements covered. counts: of the arrays with wrong entries. worst: the wrong entries with the
    largest errors, the largest first.
    """

    kernel: str
    state: str
    cause: str = ""
    why: str = ""
    reason: str = ""
    backend: str = ""
    workload: str = ""
    name: str = ""
    index: tuple[int, ...] = ()
    dtype: str = ""
    reverse: float | None = None
    differences: float | None = None
    forward: float | None = None
    error: float = 0.0
    tolerance: float = 0.0
    step: float = 0.0
    below: float | None = None
    above: float | None = None
    path: tuple[GradientStep, ...] = ()
    file: str = ""
    line: int = 0
    evaluations: int = 0
    entries: int = 0
    counts: tuple[GradientCount, ...] = ()
    worst: tuple[GradientEntry, ...] = ()
