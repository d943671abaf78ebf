"""The text of a kernel, and that of its first-tier code.

In a kernel of thousands of loops most tasks are alike (see `alike`). The text has the first task of
a kind; the others are copies, which are written out where full code is made: most often by the
helper process. First-tier code has one function for all tasks of a kind, which loads the numbers
that they differ in; the entry function stores those of a task before it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ...named_tuple import NamedTuple
from ..base import KernelMeta
from ..kernarg import abi
from .text import NUMBER, PLACE

__all__ = ["Call", "Copy", "FirstText", "KernelText", "Pattern", "Shared", "TaskBody", "TextSource"]


class Shared(NamedTuple):
    """First-tier code of tasks that are alike. lines: of its functions, in the place of those of
    the first task. types: of the numbers that these load. loads: lines that load its arguments."""

    lines: list[str]
    types: list[str]
    loads: list[str]


class TaskBody(NamedTuple):
    """A task's body in the text. line: where it begins, two lines below where the task does. name:
    of the function that the thread pool runs, if it is ``chunked``. loads: lines that load its
    arguments from the buffer. shared: its first-tier code, if others have that, too."""

    line: int
    name: str
    loads: list[str]
    chunked: bool
    shared: Shared | None = None


class Call(NamedTuple):
    """A line of the entry function that runs a task which shares its first-tier code. code: the
    task that has it. numbers: its own, as operands."""

    line: int
    task: str
    code: str
    numbers: tuple[str, ...]


Pattern = tuple[tuple[str, ...], tuple[int, ...]]
"""The text of tasks that are alike: the pieces around its gaps, and what these are filled with, as
indices into what a copy has."""
Copy = tuple[int, int, tuple[str, ...], tuple[int, ...]]
"""A task: the line of the text that comes after it, its pattern, and what it fills that with: its
own words, then the ids of its ops."""


class TextSource(NamedTuple):
    """The parts of the text of a kernel. text: without copies."""

    text: str
    patterns: tuple[Pattern, ...] = ()
    copies: tuple[Copy, ...] = ()

    def whole(self) -> str:
        """The text."""
        if not self.copies:
            return self.text
        lines = self.text.split("\n")
        out: list[str] = []
        begin = 0
        for at, pattern, words, ids in self.copies:
            out += lines[begin:at]
            out.append(filled(self.patterns[pattern], (*words, *map(str, ids))))
            begin = at
        return "\n".join([*out, *lines[begin:]])

    @property
    def lines(self) -> int:
        """The number of lines of the text."""
        each = [sum([piece.count("\n") for piece in pieces]) + 1 for pieces, _ in self.patterns]
        return self.text.count("\n") + sum([each[pattern] for _, pattern, _, _ in self.copies])


def filled(pattern: Pattern, words: Sequence[str]) -> str:
    """The text of a task."""
    pieces, gaps = pattern
    out = [""] * (2 * len(gaps) + 1)
    out[::2] = pieces
    out[1::2] = [words[gap] for gap in gaps]
    return "".join(out)


class FirstText(NamedTuple):
    """The text for first-tier code; see `KernelText`."""

    lines: list[str]
    stops: list[tuple[int, int]]
    bodies: list[TaskBody]


class KernelText:
    """A kernel as LLVM IR.

    symbol: the entry function. own_ids: for each line of the source's text the id of its op, -1 for
    none. pattern_ids: of patterns, for each line the index into the ids of a copy, or -1.
    stops, bodies: of the source's text; see `deadline.with_deadline`. calls: of tasks that share
    their first-tier code, in the order of their lines.
    """

    def __init__(
        self, source: TextSource, own_ids: Sequence[int], symbol: str, meta: KernelMeta,
        layout: abi.ArgumentLayout, stops: Sequence[tuple[int, int]] = (),
        bodies: Sequence[TaskBody] = (), calls: Sequence[Call] = (),
        pattern_ids: Sequence[tuple[int, ...]] = (),
    ) -> None:  # fmt: skip
        self.source = source
        self.own_ids = own_ids
        self.symbol = symbol
        self.meta = meta
        self.layout = layout
        self.stops = stops
        self.bodies = bodies
        self.calls = calls
        self.pattern_ids = pattern_ids

    @cached_property
    def text(self) -> str:
        return self.source.whole()

    @cached_property
    def ids(self) -> tuple[int, ...]:
        """For each line the id of its op, -1 for none."""
        out: list[int] = []
        begin = 0
        for at, pattern, _, ids in self.source.copies:
            out += self.own_ids[begin:at]
            out += [ids[i] if i >= 0 else -1 for i in self.pattern_ids[pattern]]
            begin = at
        return (*out, *self.own_ids[begin:])

    def first(self) -> FirstText:
        """The text of the first tier."""
        lines = self.source.text.split("\n")
        if not self.calls:
            return FirstText(lines, [*self.stops], [*self.bodies])
        for body in self.bodies:
            if body.shared is not None:
                begin = body.line - 2
                lines[begin : begin + len(body.shared.lines)] = body.shared.lines
        types = {body.name: body.shared.types for body in self.bodies if body.shared is not None}
        out: list[str] = []
        stops: list[tuple[int, int]] = []
        rest = iter([*self.stops, (len(lines), 0)])
        stop, weight = next(rest)
        begin = 0
        for at, task, code, numbers in self.calls:
            while stop <= at:
                stops.append((stop - begin + len(out), weight))
                stop, weight = next(rest)
            out += lines[begin:at]
            out += [
                f"  store {ty} {number}, ptr {PLACE}{i}, align 8"
                for i, (ty, number) in enumerate(zip(types[code], numbers, strict=True))
            ]
            out.append(lines[at].replace(f"@{task},", f"@{code},"))
            begin = at + 1
        more = len(out) - begin
        while stop < len(lines):
            stops.append((stop + more, weight))
            stop, weight = next(rest)
        out += lines[begin:]
        most = max(map(len, types.values()))
        out[-1:] = [*[f"{PLACE}{i} = internal global i64 0, align 8" for i in range(most)], ""]
        return FirstText(out, stops, [_moved(body, more) for body in self.bodies])


def _moved(body: TaskBody, more: int) -> TaskBody:
    """``body``, so many lines below, with the numbers that its code loads."""
    loads = body.loads
    if body.shared is not None:
        loads = [
            f"  {NUMBER}{i} = load {ty}, ptr {PLACE}{i}, align 8"
            for i, ty in enumerate(body.shared.types)
        ] + body.shared.loads
    return body._replace(line=body.line + more, loads=loads)
