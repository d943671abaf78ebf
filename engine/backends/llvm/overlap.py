"""The check of a launch that no array which it writes overlaps another one."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence

from ...ir import Func
from ..kernarg import abi
from .text import SIZE

__all__ = ["overlap_check", "overlap_table"]


def overlap_check() -> list[str]:
    """Lines at the start of the entry function."""
    return [
        f"  %overlap.at = getelementptr inbounds i8, ptr %kernarg, i64 {abi.OVERLAP}",
        "  %overlap = load ptr, ptr %overlap.at, align 8, !invariant.load !0",
        "  %overlaps = call i32 %overlap(ptr %kernarg, ptr @arrays)",
        "  %bad = icmp ne i32 %overlaps, 0",
        "  br i1 %bad, label %overlapping, label %run",
        "overlapping:",
        f"  ret i32 {abi.OVERLAPPED}",
        "run:",
    ]


def overlap_table(
    func: Func, layout: abi.ArgumentLayout, arrays: Sequence[int], written: Container[int]
) -> str:
    """The count, then for each array: offset of its slots, of its extents, ndim, size, flags.

    size: bytes of one element; of a field (which has ndim 0) bytes from its base to its end. flags:
    1 is written, 2 is a field. Gradients have the extents of their array and are written with it.
    """
    rows: list[int] = []
    for i in arrays:
        p = func.params[i]
        at = layout.params[i]
        flags = int(i in written)
        size = SIZE[p.dtype.name]
        if p.layout is not None:
            rows += [at, 0, 0, size * p.layout.span, flags + 2]
            continue
        extents = at + 8 * (1 + p.needs_grad)
        for data in range(1 + p.needs_grad):
            rows += [at + 8 * data, extents, p.ndim, size * math.prod(p.element_shape), flags]
    values = ", ".join(f"i64 {n}" for n in (len(rows) // 5, *rows))
    return f"@arrays = private unnamed_addr constant [{len(rows) + 1} x i64] [{values}]"
