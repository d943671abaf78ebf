"""The user's source with line heat, and errors in place."""

from __future__ import annotations

from collections import Counter

from ....engine.inspect.record import CompileRecord, ErrorRecord, KernelRecord, Record
from .. import format as fmt
from ..lines import Line, python_spans
from ..memo import by_identity
from .errors import errors_of

__all__ = ["heat", "source_lines"]

_TAB = 8
_BARS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█")


@by_identity(16)
def heat(compiled: CompileRecord, snapshot: int = -1) -> Counter[tuple[str, int]]:
    """Statements of the IR per (file, line), inlined code credited to the kernel's own line."""
    out: Counter[tuple[str, int]] = Counter()
    if not compiled.snapshots:
        return out
    shot = compiled.snapshots[snapshot]
    counts = Counter(i for op, i in zip(shot.ids, shot.locs, strict=True) if op >= 0 and i >= 0)
    for index, n in counts.items():
        loc = compiled.locs[index]
        while loc.parent >= 0:
            loc = compiled.locs[loc.parent]
        out[loc.file, loc.line] += n
    return out


@by_identity(16)
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
    for error in errors_of(record, kernel):
        if error.file == kernel.file and error.line:
            errors.setdefault(error.line, []).append(error)
    out: list[Line] = []
    for number, line in enumerate(lines, 1):
        a, b = before[kernel.file, number], after[kernel.file, number]
        count = f"{a}>{b}" if a or b else ""
        shown = line.expandtabs(_TAB)
        inside = kernel.line <= number <= (kernel.end_line or number)
        out.append(
            Line(
                (
                    (f"{number:>4} ", "bad" if number in errors else "gutter"),
                    (f"{count:>8} ", "dim"),
                    (_bar(b, most, ascii_only) + " ", _heat_style(b, most)),
                    *(python_spans(shown) if inside else ((shown, "dim"),)),
                ),
                number,
                line,
                line=number,
            )
        )
        for error in errors.get(number, ()):
            out += _error_lines(error, line)
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


def _error_lines(error: ErrorRecord, source: str) -> list[Line]:
    """Carets below the place, and what is wrong with it; columns as they are shown, tabs wide."""
    pad = " " * 19
    start = len(source[: error.col].expandtabs(_TAB))
    end = start + 1
    if error.end_line in (0, error.line) and error.end_col > error.col:
        end = len(source[: error.end_col].expandtabs(_TAB))
    key = ("error", error.line)
    carets = pad + " " * start + "^" * max(1, end - start)
    out = [Line(((carets, "bad"),), key, line=error.line)]
    text = f"{error.kind}: {fmt.first_line(error.message)}"
    out.append(Line(((pad + text, "bad"),), key, text, line=error.line))
    if error.hint:
        out.append(Line(((pad + error.hint, "warn"),), key, error.hint, line=error.line))
    return out
