"""The result of `nans` and `precision`, as plain data."""

from __future__ import annotations

import msgspec

__all__ = ["LinePrecision", "NanReport", "NanRow"]


class NanRow(msgspec.Struct, frozen=True, kw_only=True):
    """A value in the user's source. text: the operation with its values. value: of it, as text."""

    file: str
    line: int
    text: str
    value: str


class LinePrecision(msgspec.Struct, frozen=True, kw_only=True):
    """The precision that is lost up to a line of the source.

    ulps: the largest difference from f64, in units in the last place of the type. bits: the bits
    of the fraction that are wrong. op: the operation, dtype: its type, iteration: the indices where
    the difference is largest. value, exact: its value there, and that in f64. made: the ulps that
    the operation itself adds there to those of its operands.
    """

    file: str
    line: int
    col: int
    end_col: int
    ulps: float
    bits: float
    op: str
    dtype: str
    iteration: tuple[int, ...]
    value: float
    exact: float
    made: float


class NanReport(msgspec.Struct, frozen=True, kw_only=True):
    """The first NaN or infinity that a kernel stores, or what it loses in precision.

    state: found, none, or unknown (``reason`` says why). backend: that launched it. workload: the
    arguments. fast_math: of its code, with checks as without. kind: ``made``, ``loaded``,
    ``argument`` or ``unknown``; see `runtime.nan_checks.NanFinding`. headline: in a sentence. file,
    line, col, end_line, end_col, func: of the op that made it. inputs: finite values that led to
    it. steps: from it to the store. stored, stored_line: where it got to. note: what else there is
    to say. precision: by line, the worst first, if that was asked for; then state is ``measured``.
    """

    kernel: str
    state: str
    backend: str = ""
    reason: str = ""
    workload: str = ""
    fast_math: bool = False
    kind: str = ""
    headline: str = ""
    file: str = ""
    line: int = 0
    col: int = 0
    end_line: int = 0
    end_col: int = 0
    func: str = ""
    task: int = 0
    iteration: tuple[int, ...] = ()
    inputs: tuple[NanRow, ...] = ()
    steps: tuple[NanRow, ...] = ()
    stored: str = ""
    stored_line: int = 0
    note: str = ""
    precision: tuple[LinePrecision, ...] = ()
