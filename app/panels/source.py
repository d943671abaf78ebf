"""The user's source with line heat, errors in place, and the compiled kernel's parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from html import escape as esc
from typing import Final

from ...engine.inspect.record import CompileRecord, ErrorRecord, KernelRecord, Record
from ..core import format as fmt
from ..core.lines import Line, Span, python_spans
from ..core.memo import by_identity
from ..core.pending import faded, state_of
from ..core.views import costs
from ..core.views.errors import errors_of
from ..core.views.params import HEADER, param_lines, param_rows
from ..markup import markdown as md
from ..markup.html import Page, lines_html, table, td
from ._panel import (
    Asked,
    Look,
    Panel,
    Shown,
    Tab,
    compiles,
    json_of_compiles,
    of_backend,
    text_of_kernels,
    to_line,
)  # fmt: skip

__all__ = ["PANEL", "heat", "source_lines"]

_TAB = 8
_PAD = 19
_PARAMS_PAD = 6
"""Less than that of code, so that a table of parameters says most of it in 80 columns."""
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
    """The kernel's file; keys are line numbers. Counts: statements before > after the passes.

    Bars: each line's estimated share of the time if costs are known, else of the statements.

    The parameters of the compiled kernel follow the signature where they are not simply the
    declared ones: parts of aggregates, and fields with their layout. A compile of an older save has
    no counts: its line numbers may no longer fit.
    """
    text = next((f.text for f in record.files if f.path == kernel.file), "")
    lines = text.splitlines()
    own = next((b for b in kernel.backends if compiled is not None and b.compile is compiled), None)
    old = state_of(kernel, own, "passes")
    counted = compiled if not old else None
    before = heat(counted, 0) if counted else Counter[tuple[str, int]]()
    after = heat(counted, -1) if counted else Counter[tuple[str, int]]()
    most = max(after.values(), default=0)
    times = costs.shares(kernel, own)
    errors: dict[int, list[ErrorRecord]] = {}
    for error in errors_of(record, kernel):
        if error.file == kernel.file and error.line:
            errors.setdefault(error.line, []).append(error)
    out: list[Line] = []
    params = faded(param_lines(kernel, compiled, _PARAMS_PAD), old)
    below = _signature_end(lines, kernel) if params else 0
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
                    _heated(number, times, b, most, ascii_only),
                    *(python_spans(shown) if inside else ((shown, "dim"),)),
                ),
                number,
                line,
                line=number,
            )
        )
        for error in errors.get(number, ()):
            out += _error_lines(error, line)
        if number == below:
            out += params
    if not lines:
        out.append(Line(((f"{kernel.file} is empty or was not read", "dim"),)))
    return out


def _signature_end(lines: list[str], kernel: KernelRecord) -> int:
    """The line of the colon that ends the signature; its first one if that is not found."""
    depth = 0
    begun = False
    for number in range(kernel.line, min(kernel.end_line or len(lines), len(lines)) + 1):
        code = lines[number - 1].partition("#")[0].rstrip()
        begun = begun or code.lstrip().startswith("def ")
        depth += sum(code.count(c) for c in "([{") - sum(code.count(c) for c in ")]}")
        if begun and depth <= 0 and code.endswith(":"):
            return number
    return kernel.line


def _heated(
    number: int, times: Mapping[int, float], count: int, most: int, ascii_only: bool
) -> Span:
    """The bar of a line. times: shares by line, empty where they are not known."""
    if not times:
        return _bar(count, most, ascii_only) + " ", _heat_style(count, most)
    share = times.get(number, 0.0)
    return _bar(round(1000 * share), 1000, ascii_only) + " ", costs.heat_style(share)


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
    pad = " " * _PAD
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


# ---- the panel


def _draw(look: Look) -> Shown:
    lines = source_lines(look.record, look.kernel, look.compiled, look.ascii_only)
    line = look.sel.line or look.kernel.line
    return Shown(lines, _legend(look), at=(look.kernel.id, line), key=line)


def _legend(look: Look) -> list[Line]:
    """The meaning of the columns and of the bars, and what no line has."""
    if look.compiled is None or not look.compiled.snapshots:
        return []
    counts: list[str] = []
    for shot in (look.compiled.snapshots[0], look.compiled.snapshots[-1]):
        none = sum(op >= 0 > loc for op, loc in zip(shot.ids, shot.locs, strict=True))
        counts.append(f"{none} of {shot.ops}")
    text = f"line  statements before>after the passes; without a line: {' > '.join(counts)}"
    out = [Line(((text, "dim"),))]
    cost = costs.cost_of(look.backend)
    if cost is not None and costs.shares(look.kernel, look.backend):
        rest = costs.unmapped(cost)
        text = f"bars: estimated share of the time on {cost.workload}; {rest:.1%} without a line"
        out.append(Line(((text, "dim"),)))
    return out


def _text(asked: Asked, kernel: KernelRecord) -> list[Line]:
    compiled = next((c for _, c in compiles(kernel)), None)
    return source_lines(asked.record, kernel, compiled)


def _json(asked: Asked, kernel: KernelRecord, compiled: CompileRecord) -> dict[str, object]:
    """``{"file": FileRecord, "statements": {line: [before, after]}, "params": [...]}``, of
    `BindingRecord`."""
    before, after = heat(compiled, 0), heat(compiled, -1)
    lines = sorted({n for path, n in (*before, *after) if path == kernel.file})
    return {
        "file": next((f for f in asked.record.files if f.path == kernel.file), None),
        "statements": {str(n): [before[kernel.file, n], after[kernel.file, n]] for n in lines},
        "params": compiled.params,
    }


def _markdown(kernel: KernelRecord) -> list[str]:
    """The parameters of the compiled kernel, folded."""
    compiled = next((c for _, c in compiles(kernel)), None)
    if compiled is None or not compiled.params:
        return []
    rows = [[md.text(t) for t in row] for row in param_rows(kernel, compiled)]
    return md.folded(fmt.counted(len(compiled.params), "parameter"), md.table(HEADER, rows))


def _html(kernel: KernelRecord, backend: str, compiled: CompileRecord, page: Page) -> str:
    """The parameters of the compiled kernel, folded."""
    if not compiled.params:
        return ""
    rows = [
        [f"<td><code>{esc(name)}</code></td>", *map(td, rest)]
        for name, *rest in param_rows(kernel, compiled)
    ]
    title = fmt.counted(len(compiled.params), "parameter")
    return page.pack.details(title, table(HEADER, rows), "params")


def _html_source(kernel: KernelRecord, page: Page) -> str:
    """The lines of the kernel, with what they cost, folded."""
    if not any(f.path == kernel.file for f in page.record.files):
        return ""
    compiled = next((c for _, c in compiles(kernel)), None)
    lines = source_lines(page.record, kernel, compiled)
    last = kernel.end_line or kernel.line
    shown = [line for line in lines if not line.line or kernel.line <= line.line <= last]
    note = "Left of each line: its statements in the IR, before > after the passes."
    body = f'<p class="facts">{note}</p>{lines_html(shown)}' if compiled else lines_html(shown)
    return page.pack.details(f"Source with heat, lines {kernel.line} to {last}", body, "source")


PANEL: Final = Panel(
    id="source",
    help="Your source with the statements of the IR per line, before and after the passes.",
    order=10,
    tab=Tab(
        keys=(("next-tab", "tab"), ("choose", "its IR"), ("previous-kernel+next-kernel", "kernel"),
              ("search", "search")),
        state=of_backend("passes"),
        draw=_draw,
        moved=to_line,
    ),
    text=text_of_kernels(_text),
    json=json_of_compiles(_json),
    markdown={30: _markdown},
    html={5: _html_source},
    html_of_compile=_html,
)  # fmt: skip
