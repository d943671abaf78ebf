"""The user's source with line heat, and errors in place."""

from __future__ import annotations

from collections import Counter

from ....engine.inspect.record import CompileRecord, ErrorRecord, KernelRecord, Record
from .. import format as fmt
from ..lines import Line, python_spans
from .passes import user_line

__all__ = ["heat", "lines_of", "source_lines"]

_BARS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█")


def heat(compiled: CompileRecord, snapshot: int = -1) -> Counter[tuple[str, int]]:
    """Statements of the IR per (file, line), inlined code credited to the kernel's own line."""
    out: Counter[tuple[str, int]] = Counter()
    if not compiled.snapshots:
        return out
    shot = compiled.snapshots[snapshot]
    for op, index in zip(shot.ids, shot.locs, strict=True):
        if op >= 0 and index >= 0:
            loc = compiled.locs[index]
            while loc.parent >= 0:
                loc = compiled.locs[loc.parent]
            out[loc.file, loc.line] += 1
    return out


def source_lines(
    record: Record, kernel: KernelRecord, compiled: CompileRecord | None, ascii_only: bool = False
) -> list[Line]:
    """The kernel's file; keys are line numbers. Counts: statements before > after the passes."""
    text = next((f.text for f in record.files if f.path == kernel.file), "")
    lines = text.splitlines()
    before = heat(compiled, 0) if compiled else Counter[tuple[str, int]]()
    after = heat(compiled, -1) if compiled else Counter[tuple[str, int]]()
    most = max(after.values(), default=0)
    errors: dict[int, list[ErrorRecord]] = {}
    for error in (*record.errors, *kernel.errors, *(e for b in kernel.backends for e in b.errors)):
        if error.file == kernel.file and error.line:
            errors.setdefault(error.line, []).append(error)
    out: list[Line] = []
    for number, line in enumerate(lines, 1):
        a, b = before[kernel.file, number], after[kernel.file, number]
        count = f"{a}>{b}" if a or b else ""
        inside = kernel.line <= number <= (kernel.end_line or number)
        out.append(
            Line(
                (
                    (f"{number:>4} ", "bad" if number in errors else "gutter"),
                    (f"{count:>8} ", "dim"),
                    (_bar(b, most, ascii_only) + " ", _heat_style(b, most)),
                    *(python_spans(line) if inside else ((line, "dim"),)),
                ),
                number,
                line,
            )
        )
        for error in errors.get(number, ()):
            out += _error_lines(error)
    if not lines:
        out.append(Line(((f"{kernel.file} is empty or was not read", "dim"),)))
    return out


def _bar(count: int, most: int, ascii_only: bool) -> str:
    if not count or not most:
        return "    "
    eighths = max(1, round(32 * count / most))
    if ascii_only:
        return ("#" * ((eighths + 7) // 8)).ljust(4)
    return ("█" * (eighths // 8) + _BARS[eighths % 8]).ljust(4)


def _heat_style(count: int, most: int) -> str:
    if not count or not most:
        return ""
    return f"heat{1 + min(2, 3 * (count - 1) // most)}"


def _error_lines(error: ErrorRecord) -> list[Line]:
    pad = " " * 19
    width = error.end_col - error.col if error.end_line in (0, error.line) else 1
    out = [Line(((pad + " " * error.col + "^" * max(1, width), "bad"),), ("error", error.line))]
    text = f"{error.kind}: {fmt.first_line(error.message)}"
    out.append(Line(((pad + text, "bad"),), ("error", error.line), text))
    if error.hint:
        out.append(Line(((pad + error.hint, "warn"),), ("error", error.line), error.hint))
    return out


def lines_of(compiled: CompileRecord, op: int) -> int:
    """The user's line of an op, looked for in the last listing that has it; 0 if in none."""
    for shot in reversed(compiled.snapshots):
        if op in shot.ids:
            return user_line(compiled, shot.locs[shot.ids.index(op)])
    return 0
