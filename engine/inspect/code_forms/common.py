"""Facts of a record about generated code, for its readable forms; and the form itself."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ...backends.llvm.text import names_of
from ...named_tuple import NamedTuple
from ..readable import local_names, loop_heads, readable_ir
from ..record import Artefact, BindingRecord, CompileRecord, FileRecord

__all__ = ["Facts", "LoopFact", "ReadableCode", "Row", "about_loop", "facts_of", "split_operands"]


class ReadableCode(NamedTuple):
    """Generated code for people; parallel sequences, one entry a line.

    lines: the text. rows: the line of the raw text that it shows, the first for a fold. ends: the
    line of the raw text after all that belong to it. types: of the value that it computes, empty
    for none. folded: the raw text that a fold hides, else empty.
    """

    lines: tuple[str, ...]
    rows: tuple[int, ...]
    ends: tuple[int, ...]
    types: tuple[str, ...]
    folded: tuple[str, ...]

    def place(self, row: int) -> int:
        """The line that shows line ``row`` of the raw text."""
        return max(0, min(bisect_right(self.ends, row), len(self.ends) - 1))


class Row(NamedTuple):
    """One line of code. noise: the kind of noise that it is, empty for none."""

    text: str
    type: str = ""
    noise: str = ""


class LoopFact(NamedTuple):
    """A loop of the user's. names: of its indices, by axis; text: as in the readable IR, by axis;
    line: in the kernel, 0 if it is not known; inside: the loop is in a function that is called
    there; times: iterations by axis, 0 if not known; added: by a pass, for the loop in that
    line."""

    names: tuple[str, ...]
    text: tuple[str, ...]
    line: int
    times: tuple[int, ...] = ()
    inside: bool = False
    added: bool = False


class Facts(NamedTuple):
    """params: parameters by the name that generated code has for them. values: local variables by
    the op whose value they hold. variables: by the op that allocates them. loops: by op. types: of
    the values of ops. ops: by line of the text. lines: of the user's file, by line of the text.
    heads: of loops, by line of the user's file, as `loop_heads` has them."""

    params: Mapping[str, BindingRecord]
    values: Mapping[int, str]
    variables: Mapping[int, str]
    loops: Mapping[int, LoopFact]
    types: Mapping[int, str]
    ops: Sequence[int]
    lines: Sequence[int]
    heads: Mapping[int, str]

    def op(self, row: int) -> int:
        """The op that line ``row`` is from; -1 if it is not known."""
        return self.ops[row] if row < len(self.ops) else -1

    def loop(self, rows: Iterable[int]) -> LoopFact | None:
        """The user's loop that all of these lines, which branch back, are from; None if the text
        does not say which, or it has several axes."""
        at = list(rows)
        ops = {self.op(row) for row in at}
        found = self.loops.get(next(iter(ops))) if len(ops) == 1 else None
        lines = {self.lines[row] if row < len(self.lines) else 0 for row in at}
        if found is not None and lines.isdisjoint((0, found.line)) and len(lines) == 1:
            line = lines.pop()  # of a task that the IR shows as a repeat of the one of `found`
            found = LoopFact((), (self.heads.get(line, ""),), line)
        if found is None:
            here = [x for x in self.loops.values() if x.line and {x.line} == lines]
            found = here[0] if len(here) == 1 and not here[0].names else None
        return found if found is not None and len(found.text) == 1 else None


_FOR: Final = re.compile(r"(?:for|each) ([\w$\[\], ]+?) in (.*)")
_ENDS: Final = re.compile(r"(-?\d+)\.\.(-?\d+)")


def facts_of(compiled: CompileRecord, artefact: Artefact, files: Iterable[FileRecord]) -> Facts:
    """The facts for one text of ``compiled``."""
    params = dict(zip(names_of([p.name for p in compiled.params]), compiled.params, strict=True))
    loops: dict[int, LoopFact] = {}
    types: dict[int, str] = {}
    variables: dict[int, str] = {}
    heads: dict[int, str] = {}
    if compiled.snapshots:
        shot = compiled.snapshots[-1]
        files = tuple(files)
        found = readable_ir(compiled, shot, files)
        by_loc = loop_heads(compiled, files)
        heads = {_line(compiled, loc): head for loc, head in by_loc.items()}
        for text, op, loc in zip(found.lines, found.ids, found.locs, strict=True):
            if op >= 0:
                _note_loop(loops, op, text.strip(), _line(compiled, loc), by_loc.get(loc, ""))
                if op in loops and loc >= 0 and compiled.locs[loc].parent >= 0:
                    loops[op] = loops[op]._replace(inside=True)
        for text, op in zip(shot.lines, shot.ids, strict=True):
            if op < 0:
                continue
            match = _TYPED.match(text)
            if match is not None:
                types[op] = match[1]
                if match[2]:
                    variables[op] = match[2]
    known = [_line(compiled, loc) for loc in artefact.lines]
    return Facts(params, local_names(compiled), variables, loops, types, artefact.ops, known, heads)


_TYPED: Final = re.compile(r" *<(\*?\w+)> \$\d+ [=:] \w+(?:(?<=alloca) \['(\w+)'\])?")


def _line(compiled: CompileRecord, index: int) -> int:
    """The line of the kernel that a location belongs to."""
    place = compiled.root(index)
    return 0 if place is None else place.line


def _note_loop(
    loops: dict[int, LoopFact], op: int, text: str, line: int, head: str
) -> None:  # fmt: skip
    """Note the loop that a line of readable IR begins, if it does. head: as in the source."""
    if text.startswith("while true"):
        loops[op] = LoopFact((), (head,), line)
        return
    match = _FOR.match(text.removesuffix(" {"))
    if match is None:
        return
    names = tuple(split_operands(match[1]))
    ranges = [part.split(" {")[0] for part in split_operands(match[2])]
    if len(names) != len(ranges):
        return
    times: list[int] = []
    for part in ranges:
        ends = _ENDS.fullmatch(part)
        times.append(max(0, int(ends[2]) - int(ends[1])) if ends else 0)
    texts = tuple([f"{name} in {part}" for name, part in zip(names, ranges, strict=True)])
    users = head.removeprefix("for ").replace(" ", "").split(",")
    added = head.startswith("for ") and not set(names) & set(users)
    loops[op] = LoopFact(names, texts, line, tuple(times), added=added)


def about_loop(loop: LoopFact | None, axis: int = 0) -> str:
    """``loop: for k in 0..8, line 12, 8 iterations``; ``loop`` for one that is not known."""
    if loop is None:
        return "loop"
    text = loop.text[axis]
    if "$" in text:  # bounds of the task, which only the IR has names for
        text = text.partition(" in ")[0]
    head = text if not loop.names else f"added by a pass: {text}" if loop.added else f"for {text}"
    parts = [f"loop: {head}" if head else "loop"]
    if loop.line:
        parts.append(f"{'called from ' if loop.inside else ''}line {loop.line}")
    if axis < len(loop.times) and loop.times[axis]:
        parts.append(f"{loop.times[axis]:,} iterations")
    return ", ".join(parts)


def split_operands(text: str) -> list[str]:
    """The parts between commas that are in no brackets."""
    out: list[str] = []
    depth = start = 0
    for i, c in enumerate(text):
        if c in "([{<":
            depth += 1
        elif c in ")]}>":
            depth -= 1
        elif c == "," and not depth:
            out.append(text[start:i].strip())
            start = i + 1
    out.append(text[start:].strip())
    return [part for part in out if part]
