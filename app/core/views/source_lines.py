"""The source locations, in the user's file, of parts of IR or code."""

from __future__ import annotations

from collections.abc import Mapping

from ....engine.inspect.record import CompileRecord
from ..lines import Span
from ..memo import by_identity

__all__ = ["gutter", "op_lines", "source_at", "user_line", "user_lines"]


def user_line(compiled: CompileRecord, index: int) -> int:
    """The line of the kernel that a location belongs to (that of the outermost call); 0: none."""
    return user_lines(compiled)[index] if index >= 0 else 0


@by_identity(16)
def user_lines(compiled: CompileRecord) -> tuple[int, ...]:
    """`user_line` of every location."""
    out: list[int] = []
    for loc in compiled.locs:
        while loc.parent >= 0:
            loc = compiled.locs[loc.parent]
        out.append(loc.line)
    return tuple(out)


@by_identity(16)
def op_lines(compiled: CompileRecord) -> dict[int, int]:
    """The user's line of every op of the last listing that has it."""
    lines = user_lines(compiled)
    out: dict[int, int] = {}
    for shot in compiled.snapshots:
        for op, loc in zip(shot.ids, shot.locs, strict=True):
            if op >= 0 and loc >= 0:
                out[op] = lines[loc]
    return out


def source_at(texts: Mapping[str, str], file: str, line: int) -> str:
    """A line of a file; empty if there is none. texts: of files, by path."""
    lines = texts.get(file, "").split("\n")
    return lines[line - 1] if 0 < line <= len(lines) else ""


def gutter(line: int) -> Span:
    """The user's line number before a line of IR."""
    return (f"{line or '':>4} ", "gutter")
