"""The cost of source lines: counted amounts, estimated time, what limits each task; a roofline."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from html import escape as esc
from typing import Final

from ...engine.inspect.record import BackendRecord, FileRecord, KernelRecord
from ..core import format as fmt
from ..core.lines import Line
from ..core.pending import faded, state_of
from ..core.views import costs
from ..markup import markdown as md
from ..markup.html import Page, table, td
from ._panel import (
    Asked,
    Block,
    Changes,
    Look,
    Panel,
    Shown,
    Tab,
    json_of_backends,
    of_backend,
)  # fmt: skip

__all__ = ["PANEL", "cost_lines"]

_MOST: Final = 5


def cost_lines(
    kernel: KernelRecord, backend: BackendRecord | None, files: tuple[FileRecord, ...], width: int,
    ascii_only: bool = False, hint: str = "",
) -> list[Line]:  # fmt: skip
    """All about the costs of a kernel on a backend. hint: how to measure the machine."""
    cost = costs.cost_of(backend)
    if backend is None or cost is None:
        return [Line(((_why_none(kernel, backend), "dim"),))]
    launch = next((x for x in backend.launches if x.workload == cost.workload), None)
    time = fmt.launch_time(launch) if launch is not None else ""
    out = [Line(((f"{kernel.name} on {backend.backend}", "title"), (f"  {cost.workload}  ", ""),
                 (time, "num"), (f"  {_totals(cost.bytes, cost.flops)}", "dim")))]  # fmt: skip
    out += _wrapped(costs.machine_text(backend.peaks), width)
    if backend.peaks is None and hint:
        out.append(Line(((hint, "accent"),)))
    out.append(Line(()))
    out += costs.task_lines(kernel, backend, cost, width)
    out.append(Line(()))
    if cost.lines:
        out += [*costs.line_table(cost, files), Line(())]
        out += _wrapped(_how(cost.method), width)
    if cost.reason:
        out.append(Line(((f"Amounts: {cost.reason}", "warn"),)))
    point = costs.point_of_backend(kernel, backend)
    if backend.peaks is not None and point is not None:
        out += [Line(()), *costs.roofline_lines(backend.peaks, cost, point, width, ascii_only)]
    return faded(out, state_of(kernel, backend, "launches"))


def _wrapped(text: str, width: int) -> list[Line]:
    return [Line(((part, "dim"),)) for part in textwrap.wrap(text, max(40, width - 1))]


def _how(method: str) -> str:
    amounts = {
        "counted": "Amounts were counted by a launch of the CPU's code with these arguments.",
        "bounds": "Amounts follow from the bounds of loops; <= marks upper limits.",
    }.get(method, "")
    return f"{costs.HOW} {amounts}"


def _totals(bytes: int | None, flops: int | None) -> str:
    parts = ["bytes unknown" if bytes is None else fmt.size(bytes)]
    parts.append("operations unknown" if flops is None else f"{fmt.count(flops)} FLOP")
    return ", ".join(parts)


def _why_none(kernel: KernelRecord, backend: BackendRecord | None) -> str:
    """The reason why there are no costs."""
    if backend is not None and backend.backend == "interp":
        return "The interpreter has no costs by line: choose another backend."
    if backend is not None and "launches" in backend.earlier:
        return "Not launched yet."
    if backend is not None and not backend.launches:
        return f"No costs: {backend.reason or backend.unlaunched or 'nothing was launched'}."
    return "No costs were counted."


def _first(kernel: KernelRecord) -> BackendRecord | None:
    """The first backend with costs, else the first."""
    return next((b for b in kernel.backends if b.costs), next(iter(kernel.backends), None))


def _draw(look: Look) -> Shown:
    hint = "'Measure the machine' (usually M) finds it out in a few seconds, once for this machine."
    top = costs.top_lines(look.record.kernels, look.record.files, _MOST)
    lines: list[Line] = []
    if top and len(look.record.kernels) > 1:
        lines = [Line((("The most expensive lines of all kernels", "head"),)), *top, Line(())]
    lines += cost_lines(
        look.kernel, look.backend, look.record.files, look.width, look.ascii_only, hint
    )
    return Shown(lines)


def _moved(look: Look, line: Line) -> Changes:
    return {"line": line.line} if line.line and isinstance(line.key, int) else {}


def _text(asked: Asked) -> Iterator[Block]:
    kernels = asked.kernels()
    top = costs.top_lines(kernels, asked.record.files, _MOST)
    if top:
        yield "the most expensive lines, for one launch of each kernel", top
    for kernel in kernels:
        backends = [b for b in kernel.backends if b.costs] or [_first(kernel)]
        for backend in backends:
            name = f" on {backend.backend}" if backend is not None else ""
            yield f"{kernel.id}{name}", cost_lines(kernel, backend, asked.record.files, asked.width)


def _json(asked: Asked, kernel: KernelRecord, backend: BackendRecord) -> dict[str, object] | None:
    """``{"costs": [CostRecord], "peaks": PeaksRecord or null}``."""
    return {"costs": backend.costs, "peaks": backend.peaks} if backend.costs else None


_HEADS: Final = ("line", "time", "share", "limit", "runs", "bytes", "travel", "operations")


def _rows(backend: BackendRecord) -> list[list[str]]:
    cost = costs.cost_of(backend)
    out: list[list[str]] = []
    for one in costs.line_sums(cost)[:_MOST] if cost is not None else ():
        out.append([str(one.line), fmt.duration_us(one.us), f"{one.share:.0%}", one.limited_by,
                    *costs.amounts(one)])  # fmt: skip
    return out


def _notes(kernel: KernelRecord, backend: BackendRecord) -> list[str]:
    """The limits of tasks, the machine, and how times by line are estimated."""
    cost = costs.cost_of(backend)
    if cost is None:
        return []
    out: list[str] = []
    for task, name, place in costs.task_rows(kernel, backend, cost):
        if task.limited_by:
            time = fmt.duration_us(task.us)
            known = task.limited_by != "unknown"
            limit = f"limited by {task.limited_by}" if known else "limit not known"
            out.append(f"{name} {place} {time}: {limit}: {task.because}.")
    rest = f" {costs.unmapped(cost):.1%} of the time has no source line."
    return [*out, costs.machine_text(backend.peaks), costs.HOW + rest]


def _markdown(kernel: KernelRecord) -> list[str]:
    """The five most expensive lines of the kernel, folded."""
    out: list[str] = []
    for backend in kernel.backends:
        rows = _rows(backend)
        if rows:
            body = md.table(_HEADS, [[md.text(t) for t in row] for row in rows])
            notes = [md.text(note) for note in _notes(kernel, backend)]
            title = f"Costs by line on {backend.backend}"
            out += md.folded(title, [*body, "", *(f"- {note}" for note in notes)])
    return out


def _html(kernel: KernelRecord, page: Page) -> str:
    """The five most expensive lines of the kernel on each backend."""
    out: list[str] = []
    for backend in kernel.backends:
        rows = _rows(backend)
        if rows:
            cells = [[td(t, "num" if i != 3 else "") for i, t in enumerate(row)] for row in rows]
            notes = "<br>".join(map(esc, _notes(kernel, backend)))
            title = f"Costs by line on {backend.backend}"
            body = f'{table(_HEADS, cells)}<p class="facts">{notes}</p>'
            out.append(page.pack.details(title, body, "costs"))
    return "".join(out)


PANEL: Final = Panel(
    id="cost",
    help="Counted bytes and operations by source line, estimated time, and what limits each task.",
    order=75,
    launches=True,
    peaks=True,
    tab=Tab(
        keys=(("measure", "measure the machine"), ("next-tab", "tab"), ("backend", "backend"),
              ("previous-kernel+next-kernel", "kernel"), ("search", "search")),
        state=of_backend("launches"),
        draw=_draw,
        moved=_moved,
    ),
    text=_text,
    json=json_of_backends(_json),
    markdown={35: _markdown},
    html={35: _html},
)  # fmt: skip
