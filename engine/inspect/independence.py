"""A loop whose iterations are assumed to be independent, and whether its data shows otherwise.

`Marking` marks the loop at a line before the passes run. A loop at the top of the kernel that was
to run in order then runs in parallel; any other one is compiled for the CPU as a loop whose memory
accesses do not depend on each other, so that LLVM may compute several iterations at once.

`carried` runs the kernel once in the interpreter and notes which iteration touches which element:
where two iterations of the marked loop touch the same one, and one of them writes it, the
assumption is false for these arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..ir import Block, Func, Op, parse, to_text, walk
from ..ir import codes as C
from ..passes.manager import Instrument
from .capture import KernelCapture
from .races import first_conflict

if TYPE_CHECKING:
    from ..passes.manager import PassCx
    from .trials import Trials

__all__ = ["Marking", "MarkingCapture", "carried"]


class Marking(Instrument):
    """Marks the innermost loop at or around a line. why: the reason if it could not; else empty.
    found: the line of the loop. text: the IR with the mark."""

    shares_from = 1

    def __init__(self, line: int) -> None:
        self._line: Final = line
        self.why = f"has no for loop at line {line}"
        self.found = 0
        self.text = ""

    def begin(self, func: Func, cx: PassCx) -> None:
        loop, outer = _loop_at(func, self._line)
        if loop is None:
            return
        self.found = loop.loc.root.line
        if outer and not loop.attr.strictly_serialized:
            self.why = f"runs the loop at line {self.found} in parallel already"
            return
        self.why = ""
        loop.attr = loop.attr._replace(independent=True, strictly_serialized=False)
        self.text = to_text(func, locs=True)


class MarkingCapture(KernelCapture):
    """A capture of a kernel with a marked loop."""

    marking: Marking

    def instruments(self, name: str) -> tuple[Instrument, ...]:
        return (self.marking,)


def _loop_at(func: Func, line: int) -> tuple[Op | None, bool]:
    """The loop, and True if it is at the top of the kernel."""
    exact: tuple[Op | None, bool] = (None, False)
    around: tuple[Op | None, bool] = (None, False)

    def visit(block: Block, depth: int) -> None:
        nonlocal exact, around
        for op in block.ops:
            loop = op.code == C.RANGE_FOR
            if loop and op.loc.root.line == line and exact[0] is None:
                exact = op, depth == 0
            if loop and any(x.loc.root.line == line for x in walk(op.regions[0])):
                around = op, depth == 0
            for region in op.regions:
                visit(region, depth + 1)

    visit(func.body, 0)
    return exact if exact[0] is not None else around


def carried(trials: Trials, marking: Marking) -> str:
    """The reason why iterations of the marked loop are not independent; else empty.

    UnjudgedError or TooLong if the kernel cannot be followed in that way.
    """
    found = first_conflict(trials.given, parse(marking.text), lambda op: _is_marked(op))
    if found is None:
        return ""
    name, element, before, now = found
    return (
        f"it is false: iterations {before} and {now} of the loop at line {marking.found} touch "
        f"element {element} of {name}, and one of them writes it"
    )


def _is_marked(op: Op) -> bool:
    return op.code == C.RANGE_FOR and op.attr.independent
