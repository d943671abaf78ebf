"""The panel of adstacks as plain text: tables, details of every stack, and the reverse IR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ....engine.inspect.record import CompileRecord, KernelRecord, Record
from ..lines import Line, ir_spans
from .autodiff import (
    Shown,
    fact_lines,
    failure_lines,
    shown_of,
    stack_lines,
    stack_rows,
    stacks_of,
    summary,
    why_none,
)
from .places import gutter, user_lines
from .reversal import FORWARD, REVERSE, counterparts, listing, signs

__all__ = ["kernels_told", "reverse_lines", "told_lines"]

_LEFT: Final = 5
# Where nothing is cut off.
_WIDEST: Final = 1000


def kernels_told(record: Record, kernels: Sequence[KernelRecord]) -> list[KernelRecord]:
    """Of these kernels the gradients, each once; a kernel that was asked for alone, too."""
    known = {k.id: k for k in record.kernels}
    told = [known.get(k.gradient, k) for k in kernels]
    several = list({k.id: k for k in told}.values())
    gradients = [k for k in several if k.primal]
    return gradients or several


def told_lines(record: Record, kernel: KernelRecord, width: int = 100) -> list[Line]:
    """All there is about the adstacks of one kernel."""
    names = [b.backend for b in kernel.backends if b.autodiff is not None]
    found = [shown for name in names if (shown := shown_of(record, kernel, name)) is not None]
    if not found:
        return [Line(((text, ""),)) for text in why_none(record, kernel)]
    out: list[Line] = []
    for shown in found:
        out += _of_backend(shown, width)
    first = found[0]
    if first.backend.compile is not None:
        out += [Line(()), *reverse_lines(first.backend.compile, first)]
    return out


def _of_backend(shown: Shown, width: int) -> list[Line]:
    autodiff = shown.autodiff
    out = [Line(((f"{shown.backend.backend}: {summary(autodiff)}", "title"),))]
    out += failure_lines(shown)
    head, rows = stack_rows(autodiff, _WIDEST)
    out += [*head, *rows]
    for _, _, key in stacks_of(autodiff):
        out += [Line(()), *stack_lines(autodiff, key, width)]
    facts = fact_lines(autodiff, width)
    return [*out, Line(()), *facts] if facts else out


def reverse_lines(compiled: CompileRecord, shown: Shown) -> list[Line]:
    """The reverse IR; before each line the op of the forward IR that it belongs to: ``=`` it is
    that op, ``<`` it was made for it."""
    autodiff = shown.autodiff
    shot = listing(compiled, autodiff, REVERSE)
    if shot is None or listing(compiled, autodiff, FORWARD) is None:
        return []
    lines = user_lines(compiled)
    sign, others = signs(autodiff, REVERSE), counterparts(autodiff, REVERSE)
    out = [Line((("reverse IR, and what of the forward IR each line belongs to", "head"),))]
    for text, op, loc in zip(shot.lines, shot.ids, shot.locs, strict=True):
        belongs = f"{sign[op]} ${others[op][0]}" if op in sign else ""
        spans = (gutter(lines[loc] if loc >= 0 else 0), (f"{belongs:<{_LEFT + 2}} ", "dim"))
        out.append(Line((*spans, *ir_spans(text)), op if op >= 0 else None, text))
    return out
